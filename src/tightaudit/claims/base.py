"""What every claim can answer, and what the claims of one parameter have in common.

A trade-off function f = T(P, Q) gives the least false-negative rate of a test between P and Q at each
false-positive rate. An audit needs it only through its *channel*: the law of one best-possible guess
of a fair bit that chose between P and Q. Guesses are placed by the quantile t of their confidence
|ln dQ/dP| under (P+Q)/2; `error_probability(t)` is how often the guess at t is wrong and
`error_mass(t)` how often a guess is both above t and wrong.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tightaudit.claims.family import Family
from tightaudit.claims.parts.detection import DENSE_TOPS, detection_polygon
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray, Numbers, like_the_question
from tightaudit.support.errors import InputError
from tightaudit.support.notation import text_form
from tightaudit.support.registry import Registry

if TYPE_CHECKING:
    from tightaudit.claims.parts.base_pair import BasePair

_SYMMETRIC = 1e-6
"""How far f may be from its inverse, for a claim known on a grid or through rounding."""


class Claim(ABC):
    """A privacy claim: a trade-off function, its privacy curve and its channel."""

    name: ClassVar[str]
    """How the claim is called in text, e.g. `gaussian` in `gaussian(mu=1)`."""
    parameter_names: ClassVar[tuple[str, ...]] = ()
    """The keywords of the constructor, in the order of the text form."""
    list_names: ClassVar[tuple[str, ...]] = ()
    """Those of them that are lists of numbers, or one number for a list of one."""
    example: ClassVar[str]
    """The text form of one such claim, for tests and for error messages."""
    grain: ClassVar[float] = 0.0
    """How rough error rates are, relatively, for a claim that is known on a fine grid only."""

    @property
    def point(self) -> tuple[float, float] | None:
        """The ε and δ of a claim that says no more than (ε, δ)-DP; None for one that says a whole curve.

        >>> import tightaudit as ta
        >>> ta.ApproxDP(1.0, 1e-5).point, ta.Gaussian(1.0).point
        ((1.0, 1e-05), None)
        """
        return None

    @property
    def symmetric(self) -> bool:
        """Whether P and Q can be exchanged.

        >>> import tightaudit as ta
        >>> ta.Gaussian(1.0).symmetric, ta.SubsampledGaussian(1.0, 0.5).symmetric
        (True, False)
        """
        return self.asymmetry <= _SYMMETRIC

    @property
    def asymmetry(self) -> float:
        """How far f is from its inverse, at most."""
        alpha = np.linspace(0, 1, 101)
        return float(np.max(np.abs(self.f(alpha) - self.inverse(alpha))))

    def f(self, alpha: Numbers) -> Numbers:
        """Least false-negative rate at false-positive rate `alpha`.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).f(0.05), 6)
        0.740489
        """
        return like_the_question(self._f(checks.within("alpha", alpha, 0, 1)))

    def inverse(self, beta: Numbers) -> Numbers:
        """Least false-positive rate at false-negative rate `beta`: the trade-off of (Q, P).

        >>> import tightaudit as ta
        >>> claim = ta.SubsampledGaussian(mu=1.0, q=0.5)
        >>> round(claim.inverse(claim.f(0.2)), 6)
        0.2
        """
        return like_the_question(self._inverse(checks.within("beta", beta, 0, 1)))

    def delta(self, epsilon: Numbers) -> Numbers:
        """Smallest δ at which the claim implies (ε, δ)-DP, the larger of its two directions.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).delta(1.0), 6)
        0.126937
        """
        return like_the_question(self._delta(checks.within("epsilon", epsilon, 0, math.inf)))

    def epsilon(self, delta: float) -> float:
        """Smallest ε ≥ 0 at which the claim implies (ε, δ)-DP; infinite if there is none.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).epsilon(1e-5), 4)
        4.3772
        """
        return self._epsilon(checks.probability("delta", delta))

    def base_pair(self) -> BasePair:
        """The pair on [0, 1] that stands for the claim: P uniform, Q with CDF f(1-x).

        >>> import tightaudit as ta
        >>> pair = ta.ApproxDP(epsilon=0.5, delta=0.1).base_pair()
        >>> round(pair.q_atom, 6), round(pair.q_density(0.99), 6)
        (0.1, 1.648721)
        """
        from tightaudit.claims.parts.base_pair import BasePair

        return BasePair(self)

    def error_probability(self, t: Numbers) -> Numbers:
        """p(t): how often the best guess is wrong at confidence quantile t. Never increases with t.

        >>> import tightaudit as ta
        >>> round(ta.Laplace(1.0).error_probability(0.9), 6)
        0.268941
        """
        top = 1 - checks.within("t", t, 0, 1)
        return like_the_question(self.top_error_probability(top))

    def error_mass(self, t: Numbers) -> Numbers:
        """A(t), the integral of p from t to 1: how often a guess is above quantile t and wrong.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).error_mass(0.0), 6)
        0.308538
        """
        top = 1 - checks.within("t", t, 0, 1)
        return like_the_question(self.top_error_mass(top))

    @property
    def kinks(self) -> FloatArray:
        """Quantiles t, ascending, where `error_mass` is not smooth, or only just: the edges of atoms.

        >>> import tightaudit as ta
        >>> ta.ApproxDP(epsilon=1.0, delta=0.25).kinks
        array([0.75])
        """
        return 1 - self.top_kinks[::-1]

    @property
    def top_kinks(self) -> FloatArray:
        """`1 - kinks`, ascending, without the rounding of that subtraction."""
        return np.empty(0)

    @abstractmethod
    def top_error_mass(self, top: FloatArray) -> FloatArray:
        """A(1-top), for methods: counted from the top, where 1-t would have lost its digits."""

    @abstractmethod
    def top_error_probability(self, top: FloatArray) -> FloatArray:
        """p(1-top), for methods."""

    def top_errors(self, top: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`top_error_mass` and `top_error_probability`, for a claim that finds both in one go."""
        return self.top_error_mass(top), self.top_error_probability(top)

    def symmetric_delta(self, epsilon: Numbers) -> Numbers:
        """Mean of δ in the two directions: the curve of the pair after relabelling the bit at random.

        >>> import tightaudit as ta
        >>> claim = ta.SubsampledGaussian(mu=1.0, q=0.5)
        >>> round(claim.symmetric_delta(0.5), 6), round(claim.delta(0.5), 6)
        (0.044551, 0.079945)
        """
        return like_the_question(self._symmetric_delta(checks.within("epsilon", epsilon, 0, math.inf)))

    @property
    def curve_kinks(self) -> FloatArray:
        """The ε > 0, ascending, where `symmetric_delta` is not smooth."""
        return np.empty(0)

    @property
    def piecewise_linear(self) -> bool:
        """Whether f is made of straight pieces: δ is linear in e^ε between 0 and the curve's kinks."""
        return False

    def detection_curve(self) -> Callable[[float], float]:
        """The least false-positive rate at each true-positive rate, the bit relabelled at random.

        Errs downwards where it is not exact, so that the mechanism looks less private.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).detection_curve()(0.5), 6)
        0.158655
        """
        tops = DENSE_TOPS
        return detection_polygon(tops, self.top_error_mass(tops), self.top_error_probability(tops))

    @abstractmethod
    def slope(self, alpha: FloatArray) -> FloatArray:
        """f'(alpha), any subgradient where f has a corner."""

    @abstractmethod
    def _f(self, alpha: FloatArray) -> FloatArray: ...

    def _inverse(self, beta: FloatArray) -> FloatArray:
        """The same as f, for a claim that is symmetric in P and Q."""
        return self._f(beta)

    @abstractmethod
    def _delta(self, epsilon: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    def _symmetric_delta(self, epsilon: FloatArray) -> FloatArray:
        """The same as δ, for a claim that is symmetric in P and Q."""
        return self._delta(epsilon)

    @property
    def parameters(self) -> dict[str, Any]:
        """The claim's parameters by name.

        >>> import tightaudit as ta
        >>> ta.SubsampledGaussian(mu=1.0, q=0.5).parameters
        {'mu': 1.0, 'q': 0.5}
        """
        return {name: getattr(self, name) for name in self.parameter_names}

    @classmethod
    def family(cls, **fixed: Any) -> Family:
        """The family over the one parameter that is not given.

        >>> import tightaudit as ta
        >>> str(ta.SubsampledGaussian.family(q=0.5)), ta.SubsampledGaussian.family(mu=1.0).parameter
        ('subsampled-gaussian(q=0.5)', 'q')
        """
        unknown = [name for name in fixed if name not in cls.parameter_names]
        if unknown:
            raise InputError(
                cls.name, unknown[0], f"parameters among {', '.join(cls.parameter_names) or 'none'}"
            )
        fixed = {
            name: value if name in cls.list_names else checks.number(name, value)
            for name, value in fixed.items()
        }
        free = [name for name in cls.parameter_names if name not in fixed]
        if len(free) != 1:
            given = text_form(cls.name, fixed)
            raise InputError("family", given, f"one parameter left out, not {' and '.join(free) or 'none'}")
        return cls._family(free[0], fixed)

    def own_family(self) -> Family:
        """The family through this claim over its first parameter, the others as they are.

        >>> import tightaudit as ta
        >>> str(ta.SubsampledGaussian(mu=1.0, q=0.5).own_family())
        'subsampled-gaussian(q=0.5)'
        """
        return self.family(**dict(list(self.parameters.items())[1:]))

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        """The family over `free`, with every other parameter given in `fixed`."""
        raise InputError("family", cls.name, f"a claim that can be searched over {free}")

    def __str__(self) -> str:
        return text_form(self.name, self.parameters)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({inside})"


CLAIMS: Registry[type[Claim]] = Registry("claim", folder="tightaudit.claims", plugins="tightaudit.claims")

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
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from tightaudit import checks
from tightaudit.checks import FloatArray
from tightaudit.errors import InputError


class TradeOff(ABC):
    """A privacy claim: a trade-off function, its privacy curve and its channel."""

    name: ClassVar[str]
    """How the claim is called in text, e.g. `gaussian` in `gaussian(mu=1)`."""
    parameter_names: ClassVar[tuple[str, ...]] = ()
    """The keywords of the constructor, in the order of the text form."""
    grain: ClassVar[float] = 0.0
    """How rough error rates are, relatively, for a claim that is known on a fine grid only."""

    @overload
    def f(self, alpha: float) -> float: ...
    @overload
    def f(self, alpha: ArrayLike) -> FloatArray: ...
    def f(self, alpha: ArrayLike) -> float | FloatArray:
        """Least false-negative rate at false-positive rate `alpha`.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).f(0.05), 6)
        0.740489
        """
        return _like_input(self._f(checks.within("alpha", alpha, 0, 1)))

    @overload
    def inverse(self, beta: float) -> float: ...
    @overload
    def inverse(self, beta: ArrayLike) -> FloatArray: ...
    def inverse(self, beta: ArrayLike) -> float | FloatArray:
        """Least false-positive rate at false-negative rate `beta`: the trade-off of (Q, P).

        >>> import tightaudit as ta
        >>> claim = ta.SubsampledGaussian(mu=1.0, q=0.5)
        >>> round(claim.inverse(claim.f(0.2)), 6)
        0.2
        """
        return _like_input(self._inverse(checks.within("beta", beta, 0, 1)))

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> FloatArray: ...
    def delta(self, epsilon: ArrayLike) -> float | FloatArray:
        """Smallest δ at which the claim implies (ε, δ)-DP, the larger of its two directions.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).delta(1.0), 6)
        0.126937
        """
        return _like_input(self._delta(checks.within("epsilon", epsilon, 0, math.inf)))

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
        return BasePair(self)

    @overload
    def error_probability(self, t: float) -> float: ...
    @overload
    def error_probability(self, t: ArrayLike) -> FloatArray: ...
    def error_probability(self, t: ArrayLike) -> float | FloatArray:
        """p(t): how often the best guess is wrong at confidence quantile t. Never increases with t.

        >>> import tightaudit as ta
        >>> round(ta.Laplace(1.0).error_probability(0.9), 6)
        0.268941
        """
        top = 1 - checks.within("t", t, 0, 1)
        return _like_input(self.top_error_probability(top))

    @overload
    def error_mass(self, t: float) -> float: ...
    @overload
    def error_mass(self, t: ArrayLike) -> FloatArray: ...
    def error_mass(self, t: ArrayLike) -> float | FloatArray:
        """A(t), the integral of p from t to 1: how often a guess is above quantile t and wrong.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian(1.0).error_mass(0.0), 6)
        0.308538
        """
        top = 1 - checks.within("t", t, 0, 1)
        return _like_input(self.top_error_mass(top))

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

    @overload
    def symmetric_delta(self, epsilon: float) -> float: ...
    @overload
    def symmetric_delta(self, epsilon: ArrayLike) -> FloatArray: ...
    def symmetric_delta(self, epsilon: ArrayLike) -> float | FloatArray:
        """Mean of δ in the two directions: the curve of the pair after relabelling the bit at random.

        >>> import tightaudit as ta
        >>> claim = ta.SubsampledGaussian(mu=1.0, q=0.5)
        >>> round(claim.symmetric_delta(0.5), 6), round(claim.delta(0.5), 6)
        (0.044551, 0.079945)
        """
        return _like_input(self._symmetric_delta(checks.within("epsilon", epsilon, 0, math.inf)))

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
        tops = np.concatenate([[0.0], np.geomspace(1e-300, 1e-12, 4000, endpoint=False), *_DENSE_TOPS])
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
    def parameters(self) -> dict[str, float]:
        """The claim's parameters by name.

        >>> import tightaudit as ta
        >>> ta.SubsampledGaussian(mu=1.0, q=0.5).parameters
        {'mu': 1.0, 'q': 0.5}
        """
        return {name: getattr(self, name) for name in self.parameter_names}

    @classmethod
    def family(cls, **fixed: float) -> Family:
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
        fixed = {name: checks.number(name, value) for name, value in fixed.items()}
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
    def _family(cls, free: str, fixed: dict[str, float]) -> Family:
        """The family over `free`, with every other parameter given in `fixed`."""
        raise InputError("family", cls.name, f"a claim that can be searched over {free}")

    def __str__(self) -> str:
        return text_form(self.name, self.parameters)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({inside})"


_DENSE_TOPS = (
    np.geomspace(1e-12, 0.5, 16_000, endpoint=False),
    1 - np.geomspace(1e-12, 0.5, 8000)[::-1],
    [1.0],
)


def detection_polygon(
    tops: FloatArray, error_mass: FloatArray, error_probability: FloatArray | None = None
) -> Callable[[float], float]:
    """A detection curve from a channel: guesses among a share `top` are called positives.

    That makes the false positives A(1-top) and the true ones top - A(1-top); past top = 1 the curve is
    its own mirror image. With error probabilities the points are replaced by the meeting points of the
    tangents there, which lie below the curve; without, the channel is linear between them.
    """
    hits, alarms = tops - error_mass, error_mass
    if error_probability is not None:
        slopes = error_probability / (1 - error_probability)
        rise = np.diff(alarms) - slopes[:-1] * np.diff(hits)
        turn = np.diff(slopes)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(turn > 0, np.diff(hits) - rise / turn, 0.0)
        step = np.clip(step, 0.0, np.diff(hits))
        hits = np.concatenate([[0.0], hits[:-1] + step, hits[-1:]])
        alarms = np.concatenate([[0.0], alarms[:-1] + slopes[:-1] * step, alarms[-1:]])
    x = np.append(hits, 1 - alarms[::-1])
    y = np.append(alarms, 1 - hits[::-1])
    keep = np.append(np.diff(x) > 0, True)
    abscissae, ordinates = x[keep].tolist(), y[keep].tolist()

    def curve(true_positive_rate: float) -> float:
        if true_positive_rate >= abscissae[-1]:
            return ordinates[-1]
        at = bisect_right(abscissae, true_positive_rate) - 1
        share = (true_positive_rate - abscissae[at]) / (abscissae[at + 1] - abscissae[at])
        return ordinates[at] + share * (ordinates[at + 1] - ordinates[at])

    return curve


class BasePair:
    """P and Q on [0, 1] with T(P, Q) = f: P is uniform, Q has density -f'(1-x) and an atom at 1.

    Definition 9 of Xiang et al., after Dong, Roth and Su.

    >>> import tightaudit as ta
    >>> pair = ta.Gaussian(1.0).base_pair()
    >>> pair.q_cdf([0.0, 0.5]).round(6)
    array([0.      , 0.158655])
    """

    def __init__(self, claim: TradeOff) -> None:
        self.claim = claim

    @property
    def q_atom(self) -> float:
        """Mass of Q at the point 1."""
        return 1 - self.claim.f(0.0)

    @overload
    def p_density(self, x: float) -> float: ...
    @overload
    def p_density(self, x: ArrayLike) -> FloatArray: ...
    def p_density(self, x: ArrayLike) -> float | FloatArray:
        """Density of P: 1 everywhere."""
        return _like_input(np.ones_like(checks.within("x", x, 0, 1)))

    @overload
    def q_density(self, x: float) -> float: ...
    @overload
    def q_density(self, x: ArrayLike) -> FloatArray: ...
    def q_density(self, x: ArrayLike) -> float | FloatArray:
        """Density of Q apart from its atom."""
        return _like_input(-self.claim.slope(1 - checks.within("x", x, 0, 1)))

    @overload
    def q_cdf(self, x: float) -> float: ...
    @overload
    def q_cdf(self, x: ArrayLike) -> FloatArray: ...
    def q_cdf(self, x: ArrayLike) -> float | FloatArray:
        """Mass of Q on [0, x]; the atom is counted at x = 1."""
        point = checks.within("x", x, 0, 1)
        return _like_input(np.where(point == 1, 1.0, self.claim.f(1 - point)))


@dataclass(frozen=True)
class Family:
    """Claims that differ in one parameter.

    A search walks along the *leak*, which grows as the members get less private: the parameter itself, or
    its inverse where a larger parameter is more private, as with noise.

    >>> import tightaudit as ta
    >>> family = ta.Gaussian.family()
    >>> family.parameter, family.member(2.0)
    ('mu', Gaussian(mu=2.0))
    """

    text: str
    """The text form, with the free parameter left out."""
    parameter: str
    """Name of the free parameter."""
    member: Callable[[float], TradeOff]
    """The claim at one value of the parameter."""
    most_private: TradeOff
    """The limit as the leak goes to 0."""
    least_private: TradeOff
    """The limit as the leak goes to `upper`."""
    upper: float = math.inf
    """Where the leak ends."""
    delta: float | None = None
    """The δ of every member, for a family in which it is fixed."""
    protects: bool = False
    """Whether a larger parameter is more private."""

    def __str__(self) -> str:
        return self.text

    @property
    def direction(self) -> str:
        """How rejected members lie to the last of them, in words: the more private ones are rejected too."""
        return "down to" if self.protects else "up to"

    def leaking(self, leak: float) -> TradeOff:
        """The member with so large a leak, anywhere from 0 to below `upper`.

        >>> import tightaudit as ta
        >>> ta.Gaussian.family().leaking(2.0)
        Gaussian(mu=2.0)
        """
        return self.member(self.parameter_at(leak)) if leak > 0 else self.most_private

    def parameter_at(self, leak: float) -> float:
        """The parameter of the member with so large a leak."""
        if not self.protects:
            return leak
        return 1 / leak if leak > 0 else math.inf

    def leak(self, claim: TradeOff) -> float:
        """The leak of a member.

        >>> import tightaudit as ta
        >>> ta.Laplace.family().leak(ta.Laplace(0.5))
        0.5
        """
        # 1/x is its own inverse.
        return self.parameter_at(claim.parameters[self.parameter])


def text_form(name: str, parameters: dict[str, float]) -> str:
    """A claim or family as the command line spells it.

    >>> text_form("approx-dp", {"epsilon": 1.0, "delta": 1e-5})
    'approx-dp(epsilon=1,delta=1e-05)'
    """
    inside = ",".join(f"{key}={shortest(value)}" for key, value in parameters.items())
    return f"{name}({inside})" if inside else name


def shortest(number: float) -> str:
    """The fewest digits that give the number again.

    >>> shortest(2.0), shortest(1.99996)
    ('2', '1.99996')
    """
    return repr(float(number)).removesuffix(".0")


def _like_input(values: FloatArray) -> float | FloatArray:
    """A plain float for a scalar question, an array for an array."""
    return float(values) if np.ndim(values) == 0 else values

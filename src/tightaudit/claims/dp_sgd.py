"""A whole training by DP-SGD: the subsampled Gaussian, composed over all steps."""

import math
from typing import Any

from scipy.special import expm1

from tightaudit.claims.approx_dp import from_perfect_privacy
from tightaudit.claims.base import CLAIMS
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.parts.composed import LARGEST_SIGMA, ComposedGaussian, noiseless, stretch
from tightaudit.support.errors import InputError
from tightaudit.support.notation import text_form


@CLAIMS.register
class DpSgd(ComposedGaussian):
    """`steps` steps, each N(0, σ²) against (1-q)·N(0, σ²) + q·N(1, σ²): out against in.

    Guesses for "in" come from the direction remove, guesses for "out" from add; ε(δ) is the larger of the
    two.

    >>> claim = DpSgd(sigma=1.13, q=0.1, steps=200)
    >>> round(claim.epsilon(1e-5), 2)
    8.0
    """

    name = "dp-sgd"
    example = "dp-sgd(sigma=1,q=0.1,steps=50)"
    parameter_names = ("sigma", "q", "steps")

    def __init__(self, sigma: float, q: float, steps: int) -> None:
        self.sigma, self.q, self.steps = stretch(sigma, q, steps)
        super().__init__([(self.sigma, self.q, self.steps)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DpSgd) and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.sigma, self.q, self.steps))

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        if free == "steps":
            raise InputError(
                "family", text_form(cls.name, fixed), "a number of steps: sigma or q may be free"
            )
        fixed = dict(zip(cls.parameter_names, stretch(**{"sigma": 1.0, "q": 1.0, **fixed}), strict=True))
        del fixed[free]
        if free == "q":
            most = cls(q=1.0, **fixed)
            return from_perfect_privacy(cls, free, fixed, least_private=most, upper=1.0)
        without = noiseless([stretch(sigma=1.0, **fixed)])
        return from_perfect_privacy(
            cls, free, fixed, least_private=without, lower=1 / LARGEST_SIGMA, protects=True
        )

    def central_limit(self) -> Gaussian:
        """What the claim comes to as steps grow and q falls, by the central limit theorem (Bu et al. 2020).

        An approximation, on either side of the truth; never used by default.

        >>> round(DpSgd(sigma=1.13, q=0.1, steps=200).central_limit().mu, 3)
        1.542
        """
        return Gaussian(self.q * math.sqrt(self.steps * expm1(self.sigma**-2)))

"""A whole training by DP-SGD: the subsampled Gaussian, composed over all steps."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import expm1, log1p

from tightaudit.claims.approx_dp import ApproxDP, from_perfect_privacy
from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.parts.accounting import sampled_gaussian_losses
from tightaudit.claims.parts.discrete import DiscretePair
from tightaudit.claims.privacy_loss import PrivacyLoss
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError
from tightaudit.support.notation import text_form

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-3, 1e6
LARGEST_STEPS = 10**8
_PER_SPREAD = 40
"""Grid points of a step's loss per standard deviation; ε comes out too large by less than a thousandth."""
_WIDEST_INTERVAL = 0.01
_MOST_POINTS = 5e5
_FAR = 8.0
"""Standard deviations beyond which losses and sampled steps are not expected, to estimate the grid."""
_NOWHERE = 1e-12
"""A share of guesses that no number of canaries reaches."""


@CLAIMS.register
class DpSgd(DiscretePair):
    """`steps` steps, each N(0, σ²) against (1-q)·N(0, σ²) + q·N(1, σ²): out against in.

    The losses are a privacy loss distribution of dp-accounting, rounded so that the claim is never more
    private than what it stands for: p-values err upward, and ε(δ) too. Guesses for "in" come from the
    direction remove, guesses for "out" from add; ε(δ) is the larger of the two.

    >>> claim = DpSgd(sigma=1.13, q=0.1, steps=200)
    >>> round(claim.epsilon(1e-5), 2)
    8.0
    """

    name = "dp-sgd"
    example = "dp-sgd(sigma=1,q=0.1,steps=50)"
    parameter_names = ("sigma", "q", "steps")
    grain = 1e-6

    def __init__(self, sigma: float, q: float, steps: int) -> None:
        self.sigma = checks.positive("sigma", sigma, maximum=LARGEST_SIGMA)
        if self.sigma < SMALLEST_SIGMA:
            raise InputError("sigma", sigma, f"at least {SMALLEST_SIGMA:g}")
        self.q = checks.rate("q", q)
        self.steps = _whole("steps", steps)
        super().__init__(*_composed(self.sigma, self.q, self.steps))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DpSgd) and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.sigma, self.q, self.steps))

    @classmethod
    def _family(cls, free: str, fixed: dict[str, float]) -> Family:
        if free == "steps":
            raise InputError(
                "family", text_form(cls.name, fixed), "a number of steps: sigma or q may be free"
            )
        steps = _whole("steps", fixed["steps"])
        if free == "q":
            most = cls(fixed["sigma"], 1.0, steps)
            return from_perfect_privacy(cls, free, fixed, least_private=most, upper=1.0)
        rate = checks.rate("q", fixed["q"])
        # Without noise, never having been sampled is all that protects.
        unseen = math.exp(steps * log1p(-rate)) if rate < 1 else 0.0
        noiseless: Claim = ApproxDP(0.0, 1.0)
        if unseen > 0:
            noiseless = PrivacyLoss([math.log(unseen), math.inf], [unseen, 1 - unseen])
        return from_perfect_privacy(cls, free, fixed, least_private=noiseless, protects=True)

    def central_limit(self) -> Gaussian:
        """What the claim comes to as steps grow and q falls, by the central limit theorem (Bu et al. 2020).

        An approximation, on either side of the truth; never used by default.

        >>> round(DpSgd(sigma=1.13, q=0.1, steps=200).central_limit().mu, 3)
        1.542
        """
        return Gaussian(self.q * math.sqrt(self.steps * expm1(self.sigma**-2)))

    @property
    def top_kinks(self) -> FloatArray:
        # The grid stands for a smooth curve, but for the place where guesses for "out" begin.
        if self.q == 1:
            return np.empty(0)
        last = -self.steps * math.log1p(-self.q)
        one_sided = float(self._top[np.searchsorted(-self._scores, -last)])
        return np.array([one_sided] if _NOWHERE < one_sided < 1 else [])

    # As of a smooth curve, not of the steps it is known by.
    curve_kinks = Claim.curve_kinks
    piecewise_linear = Claim.piecewise_linear


def _whole(name: str, value: float) -> int:
    """A count that may come as a float, from text."""
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    return checks.count(name, number, minimum=1, maximum=LARGEST_STEPS)


def _interval(sigma: float, q: float, steps: int) -> float:
    """The grid of losses: fine on the scale of one step, but not finer than memory allows."""
    spread = q * math.sqrt(expm1(min(sigma**-2, 100.0)))
    unsampled = math.log1p(-q) if q < 1 else -math.inf
    most = float(np.logaddexp(unsampled, math.log(q) + _FAR / sigma + 0.5 / sigma**2))
    sampled = steps * q
    range_of_losses = most * (sampled + _FAR * math.sqrt(sampled) + _FAR)
    interval = max(min(spread / _PER_SPREAD, _WIDEST_INTERVAL), range_of_losses / _MOST_POINTS)
    # The loss of a step without the canary is ln(1-q), or hardly more: it should lie on the grid.
    return interval if interval > -unsampled or q == 1 else -unsampled / math.ceil(-unsampled / interval)


@lru_cache(maxsize=16)
def _composed(sigma: float, q: float, steps: int) -> tuple[FloatArray, FloatArray]:
    """Masses of P and Q: losses above 0 as Q sees them (remove), below 0 as P does (add), 0 the rest.

    Each half dominates its direction's curve at every ε ≥ 0, and together they are one pair.
    """
    removed, added = sampled_gaussian_losses(sigma, q, steps, _interval(sigma, q, steps))
    # After very many steps rounding leaves masses that sum to more than 1: the smallest losses give way,
    # which keeps every part of the curve where it is or lower.
    order = np.argsort(-np.append(removed.losses, added.losses), kind="stable")
    p = np.append(removed.masses_of_other, added.masses)[order]
    q_mass = np.append(removed.masses, added.masses_of_other)[order]
    kept = (np.cumsum(p) <= 1) & (np.cumsum(q_mass) <= 1)
    p, q_mass = p[kept], q_mass[kept]
    return np.append(p, max(0.0, 1 - p.sum())), np.append(q_mass, max(0.0, 1 - q_mass.sum()))

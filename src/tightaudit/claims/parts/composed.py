"""A training by DP-SGD: subsampled Gaussians, composed over stretches of steps that are alike."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import expm1, log1p, logsumexp

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import Claim
from tightaudit.claims.parts.accounting import Stretch, sampled_gaussian_losses
from tightaudit.claims.parts.discrete import DiscretePair
from tightaudit.claims.privacy_loss import PrivacyLoss
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-3, 1e6
SMALLEST_RATE = 1e-15
LARGEST_STEPS = 10**8
_PER_SPREAD = 40
"""Grid points of a step's loss per standard deviation: what rounding adds to ε falls with their square."""
_WIDEST_INTERVAL = 0.01
_MOST_POINTS = 1e6
_ROUNDING = 5e-14
"""On a grid finer than the root of this times the range of usual losses, summed over steps, floating-point
errors in the masses would count for more than the grid."""
_FAR = 10.0
"""Standard deviations of noise beyond which the accountant lets a step's loss be infinite."""
_CHERNOFF_ORDERS = np.concatenate((np.arange(-20, 0), np.arange(1, 21)))
_CHERNOFF_TAIL = math.log(2e15)
_POINTS_OF_A_STEP = 2001
_NOWHERE = 1e-12
"""A share of guesses that no number of canaries reaches."""


class ComposedGaussian(DiscretePair):
    """What is released in all steps, out against in; known on a fine grid of privacy losses.

    The losses are a privacy loss distribution of dp-accounting, rounded so that the claim is never more
    private than what it stands for: p-values err upward, and ε(δ) too.
    """

    grain = 1e-6

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self.stretches = tuple(stretches)
        super().__init__(*_composed(self.stretches))

    @property
    def top_kinks(self) -> FloatArray:
        # The grid stands for a smooth curve, but for the place where guesses for "out" begin.
        last = unsampled_loss(self.stretches)
        if math.isinf(last):
            return np.empty(0)
        one_sided = float(self._top[np.searchsorted(-self._scores, -last)])
        return np.array([one_sided] if _NOWHERE < one_sided < 1 else [])

    # As of a smooth curve, not of the steps it is known by.
    curve_kinks = Claim.curve_kinks
    piecewise_linear = Claim.piecewise_linear


def stretch(sigma: float, q: float, steps: float) -> Stretch:
    """Steps that are alike, each number checked.

    >>> stretch(1.0, 0.1, 50.0)
    (1.0, 0.1, 50)
    """
    noise = checks.positive("sigma", sigma, maximum=LARGEST_SIGMA)
    if noise < SMALLEST_SIGMA:
        raise InputError("sigma", sigma, f"at least {SMALLEST_SIGMA:g}")
    whole = int(steps) if isinstance(steps, float) and steps.is_integer() else steps
    if 0 < checks.number("q", q) < SMALLEST_RATE:
        raise InputError("q", q, f"at least {SMALLEST_RATE:g}")
    return noise, checks.rate("q", q), checks.count("steps", whole, minimum=1, maximum=LARGEST_STEPS)


def unsampled_loss(stretches: Sequence[Stretch]) -> float:
    """Minus ln of the probability that a record is never sampled."""
    return sum(-steps * float(log1p(-q)) if q < 1 else math.inf for _, q, steps in stretches)


def noiseless(stretches: Sequence[Stretch]) -> Claim:
    """The same sampling without noise: never having been sampled is all that protects."""
    unseen = math.exp(-unsampled_loss(stretches))
    if unseen == 0:
        return ApproxDP(0.0, 1.0)
    return PrivacyLoss([math.log(unseen), math.inf], [unseen, 1 - unseen])


def _interval(stretches: Sequence[Stretch]) -> float:
    """The grid of losses: fine on the scale of one step, but not finer than memory allows."""
    finest, widest_step, range_of_losses = _WIDEST_INTERVAL, 0.0, 0.0
    for sigma, q, steps in stretches:
        spread = q * math.sqrt(expm1(min(sigma**-2, 100.0)))
        rounding = math.sqrt(steps * _FAR * spread * _ROUNDING)
        finest = min(finest, max(spread / _PER_SPREAD, rounding))
        of_one, of_all = _ranges(sigma, q, steps)
        widest_step, range_of_losses = max(widest_step, of_one), range_of_losses + of_all
    interval = max(finest, max(widest_step, range_of_losses) / _MOST_POINTS)
    rates = {q for _, q, _ in stretches}
    if len(rates) > 1 or 1.0 in rates:
        return interval
    # The loss of a step without the canary is ln(1-q), or hardly more: it should lie on the grid.
    unsampled = -math.log1p(-rates.pop())
    return interval if interval > unsampled else unsampled / math.ceil(unsampled / interval)


def _ranges(sigma: float, q: float, steps: int) -> tuple[float, float]:
    """How far losses reach in one step and in all, but for tails that the accountant cuts off.

    It cuts where a Chernoff bound allows it, at orders that depend on the range of one step.
    """
    released = np.linspace(-_FAR * sigma, 1 + _FAR * sigma, _POINTS_OF_A_STEP)
    outside = -0.5 * (released / sigma) ** 2
    ratio = (released - 0.5) / sigma**2
    losses = np.logaddexp(math.log1p(-q), math.log(q) + ratio) if q < 1 else ratio
    of_one = float(losses[-1] - losses[0])
    orders = _CHERNOFF_ORDERS / of_one
    widest = 0.0
    for log_masses in (outside, outside + losses):
        log_masses = log_masses - logsumexp(log_masses)
        moments = logsumexp(orders[:, None] * losses + log_masses, axis=1)
        ends = (steps * moments + _CHERNOFF_TAIL) / orders
        widest = max(widest, float(ends[orders > 0].min() - ends[orders < 0].max()))
    return of_one, min(widest, steps * of_one)


@lru_cache(maxsize=16)
def _composed(stretches: tuple[Stretch, ...]) -> tuple[FloatArray, FloatArray]:
    """Masses of P and Q: losses above 0 as Q sees them (remove), below 0 as P does (add), 0 the rest.

    Each half dominates its direction's curve at every ε ≥ 0, and together they are one pair.
    """
    # Steps that leave nothing to chance but the noise are one step with less noise.
    stretches = tuple(
        (sigma / math.sqrt(steps), q, 1) if q == 1 else (sigma, q, steps) for sigma, q, steps in stretches
    )
    interval = _interval(stretches)
    if interval > _WIDEST_INTERVAL:
        # Losses reach far beyond those of which a number can hold the likelihood: nothing is known to protect
        # but never having been sampled.
        unseen = math.exp(-unsampled_loss(stretches))
        return np.array([1.0, 0.0]), np.array([unseen, 1 - unseen])
    removed, added = sampled_gaussian_losses(stretches, interval)
    # After very many steps rounding leaves masses that sum to more than 1: the smallest losses give way,
    # which keeps every part of the curve where it is or lower.
    order = np.argsort(-np.append(removed.losses, added.losses), kind="stable")
    p = np.append(removed.masses_of_other, added.masses)[order]
    q_mass = np.append(removed.masses, added.masses_of_other)[order]
    kept = (np.cumsum(p) <= 1) & (np.cumsum(q_mass) <= 1)
    p, q_mass = p[kept], q_mass[kept]
    return np.append(p, max(0.0, 1 - p.sum())), np.append(q_mass, max(0.0, 1 - q_mass.sum()))

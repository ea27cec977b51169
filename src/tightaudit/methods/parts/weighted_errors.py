"""The exact law of a weighted number of errors among ranked guesses of independent channels.

Given the thresholds between strata, the errors of a stratum are a binomial variable, or, for all but the
first, one guess that sits at the threshold above and a binomial variable for the rest. The generating
function G(z) = E[z^T] is then a mean over the chain of thresholds. Its coefficients up to u sum to

    Pr[T ≤ u] = (1/2πi) ∮ G(z) / (z^(u+1)·(1-z)) dz        on a circle |z| = ρ < 1,

and the trapezoidal rule with M points on the circle is off by Σ_m Pr[T ≤ u+mM]·ρ^(mM), m ≥ 1: never negative,
and as small as wanted. With ρ near the saddle point little cancels. Where nodes do not suffice, the result
is rounded up.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tightaudit.claims.base import Claim
from tightaudit.numerics.thresholds import Chain, Panels
from tightaudit.support.checks import FloatArray

_Number = TypeVar("_Number", np.float64, np.complex128)

_LADDER = (Panels(16), Panels(34), Panels(60), Panels(34, widest=5.0))
"""How finely thresholds are followed: the first that agrees with the next one will do."""
_FOR_BOUNDS = 1
"""The first of them that is tried for Chernoff's bounds."""
_AGREEING_BOUNDS = 0.05
"""Nats by which two of them may differ about a bound that is to be used."""
_AGREEING_TERMS = 1e-11
"""Difference between two of them, relative to the largest term, that is neither sought nor found."""
_MOST_KINKS = 6
"""The rest of a claim that has more is a fine staircase, which nodes see as the slope it stands for."""
_ACCURACY = 26.0
"""Nats below the result at which the trapezoidal rule and the sum over the circle may stop."""
_COARSE, _FINE = 12, 10
_LARGEST_TILT = 8.0
_CANCELLATION, _CANCELLATION_NEAR_ONE = 0.7, 4.0
"""Nats of digits given up for a circle that needs fewer points; a probability near 1 has more to give."""
_MOST_POINTS = 2**25
_MOST_WORK = 3e8
"""Points on the circle times nodes of thresholds: half a minute, thirty times what planned weights need."""
_NARROW, _JUMP = 1e-7, 1e-4
_BLOCK, _LARGEST_BLOCK = 64, 2**22
_ROUNDING = 1e-15
_FAR_BELOW = 12.0
_UNFOLLOWED = 2e-17
"""Probability, per threshold, of places where the chain does not follow it."""
_LEAST, _LEAST_WITHOUT_CHAIN = 1e-15, 1e-250
"""Nothing smaller is returned: too little would be known of it."""


class WeightedErrors:
    """T = Σ weight·errors over strata of ranks, best first, for n independent channels of a claim.

    >>> import tightaudit as ta
    >>> law = WeightedErrors(ta.Gaussian(1.0), 1000, (50, 100, 150, 200, 250, 250), (20, 15, 11, 8, 4, 1))
    >>> round(law.tail(1364), 4)
    0.0498
    """

    def __init__(self, claim: Claim, n: int, sizes: tuple[int, ...], weights: tuple[int, ...]) -> None:
        self._claim, self._n, self._sizes, self._weights = claim, n, sizes, weights
        self._largest = sum(size * weight for size, weight in zip(sizes, weights, strict=True))
        self._rungs: dict[int, _GeneratingFunction] = {}

    def _rung(self, place: int) -> _GeneratingFunction:
        """The generating function on one rung of the ladder, made when it is first needed."""
        if place not in self._rungs:
            self._rungs[place] = _GeneratingFunction(
                self._claim, self._n, self._sizes, self._weights, _LADDER[place]
            )
        return self._rungs[place]

    def tail(self, u: int, *, relevant: float = 0.0) -> float:
        """Pr[T ≤ u], rounded up where rounding cannot be avoided, and never less than 1e-15.

        If it is far below the `relevant` probability, an upper bound that is too. The smallest result is far
        smaller if all guesses are one stratum, which needs no thresholds.
        """
        function = self._rung(_FOR_BOUNDS)
        if u >= self._largest or function.error_of_all == 0 or self._certain(u):
            return 1.0
        least = _LEAST if function.thresholds else _LEAST_WITHOUT_CHAIN
        unfollowed = _UNFOLLOWED * function.thresholds
        tilt, exponent = self._circle(u)
        bound = min(1.0, math.exp(exponent) + unfollowed)
        points = 2 * math.ceil((_ACCURACY - min(exponent, 0.0)) / (-2 * tilt)) + 1
        far_below = exponent < math.log(max(relevant, least)) - _FAR_BELOW
        if far_below or points > _MOST_POINTS:
            return max(least, bound)
        angles = np.arange(1, points // 2 + 1, dtype=np.float64) * (2 * math.pi / points)
        matter = function.not_negligible(math.exp(tilt), angles, -_ACCURACY - math.log(points))
        if matter.size * function.size * max(1, function.thresholds) > _MOST_WORK:
            return max(least, bound)
        total = self._sum_over_circle(u, tilt, exponent, np.append(0.0, matter)) / points + unfollowed
        # A sum without a value has no digits left, but Chernoff's bound holds.
        return max(least, min(bound, total) if math.isfinite(total) else bound)

    def _sum_over_circle(self, u: int, tilt: float, exponent: float, angles: FloatArray) -> float:
        """Σ G(z)/(z^u·(1-z)) over z at these angles and their conjugates, plus how far it may be off."""
        tolerance = _AGREEING_TERMS * math.exp(exponent) / -math.expm1(tilt)
        total = doubt = 0.0
        start = 0
        while start < angles.size:
            part = angles[start : start + _BLOCK]
            # The point on the real axis counts once, every other one twice, for its conjugate.
            times = np.where(part > 0, 2.0, 1.0)
            terms, off = self._terms(u, np.asarray(tilt + 1j * part, dtype=np.complex128), tolerance)
            total += float(times @ terms.real)
            doubt += float(times.sum() * off + _ROUNDING * (times @ np.abs(terms)))
            start += _BLOCK
        return total + doubt

    def _terms(
        self, u: int, log_z: NDArray[np.complex128], tolerance: float
    ) -> tuple[NDArray[np.complex128], float]:
        """G(z)/(z^u·(1-z)) at neighbouring z, and about how far they are off at most."""

        def terms(rung: int, log_z: NDArray[np.complex128]) -> NDArray[np.complex128]:
            function = self._rung(rung)
            block = max(1, _LARGEST_BLOCK // function.size)
            with np.errstate(all="ignore"):
                logs = [
                    function.log(np.exp(log_z[first : first + block]))
                    for first in range(0, log_z.size, block)
                ]
                return np.exp(np.concatenate(logs) - u * log_z) / (1 - np.exp(log_z))

        probes = log_z[np.unique([0, log_z.size // 2, log_z.size - 1])]
        rung, values, doubt, before = 0, terms(0, probes), math.inf, tolerance
        while doubt > tolerance and rung + 1 < len(_LADDER):
            finer = terms(rung + 1, probes)
            off = float(np.abs(finer - values).max())
            if off <= tolerance:
                return terms(rung, log_z), off
            # Differences shrink at least geometrically, so the next one says how far off the finer rung is.
            doubt = off * min(1.0, off / before)
            rung, values, before = rung + 1, finer, off
        return terms(rung, log_z), doubt

    def _certain(self, u: int) -> bool:
        """Whether more than u has a probability that does not matter, by Chernoff's bound."""
        return bool((self._logs[1] - self._tilts * (u + 1)).min() < -_ACCURACY)

    def _circle(self, u: int) -> tuple[float, float]:
        """Ln ρ, and ln of G(ρ)/ρ^u, which is Chernoff's bound.

        Near the saddle point, where G(ρ)/ρ^u is least, but as far from 0 as cancellation allows.
        """
        tilts = -self._tilts
        low, high = _allowed(self._logs[0] - tilts * u)
        around = tilts[max(0, low - 1)], tilts[min(_COARSE - 1, high + 1)]
        tilts = -np.geomspace(-around[0], -around[1], _FINE)
        exponents = self._log(tilts) - tilts * u
        chosen = _allowed(exponents)[1]
        return float(tilts[chosen]), float(exponents[chosen])

    @cached_property
    def _tilts(self) -> FloatArray:
        return np.geomspace(0.5 / self._largest, _LARGEST_TILT / max(self._weights), _COARSE)

    @cached_property
    def _logs(self) -> FloatArray:
        """Ln of G(e^-tilt) and of G(e^tilt), a row each."""
        return self._log(np.append(-self._tilts, self._tilts)).reshape(2, -1)

    def _log(self, tilts: FloatArray) -> FloatArray:
        """Upper bounds; infinite at extreme tilts, where nodes may miss what matters and give nonsense."""
        with np.errstate(all="ignore"):
            coarse, fine = (self._rung(rung).log(np.exp(tilts)) for rung in (_FOR_BOUNDS, _FOR_BOUNDS + 1))
            agree = np.isfinite(fine) & (np.abs(fine - coarse) <= _AGREEING_BOUNDS)
            return np.where(agree, np.maximum(fine, coarse) + np.abs(fine - coarse), np.inf)


def _allowed(exponents: FloatArray) -> tuple[int, int]:
    """Where the exponent is least, and the last place where it is not much larger."""
    least = exponents.min()
    allowed = _CANCELLATION if least < -_CANCELLATION else _CANCELLATION_NEAR_ONE
    return int(np.argmin(exponents)), int(np.flatnonzero(exponents <= least + allowed)[-1])


class _GeneratingFunction:
    """G(z) = E[z^T] at complex z, from a mean over the thresholds between strata."""

    def __init__(
        self, claim: Claim, n: int, sizes: tuple[int, ...], weights: tuple[int, ...], panels: Panels
    ) -> None:
        kinks, jumps = _kinks(claim)
        chain = _chain(n, sizes, tuple(kinks.tolist()), tuple(jumps.tolist()), panels)
        self._chain, self._sizes, self._weights = chain, sizes, weights
        self.thresholds = len(chain.thresholds)
        self.size = max([1, *(step.gap.size for step in chain.steps)])
        """Numbers it keeps at once for each z."""
        self.error_of_all = float(claim.top_error_mass(np.asarray(1.0)))
        tops = [threshold.top for threshold in chain.thresholds]
        ends = np.cumsum([top.size for top in tops])
        # Asked for all at once: one long array takes little longer than a short one.
        mass, self._at = (
            np.split(values, ends[:-1]) for values in claim.top_errors(np.concatenate([*tops, []]))
        )
        self._between = []
        for step, earlier, above, below, at in zip(
            chain.steps, chain.thresholds[:-1], mass[:-1], mass[1:], self._at[:-1], strict=True
        ):
            found = (step.interpolation @ below).reshape(step.gap.shape)
            mean = (found - above[:, None]) / step.gap
            # Thresholds so close that a difference has no digits left have the error of either.
            narrow = step.gap < _NARROW * earlier.top[:, None]
            self._between.append(np.clip(np.where(narrow, at[:, None], mean), 0, 0.5))
        if chain.start is not None:
            first = (chain.start.interpolation @ mass[0]) / chain.start.gap[0]
            self._first = np.clip(first, 0, 0.5)
            self._last = np.clip((self.error_of_all - mass[-1]) / chain.thresholds[-1].rest, 0, 0.5)
            self._least_first = float(mass[0][-1] / chain.thresholds[0].top[-1])

    def not_negligible(self, radius: float, angles: FloatArray, floor: float) -> FloatArray:
        """The angles where ln of |G(z)/G(|z|)|·(1-ρ)/|1-z| is not known to be below the floor.

        The bound takes the strata's moduli at their smallest errors: a binomial factor shrinks as the angle
        grows, the less the smaller its error. Strata that shrink most come first, and leave few angles over.
        """
        # |1-z|² = (1-ρ)² + 4ρ·sin²(θ/2)
        bound = -0.5 * np.log1p(4 * radius / (1 - radius) ** 2 * np.sin(0.5 * angles) ** 2)
        shrinking = []
        for place, (size, weight) in enumerate(zip(self._sizes, self._weights, strict=True)):
            if self._chain.start is None:
                error = self.error_of_all
            else:
                error = self._least_first if place == 0 else float(self._at[place - 1][-1])
            tilted = error * radius**weight / (1 - error + error * radius**weight)
            shrinking.append((0.5 * (size if place == 0 else size - 1), 2 * tilted * (1 - tilted), weight))
        for power, variance, weight in sorted(shrinking, key=lambda entry: -entry[0] * entry[1]):
            bound += power * np.log1p(-variance * (1 - np.cos(angles * weight)))
            left = bound > floor
            angles, bound = angles[left], bound[left]
        return angles

    def log(self, z: NDArray[_Number]) -> NDArray[_Number]:
        """Ln G(z), carried along as logarithms: G itself is often beyond the range of a double."""
        chain, sizes = self._chain, self._sizes
        change = [z**weight - 1 for weight in self._weights]
        scale = np.zeros(z.size)

        def power(error: FloatArray, place: int, exponent: int) -> NDArray[_Number]:
            nonlocal scale
            # |1 + error·change| is convex in the error, so it is largest at an extreme one.
            largest = np.abs(1 + np.array([[error.min()], [error.max()]]) * change[place]).max(axis=0)
            scale = scale + exponent * np.log(largest)
            return _power(1 / largest + error[..., None] * (change[place] / largest), exponent)

        if chain.start is None:
            return sizes[0] * np.log(1 + self.error_of_all * change[0])
        last = len(chain.thresholds) - 1
        later = np.ones((chain.thresholds[last].top.size, z.size), dtype=z.dtype)
        if len(sizes) > len(chain.thresholds):
            later *= 1 + self._at[last][:, None] * change[-1]
            later *= power(self._last, -1, sizes[-1] - 1)
        for place in range(last, 0, -1):
            step = chain.steps[place - 1]
            inner = _applied(step.interpolation, later).reshape(*step.gap.shape, z.size)
            if sizes[place] > 1:
                inner *= power(self._between[place - 1], place, sizes[place] - 1)
            later = np.einsum("pq,pqz->pz", step.weights, inner)
            later *= 1 + self._at[place - 1][:, None] * change[place]
        inner = _applied(chain.start.interpolation, later) * power(self._first, 0, sizes[0])
        return np.log(chain.start.weights[0] @ inner) + scale


def _applied(matrix: FloatArray | csr_array, values: NDArray[_Number]) -> NDArray[_Number]:
    """The real matrix times values that may be complex, real and imaginary parts side by side."""
    parts = np.ascontiguousarray(values).view(np.float64)
    return np.asarray(matrix @ parts).view(values.dtype)


def _power(base: NDArray[_Number], exponent: int) -> NDArray[_Number]:
    """base^exponent by squaring, in place of `base`: ten times as fast as complex logarithms."""
    result = np.ones_like(base)
    while exponent:
        if exponent % 2:
            result *= base
        exponent //= 2
        base *= base
    return result


def _kinks(claim: Claim) -> tuple[FloatArray, FloatArray]:
    """The kinks that matter most, and those of them where the error probability jumps."""
    kinks = claim.top_kinks[(claim.top_kinks > 0) & (claim.top_kinks < 1)]
    aside = claim.top_error_probability(np.array([kinks * (1 - _NARROW), kinks * (1 + _NARROW)]))
    jump = np.abs(aside[1] - aside[0])
    most = np.sort(np.argsort(-jump, kind="stable")[:_MOST_KINKS])
    return kinks[most], kinks[most][jump[most] > _JUMP]


@lru_cache(maxsize=32)
def _chain(
    n: int, sizes: tuple[int, ...], kinks: tuple[float, ...], jumps: tuple[float, ...], panels: Panels
) -> Chain:
    """A search for a bound asks about many claims with the same strata."""
    return Chain.of(n, sizes, np.array(kinks), panels, jumps=np.array(jumps))

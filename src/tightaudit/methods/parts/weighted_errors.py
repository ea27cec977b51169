"""The exact law of a weighted number of errors among ranked guesses of independent channels.

Given the thresholds between strata, the errors of a stratum are a binomial variable, or, for all but the
first, one guess that sits at the threshold above and a binomial variable for the rest. The generating
function G(z) = E[z^T] is then a mean over the chain of thresholds. Its coefficients up to u sum to

    Pr[T ≤ u] = (1/2πi) ∮ G(z) / (z^(u+1)·(1-z)) dz        on a circle |z| = ρ < 1,

and the trapezoidal rule with M points on the circle is off by Σ_m Pr[T ≤ u+mM]·ρ^(mM), m ≥ 1: never negative,
and as small as wanted. With ρ near the saddle point little cancels, so that deep tails keep their digits.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tightaudit.claims.base import Claim
from tightaudit.numerics.thresholds import Chain
from tightaudit.support.checks import FloatArray

_Number = TypeVar("_Number", np.float64, np.complex128)

_MANY_NODES, _NODES, _FEW_NODES, _FEW_STRATA = 60, 34, 16, 3
"""Nodes per threshold: with few strata, with more, and where the generating function is small."""
_CENTRE = 9.0
"""Standard deviations of T, as angles, beyond which it is."""
_MOST_KINKS = 6
"""A claim with more is a fine staircase, which nodes see as the slope it stands for."""
_ACCURACY = 26.0
"""Nats below the result at which the trapezoidal rule and the sum over the circle may stop."""
_COARSE, _FINE = 12, 10
_LARGEST_TILT = 8.0
_CANCELLATION, _CANCELLATION_NEAR_ONE = 0.7, 4.0
"""Nats of digits given up for a circle that needs fewer points; a probability near 1 has more to give."""
_NARROW, _JUMP = 1e-7, 1e-4
_BLOCK = 64
_ROUNDING = 1e-6
_FAR_BELOW, _UNDERFLOW = 12.0, 600.0


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
        nodes = _MANY_NODES if len(sizes) <= _FEW_STRATA else _NODES
        self._fine = _GeneratingFunction(claim, n, sizes, weights, nodes)

    @cached_property
    def _rough(self) -> _GeneratingFunction:
        return _GeneratingFunction(self._claim, self._n, self._sizes, self._weights, _FEW_NODES)

    def tail(self, u: int, *, relevant: float = 0.0) -> float:
        """Pr[T ≤ u], rounded up where rounding cannot be avoided.

        If it is far below the `relevant` probability, an upper bound that is too.
        """
        if u >= self._largest or self._fine.error_of_all == 0 or self._certain(u):
            return 1.0
        tilt, exponent, deviation = self._circle(u)
        if exponent < (math.log(relevant) - _FAR_BELOW if relevant else -_UNDERFLOW):
            return math.exp(max(exponent, -_UNDERFLOW))
        radius = math.exp(tilt)
        points = 2 * math.ceil((_ACCURACY - min(exponent, 0.0)) / (-2 * tilt)) + 1
        angles = np.arange(1, points // 2 + 1, dtype=np.float64) * (2 * math.pi / points)
        matter = self._fine.not_negligible(radius, angles, -_ACCURACY - math.log(points))
        near = matter * deviation < _CENTRE
        total = 0.0
        # The point on the real axis counts once, every other one twice, for its conjugate.
        for function, part in ((self._fine, np.append(0.0, matter[near])), (self._rough, matter[~near])):
            for start in range(0, part.size, _BLOCK):
                angle = part[start : start + _BLOCK]
                log_z = tilt + 1j * angle
                terms = np.exp(function.log(np.exp(log_z)) - u * log_z) / (1 - np.exp(log_z))
                total += float(np.sum(np.where(angle > 0, 2.0, 1.0) * terms.real))
        probability = total / points
        if not -_ROUNDING <= probability <= 1 + _ROUNDING:
            raise ArithmeticError(f"a tail of weighted errors came out as {probability:.3g}")
        return min(1.0, max(0.0, probability))

    def _certain(self, u: int) -> bool:
        """Whether more than u has a probability that does not matter, by Chernoff's bound."""
        return bool((self._logs[1] - self._tilts * (u + 1)).min() < -_ACCURACY)

    def _circle(self, u: int) -> tuple[float, float, float]:
        """Ln ρ, ln of G(ρ)/ρ^u, and about the standard deviation of T at that tilt.

        Near the saddle point, where G(ρ)/ρ^u is least, but as far from 0 as cancellation allows.
        """
        tilts = -self._tilts
        low, high = _allowed(self._logs[0] - tilts * u)
        around = tilts[max(0, low - 1)], tilts[min(_COARSE - 1, high + 1)]
        tilts = -np.geomspace(-around[0], -around[1], _FINE)
        exponents = self._log(tilts) - tilts * u
        chosen = _allowed(exponents)[1]
        inside = min(max(chosen, 1), _FINE - 2)
        with np.errstate(invalid="ignore"):
            slopes = np.diff(exponents[inside - 1 : inside + 2]) / np.diff(tilts[inside - 1 : inside + 2])
            variance = 2 * (slopes[1] - slopes[0]) / (tilts[inside + 1] - tilts[inside - 1])
        deviation = math.sqrt(variance) if np.isfinite(variance) and variance > 0 else 0.0
        return float(tilts[chosen]), float(exponents[chosen]), deviation

    @cached_property
    def _tilts(self) -> FloatArray:
        return np.geomspace(0.5 / self._largest, _LARGEST_TILT / max(self._weights), _COARSE)

    @cached_property
    def _logs(self) -> FloatArray:
        """Ln of G(e^-tilt) and of G(e^tilt), a row each."""
        return self._log(np.append(-self._tilts, self._tilts)).reshape(2, -1)

    def _log(self, tilts: FloatArray) -> FloatArray:
        # At an extreme tilt few nodes may miss what matters, and give nonsense: such a tilt is not used.
        with np.errstate(all="ignore"):
            logs = self._rough.log(np.exp(tilts))
        return np.where(np.isfinite(logs), logs, np.inf)


def _allowed(exponents: FloatArray) -> tuple[int, int]:
    """Where the exponent is least, and the last place where it is not much larger."""
    least = exponents.min()
    allowed = _CANCELLATION if least < -_CANCELLATION else _CANCELLATION_NEAR_ONE
    return int(np.argmin(exponents)), int(np.flatnonzero(exponents <= least + allowed)[-1])


class _GeneratingFunction:
    """G(z) = E[z^T] at complex z, from a mean over the thresholds between strata."""

    def __init__(
        self, claim: Claim, n: int, sizes: tuple[int, ...], weights: tuple[int, ...], nodes: int
    ) -> None:
        kinks = claim.top_kinks[(claim.top_kinks > 0) & (claim.top_kinks < 1)]
        if kinks.size > _MOST_KINKS:
            kinks = np.empty(0)
        aside = claim.top_error_probability(np.array([kinks * (1 - _NARROW), kinks * (1 + _NARROW)]))
        jumps = kinks[np.abs(aside[1] - aside[0]) > _JUMP]
        chain = _chain(n, sizes, tuple(kinks.tolist()), tuple(jumps.tolist()), nodes)
        self._chain, self._sizes, self._weights = chain, sizes, weights
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


@lru_cache(maxsize=16)
def _chain(
    n: int, sizes: tuple[int, ...], kinks: tuple[float, ...], jumps: tuple[float, ...], nodes: int
) -> Chain:
    """A search for a bound asks about many claims with the same strata."""
    return Chain.of(n, sizes, np.array(kinks), nodes, jumps=np.array(jumps))

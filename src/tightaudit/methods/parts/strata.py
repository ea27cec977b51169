"""Strata and weights for the rank-weighted count, from a claim and n alone.

To first order in 1/n, T = Σ weight·errors is normal, and a change of the claim's parameter moves it by
Σ weight·slope with variance weightᵀ·covariance·weight. Two things make the covariance: errors given the
thresholds between cells, and the thresholds themselves, which are a Brownian bridge around their places.
The best weights maximise the signal-to-noise ratio among those that never increase with rank, without which
the p-value would not hold for every scoring rule: a non-negative least-squares problem.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tightaudit.claims.base import Claim
from tightaudit.support.checks import FloatArray

STRATA = 10
LARGEST_WEIGHT, SMALLEST_LARGEST_WEIGHT = 200, 8
_FINE = np.concatenate(
    [
        np.geomspace(1e-5, 0.05, 40, endpoint=False),
        np.linspace(0.05, 0.95, 46),
        1 - np.geomspace(0.04, 1e-4, 14),
    ]
)
"""Shares of ranks between which the best weights are first found."""
_STEP = 1e-3
_ROOM_BELOW_LEVEL = 0.02


@dataclass(frozen=True)
class Cells:
    """Slope and covariance of the errors in cells of ranks, per guess, for n large."""

    edges: FloatArray
    """Shares of ranks, from 0 up to 1."""
    error: FloatArray
    slope: FloatArray
    """How fast the errors of each cell fall as the claim gets less private."""
    covariance: FloatArray

    def information(self, weights: FloatArray) -> float:
        """Squared signal-to-noise ratio of the weighted count, per guess and unit of the parameter."""
        return float((weights @ self.slope) ** 2 / (weights @ self.covariance @ weights))

    def best_weights(self) -> FloatArray:
        """The weights with the most information among those that never increase with rank."""
        root = np.linalg.cholesky(self.covariance)
        # A non-increasing, non-negative weight is a sum of steps: weight_i = Σ_{k ≥ i} step_k.
        steps = np.triu(np.ones((self.error.size, self.error.size)))
        found, _ = nnls(root.T @ steps, np.linalg.solve(root, self.slope))
        return steps @ found


def cells(claim: Claim, edges: FloatArray) -> Cells:
    """The cells between the given shares of ranks.

    >>> import tightaudit as ta
    >>> halves = cells(ta.Gaussian(1.0), np.array([0.0, 0.5, 1.0]))
    >>> halves.error.round(4)
    array([0.2069, 0.4102])
    """
    width = np.diff(edges)
    error = np.diff(claim.top_error_mass(edges)) / width
    at = claim.top_error_probability(edges)
    # A threshold that moves lets its cell gain or lose guesses with an error unlike the cell's mean.
    gain = np.diag(at[1:] - error) @ np.eye(error.size, edges.size, k=1)
    gain += np.diag(error - at[:-1]) @ np.eye(error.size, edges.size)
    bridge = np.minimum.outer(edges, edges) - np.outer(edges, edges)
    covariance = np.diag(width * error * (1 - error)) + gain @ bridge @ gain.T
    covariance += _STEP**4 * np.diag(width)  # a cell without errors has no variance
    return Cells(edges, error, width * _fall_of_error(claim, edges, error), covariance)


def best_strata(n: int, claim: Claim) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and weights of strata that serve the claim and its neighbours well.

    >>> import tightaudit as ta
    >>> best_strata(1000, ta.ApproxDP(1.0, 0.0))
    ((1000,), (1,))
    """
    fine = _ranks(n, np.append(_FINE, claim.top_kinks if claim.top_kinks.size <= STRATA else []))
    strata = min(STRATA, 2 + n // 25)
    ranks = _ranks(n, _best_cuts(cells(claim, fine / n), strata))
    found = cells(claim, ranks / n).best_weights()
    largest = found.max()
    if largest == 0:
        return (n,), (1,)
    # Few guesses cannot tell fine weights apart, and a coarse statistic has a cheaper law.
    finest = min(LARGEST_WEIGHT, max(SMALLEST_LARGEST_WEIGHT, round(n**0.5)))
    weights = np.rint(finest * found / largest).astype(int)
    new = np.append(True, np.diff(weights) != 0)
    sizes = np.diff(ranks[np.append(np.flatnonzero(new), weights.size)])
    kept = weights[new] > 0
    values = weights[new][kept]
    return tuple(sizes[kept].tolist()), tuple((values // np.gcd.reduce(values)).tolist())


def best_single_stratum(n: int, claim: Claim, level: float) -> int | None:
    """The number of ranks whose plain count has most information, if it can reject the claim at the level.

    >>> import tightaudit as ta
    >>> best_single_stratum(1000, ta.SubsampledGaussian(3.0, 0.1), level=0.05)
    70
    >>> best_single_stratum(10, ta.Gaussian(5.0), level=0.05)
    """

    def no_error(size: int) -> float:
        error = n / size * float(claim.top_error_mass(np.asarray(size / n)))
        return (1 - error) ** size

    def information(size: int) -> float:
        edges = np.unique([0.0, size / n, 1.0])
        return cells(claim, edges).information(np.eye(1, edges.size - 1)[0])

    sizes = _ranks(n, _FINE)[1:].tolist()
    # Far below the level, so that a few errors are still few enough.
    able = [size for size in sizes if no_error(size) <= level * _ROOM_BELOW_LEVEL]
    return max(able, key=information, default=None)


def _ranks(n: int, shares: FloatArray) -> NDArray[np.int64]:
    inside = np.rint(n * shares[(shares > 0) & (shares < 1)]).astype(np.int64)
    return np.unique(np.concatenate([[0], inside, [n]]))


def _best_cuts(found: Cells, strata: int) -> FloatArray:
    """Where to cut so that weights constant between the cuts come closest to the best ones.

    A curve w is best replaced by steps, with weight v on the squared error, if each step takes the same
    share of the integral of the cube root of v·w'².
    """
    weights = found.best_weights()
    rise = np.abs(np.diff(weights))
    variance = np.diag(found.covariance)
    share = np.append(0, np.cumsum(np.cbrt(rise**2 * np.minimum(variance[1:], variance[:-1]))))
    if share[-1] == 0:
        return np.empty(0)
    middles = found.edges[1:-1]
    return np.interp(np.arange(1, strata) / strata, share[1:] / share[-1], middles)


def _fall_of_error(claim: Claim, edges: FloatArray, error: FloatArray) -> FloatArray:
    """Minus the derivative of each cell's error in the parameter of the claim's family.

    A claim without a family is taken to change by making all its losses larger alike.
    """
    if not claim.parameter_names:
        return error * (1 - error) * np.log((1 - error) / np.maximum(error, _STEP**4))
    family = claim.own_family()
    value = family.leak(claim)
    if not 0 < value < family.upper:
        return error * (1 - error)
    below, above = (
        np.diff(family.leaking(value * factor).top_error_mass(edges)) / np.diff(edges)
        for factor in (1 - _STEP, 1 + _STEP)
    )
    return np.maximum(below - above, 0) / (2 * _STEP * value)

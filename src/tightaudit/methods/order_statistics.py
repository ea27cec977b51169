"""The paper's method: one Bernoulli per released rank, and a Chernoff bound on their sum.

The guess of rank j (1 is the most confident) is wrong with probability v_j = E[p(1-V)], V ~ Beta(j, n-j+1).
The v_j vary smoothly with j, so sums over all released ranks are taken from a few hundred of them.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method
from tightaudit.numerics.beta import gauss_legendre, logit_density, offset_range
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

_CELLS, _SUBCELLS = 96, 16
_SHARP = 3e-5
_DROP = 30.0
_BLOCK_POINTS = 16
_BLOCK_TOLERANCE = 1e-8
_EXACT_SUM_LENGTH = 16_384


@METHODS.register
@dataclass(frozen=True)
class OrderStatistics(Method):
    """Bernoulli(v_k) by rank with a Chernoff tail (Theorem 3 and Proposition 1), or Hoeffding's.

    The errors of released guesses are positively associated, not independent as the sum of Bernoullis takes
    them to be, so the sum is too concentrated. Chernoff's slack covers this often but not always: it is
    smallest when few errors are seen, and none at zero. For 3-GDP, n=100, r=89, no error has p-value 0.0465
    here and probability 0.0634. For (ε, δ)-DP with r near δ·n it fails altogether: under (0, 0.3)-DP, n=1000,
    r=320, no error has p-value 4e-6 and probability 0.10. `exact` is the same model without the defect.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=15)
    >>> round(ta.p_value(evidence, ta.Gaussian(1.0), method="order-statistics"), 5)
    0.03829
    """

    tail: Literal["chernoff", "hoeffding"] = "chernoff"
    name = "order-statistics"
    assumes = Assumptions(
        independent_outcomes=True,
        caveat="takes errors of released guesses as independent, which they are not: too small a p-value "
        "when few errors are seen, and by orders of magnitude for (ε, δ)-DP with released near δ·n",
    )
    reference = "Xiang, Wang, Xiao, Tian, Wang: Tight Privacy Audit in One Run, Theorem 3 and Proposition 1"

    def __post_init__(self) -> None:
        if not isinstance(self.tail, str) or self.tail not in ("chernoff", "hoeffding"):
            raise InputError("tail", self.tail, "'chernoff' or 'hoeffding'")

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        rates, counts = _error_rates(claim, evidence.n, evidence.released)
        shortfall = float(counts @ rates) - evidence.errors
        if shortfall <= 0:
            return 1.0
        if self.tail == "hoeffding":
            return math.exp(-2 * shortfall**2 / evidence.released)
        return _chernoff(rates, counts, evidence.errors)


def _chernoff(rates: FloatArray, counts: FloatArray, errors: int) -> float:
    """Min over λ<0 of exp(-λu + Σ ln(1-v+v·e^λ)), for u below the mean."""
    if errors == 0:
        return math.exp(float(counts @ np.log1p(-rates)))

    def slope(tilt: float) -> float:
        tilted = rates * math.exp(tilt)
        return float(counts @ (tilted / (1 - rates + tilted))) - errors

    low = -1.0
    while slope(low) > 0:
        low *= 2
    tilt = float(brentq(slope, low, 0.0, xtol=1e-13, rtol=1e-13))
    return min(1.0, math.exp(-tilt * errors + float(counts @ np.log1p(rates * math.expm1(tilt)))))


def _error_rates(claim: Claim, n: int, released: int) -> tuple[FloatArray, FloatArray]:
    """Error rates at chosen ranks, and how many ranks each stands for, so that sums over ranks come out.

    Ranks are cut into blocks, short at the top where rates change fastest, and halved until the rate is
    a polynomial on each; a block that gets short is taken rank by rank.
    """
    starts = np.array([1, *(2**k + 1 for k in range(4, released.bit_length()) if 2**k < released)])
    blocks = np.column_stack([starts, np.append(starts[1:], released + 1)])
    rates: list[FloatArray] = []
    counts: list[FloatArray] = []
    nodes, weights = gauss_legendre(_BLOCK_POINTS)
    project = np.polynomial.legendre.legvander(nodes, _BLOCK_POINTS - 1) * weights[:, None]
    project *= np.arange(_BLOCK_POINTS) + 0.5
    while blocks.size:
        lengths = blocks[:, 1] - blocks[:, 0]
        short = lengths <= _BLOCK_POINTS
        for start, stop in blocks[short]:
            rates.append(_rank_error_rates(claim, n, np.arange(start, stop, dtype=np.float64)))
            counts.append(np.ones(stop - start))
        blocks, lengths = blocks[~short], lengths[~short]
        if not blocks.size:
            break
        ranks = blocks[:, :1] - 0.5 + 0.5 * lengths[:, None] * (nodes + 1)
        values = _rank_error_rates(claim, n, ranks.ravel()).reshape(ranks.shape)
        ripple = np.abs(values @ project)[:, -2:].max(axis=1)
        smooth = ripple <= max(_BLOCK_TOLERANCE, claim.grain) * (values.max() if values.size else 1.0)
        for row in np.flatnonzero(smooth):
            rates.append(values[row])
            counts.append(_summation_weights(int(lengths[row])))
        rough = blocks[~smooth]
        middle = rough.sum(axis=1) // 2
        blocks = np.concatenate(
            [np.column_stack([rough[:, 0], middle]), np.column_stack([middle, rough[:, 1]])]
        )
    return np.concatenate(rates), np.concatenate(counts)


@lru_cache(maxsize=256)
def _summation_weights(length: int) -> FloatArray:
    """Weights at Gauss–Legendre nodes that sum a polynomial over `length` consecutive integers.

    For long blocks the integral over the block, widened by half at both ends, is as good.
    """
    nodes, weights = gauss_legendre(_BLOCK_POINTS)
    if length > _EXACT_SUM_LENGTH:
        return 0.5 * length * weights
    points = (2 * np.arange(length) + 1 - length) / length
    moments = np.polynomial.legendre.legvander(points, _BLOCK_POINTS - 1).sum(axis=0)
    basis = np.polynomial.legendre.legvander(nodes, _BLOCK_POINTS - 1)
    return weights * (basis @ (moments * (np.arange(_BLOCK_POINTS) + 0.5)))


def _rank_error_rates(claim: Claim, n: int, ranks: FloatArray) -> FloatArray:
    """V = E[p(1-V)], V ~ Beta(rank, n+1-rank), at the given ranks, which need not be integers."""
    a, b = ranks[:, None], n + 1 - ranks[:, None]
    drop = np.asarray(_DROP)
    low, high = offset_range(a, b, drop)
    edges = low + (high - low) * np.linspace(0, 1, _CELLS + 1)
    cells, bend = _cell_integrals(claim, a, b, edges)
    sharp = np.pad(bend > _SHARP * cells.sum(axis=1, keepdims=True), ((0, 0), (1, 1)))
    # The neighbours of a sharp cell took their lean from it.
    row, column = np.nonzero(sharp[:, 2:] | sharp[:, 1:-1] | sharp[:, :-2])
    if row.size:
        start, end = edges[row, column, None], edges[row, column + 1, None]
        inner = start + (end - start) * np.linspace(0, 1, _SUBCELLS + 1)
        cells[row, column] = _cell_integrals(claim, a[row], b[row], inner)[0].sum(axis=1)
    return cells.sum(axis=1)


def _cell_integrals(
    claim: Claim, a: FloatArray, b: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The integral of the Beta density against A over each cell, and how sharply A bends there.

    The gain of A over a cell is exact, whatever A looks like inside. The density is expanded to second
    order around the middle, where the gain counts in full; its lean across the cell is read off the
    gains of the two neighbours.
    """
    centre = np.log(a / b)
    mass = claim.top_error_mass(expit(centre + edges).ravel()).reshape(edges.shape)
    gain, width = np.diff(mass, axis=1), np.diff(edges, axis=1)
    middle = edges[:, :-1] + 0.5 * width
    share, rest = expit(centre + middle), expit(-centre - middle)
    # Per unit of share, where `logit_density` is per unit of its logit.
    density = logit_density(a, b, middle) / (share * rest)
    log_slope = a - 1 - (a + b - 2) * share
    curvature = log_slope**2 - (a + b - 2) * share * rest
    change = np.gradient(gain, axis=1)
    cells = density * (gain * (1 + width**2 / 24 * curvature) + width / 12 * log_slope * change)
    padded = np.pad(gain, ((0, 0), (1, 1)), mode="edge")
    return cells, density * np.abs(padded[:, 2:] - 2 * gain + padded[:, :-2])

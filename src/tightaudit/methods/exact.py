"""The exact law of the number of errors among the released guesses of independent channels.

The r most confident of n guesses are, given the share v of channel outcomes above the best *discarded*
one, r independent draws from that top share. So with v ~ Beta(r+1, n-r) the error count is a binomial
with the mean error rate above the cut, A/v, mixed over v:

    p = E_v[ Pr[Binomial(r, A(1-v)/v) ≤ u] ] = Pr[ Beta(u+1, r-u) > A(1-v)/v ].

The integral is taken on panels that are narrow on both scales, that of v and that of the second Beta,
so its cost does not grow with n or r.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, expit, logit

from tightaudit.claims.base import Claim
from tightaudit.claims.text import as_claim
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method
from tightaudit.methods.bits import binomial_tail
from tightaudit.numerics.beta import (
    LARGEST_DROP,
    gauss_legendre,
    logit_density,
    logit_spread,
    offset_range,
    panel_nodes,
)
from tightaudit.support.checks import FloatArray

_PANEL_WIDTH, _PANEL_POINTS = 2.0, 16
_NARROW_WIDTH, _NARROW_POINTS = 0.5, 6
_GAP_POINTS = 8
_MANY_KINKS = 64
_MAX_SPLITS = 64
_TOLERANCE = 1e-9


@METHODS.register
@dataclass(frozen=True)
class Exact(Method):
    """Pr[errors ≤ u] for independent channels, without slack.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=48)
    >>> round(ta.p_value(evidence, ta.Laplace(0.8), method=ta.Exact()), 6)
    0.017794
    """

    name = "exact"
    assumes = Assumptions(independent_outcomes=True)
    reference = (
        "Xiang, Wang, Xiao, Tian, Wang: Tight Privacy Audit in One Run (its model, without the Chernoff step)"
    )

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        n, r, u = evidence.n, evidence.released, evidence.errors
        error = float(claim.top_error_mass(np.asarray(1.0)))
        if u == r or error == 0:
            return 1.0
        if r == n:
            return binomial_tail(u, n, error)
        return _mixed_binomial_tail(claim, n, r, u)


def expected_errors(claim: Claim | str, *, n: int, released: int) -> float:
    """Mean number of errors among the released guesses of n independent channels of the claim.

    >>> import tightaudit as ta
    >>> round(ta.expected_errors(ta.Gaussian(1.0), n=1000, released=200), 6)
    26.267423
    """
    claim = as_claim(claim)
    sizes = Evidence(n=n, released=released, errors=0)
    n, released = sizes.n, sizes.released
    if released == n:
        return n * float(claim.top_error_mass(np.asarray(1.0)))
    cut = _cut(n, released)
    edges, points = cut.panels(claim.top_kinks)
    panels = edges[:-1], edges[1:]
    for _ in range(_MAX_SPLITS):
        offsets, weights = panel_nodes(*panels, points)
        share = cut.share(offsets)
        values = cut.density(offsets) * claim.top_error_mass(share.ravel()).reshape(share.shape) / share
        total = float(np.sum(weights * values))
        rough = _rough(values, *panels, total)
        if not rough.any():
            break
        panels = _split(*panels, rough)
    return released * total


class _Cut:
    """The share v ~ Beta(r+1, n-r) of channel outcomes above the best discarded one, in logit offsets."""

    def __init__(self, n: int, r: int) -> None:
        self.a, self.b = np.asarray(float(r + 1)), np.asarray(float(n - r))
        self.spread = float(logit_spread(self.a, self.b))
        # No p-value is below 2^-r, so mass far below that does not matter.
        drop = np.asarray(min(LARGEST_DROP, r * math.log(2) + 45))
        self.low, self.high = offset_range(self.a, self.b, drop).tolist()

    def share(self, offset: FloatArray) -> FloatArray:
        return expit(np.log(self.a / self.b) + offset)

    def density(self, offset: FloatArray) -> FloatArray:
        return logit_density(self.a, self.b, offset)

    def panels(self, top_kinks: FloatArray) -> tuple[FloatArray, int]:
        """Edges of the panels, with an edge at every kink, and the nodes each panel needs."""
        kinks = logit(top_kinks) - np.log(self.a / self.b)
        kinks = kinks[(kinks > self.low) & (kinks < self.high)]
        many = kinks.size > _MANY_KINKS
        width = (_NARROW_WIDTH if many else _PANEL_WIDTH) * self.spread
        count = math.ceil((self.high - self.low) / width)
        edges = np.linspace(self.low, self.high, count + 1)
        return np.unique(np.concatenate([edges, kinks])), _NARROW_POINTS if many else _PANEL_POINTS


_cut = lru_cache(maxsize=256)(_Cut)


class _ErrorRate:
    """The Beta(u+1, r-u) that the error rate above the cut is compared with, in logit offsets."""

    def __init__(self, r: int, u: int) -> None:
        self.a, self.b = np.asarray(float(u + 1)), np.asarray(float(r - u))
        self.centre = np.log(self.a / self.b)
        self.spread = float(logit_spread(self.a, self.b))
        # Left of the range the tail is 1 to double precision; on the right it has to stay accurate
        # relative to itself, however small.
        self.low, self.high = offset_range(self.a, self.b, np.array([45.0, LARGEST_DROP])).tolist()

    def offset(self, rate: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.clip(logit(rate) - self.centre, self.low, self.high)

    def tails(self, offset: FloatArray) -> FloatArray:
        """Mass above each of the ascending offsets: density summed over the gaps, from the last one up."""
        nodes, weights = gauss_legendre(_GAP_POINTS)
        half = 0.5 * np.diff(offset)
        points = 0.5 * (offset[1:] + offset[:-1])[:, None] + half[:, None] * nodes
        gaps = half * (logit_density(self.a, self.b, points) @ weights)
        last = betaincc(self.a, self.b, expit(self.centre + offset[-1]))
        return np.asarray(np.cumsum(np.append(gaps, last)[::-1])[::-1], dtype=np.float64)


_error_rate = lru_cache(maxsize=256)(_ErrorRate)


def _mixed_binomial_tail(claim: Claim, n: int, r: int, u: int) -> float:
    cut, target = _cut(n, r), _error_rate(r, u)
    edges, points = cut.panels(claim.top_kinks)
    panels = edges[:-1], edges[1:]
    rates = _error_rate_offsets(claim, cut, target, *panels, points)
    for _ in range(_MAX_SPLITS):
        offsets, weights = panel_nodes(*panels, points)
        values = cut.density(offsets) * target.tails(rates.ravel()).reshape(rates.shape)
        total = float(np.sum(weights * values))
        coarse = rates[:, -1] - rates[:, 0] > _PANEL_WIDTH * target.spread
        coarse |= _rough(values, *panels, total)
        if not coarse.any():
            break
        panels = _split(*panels, coarse)
        # Rows move back by the number of panels split before them; each split one becomes two new rows.
        kept = np.insert(rates, np.flatnonzero(coarse) + 1, 0.0, axis=0)
        fresh = np.flatnonzero(coarse) + np.arange(np.count_nonzero(coarse))
        fresh = np.concatenate([fresh, fresh + 1])
        kept[fresh] = _error_rate_offsets(claim, cut, target, panels[0][fresh], panels[1][fresh], points)
        rates = kept
    return min(1.0, total)


def _rough(values: FloatArray, starts: FloatArray, ends: FloatArray, total: float) -> NDArray[np.bool_]:
    """Panels on which the integrand is not yet a polynomial, judged by its highest Legendre terms.

    Not asked where many kinks have cut the panels short: the integrand is smooth between kinks.
    """
    points = values.shape[1]
    if points < _PANEL_POINTS:
        return np.zeros(starts.size, dtype=np.bool_)
    ripple = np.abs(values @ _highest_terms(points)).max(axis=1) * (ends - starts)
    return ripple > _TOLERANCE * total


def _split(starts: FloatArray, ends: FloatArray, chosen: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The panels with each chosen one cut in two."""
    at = np.flatnonzero(chosen)
    middle = 0.5 * (starts[at] + ends[at])
    return np.insert(starts, at + 1, middle), np.insert(ends, at, middle)


def _error_rate_offsets(
    claim: Claim, cut: _Cut, target: _ErrorRate, starts: FloatArray, ends: FloatArray, points: int
) -> FloatArray:
    """The mean error rate above the cut, as an offset in the law it is compared with; a row per panel."""
    share = cut.share(panel_nodes(starts, ends, points)[0])
    return target.offset(claim.top_error_mass(share.ravel()).reshape(share.shape) / share)


@lru_cache(maxsize=8)
def _highest_terms(points: int) -> FloatArray:
    """Matrix that takes values at Gauss–Legendre nodes to their two highest Legendre coefficients."""
    nodes, weights = gauss_legendre(points)
    degrees = np.arange(points)
    basis = np.polynomial.legendre.legvander(nodes, points - 1)
    return (basis * weights[:, None] * (degrees + 0.5))[:, -2:]

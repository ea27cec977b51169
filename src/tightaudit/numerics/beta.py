"""Integrals against a Beta law, accurate for counts from 1 to 10^15 at a cost that does not grow with them.

Everything is done in the logit x = ln(v/(1-v)) of the Beta variable v, as an offset from the point
ln(a/b). There the density is log-concave and analytic up to both ends, and near its centre no
two large numbers are subtracted.
"""

from functools import lru_cache

import numpy as np
from scipy.special import expit, gammaln

from tightaudit.support.checks import FloatArray

LARGEST_DROP = 700.0
"""Nats below the peak past which a density no longer matters to a double."""

_NEARLY = 1e-3
"""How well the end of a range has to be known, relatively."""

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def _stirling_error(z: FloatArray) -> FloatArray:
    """Ln Γ(z) less Stirling's formula: what is left of a Beta normaliser once the large terms cancel."""
    large = np.maximum(z, 16.0)
    square = large * large
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / large
    small = np.minimum(z, 16.0)
    direct = gammaln(small) - ((small - 0.5) * np.log(small) - small + _HALF_LOG_2PI)
    return np.where(z < 16.0, direct, series)


def _log_shape(a: FloatArray, b: FloatArray, offset: FloatArray) -> FloatArray:
    """Ln of the density at `offset` relative to the density at offset 0; concave, 0 at its peak.

    a·x - (a+b)·ln(1 + a/(a+b)·(e^x-1)), from the side of the smaller parameter. Where the logarithm is
    small, the terms of first order, which cancel, are taken out of both parts.
    """
    total = a + b
    small = np.minimum(a, b)
    share = small / total
    toward = np.where(a <= b, offset, -offset)
    change = share * np.expm1(np.minimum(toward, LARGEST_DROP))
    near = np.abs(change) < 0.5
    inner = -small * _exp_minus_line(np.where(near, toward, 0.0))
    inner = inner - total * _log_minus_line(np.where(near, change, 0.0))
    outer = small * toward - total * np.logaddexp(np.log1p(-share), np.log(share) + toward)
    return np.where(near, inner, outer)


def _exp_minus_line(x: FloatArray) -> FloatArray:
    """e^x - 1 - x, without cancellation near 0."""
    near = np.where(np.abs(x) < 0.01, x, 0.0)
    series = 1 / 24 + near * (1 / 120 + near * (1 / 720 + near / 5040))
    series = near * near * (1 / 2 + near * (1 / 6 + near * series))
    return np.where(np.abs(x) < 0.01, series, np.expm1(x) - x)


def _log_minus_line(x: FloatArray) -> FloatArray:
    """ln(1+x) - x, without cancellation near 0."""
    near = np.where(np.abs(x) < 0.01, x, 0.0)
    series = -1 / 4 + near * (1 / 5 + near * (-1 / 6 + near * (1 / 7 - near / 8)))
    series = near * near * (-1 / 2 + near * (1 / 3 + near * series))
    return np.where(np.abs(x) < 0.01, series, np.log1p(x) - x)


def logit_density(a: FloatArray, b: FloatArray, offset: FloatArray) -> FloatArray:
    """Density of logit(v), v ~ Beta(a, b), at logit(a/(a+b)) + offset."""
    total = a + b
    log_peak = 0.5 * np.log(a / total * b) - _HALF_LOG_2PI
    log_peak += _stirling_error(total) - _stirling_error(a) - _stirling_error(b)
    return np.exp(log_peak + _log_shape(a, b, offset))


def logit_spread(a: FloatArray, b: FloatArray) -> FloatArray:
    """The scale on which the density of logit(v) varies."""
    return np.sqrt(1 / a + 1 / b)


def offset_range(a: FloatArray, b: FloatArray, drop: FloatArray) -> FloatArray:
    """The offsets on the left and on the right, a row each, where the density has fallen by `drop` nats.

    `drop` may be the same on both sides, or have a row for each.
    """
    offset = np.multiply.outer(np.array([-1.0, 1.0]), logit_spread(a, b)) * np.sqrt(2 * drop)
    while np.any(short := _log_shape(a, b, offset) > -drop):
        offset = np.where(short, 2 * offset, offset)
    # From outside, Newton on a concave function moves inwards and never past the root.
    for _ in range(12):
        slope = a - (a + b) * expit(np.log(a / b) + offset)
        step = (_log_shape(a, b, offset) + drop) / slope
        offset = offset - step
        if np.all(np.abs(step) < _NEARLY * np.abs(offset)):
            break
    return offset


@lru_cache(maxsize=64)
def gauss_legendre(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def panel_nodes(starts: FloatArray, ends: FloatArray, points: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights between each start and end, a row per panel."""
    nodes, weights = gauss_legendre(points)
    half = 0.5 * (ends - starts)[:, None]
    middle = 0.5 * (ends + starts)[:, None]
    return middle + half * nodes, half * weights

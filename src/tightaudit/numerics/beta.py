"""Integrals against a Beta law, accurate from n = 1 to beyond 10^9 at a cost that does not grow with n.

Everything is done in the logit x = ln(v/(1-v)) of the Beta variable v, as an offset from the point
ln(a/b). There the density is log-concave and analytic up to both ends, and near its centre no
two large numbers are subtracted.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import expit, gammaln

from tightaudit.checks import FloatArray

LARGEST_DROP = 700.0
"""Nats below the peak past which a density no longer matters to a double."""

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
    """Ln of the density at `offset` relative to the density at offset 0; concave, 0 at its peak."""
    total = a + b
    right = -b * offset - total * np.log1p(b / total * np.expm1(-np.maximum(offset, 0)))
    left = a * offset - total * np.log1p(a / total * np.expm1(np.minimum(offset, 0)))
    return np.where(offset > 0, right, left)


def logit_density(a: FloatArray, b: FloatArray, offset: FloatArray) -> FloatArray:
    """Density of logit(v), v ~ Beta(a, b), at logit(a/(a+b)) + offset."""
    total = a + b
    log_peak = 0.5 * np.log(a / total * b) - _HALF_LOG_2PI
    log_peak += _stirling_error(total) - _stirling_error(a) - _stirling_error(b)
    return np.exp(log_peak + _log_shape(a, b, offset))


def logit_spread(a: FloatArray, b: FloatArray) -> FloatArray:
    """The scale on which the density of logit(v) varies."""
    return np.sqrt(1 / a + 1 / b)


def offset_range(a: FloatArray, b: FloatArray, drop: FloatArray, side: int) -> FloatArray:
    """The offset on the left (side=-1) or right (+1) where the density is `drop` nats below its peak."""
    offset = side * logit_spread(a, b) * np.sqrt(2 * drop)
    while np.any(short := _log_shape(a, b, offset) > -drop):
        offset = np.where(short, 2 * offset, offset)
    # From outside, Newton on a concave function moves inwards and never past the root.
    for _ in range(12):
        slope = a - (a + b) * expit(np.log(a / b) + offset)
        offset = offset - (_log_shape(a, b, offset) + drop) / slope
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

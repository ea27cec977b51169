"""Intervals and tails that several checks share."""

from scipy.special import chdtri, ndtr, ndtri

SURE = 0.99
_WIDE = float(ndtri(0.5 + SURE / 2))
"""Standard deviations on either side of what was seen that make up the interval."""


def two_sided(z: float) -> float:
    return min(1.0, 2 * float(ndtr(-abs(z))))


def around(value: float, deviation: float, unit: str = "") -> str:
    return between(value - _WIDE * deviation, value + _WIDE * deviation, unit)


def between(low: float, high: float, unit: str = "") -> str:
    return f"{low:.4g} to {high:.4g}{unit}"


def ends_of_square(ratio: float, count: float) -> tuple[float, float]:
    """The interval of a variance of which `count` values showed this much."""
    low, high = (ratio * count / float(chdtri(count, tail)) for tail in ((1 - SURE) / 2, (1 + SURE) / 2))
    return low, high


def of_square(ratio: float, count: float) -> str:
    return between(*ends_of_square(ratio, count))

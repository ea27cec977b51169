"""Checks at the door: each returns the value in the type the formulas need, or raises InputError."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsFloat, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightaudit.errors import InputError

FloatArray = NDArray[np.float64]


def count(name: str, value: object, *, minimum: int = 0) -> int:
    """An integer of at least `minimum`; booleans and floats are not counts.

    >>> count("errors", 3)
    3
    """
    expected = f"an integer of at least {minimum}"
    if isinstance(value, bool | np.bool_):
        raise InputError(name, value, expected)
    try:
        number = operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise InputError(name, value, expected) from None
    if number < minimum:
        raise InputError(name, value, expected)
    return number


def number(name: str, value: object, expected: str = "a finite number") -> float:
    """A finite real number.

    >>> number("threshold", 1)
    1.0
    """
    if isinstance(value, bool | np.bool_ | str | bytes):
        raise InputError(name, value, expected)
    try:
        result = float(cast("SupportsFloat", value))
    except (TypeError, ValueError):
        raise InputError(name, value, expected) from None
    if not math.isfinite(result):
        raise InputError(name, value, expected)
    return result


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    expected = "a number above 0"
    result = number(name, value, expected)
    if result <= 0:
        raise InputError(name, value, expected)
    return result


def at_least_zero(name: str, value: object) -> float:
    """A finite number that is 0 or more."""
    expected = "a number of at least 0"
    result = number(name, value, expected)
    if result < 0:
        raise InputError(name, value, expected)
    return result


def probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    expected = "a number in [0, 1]"
    result = number(name, value, expected)
    if not 0 <= result <= 1:
        raise InputError(name, value, expected)
    return result


def confidence(value: object) -> float:
    """A confidence strictly between 0 and 1."""
    expected = "a number strictly between 0 and 1"
    result = number("confidence", value, expected)
    if not 0 < result < 1:
        raise InputError("confidence", value, expected)
    return result


def array(name: str, values: ArrayLike) -> FloatArray:
    """Real numbers as float64, of any shape, NaN excluded (infinities are the caller's business)."""
    raw: NDArray[Any] = np.asarray(values)
    if raw.dtype.kind not in "biuf":
        raise InputError(name, f"array of {raw.dtype}", "real numbers")
    result = raw.astype(np.float64, copy=False)
    missing = np.isnan(result)
    if missing.any():
        raise InputError(name, "nan", f"numbers (first NaN at position {int(np.argmax(missing))})")
    return result


def vector(name: str, values: ArrayLike) -> FloatArray:
    """A one-dimensional, non-empty array of real numbers without NaN."""
    result = array(name, values)
    if result.ndim != 1 or result.size == 0:
        raise InputError(
            name, f"array of shape {result.shape}", "a one-dimensional array with at least one entry"
        )
    return result


def within(name: str, values: ArrayLike, low: float, high: float) -> FloatArray:
    """Real numbers of any shape, all in [low, high].

    >>> within("alpha", [0.0, 0.5], 0, 1)
    array([0. , 0.5])
    """
    result = array(name, values)
    outside = (result < low) | (result > high)
    if outside.any():
        limits = f"[{low:g}, {high:g}]" if math.isfinite(high) else f"at least {low:g}"
        raise InputError(name, float(result[outside].flat[0]), f"numbers in {limits}")
    return result

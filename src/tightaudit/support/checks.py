"""Checks at the door: each returns the value in the type the formulas need, or raises InputError."""

import math
import operator
from collections.abc import Callable
from typing import Any, SupportsFloat, SupportsIndex, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightaudit.support.errors import InputError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Numbers = TypeVar("Numbers", float, FloatArray)
"""One number or an array of them; what is computed from them is of the same kind."""

LARGEST_COUNT = 10**15
"""Doubles tell neighbouring integers apart to somewhat beyond this."""
LARGEST_EPSILON = 700.0
"""e^ε is a double up to here."""
LARGEST_MU = 1e6


def count(name: str, value: object, *, minimum: int = 0, maximum: int = LARGEST_COUNT) -> int:
    """An integer from `minimum` to `maximum`; booleans and floats are not counts.

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
    if number > maximum:
        raise InputError(name, value, f"at most {maximum:.0e}")
    return number


def flag(name: str, value: object) -> bool:
    """True or False, and nothing that merely counts as one of them.

    >>> flag("independent", True)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(name, value, "True or False")
    return bool(value)


def reason(name: str, value: object) -> bool | str:
    """True, False, or in the place of True the reason why.

    >>> reason("independent", "every canary has noise of its own")
    'every canary has noise of its own'
    """
    if isinstance(value, str):
        if value.strip().lower() in ("", "yes", "no", "true", "false"):
            raise InputError(name, value, "True, False or the reason")
        return value
    return flag(name, value)


def seed(value: object, name: str = "seed") -> int:
    """A seed: an integer from 0 to 2^128."""
    return count(name, value, maximum=2**128)


def number(name: str, value: object, expected: str = "a finite number") -> float:
    """A finite real number.

    >>> number("threshold", 1)
    1.0
    """
    if isinstance(value, bool | np.bool_ | str | bytes | np.ndarray | np.complexfloating):
        raise InputError(name, value, expected)
    try:
        result = float(cast("SupportsFloat", value))
    except (TypeError, ValueError, OverflowError):
        raise InputError(name, value, expected) from None
    if not math.isfinite(result):
        raise InputError(name, value, expected)
    return result


def _within(
    name: str, value: object, expected: str, allowed: Callable[[float], bool], maximum: float = math.inf
) -> float:
    result = number(name, value, expected)
    if not allowed(result):
        raise InputError(name, value, expected)
    if result > maximum:
        raise InputError(name, value, f"at most {maximum:g}")
    return result


def positive(name: str, value: object, *, maximum: float) -> float:
    """A number above 0 and not above `maximum`."""
    return _within(name, value, "a number above 0", lambda number: number > 0, maximum)


def privacy_loss(name: str, value: object) -> float:
    """An ε from 0 to 700."""
    return _within(name, value, "a number of at least 0", lambda number: number >= 0, LARGEST_EPSILON)


def probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    return _within(name, value, "a number in [0, 1]", lambda number: 0 <= number <= 1)


def rate(name: str, value: object) -> float:
    """A sampling rate in (0, 1]."""
    return _within(name, value, "a sampling rate in (0, 1]", lambda number: 0 < number <= 1)


def between(name: str, value: object, expected: str = "a number strictly between 0 and 1") -> float:
    """A number strictly between 0 and 1."""
    return _within(name, value, expected, lambda number: 0 < number < 1)


def confidence(value: object) -> float:
    """A confidence strictly between 0 and 1."""
    return between("confidence", value)


def array(name: str, values: ArrayLike, prefix: str = "") -> FloatArray:
    """Real numbers as float64, of any shape, NaN excluded (infinities are the caller's business).

    `prefix` begins what an error says was expected.
    """
    raw = plain_array(name, values, prefix)
    if raw.dtype.kind not in "iuf":
        raise InputError(name, f"array of {raw.dtype}", f"{prefix}real numbers")
    result = raw.astype(np.float64, copy=False)
    missing = np.isnan(result)
    if missing.any():
        at = int(np.argmax(missing))
        raise InputError(name, "nan", f"{prefix}numbers (first NaN at position {at})")
    return result


def plain_array(name: str, values: ArrayLike, prefix: str = "") -> NDArray[Any]:
    """Whatever was given as a NumPy array, unless it is ragged or masked."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(name, "a masked array", f"{prefix}an array without a mask")
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(name, values, f"{prefix}rows of equal length") from None


def vector(name: str, values: ArrayLike, prefix: str = "") -> FloatArray:
    """A one-dimensional, non-empty array of real numbers without NaN."""
    result = array(name, values, prefix)
    if result.ndim != 1 or result.size == 0:
        expected = f"{prefix}a one-dimensional array with at least one entry"
        raise InputError(name, f"array of shape {result.shape}", expected)
    return result


def scores(name: str, values: ArrayLike, prefix: str = "") -> FloatArray:
    """A vector of real numbers; booleans, where a score is a yes or a no, are 1 and 0.

    >>> scores("scores", [True, False])
    array([1., 0.])
    """
    raw = plain_array(name, values, prefix)
    return vector(name, raw.astype(np.float64) if raw.dtype == np.bool_ else raw, prefix)


def bits(name: str, values: ArrayLike) -> BoolArray:
    """A one-dimensional, non-empty array of zeros and ones, or of booleans.

    >>> bits("members", [1, 0])
    array([ True, False])
    """
    raw = plain_array(name, values)
    if raw.dtype == np.bool_ and raw.ndim == 1 and raw.size:
        return raw
    values_as_numbers = vector(name, raw)
    wrong = (values_as_numbers != 0) & (values_as_numbers != 1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(name, float(values_as_numbers[at]), f"0 or 1 (position {at})")
    return values_as_numbers == 1


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


def like_the_question(values: FloatArray) -> Any:
    """A plain float for a scalar question, an array for an array."""
    return float(values) if np.ndim(values) == 0 else values

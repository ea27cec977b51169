"""A claim given by its trade-off function itself, as a table or as a Python function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from tightaudit.claims.parts.discrete import DiscretePair
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

ROUNDING = 1e-12
"""How far a value may be from a convex, non-increasing f before it is taken for a mistake."""
_RESOLUTION = 5000
SAFETY = 4e-15
"""Subtracted from supporting lines, so that rounding cannot lift them above the function; less where the
function itself is tiny, and rounds accordingly."""


class Tabulated(DiscretePair):
    """A trade-off function that is linear between the given points.

    The points are taken as exact. Samples of a curve are *not* such points: the lines between them
    lie above the curve, and p-values would come out too small. Use `from_function` for a curve.

    >>> claim = Tabulated(alpha=[0.0, 0.25, 1.0], beta=[0.9, 0.3, 0.0])
    >>> round(claim.f(0.125), 6), round(claim.epsilon(0.1), 6)
    (0.6, 0.875469)
    """

    name = "tabulated"

    def __init__(self, alpha: ArrayLike, beta: ArrayLike) -> None:
        x, y = checks.vector("alpha", alpha), checks.vector("beta", beta)
        if x.shape != y.shape:
            raise InputError("beta", f"{y.size} values", f"as many as alpha, {x.size}")
        if x[0] != 0 or x[-1] != 1 or np.any(np.diff(x) <= 0):
            raise InputError("alpha", x.tolist(), "values that increase from 0 to 1")
        _require_trade_off("beta", x, y)
        super().__init__(np.append(0.0, np.diff(x)), np.append(1 - y[0], np.maximum(-np.diff(y), 0)))

    @classmethod
    def from_function(cls, function: Callable[[FloatArray], ArrayLike]) -> Tabulated:
        """A claim below a convex f given as a function of an array of α.

        f is replaced by straight pieces that lie nowhere above it, but for rounding, so that every p-value
        errs upward and ε(δ) too (at an atom of exactly δ by a lot).
        Needs values only: beyond the two points it joins, a chord of a convex function lies below it.

        >>> import tightaudit as ta
        >>> gaussian = ta.Gaussian(1.0)
        >>> below = Tabulated.from_function(gaussian.f)
        >>> bool(0 <= gaussian.f(0.3) - below.f(0.3) < 1e-5)
        True
        """
        if not callable(function):
            raise InputError("function", function, "a function of an array of α")

        def sampled(x: FloatArray) -> FloatArray:
            y = checks.vector("function", function(x))
            if y.shape != x.shape:
                raise InputError("function", f"a result of shape {y.shape}", f"one value per α, {x.shape}")
            _require_trade_off("function", x, y)
            return y

        x = _first_points()
        x = _refined(x, sampled(x))
        return cls(*_supporting_polygon(x, sampled(x)))


def _require_trade_off(name: str, x: FloatArray, y: FloatArray) -> None:
    """Raise unless the points could lie on a trade-off function."""
    if y.min() < 0 or y.max() > 1:
        raise InputError(name, float(y.min() if y.min() < 0 else y.max()), "values in [0, 1]")
    rising = np.diff(y) > ROUNDING
    if rising.any():
        at = int(np.argmax(rising))
        raise InputError(
            name, f"{y[at]:g} then {y[at + 1]:g} at alpha={x[at + 1]:g}", "values that never rise"
        )
    share = np.diff(x)[:-1] / (x[2:] - x[:-2])
    bulging = y[1:-1] > (1 - share) * y[:-2] + share * y[2:] + ROUNDING
    if bulging.any():
        at = int(np.argmax(bulging)) + 1
        raise InputError(name, f"{y[at]:g} at alpha={x[at]:g}", "a convex function, no point above a chord")
    too_good = y > 1 - x + ROUNDING
    if too_good.any():
        at = int(np.argmax(too_good))
        raise InputError(name, f"{y[at]:g} at alpha={x[at]:g}", f"at most 1-alpha={1 - x[at]:g}")


def _first_points() -> FloatArray:
    """α from 0 to 1, in equal ratios towards both ends, where a trade-off function is steep."""
    far = np.geomspace(1e-300, 1e-20, 1000, endpoint=False)
    near_zero = np.geomspace(1e-20, 0.5, 5000)
    near_one = 1 - np.geomspace(1e-12, 0.5, 3000, endpoint=False)[::-1]
    return np.concatenate([[0.0], far, near_zero, near_one, [1.0]])


def _refined(x: FloatArray, y: FloatArray) -> FloatArray:
    """More points where the function or its argument moves far from one point to the next."""
    moved = np.maximum(np.diff(x), -np.diff(y))
    pieces = np.maximum(np.ceil(moved * _RESOLUTION), 1).astype(np.intp)
    piece = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start, step = np.repeat(x[:-1], pieces), np.repeat(np.diff(x) / pieces, pieces)
    return np.unique(np.append(start + step * piece, 1.0))


def _supporting_polygon(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of a convex polygon from α = 0 to 1 that lies nowhere above the convex f through (x, y)."""
    slope = np.diff(y) / np.diff(x)
    left, right = slope[:-2], slope[2:]
    # Between x[i] and x[i+1] f lies above the chord before and the chord after; they meet here.
    start, end = x[1:-2], x[2:-1]
    gap = (y[2:-1] - y[1:-2]) - left * (end - start)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(right > left, (end - start) - gap / (right - left), end - start)
    step = np.clip(step, 0, end - start)
    meeting, height = start + step, y[1:-2] + left * step
    first = y[1] - slope[1] * x[1]
    corner_x = np.concatenate([[0.0], meeting, [1.0]])
    corner_y = np.concatenate([[first], height, [0.0]])
    keep = np.append(np.diff(corner_x) > 0, True)
    corner_x, corner_y = corner_x[keep], corner_y[keep]
    corner_y = np.maximum(corner_y - np.minimum(SAFETY, 1e-6 * corner_y), 0.0)
    # The corners of a lower bound need not be convex; the slopes of its convex minorant are the
    # isotonic regression of its slopes.
    width = np.diff(corner_x)
    convex = isotonic_regression(np.diff(corner_y) / width, weights=width).x
    # Summed from α = 1, where f is 0, so that small values keep their digits.
    drops = np.maximum(-convex, 0.0) * width
    return corner_x, np.minimum(np.append(np.cumsum(drops[::-1])[::-1], 0.0), 1.0)

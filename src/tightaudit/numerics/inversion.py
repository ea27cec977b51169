"""Inverse of a monotone function at many points at once."""

from collections.abc import Callable

import numpy as np

from tightaudit.support.checks import FloatArray

MAX_STEPS = 200


def solve_decreasing(
    residual_and_slope: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    low: FloatArray,
    high: FloatArray,
    start: FloatArray,
) -> FloatArray:
    """Roots of a decreasing function, one per entry, each inside its bracket [low, high].

    The function is meant to be of order 1, such as the logarithm of a ratio: a root is taken as found once
    a Newton step is tiny and the function small, or the bracket has closed.

    Newton's step wherever it stays inside the bracket and the last one halved the function, else bisection.
    SciPy's vectorised bracketing solver (`scipy.optimize.elementwise.find_root`) takes ten times as long on
    the few hundred points a p-value needs, because it cannot use the derivative.

    >>> target = np.array([1.0, 2.0])
    >>> zeros, tens = np.zeros(2), np.full(2, 10.0)
    >>> solve_decreasing(lambda x: (target - x**2, -2 * x), zeros, tens, tens).round(6)
    array([1.      , 1.414214])
    """
    low, high, x = low.copy(), high.copy(), start.copy()
    before = np.full_like(x, np.inf)
    for _ in range(MAX_STEPS):
        residual, slope = residual_and_slope(x)
        right_of_root = residual < 0
        high = np.where(right_of_root, x, high)
        low = np.where(right_of_root, low, x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = x - residual / slope
        # Newton converges quadratically: after a step this small nothing is left to gain, and rounding
        # may point just outside a bracket that has closed from one side only. A small step alone proves
        # nothing where the slope is wrong for want of digits.
        settled = np.abs(newton - x) <= 1e-9 * np.maximum(np.abs(x), 1e-3)
        settled &= np.abs(residual) <= 1e-5
        useful = (newton > low) & (newton < high) & (np.abs(residual) <= 0.5 * before)
        before = np.abs(residual)
        x = np.where(settled, np.clip(newton, low, high), np.where(useful, newton, 0.5 * (low + high)))
        if bool(np.all(settled | (high - low <= 4e-16 * np.abs(x)))):
            break
    return x

"""The least private member of a family that is still rejected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scipy.optimize import brentq

from tightaudit.tradeoffs.base import Family, TradeOff

Status = Literal["bounded", "none-rejected", "all-rejected"]

_MAX_DOUBLINGS = 9
_SMALLEST = 1e-9
_FAR = 40.0
_NOT_ZERO = 1e-12


@dataclass(frozen=True)
class Found:
    """How a search ended: the ε and the parameter are None where there is none to name."""

    status: Status
    epsilon: float | None
    parameter: float | None


def search(family: Family, excess: Callable[[TradeOff], float], *, delta: float, resolution: float) -> Found:
    """Search a family for the least private claim whose excess is not positive, and its ε at δ.

    >>> import tightaudit as ta
    >>> search(ta.Laplace.family(), lambda claim: 1.0, delta=0.0, resolution=1e-6)
    Found(status='none-rejected', epsilon=0.0, parameter=None)
    """
    if excess(family.most_private) > 0:
        return Found("none-rejected", 0.0, None)
    if excess(family.least_private) <= 0:
        return Found("all-rejected", None, None)
    leak = least_private_rejected(family, excess, resolution)
    parameter = family.parameter_at(leak)
    epsilon = family.leaking(leak).epsilon(delta)
    return Found("bounded", epsilon, parameter if math.isfinite(parameter) else None)


def least_private_rejected(family: Family, excess: Callable[[TradeOff], float], resolution: float) -> float:
    """The largest leak whose excess is not positive, for a family with both kinds among its limits.

    >>> import tightaudit as ta
    >>> leak = least_private_rejected(ta.Laplace.family(), lambda claim: claim.epsilon(0.0) - 2, 1e-8)
    >>> round(leak, 6)
    2.0
    """

    def at(leak: float) -> float:
        value = min(max(excess(family.leaking(leak)), -_FAR), _FAR)
        # Zero counts as rejected; left as it is, a root finder would stop at the near end of a plateau.
        return value if value > 0 else min(value, -_NOT_ZERO)

    low, high = 0.0, min(1.0, family.upper / 2)
    for _ in range(_MAX_DOUBLINGS):
        if at(high) > 0:
            break
        low, high = high, 2 * high if math.isinf(family.upper) else 0.5 * (high + family.upper)
    else:
        raise ArithmeticError(f"no member of the family {family} is accepted, although its limit is")
    while low == 0 and high > _SMALLEST:
        if at(high / 2) > 0:
            high /= 2
        else:
            low = high / 2
    if low == 0:
        return low
    root = float(brentq(at, low, high, xtol=resolution * low, rtol=resolution))
    step = resolution * root
    while root > low and at(root) > 0:
        root, step = max(low, root - step), 2 * step
    return root

"""Numbers that JSON has no word for."""

import math


def finite_or_none(value: float | None) -> float | None:
    """The value, or None where JSON has no number for it.

    >>> finite_or_none(math.inf) is None
    True
    """
    return value if value is not None and math.isfinite(value) else None

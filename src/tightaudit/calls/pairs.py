"""Neighbouring inputs to try: lists of numbers that differ by one in some of their places.

The patterns are those of Ding et al., Detecting Violations of Differential Privacy (CCS 2018).
"""

from tightaudit.support import checks

Numbers = tuple[float, ...]


def neighbouring_lists(length: int, *, everywhere: bool = True) -> list[tuple[Numbers, Numbers]]:
    """Pairs of lists: one up, one down and, if all places may differ, one up the rest down, all alike, …

    >>> neighbouring_lists(2, everywhere=False)
    [((1.0, 1.0), (0.0, 1.0)), ((1.0, 1.0), (2.0, 1.0))]
    """
    length = checks.count("length", length, minimum=1)
    rest, half = length - 1, length // 2
    ones = (1.0,) * length
    others = [(0.0,) + (1.0,) * rest, (2.0,) + (1.0,) * rest]
    if not everywhere:
        return [(ones, other) for other in others]
    others += [
        (2.0,) + (0.0,) * rest,
        (0.0,) + (2.0,) * rest,
        (2.0,) * half + (0.0,) * (length - half),
        (2.0,) * length,
        (0.0,) * length,
    ]
    crossed = (1.0,) * half + (0.0,) * (length - half), (0.0,) * half + (1.0,) * (length - half)
    return list(dict.fromkeys([*((ones, other) for other in others if other != ones), crossed]))

"""Pairing scores with secret bits by canary id, so that a reordered file cannot pair them wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tightaudit.errors import InputError

Ids: TypeAlias = Sequence[Hashable] | NDArray[Any]


def matching_positions(
    score_ids: Ids | None,
    member_ids: Ids | None,
    scores: int,
    members: int,
) -> NDArray[np.intp]:
    """For each score, the position of the bit with the same id.

    >>> matching_positions(["b", "a"], ["a", "b"], 2, 2)
    array([1, 0])
    """
    if score_ids is None or member_ids is None:
        missing = "score_ids" if score_ids is None else "member_ids"
        raise InputError(missing, None, "ids on both sides, or on neither")
    wanted = unique_ids("score_ids", score_ids, scores)
    offered = unique_ids("member_ids", member_ids, members)
    position = {key: index for index, key in enumerate(offered)}
    for key in wanted:
        if key not in position:
            raise InputError("score_ids", key, "an id that is also in member_ids")
    if len(offered) > len(wanted):
        extra = set(offered) - set(wanted)
        raise InputError("member_ids", next(key for key in offered if key in extra), "an id with a score")
    return np.fromiter((position[key] for key in wanted), dtype=np.intp, count=len(wanted))


def unique_ids(name: str, ids: Ids, size: int) -> list[Hashable]:
    """The ids as a list, if there is one for each of `size` values and none comes twice.

    >>> unique_ids("ids", ["a", "b", "a"], 3)
    Traceback (most recent call last):
        ...
    tightaudit.errors.InputError: ids=a: expected each id once
    """
    try:
        keys: list[Hashable] = list(ids.tolist() if isinstance(ids, np.ndarray) else ids)
        distinct = len(set(keys))
    except TypeError:
        raise InputError(name, ids, "a sequence of ids such as strings or integers") from None
    if len(keys) != size:
        raise InputError(name, f"{len(keys)} ids", f"one per value, {size}")
    if distinct < size:
        repeated, _ = Counter(keys).most_common(1)[0]
        raise InputError(name, repeated, "each id once")
    return keys

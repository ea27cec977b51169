"""Pairing scores with secret bits by canary id, so that a reordered file cannot pair them wrongly."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tightaudit.errors import InputError

_BLOCK = 100_000
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
    _require_one_per_value("score_ids", score_ids, scores)
    _require_one_per_value("member_ids", member_ids, members)
    position = _positions("member_ids", member_ids)
    found, taken = np.empty(scores, dtype=np.intp), np.zeros(members, dtype=np.bool_)
    for at, key in enumerate(_each(score_ids)):
        place = position.get(key) if _hashable(key) else None
        if place is None:
            raise InputError("score_ids", key, "an id that is also in member_ids")
        if taken[place]:
            raise InputError("score_ids", key, "each id once")
        found[at], taken[place] = place, True
    if members > scores:
        raise InputError("member_ids", member_ids[int(np.argmin(taken))], "an id with a score")
    return found


def require_unique(name: str, ids: Ids, size: int) -> None:
    """Refuse ids that are not one for each of `size` values, or that come twice.

    >>> require_unique("ids", ["a", "b", "a"], 3)
    Traceback (most recent call last):
        ...
    tightaudit.errors.InputError: ids=a: expected each id once
    """
    _require_one_per_value(name, ids, size)
    _positions(name, ids)


def _require_one_per_value(name: str, ids: Ids, size: int) -> None:
    try:
        number = len(ids)
    except TypeError:
        raise InputError(name, ids, "a sequence of ids such as strings or integers") from None
    if number != size:
        raise InputError(name, f"{number} ids", f"one per value, {size}")


def _positions(name: str, ids: Ids) -> dict[Hashable, int]:
    position: dict[Hashable, int] = {}
    for at, key in enumerate(_each(ids)):
        if not _hashable(key):
            raise InputError(name, key, "ids such as strings or integers")
        if position.setdefault(key, at) != at:
            raise InputError(name, key, "each id once")
    return position


def _each(ids: Ids) -> Iterator[Hashable]:
    """The ids one by one; those of an array as plain values, which take half the memory of NumPy's."""
    if not isinstance(ids, np.ndarray):
        yield from ids
        return
    for start in range(0, len(ids), _BLOCK):
        yield from ids[start : start + _BLOCK].tolist()


def _hashable(key: object) -> bool:
    return isinstance(key, Hashable)

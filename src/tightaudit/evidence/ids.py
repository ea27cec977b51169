"""Canary ids: what may be one, and pairing scores with secret bits by them whatever the order of a file."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tightaudit.support.errors import InputError

_BLOCK = 100_000
Ids: TypeAlias = Sequence[Hashable] | NDArray[Any]


LONGEST_ID = 1000
_LARGEST_ARRAY = 2 * 2**30
_BYTES_PER_SIGN = 4


def matching_positions(
    score_ids: Ids | None,
    member_ids: Ids | None,
    scores: int,
    members: int,
    *,
    labels: tuple[str, str] = ("score_ids", "member_ids"),
) -> NDArray[np.intp]:
    """For each score, the position of the bit with the same id; `labels` are what errors call the two.

    >>> matching_positions(["b", "a"], ["a", "b"], 2, 2)
    array([1, 0])
    """
    if score_ids is None or member_ids is None:
        missing = labels[0] if score_ids is None else labels[1]
        raise InputError(missing, None, "ids on both sides, or on neither")
    _require_one_per_value(labels[0], score_ids, scores)
    _require_one_per_value(labels[1], member_ids, members)
    position = _positions(labels[1], member_ids)
    paired, taken = np.empty(scores, dtype=np.intp), np.zeros(members, dtype=np.bool_)
    for at, key in enumerate(_each(score_ids)):
        place = position.get(key) if _hashable(key) else None
        if place is None:
            raise InputError(labels[0], key, f"an id that is also in {labels[1]}")
        if taken[place]:
            raise InputError(labels[0], key, "each id once")
        paired[at], taken[place] = place, True
    if members > scores:
        raise InputError(labels[1], member_ids[int(np.argmin(taken))], "an id with a score")
    return paired


def require_unique(name: str, ids: Ids, size: int) -> None:
    """Refuse ids that are not one for each of `size` values, or that come twice.

    >>> require_unique("ids", ["a", "b", "a"], 3)
    Traceback (most recent call last):
        ...
    tightaudit.InputError: ids=a: expected each id once
    """
    _require_one_per_value(name, ids, size)
    if not isinstance(ids, np.ndarray):
        _positions(name, ids)
        return
    # Neighbours in order take a fraction of the memory of a table of all ids.
    ordered = np.sort(ids)
    again = ordered[1:] == ordered[:-1]
    if again.any():
        raise InputError(name, ordered[int(np.argmax(again))].item(), "each id once")


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


def bytes_of_texts(longest: int, count: int) -> int:
    """What an array of so many texts takes, each with as much room as the longest needs.

    >>> bytes_of_texts(longest=10, count=1000)
    40000
    """
    return _BYTES_PER_SIGN * longest * count


def require_room(name: str, longest: int, count: int) -> None:
    """Refuse texts that would take more memory together than any audit needs.

    >>> require_room("ids", longest=1000, count=10**6)
    Traceback (most recent call last):
        ...
    tightaudit.InputError: ids=one of 1000 characters: expected at most 536, so that 1,000,000 fit into 2 GiB
    """
    if bytes_of_texts(longest, count) > _LARGEST_ARRAY:
        most = _LARGEST_ARRAY // bytes_of_texts(1, count)
        raise InputError(
            name,
            f"one of {longest} characters",
            f"at most {most}, so that {count:,} fit into {_LARGEST_ARRAY // 2**30} GiB",
        )


def _hashable(key: object) -> bool:
    return isinstance(key, Hashable)


def text_or_integers(name: str, ids: Ids) -> NDArray[Any]:
    """Ids as an array of integers or of text, which a file can hold without pickling.

    >>> text_or_integers("ids", ["a", "b"]).dtype.kind
    'U'
    """
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuU":
        array = ids
        if ids.dtype.kind == "U" and ids.dtype.itemsize > 4 * LONGEST_ID:
            raise InputError(name, "a longer one", f"ids of at most {LONGEST_ID} characters")
    else:
        try:
            values = list(ids.tolist() if isinstance(ids, np.ndarray) else ids)
        except TypeError:
            raise InputError(name, ids, "a sequence of texts or of integers") from None
        kind = str if values and isinstance(values[0], str) else int
        for at, value in enumerate(values):
            if not isinstance(value, kind if kind is str else int | np.integer) or isinstance(value, bool):
                raise InputError(name, value, f"texts only, or integers only (position {at})")
            if isinstance(value, str) and len(value) > LONGEST_ID:
                raise InputError(name, value, f"ids of at most {LONGEST_ID} characters (position {at})")
        if kind is str:
            require_room(name, max(map(len, values)), len(values))
        try:
            array = np.array(values, dtype=np.str_ if kind is str else np.int64)
        except OverflowError:
            raise InputError(name, "an integer beyond 64 bits", "integers of at most 64 bits") from None
    if array.ndim != 1:
        raise InputError(name, f"array of shape {array.shape}", "a one-dimensional array")
    return array

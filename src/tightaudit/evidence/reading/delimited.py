"""CSV and TSV: a line of column names, then one canary per line."""

import csv
import math
from array import array
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tightaudit.evidence.ids import LONGEST_ID, bytes_of_texts, require_room
from tightaudit.evidence.reading.columns import NAMES_OF_THINGS, Contents, Selection, bit_of_word
from tightaudit.evidence.reading.lines import bounded_lines
from tightaudit.support.errors import InputError, Place

_BLOCK = 100_000


def read_delimited(
    file: BinaryIO, source: str, selection: Selection, *, delimiter: str | None = None
) -> Contents:
    r"""The chosen columns of a CSV file; the line of names tells its delimiter unless it is given.

    >>> import io
    >>> text = io.BytesIO(b"score,member\n0.5,1\n-2,0\n")
    >>> read_delimited(text, "a.csv", Selection()).values["score"]
    array([ 0.5, -2. ])
    """
    lines_of_file = bounded_lines(file, source)
    first = next(lines_of_file, "")
    whole = chain([first], lines_of_file)
    reader = csv.reader(whole, delimiter=delimiter or _delimiter(first), strict=True)
    try:
        names = next(reader, [])
        roles = selection.among(names, source)
        position = {role: names.index(name) for role, name in roles.items()}
        scores, members = array("d"), bytearray()
        named = {role: _Texts() for role in NAMES_OF_THINGS if role in position}
        score_at, member_at = (position.get(role) for role in ("score", "member"))
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                place = f"{source}, line {reader.line_num}"
                raise InputError(Place(place), f"{len(row)} values", f"{len(names)}, one per column")
            if score_at is not None:
                scores.append(_score(row[score_at], source, reader.line_num))
            if member_at is not None:
                members.append(bit_of_word(row[member_at].strip(), source, reader.line_num))
            for role, texts in named.items():
                text = row[position[role]]
                if len(text) > LONGEST_ID:
                    place = f"{source}, line {reader.line_num}"
                    raise InputError(Place(place), text, f"an id of at most {LONGEST_ID} characters")
                texts.append(text)
    except csv.Error as error:
        place = f"{source}, line {reader.line_num}"
        raise InputError(Place(place), str(error), "values between delimiters, quoted or not") from None
    found: dict[str, NDArray[Any]] = {}
    if score_at is not None:
        found["score"] = np.frombuffer(scores) if scores else np.empty(0)
    if member_at is not None:
        found["member"] = np.frombuffer(members, dtype=np.bool_)
    for role, texts in named.items():
        found[role] = texts.array(Place(f"{source}, the {role}s"))
    return Contents(source, found)


class _Texts:
    """A column of texts, kept in arrays: a list of so many would take most of the memory of an audit."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.str_]] = []
        self._last: list[str] = []

    def append(self, text: str) -> None:
        self._last.append(text)
        if len(self._last) == _BLOCK:
            self._close_block()

    def array(self, name: Place) -> NDArray[np.str_]:
        self._close_block()
        longest = max(block.dtype.itemsize // bytes_of_texts(1, 1) for block in self._blocks)
        require_room(name, longest, sum(block.size for block in self._blocks))
        return np.concatenate(self._blocks)

    def _close_block(self) -> None:
        self._blocks.append(np.array(self._last, dtype=np.str_))
        self._last = []


def _delimiter(names: str) -> str:
    """A comma, unless the line of names has none and one of the other usual signs."""
    return next((sign for sign in ",;\t|" if sign in names), ",")


def _score(text: str, source: str, line: int) -> float:
    try:
        score = float(text)
        # Python reads 1_000 as a number; a file's author hardly meant one.
        if not math.isnan(score) and "_" not in text:
            return score
    except ValueError:
        pass
    raise InputError(Place(f"{source}, line {line}"), text or "nothing", "a number for the score")

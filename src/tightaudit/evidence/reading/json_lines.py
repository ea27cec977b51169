"""JSON Lines: one object per line, one canary per object."""

import json
import math
from typing import Any, BinaryIO

import numpy as np

from tightaudit.evidence.ids import text_or_integers
from tightaudit.evidence.reading.columns import NAMES_OF_THINGS, Contents, Selection
from tightaudit.evidence.reading.lines import bounded_lines
from tightaudit.support.errors import InputError, Place


def read_json_lines(file: BinaryIO, source: str, selection: Selection) -> Contents:
    r"""The chosen keys of every object; the first object says which there are.

    >>> import io
    >>> text = io.BytesIO(b'{"score": 0.5, "member": true}\n{"score": -2, "member": 0}\n')
    >>> read_json_lines(text, "a.jsonl", Selection()).values["member"]
    array([ True, False])
    """
    roles: dict[str, str] = {}
    found: dict[str, list[Any]] = {}
    for number, line in enumerate(bounded_lines(file, source), start=1):
        if not line.strip():
            continue
        place = f"{source}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(Place(place), line, "one JSON object per line") from None
        if not isinstance(record, dict):
            raise InputError(Place(place), line, "one JSON object per line")
        if not roles:
            roles = selection.among(list(record), source)
            found = {role: [] for role in roles}
        for role, name in roles.items():
            if name not in record:
                raise InputError(Place(place), line, f"the key {name}, as in the first object")
            found[role].append(_checked(role, record[name], place))
    if not roles:
        selection.among([], source)
    values = {
        role: text_or_integers(Place(f"{source}, the {role}s"), column)
        for role, column in found.items()
        if role in NAMES_OF_THINGS
    }
    if "score" in found:
        values["score"] = np.array(found["score"], dtype=np.float64)
    if "member" in found:
        values["member"] = np.array(found["member"], dtype=np.bool_)
    return Contents(source, values)


def _checked(role: str, value: object, place: str) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if role == "score":
        try:
            if number and not math.isnan(score := float(value)):  # type: ignore[arg-type]
                return score
        except OverflowError:
            pass
        raise InputError(Place(place), json.dumps(value), "a number for the score")
    if role == "member" and not (isinstance(value, bool) or (number and value in (0, 1))):
        raise InputError(Place(place), json.dumps(value), "0 or 1 for the member")
    return value

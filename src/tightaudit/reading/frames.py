"""Data frames of pandas and polars, by what both can do: name their columns and give one as an array."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from tightaudit.reading.columns import Columns, Selection
from tightaudit.run import text_or_integers


@runtime_checkable
class Frame(Protocol):
    """What pandas and polars frames have in common."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: str) -> Any: ...


def is_frame(data: object) -> TypeGuard[Frame]:
    """Whether this is a table with named columns rather than an array.

    >>> is_frame([1.0, 2.0])
    False
    """
    return isinstance(data, Frame) and not isinstance(data, np.ndarray)


def read_frame(frame: Frame, selection: Selection) -> Columns:
    """The chosen columns of a frame."""
    roles = selection.among([str(name) for name in frame.columns], "the frame")
    values = {role: frame[name].to_numpy() for role, name in roles.items()}
    if "id" in values:
        values["id"] = text_or_integers("ids", values["id"])
    return Columns("the frame", values)

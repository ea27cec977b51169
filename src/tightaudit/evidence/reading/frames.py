"""Data frames of pandas and polars, by what both can do: name their columns and give one as an array."""

from typing import Any, Protocol, TypeGuard

from tightaudit.evidence.ids import text_or_integers
from tightaudit.evidence.reading.columns import NAMES_OF_THINGS, Contents, Selection
from tightaudit.support.errors import InputError, Place

SOURCE = "the frame"


class Frame(Protocol):
    """What pandas and polars frames have in common."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any) -> Any: ...


def is_frame(data: object) -> TypeGuard[Frame]:
    """Whether this is a table with named columns rather than an array.

    >>> is_frame([1.0, 2.0])
    False
    """
    # Asked of the type: a lazy frame would have to compute its columns first.
    return all(hasattr(type(data), name) for name in ("columns", "__getitem__"))


def read_frame(frame: Frame, selection: Selection) -> Contents:
    """The chosen columns of a frame."""
    if not hasattr(frame, "__len__"):
        raise InputError("scores", type(frame).__name__, "numbers, a Run or a frame with its data")
    names = {str(name): name for name in getattr(frame, "column_names", frame.columns)}
    roles = selection.among(list(names), SOURCE)
    values = {role: frame[names[name]].to_numpy() for role, name in roles.items()}
    for role in set(values).intersection(NAMES_OF_THINGS):
        values[role] = text_or_integers(Place(f"{SOURCE}, the {role}s"), values[role])
    return Contents(SOURCE, values)

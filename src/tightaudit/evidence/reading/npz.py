"""NumPy's NPZ, a saved Run among them."""

from typing import BinaryIO

from tightaudit.evidence.ids import text_or_integers
from tightaudit.evidence.reading.columns import NAMES_OF_THINGS, Contents, Selection
from tightaudit.evidence.run import TRANSCRIPT, known_from_header
from tightaudit.support.arrays import StoredArrays
from tightaudit.support.errors import InputError, Place


def read_npz(file: BinaryIO, source: str, selection: Selection) -> Contents:
    """The chosen arrays of an NPZ file, with what a saved Run knows."""
    arrays = StoredArrays(file, source)
    values = {role: arrays[name] for role, name in selection.among(arrays.names, source).items()}
    for role in set(values).intersection(NAMES_OF_THINGS):
        values[role] = text_or_integers(Place(f"{source}, the {role}s"), values[role])
    if "header" not in arrays.names:
        return Contents(source, values)
    header = arrays["header"]
    if header.dtype.kind != "U" or header.ndim != 0:
        raise InputError(Place(f"{source}, header"), f"array of {header.dtype}", "one text")
    known = known_from_header(str(header), source)
    transcript = {
        name.removeprefix(TRANSCRIPT): arrays[name] for name in arrays.names if name.startswith(TRANSCRIPT)
    }
    return Contents(source, values, {**known, "transcript": transcript or None})

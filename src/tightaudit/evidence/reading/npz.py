"""NumPy's NPZ, a saved Run among them. Pickled objects in it are refused, never loaded."""

import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tightaudit.evidence.ids import text_or_integers
from tightaudit.evidence.reading.columns import NAMES_OF_THINGS, Contents, Selection
from tightaudit.evidence.run import TRANSCRIPT, known_from_header
from tightaudit.support.errors import InputError, Place


def read_npz(file: BinaryIO, source: str, selection: Selection) -> Contents:
    """The chosen arrays of an NPZ file, with what a saved Run knows."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InputError(Place(source), "a single array", "an NPZ file with several named arrays")
            roles = selection.among(archive.files, source)
            values = {role: _array(archive, name, source) for role, name in roles.items()}
            header = _array(archive, "header", source) if "header" in archive.files else None
            transcript = {
                name.removeprefix(TRANSCRIPT): _array(archive, name, source)
                for name in archive.files
                if name.startswith(TRANSCRIPT)
            }
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        found = "no NPZ file" if "pickle" in str(error) else str(error)
        raise InputError(Place(source), found, "a whole NPZ file") from None
    except MemoryError:
        raise InputError(Place(source), "more values than fit into memory", "a smaller NPZ file") from None
    for role in set(values).intersection(NAMES_OF_THINGS):
        values[role] = text_or_integers(Place(f"{source}, the {role}s"), values[role])
    if header is None:
        return Contents(source, values)
    if header.dtype.kind != "U" or header.ndim != 0:
        raise InputError(Place(f"{source}, header"), f"array of {header.dtype}", "one text")
    known = known_from_header(str(header), source)
    return Contents(source, values, {**known, "transcript": transcript or None})


def _array(archive: Any, name: str, source: str) -> NDArray[Any]:
    try:
        values = archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error) and "Object arrays" not in str(error):
            raise
        found = f"array {name} of pickled objects"
        raise InputError(Place(source), found, "numbers or text; pickled objects are never loaded") from None
    if not isinstance(values, np.ndarray):
        raise InputError(Place(source), f"an entry {name} that is no array", "a whole NPZ file")
    return values

"""NumPy's NPZ, a saved Run among them. Pickled objects in it are refused, never loaded."""

from __future__ import annotations

import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tightaudit.errors import FileError, InputError
from tightaudit.reading.columns import Columns, Selection
from tightaudit.run import known_from_header, text_or_integers


def read_npz(file: BinaryIO, source: str, selection: Selection) -> Columns:
    """The chosen arrays of an NPZ file, with what a saved Run knows."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise FileError(source, "a single array", "an NPZ file with several named arrays")
            roles = selection.among(archive.files, source)
            values = {role: _array(archive, name, source) for role, name in roles.items()}
            header = _array(archive, "header", source) if "header" in archive.files else None
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        found = "no NPZ file" if "pickle" in str(error) else str(error)
        raise FileError(source, found, "a whole NPZ file") from None
    except MemoryError:
        raise FileError(source, "more values than fit into memory", "a smaller NPZ file") from None
    if "id" in values:
        values["id"] = text_or_integers("ids", values["id"])
    if header is None:
        return Columns(source, values)
    if header.dtype.kind != "U" or header.ndim != 0:
        raise FileError(f"{source}, header", f"array of {header.dtype}", "one text")
    return Columns(source, values, known_from_header(str(header)))


def _array(archive: Any, name: str, source: str) -> NDArray[Any]:
    try:
        values = archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error) and "Object arrays" not in str(error):
            raise
        found = f"array {name} of pickled objects"
        raise FileError(source, found, "numbers or text; pickled objects are never loaded") from None
    if not isinstance(values, np.ndarray):
        raise FileError(source, f"an entry {name} that is no array", "a whole NPZ file")
    return values

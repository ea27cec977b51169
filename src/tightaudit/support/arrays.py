"""Arrays in an NPZ file that anyone may have written: they are read within limits, or refused in one line."""

import warnings
import zipfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tightaudit.support.errors import InputError, Place

_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Those that NumPy writes."""
_ENCRYPTED = 0x1
_UNQUESTIONED_BYTES = 48 * 2**20
_LARGEST_GROWTH = 20
"""Scores hardly shrink, and coins beside them a hundredfold at most. What is larger, and shrinks more than
this as a whole, was made to fill a memory."""


def require_harmless_growth(source: str, packed: float, unpacked: float) -> None:
    """Refuse a compressed file that is small and would take very much memory.

    >>> require_harmless_growth("scores.npz", packed=1e6, unpacked=1e9)
    Traceback (most recent call last):
        ...
    tightaudit.InputError: scores.npz: found 1,000,000 bytes that grow to 1,000,000,000, expected at most ...
    """
    if unpacked > max(_UNQUESTIONED_BYTES, _LARGEST_GROWTH * packed):
        found = f"{packed:,.0f} bytes that grow to {unpacked:,.0f}"
        raise InputError(
            Place(source), found, f"at most {_LARGEST_GROWTH} times as many; save it uncompressed"
        )


class StoredArrays:
    """The arrays of an NPZ file by name, read when they are asked for. Pickled objects are never loaded.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, score=[1.0, 2.0])
    >>> arrays = StoredArrays(file, "run.npz")
    >>> arrays.names, arrays["score"]
    (['score'], array([1., 2.]))
    """

    def __init__(self, file: BinaryIO, source: str) -> None:
        self._source = source
        try:
            self._archive = zipfile.ZipFile(file)
        except Exception as error:  # whatever a parser makes of a broken file, the file is to blame
            raise self._broken(error) from None
        entries = [entry for entry in self._archive.infolist() if entry.filename.endswith(".npy")]
        self._members = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        packed, unpacked = (
            sum(getattr(entry, size) for entry in entries) for size in ("compress_size", "file_size")
        )
        require_harmless_growth(source, packed, unpacked)

    @property
    def names(self) -> list[str]:
        """The names of the arrays, in the order of the file."""
        return list(self._members)

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self._members[name]
        self._require_harmless(name, entry)
        try:
            # Of headers written by Python 2, NumPy says that they take longer to read.
            with self._archive.open(entry) as member, warnings.catch_warnings(action="ignore"):
                values = np.lib.format.read_array(member, allow_pickle=False)
                whole = not member.read(1)  # reading to the end also compares the checksum
        except MemoryError:
            found = f"array {name} of more values than fit into memory"
            raise InputError(Place(self._source), found, "a smaller NPZ file") from None
        except Exception as error:
            if "Object arrays" in str(error):
                expected = "numbers or text; pickled objects are never loaded"
                raise InputError(Place(self._source), f"array {name} of pickled objects", expected) from None
            raise self._broken(error) from None
        if not whole:
            raise InputError(Place(self._source), f"array {name} and more after it", "a whole NPZ file")
        return np.asarray(values)

    def _require_harmless(self, name: str, entry: zipfile.ZipInfo) -> None:
        place = Place(self._source)
        if entry.flag_bits & _ENCRYPTED:
            raise InputError(place, f"array {name} encrypted", "arrays that are not encrypted")
        if entry.compress_type not in _COMPRESSIONS:
            raise InputError(place, f"array {name} in another compression", "arrays as NumPy compresses them")

    def _broken(self, error: Exception) -> InputError:
        return InputError(Place(self._source), str(error) or type(error).__name__, "a whole NPZ file")

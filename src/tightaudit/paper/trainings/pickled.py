"""The one thing that is read from a pickle: a batch of CIFAR-10, a dictionary with an array and labels.

What a pickle names is never looked up, imported or called. The few names that such a batch needs have
stand-ins here which hold values, and the array is made from them in the end.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np

from tightaudit.support.errors import InputError

# fmt: off
_OPCODES = frozenset((
    "PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2",
    "LONG", "LONG1", "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINBYTES", "SHORT_BINBYTES", "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1",
    "TUPLE2", "TUPLE3", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "PUT", "BINPUT", "LONG_BINPUT",
    "MEMOIZE", "GET", "BINGET", "LONG_BINGET", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD",
))
# fmt: on
"""Those that pickled arrays, lists and dictionaries are written in, by Python 2 and 3."""
_MOST_TUPLES = 100
"""A batch has some ten. Python's stack overflows when a tuple nested a million times is hashed."""
_EXPECTED = "a batch of CIFAR-10: arrays and nothing else"


def pickled_batch(content: bytes, row: int) -> tuple[Any, list[int]]:
    """Pixels, `row` of them for each image, and labels of a pickled batch.

    >>> images = np.zeros((2, 4), dtype=np.uint8)
    >>> pickled_batch(pickle.dumps({b"data": images, b"labels": [7, 1]}, protocol=2), row=4)[1]
    [7, 1]
    """
    _require_plain(content)
    batch = _PlainUnpickler(io.BytesIO(content), encoding="bytes").load()
    data, labels = (batch.get(b"data"), batch.get(b"labels")) if type(batch) is dict else (None, None)
    if (
        type(data) is not _Array
        or type(labels) is not list
        or not all(type(label) is int for label in labels)
    ):
        raise InputError("data-from", "a pickle without data and labels", _EXPECTED)
    return data.pixels(row), labels


def _require_plain(content: bytes) -> None:
    tuples = 0
    for opcode, argument, _ in pickletools.genops(content):
        tuples += opcode.name.startswith("TUPLE")
        if opcode.name not in _OPCODES or tuples > _MOST_TUPLES:
            raise InputError("data-from", f"a pickle with {opcode.name}", _EXPECTED)
        # The unpickler makes room for as many things as this number says.
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= (argument or 0) <= len(content):
            raise InputError("data-from", f"a pickle that puts a thing in place {argument}", _EXPECTED)


class _Kind:
    """In the place of a `numpy.dtype`: its code, such as u1."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment, which bytes have none of."""


class _Array:
    """In the place of an array: what it would be made from."""

    def __init__(self, *_: Any) -> None:
        self._state: Any = None

    def __setstate__(self, state: Any) -> None:
        self._state = state

    def pixels(self, row: int) -> Any:
        """Bytes as rows of this length."""
        _, shape, kind, by_column, raw = self._state
        whole = type(shape) is tuple and len(shape) == 2 and shape[1] == row and type(raw) is bytes
        if not whole or type(kind) is not _Kind or kind.code not in ("u1", b"u1"):
            raise InputError("data-from", "an array of another shape or type", f"rows of {row} bytes")
        return np.frombuffer(raw, dtype=np.uint8).reshape(shape, order="F" if by_column else "C")


class _Encode:
    """In the place of `_codecs.encode`, by which Python 3 writes bytes for Python 2."""

    __slots__ = ()  # a pickle may set attributes of what it names

    def __call__(self, text: str, encoding: str) -> bytes:
        if encoding not in ("latin1", b"latin1"):
            raise InputError("data-from", f"bytes written in {encoding}", _EXPECTED)
        return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): object(),
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _Encode(),
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise InputError("data-from", f"{module}.{name}", _EXPECTED)
        return _STAND_INS[module, name]

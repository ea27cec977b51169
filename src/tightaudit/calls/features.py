"""From whatever a mechanism returns to numbers that a classifier can use.

Numbers, arrays, lists of any length, words, None and flags: each place of an output becomes a few columns.
What the columns are is decided by the outputs that a classifier is fitted on, and kept for the others.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

_MOST_WORDS = 64
_MOST_PLACES = 256
_LAST_BITS = 12
"""Bits at the end of a double's significand that are looked at on request."""
_MISSING = math.nan
_OFTEN, _MOST_MARKS, _LOOKED_AT = 0.01, 4, 100_000
"""Share of outputs from which a number counts as a mark, how many there can be, and outputs to find them."""
_SEVERAL = 3
"""Places from which features of all of them together are added."""
_LARGEST = 1e30
"""Of a number in a column: infinities are as large as that."""


@dataclass(frozen=True)
class Features:
    """The columns of an output: of each of its places, and its length where that varies."""

    places: int
    words: tuple[tuple[str, ...], ...]
    """For each place, the words that get a column of their own."""
    absent: tuple[bool, ...]
    """For each place, whether an output may have nothing there."""
    marks: tuple[tuple[float, ...], ...]
    """For each place, numbers that come back again and again among others, such as -1 for no answer."""
    varying: bool
    """Whether outputs have different lengths."""
    last_bits: bool = False
    own: Callable[[Any], Sequence[float]] | None = None

    @classmethod
    def of(
        cls,
        outputs: Any,
        *,
        last_bits: bool = False,
        own: Callable[[Any], Sequence[float]] | None = None,
    ) -> "Features":
        """The columns for outputs like these.

        >>> Features.of([[True, None], [False, True]]).matrix([[True, None]])
        array([[1., 0., 1.]])
        """
        table = _Table.of(outputs, own)
        words, absent, marks = [], [], []
        for place in range(table.places):
            found, counts = table.words(place)
            order = np.argsort(-counts, kind="stable")[:_MOST_WORDS]
            words.append(tuple(found[at] for at in order))
            absent.append(table.absent(place))
            marks.append(_marks(table.numbers(place)))
        return cls(table.places, tuple(words), tuple(absent), tuple(marks), table.varying, last_bits, own)

    def matrix(self, outputs: Any) -> FloatArray:
        """A row per output."""
        table = _Table.of(outputs, self.own)
        columns: list[FloatArray] = []
        plains: list[FloatArray] = []
        for place in range(self.places):
            numbers = table.numbers(place)
            missing = np.isnan(numbers)
            marked = [numbers == mark for mark in self.marks[place]]
            plain = np.where(np.any([missing, *marked], axis=0), _MISSING, numbers)
            plains.append(plain)
            columns.append(np.clip(np.nan_to_num(plain, nan=0.0), -_LARGEST, _LARGEST))
            if self.absent[place]:
                columns.append(missing.astype(np.float64))
            columns += [each.astype(np.float64) for each in marked]
            columns += [table.is_word(place, word) for word in self.words[place]]
            if self.last_bits:
                columns += _bits(numbers)
        if self.varying:
            columns.append(table.lengths)
        if self.places >= _SEVERAL:
            columns += _together(np.column_stack(plains))
        return np.column_stack(columns)


def _marks(numbers: FloatArray) -> tuple[float, ...]:
    known = numbers[~np.isnan(numbers)][:_LOOKED_AT]
    values, counts = np.unique(known, return_counts=True)
    if values.size <= _MOST_WORDS:
        return ()
    often = np.flatnonzero(counts > _OFTEN * known.size)
    return tuple(values[often[np.argsort(-counts[often])][:_MOST_MARKS]].tolist())


def _together(plain: FloatArray) -> list[FloatArray]:
    """Of all places: how many have a number, the largest, the smallest, their sum, and where the first is."""
    there = ~np.isnan(plain)
    largest = np.where(there, plain, -np.inf).max(axis=1)
    smallest = np.where(there, plain, np.inf).min(axis=1)
    count = there.sum(axis=1)
    found = [count, largest, smallest, np.where(there, plain, 0.0).sum(axis=1), there.argmax(axis=1)]
    return [np.clip(np.where(count == 0, 0.0, each), -_LARGEST, _LARGEST) for each in found]


@dataclass(frozen=True)
class _Table:
    """Outputs as a table of places, NaN where there is no number."""

    values: FloatArray
    texts: NDArray[Any] | None
    lengths: FloatArray

    @classmethod
    def of(cls, outputs: Any, own: Callable[[Any], Sequence[float]] | None) -> "_Table":
        if own is not None:
            outputs = [list(own(output)) for output in outputs]
        if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
            values = outputs.reshape(len(outputs), -1).astype(np.float64)
            if np.isnan(values).any():
                raise InputError("mechanism", "NaN", "numbers, words, flags or None")
            return cls(values, None, np.full(len(values), float(values.shape[1])))
        rows = [_flat(output) for output in outputs]
        lengths = np.array([len(row) for row in rows], dtype=np.float64)
        places = int(lengths.max(initial=0))
        if places > _MOST_PLACES:
            expected = f"at most {_MOST_PLACES} values in an output, or features=… of your own"
            raise InputError("mechanism", f"an output of {places} values", expected)
        values = np.full((len(rows), places), _MISSING)
        texts = np.full((len(rows), places), "", dtype=object)
        for at, row in enumerate(rows):
            for place, value in enumerate(row):
                if isinstance(value, str):
                    texts[at, place] = value
                elif value is not None:
                    values[at, place] = _number(value)
        _require_one_type(values, texts)
        return cls(values, texts if (texts != "").any() else None, lengths)

    @property
    def places(self) -> int:
        return self.values.shape[1]

    @property
    def varying(self) -> bool:
        return bool(np.ptp(self.lengths)) if self.lengths.size else False

    def numbers(self, place: int) -> FloatArray:
        if place >= self.places:
            return np.full(len(self.values), _MISSING)
        return self.values[:, place]

    def absent(self, place: int) -> bool:
        return bool(np.isnan(self.values[:, place]).any())

    def words(self, place: int) -> tuple[list[str], NDArray[np.intp]]:
        if self.texts is None:
            return [], np.empty(0, dtype=np.intp)
        found, counts = np.unique(self.texts[:, place].astype(str), return_counts=True)
        kept = found != ""
        return found[kept].tolist(), counts[kept]

    def is_word(self, place: int, word: str) -> FloatArray:
        if self.texts is None or place >= self.places:
            return np.zeros(len(self.values))
        return (self.texts[:, place] == word).astype(np.float64)


def _flat(output: Any) -> list[Any]:
    """An output as a list: nested ones are opened, a mapping is read in the order of its keys."""
    if isinstance(output, dict):
        output = [output[key] for key in sorted(output, key=str)]
    if isinstance(output, np.ndarray):
        return list(output.reshape(-1).tolist())
    if isinstance(output, list | tuple):
        return [value for part in output for value in _flat(part)]
    return [output]


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        found = f"an output with a {type(value).__name__}"
        raise InputError(
            "mechanism", found, "numbers, words, flags or None, or features=… of your own"
        ) from None
    if math.isnan(number):
        raise InputError("mechanism", "NaN", "numbers, words, flags or None")
    return number


def _require_one_type(values: FloatArray, texts: NDArray[Any]) -> None:
    for place in range(values.shape[1]):
        if (texts[:, place] != "").any() and not np.isnan(values[:, place]).all():
            raise InputError("mechanism", f"words and numbers in place {place}", "outputs of one type")


def _bits(numbers: FloatArray) -> list[FloatArray]:
    """The last bits of the significand, the lowest first: rounding leaves a trace there."""
    whole = np.ascontiguousarray(numbers).view(np.uint64)
    return [((whole >> np.uint64(bit)) & np.uint64(1)).astype(np.float64) for bit in range(_LAST_BITS)]

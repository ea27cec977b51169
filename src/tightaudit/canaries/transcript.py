"""What was seen in each step, kept to compute scores and checks afterwards; on disk when large."""

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

LARGEST_IN_MEMORY = 256 * 2**20
"""Bytes of a transcript from which it goes to a temporary file."""


@dataclass(frozen=True)
class Step:
    """One step: who was sampled, what came out, and what the accountant wrote down for it."""

    sampled: NDArray[Any]
    """For each slot, how often it was delivered, all workers together: 0 or 1 if all is well."""
    released: FloatArray
    """Tensors × entries, slots first and controls last; a canary that contributes is of length 1."""
    sigma: float
    """The noise asked for, in the same units."""
    rate: float
    """The sampling rate that the accountant assumes."""
    accounted: int
    """The steps in the accountant's history, this one included."""
    size: int = 0
    """Records in the batch, real ones and canaries; 0 if that is not known."""
    share: FloatArray | float = 0.0
    """The real batch's own part of what was released at each entry, where canaries share its coordinates."""
    worker: NDArray[Any] | int = 0
    """For each slot that was sampled, the worker that delivered it."""
    alike: FloatArray | float = 0.0
    """Workers × workers: sums of products of the noise that each of them added at the controls."""


class Transcript:
    """Steps in the order in which they were taken, each in a row of the same number of bytes.

    >>> transcript = Transcript(slots=3, tensors=2, entries=5)
    >>> transcript.append(Step(np.array([1, 0, 0]), np.zeros((2, 5)), sigma=1.0, rate=0.1, accounted=1))
    >>> len(transcript), next(iter(transcript)).sampled
    (1, array([1, 0, 0], dtype=uint16))
    """

    def __init__(
        self, slots: int, tensors: int, entries: int, *, shares: bool = False, workers: int = 1
    ) -> None:
        self._row = np.dtype(
            [
                ("sampled", np.uint16, (slots,)),
                ("released", np.float32, (tensors, entries)),
                ("sigma", np.float64),
                ("rate", np.float64),
                ("accounted", np.int64),
                ("size", np.int64),
                ("share", np.float32, (entries,) if shares else ()),
                ("worker", np.int16, (slots,) if workers > 1 else ()),
                ("alike", np.float64, (workers, workers)),
            ]
        )
        self._none = np.empty(0, self._row)
        self._file = SpooledTemporaryFile(max_size=LARGEST_IN_MEMORY)  # noqa: SIM115 (closed below)
        weakref.finalize(self, self._file.close)
        self._steps = 0

    def append(self, step: Step) -> None:
        """Keep one more step."""
        shape = self._row["released"].shape
        if np.shape(step.released) != shape:
            raise InputError("released", f"array of shape {np.shape(step.released)}", f"one of shape {shape}")
        row = np.zeros((), self._row)
        for name in self._row.names or ():
            row[name] = getattr(step, name)
        self._write(row)

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Step]:
        for number in range(self._steps):
            self._file.seek(number * self._row.itemsize)
            row = np.frombuffer(self._file.read(self._row.itemsize), self._row)[0]
            numbers = {name: row[name].item() for name in ("sigma", "rate", "accounted", "size")}
            arrays = {name: row[name] for name in ("sampled", "share", "worker", "alike")}
            yield Step(released=row["released"].astype(np.float64), **arrays, **numbers)

    def fields(self) -> dict[str, NDArray[Any]]:
        """All steps, an array for each field with the steps first."""
        rows = self._rows()
        return {name: rows[name].copy() for name in self._row.names or ()}

    def took_part(self) -> BoolArray:
        """Steps × slots: who was sampled."""
        return np.asarray(self._rows()["sampled"] > 0)

    @classmethod
    def of(cls, fields: Mapping[str, NDArray[Any]]) -> "Transcript":
        """The transcript that `fields` gave."""
        _, tensors, entries = fields["released"].shape
        workers, shares = fields["alike"].shape[-1], fields["share"].ndim > 1
        found = cls(fields["sampled"].shape[1], tensors, entries, shares=shares, workers=workers)
        names = found._row.names or ()
        for number in range(len(fields["sigma"])):
            row = np.zeros((), found._row)
            for name in names:
                row[name] = fields[name][number]
            found._write(row)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A model that is copied brings its canaries along, and an open file cannot be copied.
        return Transcript.of, (self.fields(),)

    def _rows(self) -> NDArray[Any]:
        self._file.seek(0)
        return np.frombuffer(self._file.read(), self._row, count=self._steps) if self._steps else self._none

    def _write(self, row: NDArray[Any]) -> None:
        self._file.seek(self._steps * self._row.itemsize)
        self._file.write(row.tobytes())
        self._steps += 1

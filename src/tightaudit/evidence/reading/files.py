"""One door for every file: the format by its name, or by its first bytes when it comes through a pipe."""

import io
import os
import sys
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from tightaudit.evidence.ids import Ids, matching_positions
from tightaudit.evidence.reading.columns import Columns, Contents, Selection
from tightaudit.evidence.reading.delimited import read_delimited
from tightaudit.evidence.reading.frames import Frame, read_frame
from tightaudit.evidence.reading.json_lines import read_json_lines
from tightaudit.evidence.reading.npz import read_npz
from tightaudit.evidence.reading.parquet import read_parquet
from tightaudit.evidence.run import Run
from tightaudit.support.errors import InputError, Place, did_you_mean

STANDARD_INPUT = "-"
Reader = Callable[[BinaryIO, str, Selection], Contents]
FORMATS: dict[str, Reader] = {
    "csv": read_delimited,
    "tsv": partial(read_delimited, delimiter="\t"),
    "parquet": read_parquet,
    "npz": read_npz,
    "jsonl": read_json_lines,
}
_ENDINGS = {**{f".{name}": name for name in FORMATS}, ".ndjson": "jsonl", ".pq": "parquet"}
_FIRST_BYTES = {b"PAR1": "parquet", b"PK\x03\x04": "npz", b"{": "jsonl"}


def read_run(
    path: str | PathLike[str],
    *,
    members: str | PathLike[str] | None = None,
    columns: Columns | None = None,
    file_format: str | None = None,
) -> Run:
    r"""Read scores and secret bits from CSV, TSV, Parquet, NPZ, JSON Lines or a saved Run; `-` is a pipe.

    Columns are `score`, `member` (0 or 1) and, if they are there, `id` and `run`, unless others are named.
    Values of `run` say which of several runs, independent of each other, a canary was in. With `members` the
    bits come from a second file and are paired with the scores by id.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("id,score,member\na,2.5,1\nb,-1.0,0\n")
    >>> read_run(path).members
    array([ True, False])
    """
    names = _columns(columns)
    if members is None:
        return _run(_read(path, Selection(names), file_format))
    if isinstance(path, str) and isinstance(members, str) and path == members == STANDARD_INPUT:
        raise InputError("members", STANDARD_INPUT, "a file: standard input already holds the scores")
    scores = _read(path, Selection(names, ("score", "id"), ("run",)), file_format)
    bits = _read(members, Selection(names, ("member", "id"), ()), file_format)
    values = {**scores.values, "member": bits.values["member"][_pairing(scores, bits)]}
    # Who drew the coins knows more about the canaries than who scored them.
    return _run(Contents(f"{scores.source} and {bits.source}", values, {**scores.known, **bits.known}))


def run_of_frame(frame: Frame, columns: Columns | None = None) -> Run:
    """A Run from a pandas or polars frame with the same columns."""
    return _run(read_frame(frame, Selection(_columns(columns))))


def _columns(given: Columns | None) -> Columns:
    if given is None:
        return Columns()
    if not isinstance(given, Columns):
        raise InputError("columns", given, "Columns, such as ta.Columns(score='loss')")
    return given


def _run(contents: Contents) -> Run:
    scores, members = contents.values["score"], contents.values["member"]
    if scores.size == 0:
        raise InputError(Place(contents.source), "no rows", "at least one canary")
    ids, runs = contents.values.get("id"), contents.values.get("run")
    return Run(scores, members, ids, runs=runs, source=contents.source, **contents.known)


def _pairing(scores: Contents, bits: Contents) -> NDArray[np.intp]:
    wanted, offered = scores.values["id"], bits.values["id"]
    if wanted.dtype.kind != offered.dtype.kind and "U" in (wanted.dtype.kind, offered.dtype.kind):
        # A CSV cannot say whether 12 is a number.
        wanted, offered = wanted.astype(np.str_), offered.astype(np.str_)
    return matching_positions(
        cast("Ids", wanted),
        cast("Ids", offered),
        scores.values["score"].size,
        bits.values["member"].size,
        labels=(Place(f"{scores.source}, the ids"), Place(f"{bits.source}, the ids")),
    )


def _read(path: str | PathLike[str], selection: Selection, file_format: str | None) -> Contents:
    if file_format is not None and file_format not in FORMATS:
        raise InputError("format", file_format, f"one of {', '.join(FORMATS)}")
    if not isinstance(path, str | PathLike) or "\0" in os.fspath(path):
        raise InputError("path", path, "the name of a file, or -")
    if os.fspath(path) == STANDARD_INPUT:
        return _checked(_read_pipe(selection, file_format))
    file = Path(path)
    if file.is_dir():
        raise InputError(Place(path), "a directory", "a file of scores")
    chosen = file_format or _ENDINGS.get(file.suffix.lower())
    if chosen is None:
        found = f"the ending {file.suffix or 'nothing'}"
        raise InputError(Place(path), found, f"one of {', '.join(_ENDINGS)}")
    try:
        with file.open("rb") as opened:
            return _checked(FORMATS[chosen](opened, file.name, selection))
    except FileNotFoundError:
        beside = [each.name for each in file.parent.iterdir()] if file.parent.is_dir() else []
        expected = f"a file of scores{did_you_mean(file.name, beside)}"
        raise InputError(Place(path), "no such file", expected) from None
    except OSError as error:
        raise InputError(Place(path), error.strerror or str(error), "a file that can be read") from None


def _checked(contents: Contents) -> Contents:
    for role, values in contents.values.items():
        if values.ndim != 1:
            found = f"an array of shape {values.shape}"
            raise InputError(Place(f"{contents.source}, the {role}s"), found, "a one-dimensional array")
    return contents


def _read_pipe(selection: Selection, file_format: str | None) -> Contents:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError(Place("standard input"), "nothing", "an open pipe")
    stream = io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))
    start = stream.peek(4)
    chosen = file_format or next(
        (name for first, name in _FIRST_BYTES.items() if start.lstrip().startswith(first)), "csv"
    )
    seekable = io.BytesIO(stream.read()) if chosen in ("parquet", "npz") else stream
    try:
        return FORMATS[chosen](cast("BinaryIO", seekable), "standard input", selection)
    finally:
        stream.detach()  # or closing the reader would close standard input

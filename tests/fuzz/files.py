"""Files to read: good ones of every format, and what becomes of them when somebody meddles."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet
from tests.fuzz import mutator

from tightaudit.evidence.reading.files import FORMATS
from tightaudit.evidence.run import FORMAT

Table = dict[str, list[Any]]
_COLUMNS = ("score", "member", "id", "run")
_CHECK = {
    "name": "noise", "assumed": "1", "seen": "0.5", "p_value": 1e-9, "fault": "too little noise",
    "interval": "",
    "harmful": True, "explained_by": "",
}  # fmt: skip


def table(random: Random) -> Table:
    """Canaries in columns; now and then with a value, a name or a column that does not belong there."""
    rows = random.choice((0, 1, 2, 5, 20, 20, 40))
    found: Table = {
        "score": [round(random.gauss(0, 2), 3) for _ in range(rows)],
        "member": [random.randint(0, 1) for _ in range(rows)],
    }
    if mutator.seldom(random, 0.5):
        found["id"] = [f"c{at}" for at in range(rows)] if mutator.seldom(random, 0.5) else list(range(rows))
    if mutator.seldom(random, 0.3):
        found["run"] = [random.randint(1, 2) for _ in range(rows)]
    return found


def _spoiled(random: Random, whole: Table) -> Table:
    columns = {name: list(values) for name, values in whole.items()}
    for _ in range(random.randint(0, 2)):
        name = random.choice(list(columns))
        if mutator.seldom(random, 0.2):
            columns[mutator.changed_text(random, name)] = columns.pop(name)
        elif columns[name]:
            at = random.randrange(len(columns[name]))
            columns[name][at] = random.choice((mutator.number, mutator.text, mutator.value))(random)
    return columns


def content(random: Random, kind: str) -> bytes:
    """The bytes of a file of a format."""
    whole = table(random)
    raw = {
        "csv": _delimited, "tsv": _delimited, "jsonl": _json_lines, "parquet": _parquet, "npz": _npz,
        "run": saved_run,
    }[kind](random, whole, kind)  # fmt: skip
    return mutator.changed_bytes(random, raw) if mutator.seldom(random, 0.4) else raw


def put(random: Random, kind: str, name: str = "scores") -> Path:
    """A file of a format in the folder at hand, seldom with bytes of another."""
    held = random.choice((*FORMATS, "run")) if mutator.seldom(random, 0.05) else kind
    path = Path(f"{name}.{'npz' if kind == 'run' else kind}")
    path.write_bytes(content(random, held))
    return path


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _delimited(random: Random, whole: Table, kind: str) -> bytes:
    columns = _spoiled(random, whole)
    file = io.StringIO()
    delimiter = "\t" if kind == "tsv" else random.choice((",", ",", ",", ";", "|", "\t"))
    writer = csv.writer(
        file, delimiter=delimiter, escapechar="\\", lineterminator=random.choice(("\n", "\r\n", "\r"))
    )
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=False))
    text = file.getvalue()
    return _encoded(mutator.changed_text(random, text) if mutator.seldom(random, 0.4) else text)


def _json_lines(random: Random, whole: Table, _: str) -> bytes:
    columns = _spoiled(random, whole)
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=False)]
    if records and mutator.seldom(random, 0.3):
        at = random.randrange(len(records))
        records[at] = mutator.changed_value(random, records[at])
    lines = [json.dumps(record, ensure_ascii=mutator.seldom(random, 0.5)) for record in records]
    if mutator.seldom(random, 0.1):
        lines.append("[" * random.choice((10, 1_000, 200_000)))
    text = "\n".join(lines)
    return _encoded(mutator.changed_text(random, text) if mutator.seldom(random, 0.4) else text)


_ARROW_KINDS = (
    pyarrow.float64(), pyarrow.float32(), pyarrow.float16(), pyarrow.int8(), pyarrow.uint64(),
    pyarrow.bool_(),
    pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.decimal128(10, 3),
    pyarrow.timestamp("ns"),
    pyarrow.date32(), pyarrow.list_(pyarrow.float64()), pyarrow.struct([("a", pyarrow.int8())]),
    pyarrow.null(),
    pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), pyarrow.dictionary(pyarrow.int32(),
    pyarrow.float64()),
)  # fmt: skip


def _arrow(random: Random, values: list[Any]) -> Any:
    kind = random.choice(_ARROW_KINDS)
    try:
        if mutator.seldom(random, 0.3):
            return pyarrow.array([None if mutator.seldom(random, 0.1) else each for each in values], kind)
        if mutator.seldom(random, 0.2):
            return pyarrow.nulls(len(values), kind)
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError, ValueError, TypeError, UnicodeError):
        return pyarrow.array([mutator.number(random) for _ in values], pyarrow.string())


def _parquet(random: Random, whole: Table, _: str) -> bytes:
    columns = {name: _arrow(random, values) for name, values in whole.items()}
    names = [mutator.changed_text(random, name) if mutator.seldom(random, 0.05) else name for name in columns]
    file = io.BytesIO()
    made = pyarrow.table(
        list(columns.values()), names=[_encoded(name).decode("utf-8", "replace") for name in names]
    )
    compression = random.choice(("none", "snappy", "gzip", "zstd"))
    try:
        parquet.write_table(made, file, compression=compression, use_dictionary=random.choice((True, False)))
    except pyarrow.ArrowException:  # an empty struct and the like, which Parquet cannot hold
        parquet.write_table(pyarrow.table({"score": [1.0], "member": [1]}), file)
    return file.getvalue()


_NUMPY_KINDS = (
    "f8", "f8", "f4", "f2", ">f8", "g", "i1", "u8", "?", "U3", "S3", "c16", "M8[s]", "m8[ns]", "V4", "f8,i4",
    "O",
)  # fmt: skip


def _array(random: Random, values: list[Any]) -> Any:
    found = np.array(values)
    if mutator.seldom(random, 0.6):
        return found
    if mutator.seldom(random, 0.5):
        shape = random.choice(((), (0,), (1,), (2, 3), (20, 0), (1, 1, 20), (1000,)))
        return np.zeros(shape, random.choice(_NUMPY_KINDS))
    try:
        return found.astype(random.choice(_NUMPY_KINDS))
    except (ValueError, TypeError):
        return np.array([random.choice((math.nan, math.inf, -math.inf, 1e308, 0.5)) for _ in values])


def _arrays(random: Random, whole: Table) -> dict[str, Any]:
    arrays = {name: _array(random, values) for name, values in whole.items()}
    if mutator.seldom(random, 0.1):
        arrays[random.choice((*_COLUMNS, "scores", "members", "transcript.x", "a/b", "x.npy"))] = _array(
            random, [1.0]
        )
    return arrays


def _npz(random: Random, whole: Table, _: str) -> bytes:
    file = io.BytesIO()
    save = np.savez_compressed if mutator.seldom(random, 0.3) else np.savez
    save(file, **_arrays(random, whole))
    return file.getvalue()


def header(random: Random) -> str:
    """What a saved run says of itself, as text."""
    known = {
        "format": FORMAT,
        "version": "0.2.0",
        "independent": random.choice((True, False, "noise of its own", mutator.text(random))),
        "claim": random.choice((None, "gaussian(mu=1)", "approx-dp(epsilon=1,delta=0.01)")),
        "family": random.choice((None, "gaussian", "laplace")),
        "threshold": random.choice((None, 0.0, 1.5)),
        "seed": random.choice((None, 0, 2**127)),
        "remarks": [mutator.text(random) for _ in range(random.choice((0, 0, 1, 3)))],
        "checkup": random.choice(
            (None, {"level": 0.01, "checks": [{**_CHECK, "fault": mutator.text(random)}, _CHECK]})
        ),
    }
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        if not isinstance(known, dict):
            break
        known = mutator.changed_value(random, known)
    text = json.dumps(known, ensure_ascii=mutator.seldom(random, 0.5))
    return mutator.changed_text(random, text) if mutator.seldom(random, 0.1) else text


def saved_run(random: Random, whole: Table, _: str = "run") -> bytes:
    """A saved run, with a header as good or bad as it may be."""
    arrays: dict[str, Any] = {name: np.array(values) for name, values in whole.items()}
    arrays |= {} if mutator.seldom(random, 0.8) else _arrays(random, whole)
    said = header(random).replace("\0", "")
    arrays["header"] = np.array(_encoded(said).decode("utf-8", "replace"))
    if mutator.seldom(random, 0.05):
        arrays["header"] = _array(random, [1.0])
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()

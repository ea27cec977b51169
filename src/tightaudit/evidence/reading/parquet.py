"""Parquet, through pyarrow (the extra `io`)."""

import os
from typing import Any, BinaryIO

from numpy.typing import NDArray

from tightaudit.evidence.ids import text_or_integers
from tightaudit.evidence.reading.columns import NAMES_OF_THINGS, Contents, Selection
from tightaudit.support.arrays import require_harmless_growth
from tightaudit.support.errors import InputError, Place
from tightaudit.support.extras import needs

_BYTES_PER_ROW = 9
"""A score and a bit."""


def read_parquet(file: BinaryIO, source: str, selection: Selection) -> Contents:
    """The chosen columns of a Parquet file; nothing else of it is read."""
    with needs("io", "a Parquet file"):
        import pyarrow
        from pyarrow import parquet
    try:
        schema = parquet.ParquetFile(file).schema_arrow
        roles = selection.among(schema.names, source)
        # The same text again and again is a few bytes in the file; as a dictionary it stays as small.
        texts = [roles[role] for role in NAMES_OF_THINGS if role in roles and _text(schema, roles[role])]
        opened = parquet.ParquetFile(file, read_dictionary=texts)
        size = file.seek(0, os.SEEK_END)
        require_harmless_growth(source, size, _BYTES_PER_ROW * opened.metadata.num_rows)
        table = opened.read(columns=list(roles.values()))
        table.validate(full=True)
        signs = table.num_rows * sum(_longest(table.column(name)) for name in texts)
        require_harmless_growth(source, size, signs)
        values = {role: _values(table.column(name), role, source) for role, name in roles.items()}
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(Place(source), str(error), "a whole Parquet file") from None
    return Contents(source, values)


def _text(schema: Any, name: str) -> bool:
    import pyarrow

    kind = schema.field(name).type
    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)


def _longest(column: Any) -> int:
    """The length of the longest text in a column with dictionaries."""
    from pyarrow import compute

    lengths = (compute.max(compute.utf8_length(chunk.dictionary)).as_py() for chunk in column.chunks)
    return max((length for length in lengths if length is not None), default=0)


def _values(column: Any, role: str, source: str) -> NDArray[Any]:
    import pyarrow

    name = f"{source}, the {role}s"
    if column.null_count:
        raise InputError(Place(name), f"{column.null_count} missing values", "a value in every row")
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if role in NAMES_OF_THINGS:
        return text_or_integers(Place(name), column.to_numpy())
    if pyarrow.types.is_boolean(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        return column.to_numpy()
    raise InputError(Place(name), f"values of type {kind}", "numbers" if role == "score" else "0 or 1")

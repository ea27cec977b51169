"""Parquet, through pyarrow (the extra `io`)."""

from typing import Any, BinaryIO

from numpy.typing import NDArray

from tightaudit.evidence.ids import text_or_integers
from tightaudit.evidence.reading.columns import NAMES_OF_THINGS, Contents, Selection
from tightaudit.support.errors import InputError, Place
from tightaudit.support.extras import needs


def read_parquet(file: BinaryIO, source: str, selection: Selection) -> Contents:
    """The chosen columns of a Parquet file; nothing else of it is read."""
    with needs("io", "a Parquet file"):
        import pyarrow
        from pyarrow import parquet
    try:
        opened = parquet.ParquetFile(file)
        roles = selection.among(opened.schema_arrow.names, source)
        table = opened.read(columns=list(roles.values()))
        table.validate(full=True)
        values = {role: _values(table.column(name), role, source) for role, name in roles.items()}
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(Place(source), str(error), "a whole Parquet file") from None
    return Contents(source, values)


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

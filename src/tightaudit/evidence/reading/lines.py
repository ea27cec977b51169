"""Text files line by line, without ever holding a line of any length."""

from collections.abc import Iterator
from typing import BinaryIO

from tightaudit.support.errors import InputError, Place

LONGEST_LINE = 1_000_000


def bounded_lines(file: BinaryIO, source: str) -> Iterator[str]:
    r"""The lines of a UTF-8 file, with their line ends and without a byte order mark.

    >>> import io
    >>> list(bounded_lines(io.BytesIO(b"a\r\nb"), "a.csv"))
    ['a\r\n', 'b']
    """
    number = 0
    while raw := file.readline(LONGEST_LINE + 1):
        number += 1
        place = f"{source}, line {number}"
        if len(raw) > LONGEST_LINE:
            raise InputError(Place(place), "a very long line", f"lines of at most {LONGEST_LINE:,} bytes")
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InputError(Place(place), raw[:40].decode("utf-8", "replace"), "text in UTF-8") from None
        if "\0" in line:
            raise InputError(Place(place), "a zero byte", "text")
        yield line

"""Files that appear only when they are complete."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` when all went well, and else leaves no trace.

    A symbolic link is followed; what is not a regular file, such as a pipe, is written to as it is.

    >>> target = Path(tempfile.mkdtemp()) / "report.txt"
    >>> with replacing(target) as file:
    ...     _ = file.write(b"whole")
    ...     target.exists()
    False
    >>> target.read_bytes()
    b'whole'
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder", str(path))
    if target.exists() and not target.is_file():
        # A pipe or a device is written to; renaming over it would destroy it.
        with target.open("wb") as device:
            yield device
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    # In the same folder, because a rename is atomic only within one file system.
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield cast("BinaryIO", file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    """The rights a new file does not get; the system tells them only when they are set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

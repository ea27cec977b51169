"""Files that appear only when they are complete."""

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

_DESCRIPTORS = Path("/proc/self/fd")


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
    target = _target(path)
    if _is_device(target):
        # A pipe or a device is written to; renaming over it would destroy it.
        with target.open("wb") as device:
            yield device
        return
    unnamed = _unnamed_file(target.parent)
    if unnamed is not None:
        with os.fdopen(unnamed, "wb") as file:
            yield cast("BinaryIO", file)
            file.flush()
            os.fsync(file.fileno())
            _give_name(unnamed, target)
        return
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


def require_writable(path: str | PathLike[str]) -> None:
    """Raise OSError now if `replacing` could not begin to write there, before the work that it would lose.

    >>> require_writable(Path(tempfile.mkdtemp()) / "missing" / "report.txt")
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] No such folder: ...
    """
    target = _target(path)
    if not _is_device(target):
        unnamed = _unnamed_file(target.parent)
        if unnamed is not None:
            os.close(unnamed)
            return
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
        os.close(descriptor)
        os.unlink(temporary)
    elif not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "Not writable", str(path))


def _unnamed_file(folder: Path) -> int | None:
    """A file without a name, of which a process that is killed leaves nothing; None where there are none."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not _DESCRIPTORS.is_dir():
        return None
    try:
        return os.open(folder, flag | os.O_RDWR, 0o666)
    except OSError:  # not on this file system, or there is an error that a named file will have too
        return None


def _give_name(unnamed: int, target: Path) -> None:
    descriptors = os.open(_DESCRIPTORS, os.O_RDONLY)
    try:
        # Seen from a folder, or Python would link the descriptor's own name.
        link = partial(os.link, str(unnamed), src_dir_fd=descriptors, follow_symlinks=True)
        try:
            link(target)
        except FileExistsError:
            # Only a rename takes the place of a file.
            temporary = target.parent / f".{secrets.token_hex(8)}.part"
            link(temporary)
            os.replace(temporary, target)
    finally:
        os.close(descriptors)


def _target(path: str | PathLike[str]) -> Path:
    """Where a file would be written, symbolic links followed."""
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "No name of a file", os.fspath(path).replace("\0", " "))
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, "A symbolic link to itself", str(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    return target


def _is_device(target: Path) -> bool:
    """Whether it is something that exists and is no file, such as a pipe."""
    return target.exists() and not target.is_file()


def _umask() -> int:
    """The rights a new file does not get; the system tells them only when they are set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""What is kept between two starts: written whole, and read back only if it is what was written.

A file carries a digest of its content. One that was cut short, emptied or changed is said to be damaged in
one warning and counts as missing, so that what it held is computed again.
"""

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tightaudit.support.writing import replacing

_SEAL = "sha256"
_DIGEST_BYTES = hashlib.sha256().digest_size
Content = TypeVar("Content")


class _DamagedError(Exception):
    """A file that is not what was written."""


def keep_fields(path: Path, fields: dict[str, Any]) -> None:
    """Keep plain values as JSON.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cell.json"
    >>> keep_fields(path, {"epsilon": 1.5})
    >>> kept_fields(path)
    {'epsilon': 1.5}
    """
    with replacing(path) as file:
        file.write(json.dumps({**fields, _SEAL: _digest_of(fields)}, indent=2).encode())


def kept_fields(path: Path) -> dict[str, Any] | None:
    """The values kept under this name; None if there are none or the file is damaged."""
    return _whole(path, _opened_fields)


def keep_bytes(path: Path, content: bytes) -> None:
    """Keep bytes.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "training.checkpoint"
    >>> keep_bytes(path, b"weights")
    >>> kept_bytes(path)
    b'weights'
    """
    with replacing(path) as file:
        file.write(hashlib.sha256(content).digest() + content)


def kept_bytes(path: Path) -> bytes | None:
    """The bytes kept under this name; None if there are none or the file is damaged."""
    return _whole(path, _opened_bytes)


def digest_of_file(path: Path) -> str | None:
    """A digest of a file's bytes; None if there is no such file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def is_whole(path: Path, digest: str | None) -> bool:
    """Whether a file is there with the bytes it had; one that is not is said to be damaged.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.npz"
    >>> keep_bytes(path, b"scores")
    >>> is_whole(path, digest_of_file(path))
    True
    """
    whole = digest is not None and digest_of_file(path) == digest
    if not whole:
        say_damaged(path)
    return whole


def say_damaged(path: Path) -> None:
    """Warn that a file is not what was written, for a reader that finds out only from its content."""
    found = "damaged" if path.exists() else "missing"
    warnings.warn(f"{path} is {found}, so what it held is computed again", stacklevel=3)


def _whole(path: Path, opened: Callable[[bytes], Content]) -> Content | None:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return opened(raw)
    except _DamagedError:
        say_damaged(path)
        return None


def _opened_fields(raw: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        raise _DamagedError from None
    if not isinstance(fields, dict) or fields.pop(_SEAL, None) != _digest_of(fields):
        raise _DamagedError
    return fields


def _opened_bytes(raw: bytes) -> bytes:
    digest, content = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise _DamagedError
    return content


def _digest_of(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

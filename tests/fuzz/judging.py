"""What a program may do with hostile input, and what it may not."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from tightaudit.cli.main import main
from tightaudit.support.errors import InputError

CODES = (0, 1, 2, 3, 130)
BAD_INPUT = (2, 3)
LONGEST_SECONDS = 60
_UNFORESEEN = "this should not have happened"
_STARTUP_SECONDS = 60
"""What an interpreter may need besides, to start and to import, on a machine that is busy."""


class Violation(Exception):  # noqa: N818
    """Something that must not happen, whatever the input."""


class _TooLong(BaseException):
    """Raised in the middle of a case that does not end."""


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """In a folder of its own, for as long as a case may take; every warning but ours is an error."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TooLong

    before, began = signal.signal(signal.SIGALRM, stop), time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tightaudit-fuzz-") as folder,
            contextlib.chdir(folder),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            warnings.simplefilter("always", UserWarning)
            yield
    except _TooLong:
        raise Violation(f"takes more than {LONGEST_SECONDS} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if time.monotonic() - began > LONGEST_SECONDS:
        raise Violation(f"takes more than {LONGEST_SECONDS} s")


def call(work: Callable[[], Any]) -> str:
    """How a call of the library ended: it returned, or refused its input in one line."""
    try:
        with warnings.catch_warnings(record=True):
            work()
    except InputError as refused:
        require_plain(str(refused), "the message")
        if "\n" in str(refused):
            raise Violation(f"a message of several lines: {str(refused)!r}") from None
        return "refused"
    except Violation:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise Violation(
            f"{type(error).__name__} from {Path(where.filename).name}:{where.lineno}: {str(error)[:300]!r}"
        ) from error
    return "returned"


def command(arguments: list[str], stdin: bytes = b"") -> str:
    """How a command ended, run in this process: its exit code."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    code: object = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
    except SystemExit as ended:
        code = ended.code
    except Exception as error:
        raise Violation(f"{type(error).__name__} instead of an ending: {str(error)[:300]!r}") from error
    finally:
        sys.stdin = before
    return _judged(arguments, code, out.getvalue(), err.getvalue())


def process(arguments: list[str], stdin: bytes = b"") -> str:
    """How a command ended, run as its users do: its exit code."""
    given = [argument.replace("\0", "") for argument in arguments]  # the system passes no others on
    ended = subprocess.run(
        [sys.executable, "-m", "tightaudit", *map(_passable, given)],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=LONGEST_SECONDS + _STARTUP_SECONDS,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    out, err = (stream.decode() for stream in (ended.stdout, ended.stderr))
    return _judged(given, ended.returncode, out, err)


def _passable(argument: str) -> str:
    return argument.encode("utf-8", "replace").decode() if not _encodable(argument) else argument


def _encodable(argument: str) -> bool:
    try:
        os.fsencode(argument)
    except UnicodeEncodeError:
        return False
    return True


def _judged(arguments: list[str], code: object, out: str, err: str) -> str:
    said = f"code {code!r}, standard error {err[-600:]!r}"
    if code not in CODES:
        raise Violation(f"an unknown ending: {said}")
    if "Traceback (most recent call last)" in err + out:
        raise Violation(f"a traceback: {said}")
    if _UNFORESEEN in err:
        raise Violation(f"an exception that nobody foresaw: {said}")
    if code == 1 and "--fail-on-violation" not in arguments:
        raise Violation(f"code 1 without --fail-on-violation: {said}")
    if code == 130:
        raise Violation(f"interrupted, and by nobody: {said}")
    lines = err.splitlines()
    if code in BAD_INPUT and (len(lines) != 1 or not err.endswith("\n")):
        raise Violation(f"{len(lines)} lines for bad input: {said}")
    for line in lines:
        if code in (0, 1) and not line.startswith(("tightaudit: warning: ", "wrote ")):
            raise Violation(f"a line that is none of ours: {line!r}")
    require_plain(err, "standard error")
    require_plain(out, "standard output")
    if code in (0, 1) and "--json" in arguments and out.startswith("{"):
        _require_json(out)
    return str(code)


def require_plain(shown: str, where: str) -> None:
    """Refuse what could move a cursor, change a title or turn the direction of a line."""
    for sign in set(shown) - {"\n"}:
        if not sign.isprintable():
            at = shown.index(sign)
            raise Violation(f"{sign!r} on {where}: {shown[max(0, at - 60) : at + 60]!r}")


def _require_json(out: str) -> None:
    def refuse(constant: str) -> None:
        raise Violation(f"{constant} in what should be JSON")

    try:
        json.loads(out, parse_constant=refuse)
    except ValueError:
        raise Violation(f"no JSON: {out[:300]!r}") from None

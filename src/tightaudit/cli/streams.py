"""Standard output and standard error as a command line wants them."""

import io
import sys
from typing import TYPE_CHECKING

from tightaudit.support.errors import printable

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _UntilClosed(io.FileIO):
    """Writes as long as it can.

    A reader that stops early, as `head` does, has no say in how the command ends. Any other failure is
    raised, once: what is still buffered then is not tried again when the interpreter ends.
    """

    _over = False

    def write(self, data: "Buffer") -> int:
        if not self._over:
            try:
                return super().write(data) or 0
            except OSError as error:
                self._over = True
                if not isinstance(error, BrokenPipeError):
                    raise
        return memoryview(data).nbytes


def say(text: str) -> None:
    """Say something beside what is printed for a pipe, if standard error is open."""
    if sys.stderr is not None:
        print(printable(text), file=sys.stderr, flush=True)


def outlive_readers() -> None:
    """Keep on when the reader of an output closes it; write what the encoding lacks as a question mark."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is not io.TextIOWrapper:
            continue  # somebody captures it
        buffered = io.BufferedWriter(_UntilClosed(stream.fileno(), "wb", closefd=False))
        replaced = io.TextIOWrapper(
            buffered,
            encoding=stream.encoding,
            errors="replace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        setattr(sys, name, replaced)

"""Ctrl-C, and other requests to stop."""

import os
import signal
from types import FrameType


class Interruption:
    """While it is entered, a request to stop is raised as KeyboardInterrupt, so that work is tidied up.

    A request to end (SIGTERM) and a closed terminal (SIGHUP) are such requests too, unless somebody else
    handles or ignores them.
    """

    def __init__(self, *, until_the_end: bool) -> None:
        """Until the process ends, or only as long as it is entered."""
        self.happened = False
        """Asked for separately, because a package that is being imported may turn it into an ImportError."""
        self._until_the_end = until_the_end
        self._process = os.getpid()
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Interruption":
        for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._until_the_end and not self.happened:
            for number, handler in self._before.items():
                signal.signal(number, handler)  # type: ignore[arg-type]

    def raise_again(self) -> None:
        """Raise KeyboardInterrupt if there was a request to stop that somebody took for something else."""
        if self.happened:
            raise KeyboardInterrupt

    def refuse_more(self) -> None:
        """Let no request to stop interrupt the tidying up, or come when there is nothing left to stop."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)

    def _stop(self, number: int, _: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked worker ends as one that was never told to tidy up
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.happened = True
        raise KeyboardInterrupt

"""Where cells are computed: here, on all cores, or on the workers of a Dask scheduler.

A cell draws its random numbers from a seed in its own setup, so every engine gives the same numbers.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import cache, partial
from typing import Any

from joblib import delayed, parallel_config

from tightaudit.paper.figures.base import Cell
from tightaudit.support.errors import ComputationError, InputError
from tightaudit.support.extras import needs
from tightaudit.support.parallel import results

_SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
_CONNECT_SECONDS = 5
_WATCH_SECONDS = 1
_KEPT = "what was finished is kept: repeat the same command to go on"


def compute(cells: Sequence[Cell], engine: str) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """The cells with their results, each as soon as it is finished.

    `engine` is `local`, `serial` or the address of a Dask scheduler, such as tcp://host:8786.

    >>> from tightaudit.paper.figures.base_pairs import BasePairCell
    >>> cells = [BasePairCell("gaussian(mu=1)", points=3)]
    >>> [sorted(result) for _, result in compute(cells, "serial")]
    [['atom', 'q', 'x']]
    """
    if engine == "serial":
        return map(_computed, cells)
    if engine == "local":
        return _parallel(cells, partial(_computed_for, os.getpid()))
    if engine.startswith(_SCHEMES):
        return _distributed(cells, engine)
    raise InputError(
        "engine", engine, "local, serial, or the address of a Dask scheduler such as tcp://host:8786"
    )


def _computed(cell: Cell) -> tuple[Cell, dict[str, Any]]:
    return cell, cell.compute()


def _computed_for(owner: int, cell: Cell) -> tuple[Cell, dict[str, Any]]:
    if os.getpid() != owner:
        _end_with(owner)
    return _computed(cell)


@cache
def _end_with(owner: int) -> None:
    """End this worker when the process it works for is gone: nobody tells it that it was killed."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _parallel(
    cells: Sequence[Cell], computed: Callable[[Cell], tuple[Cell, dict[str, Any]]]
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    jobs = (delayed(computed)(cell) for cell in cells)
    return results(jobs, if_one_dies=_KEPT, n_jobs=-1, return_as="generator_unordered", batch_size=1)


def _distributed(cells: Sequence[Cell], address: str) -> Iterator[tuple[Cell, dict[str, Any]]]:
    with needs("dask", "a Dask scheduler"):
        from distributed import Client, KilledWorker

    class Scheduled(Client):
        """A client that is closed when its work is over, and not when it is forgotten.

        One that never connected would then wait ten seconds for its own end, and complain.
        """

        def __del__(self) -> None:
            pass

    # Dask logs the tracebacks of what is said in one line here.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client: Any = Scheduled(address, timeout=_CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except Exception as error:
        # Whatever goes wrong before there is a connection, and whatever answers, it is not a scheduler.
        raise InputError("engine", address, f"a scheduler that answers ({error})") from None
    try:
        with client, parallel_config(backend="dask", client=client):
            yield from _parallel(cells, _computed)
    except (KilledWorker, CancelledError, OSError) as error:
        lost = f"the scheduler at {address} or its workers were lost ({type(error).__name__}); {_KEPT}"
        raise ComputationError(lost) from None

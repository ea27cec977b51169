"""Where cells are computed: here, on all cores, or on the workers of a Dask scheduler.

A cell draws its random numbers from a seed in its own setup, so every engine gives the same numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed, parallel_config

from tightaudit.paper.figures.base import Cell
from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs

_SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")


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
        return _parallel(cells)
    if engine.startswith(_SCHEMES):
        return _distributed(cells, engine)
    raise InputError(
        "engine", engine, "local, serial, or the address of a Dask scheduler such as tcp://host:8786"
    )


def _computed(cell: Cell) -> tuple[Cell, dict[str, Any]]:
    return cell, cell.compute()


def _parallel(cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
    work = Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1)
    found: Iterator[tuple[Cell, dict[str, Any]]] = work(delayed(_computed)(cell) for cell in cells)
    return found


def _distributed(cells: Sequence[Cell], address: str) -> Iterator[tuple[Cell, dict[str, Any]]]:
    with needs("dask", "a Dask scheduler"):
        from distributed import Client
    try:
        client = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise InputError("engine", address, f"a scheduler that answers ({error})") from None
    with client, parallel_config(backend="dask", client=client):
        yield from _parallel(cells)

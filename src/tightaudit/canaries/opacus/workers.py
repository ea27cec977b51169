"""What the processes of one training tell each other; a training in one process tells it to itself."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError


def workers() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if _together() else 1


def rank() -> int:
    """Which of them this is."""
    return distributed.get_rank() if _together() else 0


def summed(values: NDArray[Any]) -> FloatArray:
    """The sum over all workers.

    >>> summed(np.array([1, 2]))
    array([1., 2.])
    """
    total = torch.from_numpy(values.astype(np.float64))
    if workers() > 1:
        distributed.all_reduce(total)
    return np.asarray(total.numpy())


def gathered(values: NDArray[Any]) -> FloatArray:
    """The values of every worker, a row each.

    >>> gathered(np.array([1, 2]))
    array([[1., 2.]])
    """
    every: list[Any] = [values]
    if workers() > 1:
        every = [None] * workers()
        distributed.all_gather_object(every, values)
    return np.stack(every).astype(np.float64)


def common_seed(given: int | None, drawn: int) -> int:
    """One seed for all workers: what each of them was given, or else what the first one drew."""
    if workers() == 1:
        return drawn
    every: list[Any] = [None] * workers()
    distributed.all_gather_object(every, drawn)
    if given is not None and len(set(every)) > 1:
        raise InputError("seed", given, "the same seed on every worker, or none")
    return int(every[0])


def _together() -> bool:
    return distributed.is_available() and distributed.is_initialized()

"""The unit of the benchmarks: CPU time of one stable sort, `numpy.argsort(x, kind="stable")` of 10⁶ doubles.

What is measured starts with empty caches, as for somebody who calls it once.
"""

from __future__ import annotations

import functools
import gc
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

TRIES, SORTS = 5, 3
KEYS = np.random.default_rng(0).standard_normal(1_000_000)


def seconds(work: Callable[[], object]) -> float:
    """CPU time of some work in this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_sorts(work: Callable[[], object], tries: int = TRIES) -> float:
    """The median of several tries, each beside sorts of its own, so that a noisy machine slows both."""
    work()
    return median(_one_try(work) for _ in range(tries))


def _one_try(work: Callable[[], object]) -> float:
    sort = min(seconds(lambda: np.argsort(KEYS, kind="stable")) for _ in range(SORTS))
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper) and found.__module__.startswith("tightaudit."):
            found.cache_clear()
    return seconds(work) / sort


def command_seconds(command: Sequence[str]) -> float:
    """CPU time of a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against(limit: float | None) -> str:
    """A limit as the tables show it."""
    return "" if limit is None else f"{limit:g}"

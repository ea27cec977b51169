"""What the machine can take: how much memory there is, and how many processes make sense."""

import os
from pathlib import Path

from tightaudit.support import checks
from tightaudit.support.errors import InputError

_PER_CORE = 4
"""Processes beyond this many for each core only take memory."""


def available_memory() -> float:
    """Bytes that can still be had, within the limits of a container; infinite where nothing tells.

    >>> available_memory() > 0
    True
    """
    found = [float("inf")]
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(1024.0 * int(lines["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        pass
    try:
        limit, used = (Path("/sys/fs/cgroup", name).read_text() for name in ("memory.max", "memory.current"))
        found.append(float(limit) - float(used))
    except (OSError, ValueError):
        pass  # no such limit, or it is "max"
    return max(0.0, min(found))


def require_memory(argument: str, value: int, bytes_each: float) -> None:
    """Refuse a number of things that do not fit into memory together, and say how many do.

    >>> require_memory("n", 10**15, bytes_each=8)
    Traceback (most recent call last):
        ...
    tightaudit.InputError: n=1000000000000000: expected at most ..., which fit into the ... GB of memory ...
    """
    free = available_memory()
    if value * bytes_each > free:
        most = f"{float(f'{free / bytes_each:.1g}'):,.0f}"
        raise InputError(
            argument, value, f"at most {most}, which fit into the {free / 1e9:.0f} GB of memory left"
        )


def workers(value: object) -> int:
    """A number of processes, or -1 for one per core.

    >>> workers(-1), workers(1)
    (-1, 1)
    """
    if value == -1:
        return -1
    cores = os.cpu_count() or 1
    number = checks.count("workers", value, minimum=1)
    if number > _PER_CORE * cores:
        raise InputError(
            "workers", value, f"at most {_PER_CORE * cores} on {cores} cores, or -1 for one each"
        )
    return number

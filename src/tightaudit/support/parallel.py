"""Work on several processes, and what is said if one of them dies."""

from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor
from typing import Any

from joblib import Parallel

from tightaudit.support.errors import ComputationError


def results(jobs: Iterable[Any], *, if_one_dies: str = "", **options: Any) -> Iterator[Any]:
    """The results of joblib's jobs, each as soon as there is one; `options` are those of `joblib.Parallel`.

    `if_one_dies` ends the sentence about a worker that died.

    >>> from joblib import delayed
    >>> list(results((delayed(abs)(number) for number in (-1, -2)), n_jobs=1, return_as="generator"))
    [1, 2]
    """
    try:
        yield from Parallel(**options)(jobs)
    except BrokenExecutor:
        died = "a worker process died, perhaps for want of memory"
        raise ComputationError(f"{died}; {if_one_dies}" if if_one_dies else died) from None

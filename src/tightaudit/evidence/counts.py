"""What methods test: how many guesses, how many released, how many of those wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tightaudit.support import checks
from tightaudit.support.checks import BoolArray
from tightaudit.support.errors import InputError

Rule = Literal["two-sided", "one-sided", "threshold"]


@dataclass(frozen=True)
class Guessing:
    """How bits are guessed from scores, fixed before anyone looks at the bits.

    `two-sided`: the lowest scores are guessed out, the highest in. `one-sided`: the highest are guessed in,
    and nothing else. `threshold`: in above the threshold, out below. The seed breaks ties.

    >>> Guessing("threshold", 0.5).threshold
    0.5
    """

    rule: Rule = "two-sided"
    threshold: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.rule, str) or self.rule not in get_args(Rule):
            raise InputError("guessing", self.rule, f"one of {', '.join(get_args(Rule))}")
        if (self.threshold is None) == (self.rule == "threshold"):
            raise InputError("threshold", self.threshold, "a number if and only if guessing is by threshold")
        if self.threshold is not None:
            object.__setattr__(self, "threshold", checks.number("threshold", self.threshold))
        object.__setattr__(self, "seed", checks.seed(self.seed))


def as_guessing(given: Guessing | str) -> Guessing:
    """How to guess as it is, or by the name of a rule that needs no threshold.

    >>> as_guessing("one-sided").rule
    'one-sided'
    """
    return given if isinstance(given, Guessing) else Guessing(given)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Evidence:
    """What an audit knows about one run: how many guesses, how many released, how many of those wrong.

    Made by `release` from scores, or from counts alone.

    >>> Evidence(n=10_000, released=2_000, errors=250).errors
    250
    """

    n: int
    released: int
    errors: int
    errors_by_rank: BoolArray | None = field(default=None, compare=False, repr=False)
    """For each of the n guesses, most confident first, whether it is wrong; None if only counts are known."""
    guessing: Guessing | None = None
    """How the guesses were made; None if only counts are known."""
    runs: tuple[int, ...] | int = ()
    """The canaries of each of several runs, or the number of runs of one size; empty for one run.

    Guesses are then ranked within their runs, and every run releases its share.
    """

    def __post_init__(self) -> None:
        n = checks.count("n", self.n, minimum=1)
        object.__setattr__(self, "runs", _sizes(self.runs, n))
        released = checks.count("released", self.released, minimum=1)
        errors = checks.count("errors", self.errors)
        if released > n:
            raise InputError("released", released, f"at most n={n}")
        if errors > released:
            raise InputError("errors", errors, f"at most released={released}")
        for name, value in (("n", n), ("released", released), ("errors", errors)):
            object.__setattr__(self, name, value)
        if self.errors_by_rank is not None:
            by_rank = checks.bits("errors_by_rank", self.errors_by_rank).copy()
            by_rank.flags.writeable = False
            if by_rank.size != n:
                raise InputError("errors_by_rank", f"{by_rank.size} values", f"one per guess, n={n}")
            if int(np.count_nonzero(by_rank[:released])) != errors:
                raise InputError("errors", errors, "the number of errors among the first released ranks")
            object.__setattr__(self, "errors_by_rank", by_rank)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The canaries of each of several runs; empty for one run."""
        return self.runs if isinstance(self.runs, tuple) else ()

    def top(self, released: int) -> Evidence:
        """The same guesses with another number of them released.

        Fix the number before looking at the errors: picking the best of several needs a correction.

        >>> import tightaudit as ta
        >>> evidence = ta.release([4.0, 3.0, 2.0, 1.0], [1, 0, 1, 0], released=4, guessing="one-sided")
        >>> evidence.errors, evidence.top(1).errors
        (2, 0)
        """
        if self.errors_by_rank is None:
            raise InputError(
                "released", released, "evidence that keeps its errors by rank; this was made from counts"
            )
        count = checks.count("released", released, minimum=1)
        if count > self.n:
            raise InputError("released", count, f"at most n={self.n}")
        errors = int(np.count_nonzero(self.errors_by_rank[:count]))
        return replace(self, released=count, errors=errors)


def _sizes(runs: tuple[int, ...] | int, n: int) -> tuple[int, ...]:
    if isinstance(runs, tuple):
        sizes = tuple(checks.count("runs", size, minimum=1) for size in runs)
        if sizes and sum(sizes) != n:
            raise InputError("runs", f"{sum(sizes)} canaries in all", f"n={n}")
    else:
        if n % checks.count("runs", runs, minimum=1):
            expected = f"a number that divides n={n}, the canaries of all runs, or the size of each run"
            raise InputError("runs", runs, expected)
        sizes = (n // runs,) * runs
    return sizes if len(sizes) > 1 else ()


@lru_cache(maxsize=64)
def released_of_each(runs: tuple[int, ...], released: int) -> tuple[int, ...]:
    """How many guesses each run releases: as near as can be the same share of its canaries.

    >>> released_of_each((100, 100), 9), released_of_each((100, 300), 9)
    ((5, 4), (2, 7))
    """
    if len(set(runs)) == 1:
        return shared_evenly(released, len(runs))
    first = in_turns(runs)[:released]
    return tuple(np.bincount(first, minlength=len(runs)).tolist())


def shared_evenly(total: int, parts: int) -> tuple[int, ...]:
    """Parts as equal as can be, the larger ones first.

    >>> shared_evenly(8, 3)
    (3, 3, 2)
    """
    each, more = divmod(total, parts)
    return tuple(each + (place < more) for place in range(parts))


def in_turns(runs: tuple[int, ...]) -> NDArray[np.intp]:
    """Whose turn it is to release a guess, until all have: each run in proportion to its size.

    >>> in_turns((1, 3))
    array([1, 0, 1, 1])
    """
    whose = np.repeat(np.arange(len(runs)), runs)
    place = np.concatenate([(np.arange(size) + 0.5) / size for size in runs])
    return whose[np.lexsort((whose, place))]


@dataclass(frozen=True)
class WeightedCount:
    """All that is known of a run when only a weighted number of errors was kept, not the errors by rank.

    >>> WeightedCount(n=1000, statistic=1364).statistic
    1364
    """

    n: int
    statistic: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.count("n", self.n, minimum=1))
        object.__setattr__(self, "statistic", checks.count("statistic", self.statistic))

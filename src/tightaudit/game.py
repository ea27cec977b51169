"""The guessing game: secret coins, scores, guesses, and the few that are released.

    coins ──► the mechanism, once ──► scores ──► guesses in order of confidence ──► Evidence

Random choices made here (ties, the order of equally confident guesses, the odd guess) come from a
recorded seed, in a stream of their own: using one seed for the coins and for the ties cannot make the
ties depend on the coins.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightaudit import checks
from tightaudit.checks import BoolArray, FloatArray
from tightaudit.errors import InputError
from tightaudit.pairing import Ids, matching_positions

Guessing = Literal["two-sided", "one-sided", "threshold"]

_COIN_STREAM, _TIE_STREAM = 1, 2


@dataclass(frozen=True)
class Coins:
    """The secret bits of one audit, and the seed that gives them again."""

    members: BoolArray
    seed: int


@dataclass(frozen=True)
class Evidence:
    """What an audit knows of one run: how many guesses, how many released, how many of those wrong.

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
    threshold: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        n = checks.count("n", self.n, minimum=1)
        released = checks.count("released", self.released, minimum=1)
        errors = checks.count("errors", self.errors)
        if released > n:
            raise InputError("released", released, f"at most n={n}")
        if errors > released:
            raise InputError("errors", errors, f"at most released={released}")
        for name, value in (("n", n), ("released", released), ("errors", errors)):
            object.__setattr__(self, name, value)
        if self.guessing is not None:
            _require_rule(self.guessing, self.threshold)
        if self.seed is not None:
            checks.seed(self.seed)
        if self.errors_by_rank is not None:
            by_rank = checks.bits("errors_by_rank", self.errors_by_rank).copy()
            by_rank.flags.writeable = False
            if by_rank.size != n:
                raise InputError("errors_by_rank", f"{by_rank.size} values", f"one per guess, n={n}")
            if int(np.count_nonzero(by_rank[:released])) != errors:
                raise InputError("errors", errors, "the number of errors among the first released ranks")
            object.__setattr__(self, "errors_by_rank", by_rank)

    def release(self, released: int) -> Evidence:
        """The same guesses with another number of them released.

        Fix the number before looking at the errors: picking the best of several needs a correction.

        >>> scores, members = [4.0, 3.0, 2.0, 1.0], [1, 0, 1, 0]
        >>> evidence = release(scores, members, released=4, guessing="one-sided")
        >>> evidence.errors, evidence.release(1).errors
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


def draw_coins(n: int, *, seed: int | None = None) -> Coins:
    """Draw n fair secret bits: which canaries are in (or which of two each one is).

    Without a seed one is drawn from the operating system; either way it is recorded.

    >>> coins = draw_coins(8, seed=3)
    >>> bool((draw_coins(8, seed=coins.seed).members == coins.members).all())
    True
    """
    number = checks.count("n", n, minimum=1)
    chosen = secrets.randbits(63) if seed is None else checks.seed(seed)
    return Coins(members=_stream(chosen, _COIN_STREAM).random(number) < 0.5, seed=chosen)


def release(
    scores: ArrayLike,
    members: ArrayLike,
    *,
    released: int,
    guessing: Guessing = "two-sided",
    threshold: float | None = None,
    score_ids: Ids | None = None,
    member_ids: Ids | None = None,
    seed: int = 0,
) -> Evidence:
    """Guess every bit from the scores, order the guesses by confidence and release the first ones.

    - `two-sided`: the highest scores are guessed 1 and the lowest 0; confidence is the distance from the
      middle rank. Needs no threshold.
    - `one-sided`: the highest scores are guessed 1.
    - `threshold`: guessed 1 above `threshold`, which has to be fixed in advance; confidence is the
      distance to it.

    Give `score_ids` and `member_ids` to pair scores with bits by canary id instead of by position.

    >>> evidence = release([2.5, -1.0, 0.3, 0.1], [1, 0, 0, 1], released=2)
    >>> evidence.n, evidence.released, evidence.errors
    (4, 2, 0)
    """
    score = checks.vector("scores", scores)
    bits = checks.bits("members", members)
    if score_ids is not None or member_ids is not None:
        bits = bits[matching_positions(score_ids, member_ids, score.size, bits.size)]
    if bits.size != score.size:
        raise InputError("members", f"{bits.size} values", f"one per score, {score.size}")
    cut = _require_rule(guessing, threshold)
    chosen = checks.seed(seed)
    rng = _stream(chosen, _TIE_STREAM)
    if cut is not None:
        by_rank = _threshold_errors(score, bits, cut, rng)
    elif guessing == "one-sided":
        by_rank = ~bits[_ascending(score, rng)[::-1]]
    else:
        by_rank = _two_sided_errors(score, bits, rng)
    evidence = Evidence(
        score.size, score.size, int(np.count_nonzero(by_rank)), by_rank, guessing, cut, chosen
    )
    return evidence.release(released)


def _require_rule(guessing: object, threshold: object) -> float | None:
    """The threshold as a number, if the rule is known and has one."""
    if not isinstance(guessing, str) or guessing not in get_args(Guessing):
        raise InputError("guessing", guessing, f"one of {', '.join(get_args(Guessing))}")
    if (threshold is None) == (guessing == "threshold"):
        raise InputError("threshold", threshold, "a number if, and only if, guessing='threshold'")
    return None if threshold is None else checks.number("threshold", threshold)


def _stream(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(stream,)))


def _ascending(keys: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions in ascending order of the keys, equal keys in random order."""
    # Without equal keys there is only one order, and an unstable sort finds it several times faster.
    order = np.argsort(keys)
    ranked = keys[order]
    if not np.any(ranked[1:] == ranked[:-1]):
        return order
    shuffle = rng.permutation(keys.size)
    return shuffle[np.argsort(keys[shuffle], kind="stable")]


def _two_sided_errors(score: FloatArray, bits: BoolArray, rng: np.random.Generator) -> BoolArray:
    order = _ascending(score, rng)
    ranked = bits[order]
    pairs = score.size // 2
    wrong_low, wrong_high = ranked[:pairs], ~ranked[::-1][:pairs]
    high_first = rng.random(pairs) < 0.5
    errors = np.empty(score.size, dtype=np.bool_)
    errors[0 : 2 * pairs : 2] = np.where(high_first, wrong_high, wrong_low)
    errors[1 : 2 * pairs : 2] = np.where(high_first, wrong_low, wrong_high)
    if score.size % 2:
        errors[-1] = ranked[pairs] != (rng.random() < 0.5)
    return errors


def _threshold_errors(
    score: FloatArray, bits: BoolArray, threshold: float, rng: np.random.Generator
) -> BoolArray:
    order = _ascending(np.abs(score - threshold), rng)[::-1]
    return ((score > threshold) != bits)[order]

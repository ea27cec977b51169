"""From scores to guesses in order of confidence, and the few that are released.

    coins ──► the mechanism, once ──► scores ──► guesses in order of confidence ──► Evidence

Random choices made here (ties, the order of equally confident guesses, the odd guess) come from a
recorded seed, in a stream of their own: using one seed for the coins and for the ties cannot make the
ties depend on the coins.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightaudit.evidence.coins import stream
from tightaudit.evidence.counts import Evidence, Guessing, Rule, as_guessing, in_turns
from tightaudit.evidence.ids import Ids, matching_positions, text_or_integers
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

_TIE_STREAM = 2


def release(
    scores: ArrayLike,
    members: ArrayLike,
    *,
    released: int,
    guessing: Guessing | Rule = "two-sided",
    score_ids: Ids | None = None,
    member_ids: Ids | None = None,
    runs: Ids | None = None,
) -> Evidence:
    """Guess every bit from the scores, order the guesses by confidence and release the first ones.

    Confidence is the distance from the middle rank with two-sided guessing, the rank with one-sided, and the
    distance to the threshold with `Guessing("threshold", 0.5)`.

    With `runs`, which name the run that each score is from, guesses are ranked within their runs, and every
    run releases its share.

    Give `score_ids` and `member_ids` to pair scores with bits by canary id instead of by position.

    >>> evidence = release([2.5, -1.0, 0.3, 0.1], [1, 0, 0, 1], released=2)
    >>> evidence.n, evidence.released, evidence.errors
    (4, 2, 0)
    """
    score = checks.scores("scores", scores)
    bits = checks.bits("members", members)
    if score_ids is not None or member_ids is not None:
        bits = bits[matching_positions(score_ids, member_ids, score.size, bits.size)]
    if bits.size != score.size:
        raise InputError("members", f"{bits.size} values", f"one per score, {score.size}")
    rule = as_guessing(guessing)
    rng = stream(rule.seed, _TIE_STREAM)
    sizes: tuple[int, ...] = ()
    if runs is None:
        by_rank = _errors_by_rank(score, bits, rule, rng)
    else:
        _, whose = np.unique(text_or_integers("runs", runs), return_inverse=True)
        if whose.size != score.size:
            raise InputError("runs", f"{whose.size} values", f"one per score, {score.size}")
        sizes = tuple(np.bincount(whose).tolist())
        by_rank, turns = np.empty(score.size, dtype=np.bool_), in_turns(sizes)
        for place in range(len(sizes)):
            own = whose == place
            by_rank[turns == place] = _errors_by_rank(score[own], bits[own], rule, rng)
    everything = Evidence(score.size, score.size, int(np.count_nonzero(by_rank)), by_rank, rule, sizes)
    return everything.top(released)


def _errors_by_rank(
    score: FloatArray, bits: BoolArray, rule: Guessing, rng: np.random.Generator
) -> BoolArray:
    if rule.threshold is not None:
        return _threshold_errors(score, bits, rule.threshold, rng)
    if rule.rule == "one-sided":
        return ~bits[_ascending(score, rng)[::-1]]
    return _two_sided_errors(score, bits, rng)


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

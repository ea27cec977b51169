"""An audit of any mechanism by calls: coins, calls, features, a fitted score, and the table of beliefs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightaudit.auditing.audit import audit
from tightaudit.auditing.report import Report
from tightaudit.calls.features import Features
from tightaudit.calls.game import Called, Mechanism, call, name_of
from tightaudit.calls.learned import fitted, promise, smallest_visible
from tightaudit.claims.base import Claim
from tightaudit.claims.text import as_claim
from tightaudit.evidence.coins import recorded_seed
from tightaudit.evidence.run import Run
from tightaudit.planning.release import Release
from tightaudit.support import checks, machine
from tightaudit.support.errors import InputError
from tightaudit.support.progress import Progress

_FEWEST = 40
_FOR_PAIRS = 0.5
"""The share of the calls by which one of several pairs of inputs is chosen."""
_WHY = "every call has randomness of its own, and the mechanism keeps nothing from one call to the next"


@dataclass(frozen=True)
class Learning:
    """How a score is learned from outputs.

    >>> Learning(fit=0.3).fit
    0.3
    """

    fit: float = 0.5
    """The share of the calls that the score is learned from; the rest are audited."""
    features: Callable[[Any], Sequence[float]] | None = None
    """From an output to numbers, in place of the usual features."""
    last_bits: bool = False
    """Whether the last bits of floating-point numbers are features too."""
    estimator: Any | None = None
    """A classifier with `fit`, and `predict_proba` or `decision_function`; by default the best of a few."""

    def __post_init__(self) -> None:
        checks.between("fit", self.fit, "a share of the calls between 0 and 1")


def audit_calls(
    mechanism: Mechanism,
    first: Any = None,
    second: Any = None,
    *,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    calls: int,
    claim: Claim | str,
    delta: float | None = None,
    confidence: float = 0.95,
    released: int | float | str | Release = "best",
    learning: Learning | None = None,
    vectorized: bool = False,
    seed: int | None = None,
    workers: int = -1,
    progress: Progress | None = None,
) -> Report:
    """How much does a mechanism leak about which of two neighbouring inputs it was given?

    A fair coin per call decides between `first` and `second`; `mechanism(data, rng)` returns anything:
    numbers, lists, words, None. A classifier is fitted on a part of the calls, the rest are audited by its
    log-odds. With `vectorized`, `mechanism(data, rng, size)` returns the outputs of so many calls at once.
    Several `pairs` of inputs may be given: a first sample chooses one of them, fresh calls audit it.

    Calls run on all cores, each with its own generator of random numbers. The mechanism has to draw all of
    its randomness from it for the seed to repeat the audit, and must keep no state between calls.

    >>> import tightaudit as ta
    >>> def noisy_count(data, rng, size):
    ...     return sum(data) + rng.laplace(scale=0.5, size=size)          # claims ε = 1, has 2
    >>> report = ta.audit_calls(
    ...     noisy_count, [1, 0, 1], [1, 0, 0], calls=20_000, claim="approx-dp(epsilon=1,delta=0)",
    ...     vectorized=True, seed=1,
    ... )
    >>> report.violated, report.epsilon > 1.7
    (True, True)
    """
    learning = learning or Learning()
    tested = as_claim(claim, delta=delta)
    count = checks.count("calls", calls, minimum=1)
    recorded = recorded_seed(seed)
    _require_enough(count, learning, confidence, tested, delta)
    asked: dict[str, Any] = {
        "vectorized": vectorized,
        "workers": machine.workers(workers),
        "progress": progress,
    }
    given = _pairs(first, second, pairs)
    pair, known, chosen = given[0], None, ""
    if len(given) > 1:
        place, known, spent = _best_pair(mechanism, given, int(_FOR_PAIRS * count), learning, recorded, asked)
        pair, count = given[place], count - spent
        chosen = f"; pair {place + 1} of {len(given)}, chosen by {spent:,} other calls"
    called = call(mechanism, pair, count, seed=recorded, **asked)
    # Calls that chose the pair are not audited, so that the score may learn from them too.
    half = round((learning.fit if known is None else learning.fit / 2) * count)
    early, rest = called.part(0, half), called.part(half, count)
    early = early if known is None else known.followed_by(early)
    scores, name = learned_scores(early, rest, learning)
    if bool(np.all(scores == scores[0])):
        expected = "outputs, or an estimator, that tell calls apart: equal scores cannot show a leak"
        raise InputError("mechanism", f"{len(rest):,} calls with the score {scores[0]:.3g}", expected)
    run = Run(
        scores,
        rest.coins,
        independent=_WHY,
        claim=tested,
        threshold=0.0,
        seed=recorded,
        source=f"{len(rest):,} calls of {name_of(mechanism)}, scored by {name} fitted on {len(early):,} "
        f"others{chosen}",
    )
    return audit(run, delta=delta, confidence=confidence, released=released)


def learned_scores(early: Called, rest: Called, learning: Learning) -> tuple[Any, str]:
    """Scores of some calls by a classifier that was fitted on others."""
    if bool(early.coins.all()) or not early.coins.any():
        raise InputError("calls", len(early), "more, so that both inputs are among those to fit")
    columns = Features.of(early.outputs, last_bits=learning.last_bits, own=learning.features)
    features = columns.matrix(early.outputs)
    learned = fitted(features, early.coins, learning.estimator, seed=early.seed)
    return learned.scores(columns.matrix(rest.outputs)), learned.name


def _best_pair(
    mechanism: Mechanism,
    pairs: Sequence[tuple[Any, Any]],
    budget: int,
    learning: Learning,
    seed: int,
    asked: dict[str, Any],
) -> tuple[int, Called, int]:
    """The pair that promises the largest ε, its calls, and how many were made of all: none is audited.

    Half of the pairs are dropped after each round, and the others get twice as many calls in the next.
    """
    left, rounds = list(range(len(pairs))), max(1, math.ceil(math.log2(len(pairs))))
    known: dict[int, Called] = {}
    spent = 0
    for number in range(rounds):
        each = budget // rounds // len(left)
        if each < _FEWEST:
            raise InputError(
                "calls", budget, f"at least {_FEWEST} to try each of {len(pairs)} pairs; give more"
            )
        found = {}
        for place in left:
            more = call(mechanism, pairs[place], each, seed=seed + 1 + place + number * len(pairs), **asked)
            known[place] = known[place].followed_by(more) if place in known else more
            spent += each
            half = len(known[place]) // 2
            early, rest = known[place].part(0, half), known[place].part(half, 2 * half)
            scores, _ = learned_scores(early, rest, learning)
            found[place] = promise(scores, rest.coins, planned=budget)
        left = sorted(left, key=lambda place: -found[place])[: max(1, len(left) // 2)]
    return left[0], known[left[0]], spent


def _pairs(first: Any, second: Any, pairs: Sequence[tuple[Any, Any]] | None) -> list[tuple[Any, Any]]:
    if pairs is None:
        return [(first, second)]
    if first is not None or second is not None:
        raise InputError("pairs", "given", "either these or two inputs, not both")
    found = list(pairs)
    if not found or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in found):
        raise InputError("pairs", pairs, "a list of pairs of inputs")
    return [(pair[0], pair[1]) for pair in found]


def _require_enough(
    calls: int, learning: Learning, confidence: float, claim: Claim, delta: float | None
) -> None:
    """Refuse calls that could show nothing, whatever the mechanism."""
    audited = calls - round(learning.fit * calls)
    level = 1 - checks.confidence(confidence)
    if audited < _FEWEST // 2 or 0.5**audited > level:
        raise InputError("calls", calls, f"at least {_FEWEST}: a half for fitting, a half to be audited")
    if claim.point is not None and smallest_visible(audited, level) > claim.point[0] + 8:
        raise InputError("calls", calls, f"more calls: {audited} cannot contradict {claim}")
    if delta is not None:
        checks.probability("delta", delta)

"""How often a method rejects a true claim: repeated audits of a mechanism whose privacy is known."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import betaincinv

from tightaudit import checks
from tightaudit.belief_rows import RowPlan, plan_rows
from tightaudit.checks import FloatArray
from tightaudit.errors import InputError
from tightaudit.game import Evidence, Guessing, WeightedCount
from tightaudit.mechanisms.base import Mechanism
from tightaudit.planning import typical_claim
from tightaudit.progress import Progress
from tightaudit.pvalues.base import METHODS, Method, p_value, resolve
from tightaudit.releases import ReleaseRule
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import TradeOff

_CELLS_PER_CHUNK = 500_000
_INTERVAL_TAIL = 0.025


@dataclass(frozen=True)
class Rejections:
    """How often one method rejected the claim at one level."""

    method: str
    level: float
    rejected: int
    repetitions: int
    assumes_independence: bool = False
    counts: tuple[int, ...] = ()
    """The numbers of released guesses that were tried."""
    row: str | None = None
    """The beliefs, for a row of an audit's table."""

    @property
    def rate(self) -> float:
        """The fraction of audits that rejected."""
        return self.rejected / self.repetitions

    @property
    def interval(self) -> tuple[float, float]:
        """95% Clopper–Pearson interval of the rate.

        >>> low, high = Rejections("exact", 0.05, 50, 1000).interval
        >>> round(low, 4), round(high, 4)
        (0.0373, 0.0654)
        """
        hits, misses = self.rejected, self.repetitions - self.rejected
        low = 0.0 if hits == 0 else float(betaincinv(hits, misses + 1, _INTERVAL_TAIL))
        high = 1.0 if misses == 0 else float(betaincinv(hits + 1, misses, 1 - _INTERVAL_TAIL))
        return low, high

    @property
    def exceeds(self) -> bool:
        """Whether the rate is above the level by more than three standard errors."""
        return self.rate > self.level + 3 * (self.level * (1 - self.level) / self.repetitions) ** 0.5


@dataclass(frozen=True)
class MeanBound:
    """The lower bounds on ε that one method gave, on average."""

    method: str
    mean: float
    spread: float
    """Standard deviation over the audits."""
    above_truth: float
    """Fraction of audits whose bound exceeds the true ε."""
    row: str | None = None
    """The beliefs, for a row of an audit's table."""


@dataclass(frozen=True)
class Calibration:
    """Repeated audits of one mechanism against one claim."""

    mechanism: str
    independent: bool
    claim: str
    claim_is_true: bool
    n: int
    release: int | float | str
    repetitions: int
    seed: int
    delta: float
    confidence: float
    true_epsilon: float
    rejections: tuple[Rejections, ...]
    bounds: tuple[MeanBound, ...]


def calibrate(
    mechanism: Mechanism,
    *,
    n: int,
    release: int | float | str,
    methods: Sequence[str | Method] | None = None,
    table: bool = False,
    guessing: Guessing | None = None,
    claim: TradeOff | None = None,
    levels: Sequence[float] = (0.05,),
    repetitions: int = 10_000,
    delta: float = 1e-5,
    confidence: float = 0.95,
    bounds: bool = True,
    seed: int = 0,
    workers: int = -1,
    progress: Progress | None = None,
) -> Calibration:
    """Audit a mechanism many times and count how often each method rejects the claim it satisfies.

    `release` is a count, a fraction, `auto` or `best`, as in `audit`. Methods are all of them by default;
    `table` takes the rows of an audit's table of beliefs instead. Guesses are made by the mechanism's own
    rule, or as `guessing` says; two-sided, as in an audit, for the table. The same seed gives the same
    numbers whatever `workers` is (-1: all cores). `progress(done, total)` is called as work gets done.
    `bounds=False` leaves out mean bounds, which cost more than rejections.

    >>> from tightaudit.mechanisms.gaussian import GaussianMechanism
    >>> result = calibrate(
    ...     GaussianMechanism(1.0), n=100, release=20, methods=["exact"], repetitions=400, workers=1
    ... )
    >>> result.rejections[0].exceeds, round(result.true_epsilon, 3)
    (False, 4.377)
    """
    n = checks.count("n", n, minimum=1)
    tested = claim if claim is not None else mechanism.claim
    if not isinstance(tested, TradeOff):
        raise InputError("claim", str(tested), "a claim with all its parameters")
    repetitions = checks.count("repetitions", repetitions, minimum=1)
    seed = checks.seed(seed)
    confidence = checks.confidence(confidence)
    if workers != -1:
        checks.count("workers", workers, minimum=1)
    for level in levels:
        if not 0 < checks.probability("level", level) < 1:
            raise InputError("level", level, "a number strictly between 0 and 1")
    if table and methods is not None:
        raise InputError("methods", methods, "none with the table, whose rows have theirs")
    delta = tested.claimed_delta if isinstance(tested, ApproxDP) else checks.probability("delta", delta)
    rule = ReleaseRule(release)
    if table:
        guessing = guessing or "two-sided"
        plans = plan_rows(
            n,
            claim=tested,
            null=None,
            delta=delta,
            confidence=confidence,
            release=rule,
            guessing=guessing,
        )
    else:
        plans = _plans_of_methods(n, tested, methods, rule, delta, confidence)
    chunk = max(1, min(1000, _CELLS_PER_CHUNK // n))
    chunks = [min(chunk, repetitions - start) for start in range(0, repetitions, chunk)]
    streams = np.random.SeedSequence(seed).spawn(len(chunks))
    report = _Reporter(progress, len(chunks))
    drawing = [
        delayed(_outcomes)(mechanism, n, plans, guessing, *share)
        for share in zip(chunks, streams, strict=True)
    ]
    drawn = [outcome for part in report.follow(_in_parallel(workers, drawing)) for outcome in part]
    # For each plan and each of its counts, what every audit came to; few of them differ.
    columns = [
        [[audit[at][place] for audit in drawn] for place in range(len(plan.counts))]
        for at, plan in enumerate(plans)
    ]
    searched = bounds and bool(tested.parameter_names)
    distinct = [[sorted(set(outcomes), key=_size) for outcomes in column] for column in columns]
    tests = [
        (plan, outcomes, plan.share(level))
        for level in levels
        for plan, column in zip(plans, distinct, strict=True)
        for outcomes in column
    ]
    jobs = [
        (plan, outcome)
        for plan, column in zip(plans, distinct, strict=True)
        for outcomes in column
        for outcome in outcomes
    ]
    report.expect(len(tests) + (len(jobs) if searched else 0))
    testing = [delayed(_largest_rejected)(*test) for test in tests]
    limits = report.follow(_in_parallel(workers, testing))
    rejections = []
    for level in levels:
        for plan, column in zip(plans, columns, strict=True):
            hits = [np.array([_size(outcome) for outcome in outcomes]) <= next(limits) for outcomes in column]
            rejected = int(np.count_nonzero(np.any(hits, axis=0)))
            assumed = plan.method.assumes.independent_outcomes
            beliefs = _beliefs(plan) if table else None
            rejections.append(
                Rejections(plan.method.name, level, rejected, repetitions, assumed, plan.counts, beliefs)
            )
    true_epsilon = tested.epsilon(delta)
    means: list[MeanBound] = []
    if searched:
        values = report.follow(_in_parallel(workers, [delayed(_bound)(*job) for job in jobs]))
        for plan, column, outcomes in zip(plans, columns, distinct, strict=True):
            found = [{outcome: next(values) for outcome in part} for part in outcomes]
            epsilons = [[each[outcome] for outcome in part] for each, part in zip(found, column, strict=True)]
            row = _beliefs(plan) if table else None
            means.append(_mean_bound(plan.method.name, np.max(epsilons, axis=0), true_epsilon, row))
    return Calibration(
        mechanism=str(mechanism),
        independent=mechanism.independent,
        claim=str(tested),
        claim_is_true=str(tested) == str(mechanism.claim),
        n=n,
        release=rule.chosen,
        repetitions=repetitions,
        seed=seed,
        delta=delta,
        confidence=confidence,
        true_epsilon=true_epsilon,
        rejections=tuple(rejections),
        bounds=tuple(means),
    )


def _plans_of_methods(
    n: int,
    claim: TradeOff,
    methods: Sequence[str | Method] | None,
    rule: ReleaseRule,
    delta: float,
    confidence: float,
) -> list[RowPlan]:
    """A row per method, all of them testing the claim itself."""
    family = claim.own_family() if claim.parameter_names else ApproxDP.family(delta=delta)
    typical = typical_claim(claim, None, delta)
    plans = []
    for method in map(resolve, METHODS if methods is None else methods):
        if methods is None and method.releases_all and not rule.allows_all(n):
            continue
        method = method.planned(n, typical)
        counts = rule.counts(n, method, family, typical, 1 - confidence)
        plans.append(RowPlan(method, None, family, counts, claim, delta, confidence))
    return plans


def _beliefs(plan: RowPlan) -> str:
    outcomes = "independent" if plan.method.assumes.independent_outcomes else "any"
    return f"{outcomes}, {'any' if plan.shape is None else plan.shape}"


def _mean_bound(method: str, epsilons: FloatArray, true_epsilon: float, row: str | None) -> MeanBound:
    with np.errstate(invalid="ignore"):  # the spread around an infinite mean
        mean, spread = float(epsilons.mean()), float(epsilons.std())
    return MeanBound(method, mean, spread, float(np.mean(epsilons > true_epsilon)), row)


def _in_parallel(workers: int, jobs: list[Any]) -> Iterator[Any]:
    """Results in the order of the jobs, as they come."""
    yield from Parallel(n_jobs=workers, return_as="generator")(jobs)


class _Reporter:
    """Tells a progress callback how many jobs are done of how many that are known of."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def expect(self, more: int) -> None:
        self._total += more

    def follow(self, results: Iterator[Any]) -> Iterator[Any]:
        for result in results:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total)
            yield result


def _outcomes(
    mechanism: Mechanism,
    n: int,
    plans: list[RowPlan],
    guessing: Guessing | None,
    runs: int,
    stream: np.random.SeedSequence,
) -> list[list[list[Evidence | WeightedCount]]]:
    """What each run came to, for every plan and each of its counts."""
    audits = mechanism.play(n, n, np.random.default_rng(stream), runs, guessing)
    return [
        [[plan.method.reduced(evidence.release(count)) for count in plan.counts] for plan in plans]
        for evidence in audits
    ]


def _size(outcome: Evidence | WeightedCount) -> int:
    """What p-values grow with: the errors, or their weighted number."""
    return outcome.errors if isinstance(outcome, Evidence) else outcome.statistic


def _largest_rejected(plan: RowPlan, outcomes: list[Evidence | WeightedCount], level: float) -> int:
    """The largest of the outcomes, given in ascending order, whose p-value is at most the level; or -1."""
    tested = plan.tested
    assert tested is not None
    first_accepted = bisect_left(
        outcomes, True, key=lambda outcome: p_value(outcome, tested, method=plan.method) > level
    )
    return _size(outcomes[first_accepted - 1]) if first_accepted else -1


def _bound(plan: RowPlan, evidence: Evidence | WeightedCount) -> float:
    """The ε of the bound; ∞ where the whole family is rejected, which is above every truth."""
    bound = plan.bound(evidence, plan.corrected_confidence)
    return np.inf if bound.epsilon is None else bound.epsilon

"""How often a method rejects a true claim: repeated audits of a mechanism whose privacy is known."""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import delayed
from scipy.special import betaincinv

from tightaudit.auditing.question import Question
from tightaudit.auditing.rows import RowTest, row_test, table_of_beliefs
from tightaudit.auditing.verdict import Verdict
from tightaudit.bounds.beliefs import Beliefs
from tightaudit.claims.base import Claim
from tightaudit.claims.text import as_claim
from tightaudit.evidence.counts import Guessing, Rule
from tightaudit.evidence.guessing import release
from tightaudit.methods.base import METHODS, Method, Test, as_method
from tightaudit.planning.looks import Looks
from tightaudit.planning.release import Release, as_release
from tightaudit.simulate.mechanisms.base import Mechanism, as_mechanism
from tightaudit.support import checks, machine
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError
from tightaudit.support.parallel import results
from tightaudit.support.progress import Progress

_CELLS_PER_CHUNK = 500_000
_INTERVAL_TAIL = 0.025
_BYTES_PER_CANARY = 100
"""Coins, scores, their order and the errors by rank of an audit that is being simulated."""
_BYTES_PER_AUDIT = 1000
"""What is kept of an audit: the statistics of every test, and a share of the list of what there is to do."""


@dataclass(frozen=True)
class Audits:
    """The audits to repeat: of n canaries, by some methods or by the rows of an audit's table of beliefs.

    `released` is a count, a share, 'planned' or 'best'. Methods are all of them if none are named. Guesses
    are made by the mechanism's own rule, or as `rule` says; two-sided, as in an audit, for the table.

    >>> Audits(n=1000, released=200, methods=("exact",)).times
    10000
    """

    n: int
    released: int | float | str | Release = "planned"
    methods: Sequence[str | Method] | None = None
    table: bool = False
    rule: Rule | None = None
    times: int = 10_000
    seed: int = 0
    runs: int = 1
    """Runs of n canaries each that every audit has."""
    looks: Looks | None = None
    """The steps after which every audit looks at its run, of a mechanism that has steps."""

    def __post_init__(self) -> None:
        checks.count("n", self.n, minimum=1)
        checks.count("runs", self.runs, minimum=1)
        object.__setattr__(self, "released", as_release(self.released))
        checks.count("times", self.times, minimum=1)
        checks.seed(self.seed)
        checks.flag("table", self.table)
        if self.looks is not None and (self.table or self.methods is not None or self.runs > 1):
            expected = "no table, methods or several runs with looks, which are taken by an audit's first row"
            raise InputError("looks", self.looks.at, expected)
        if self.table and self.methods is not None:
            raise InputError("methods", self.methods, "no methods with the table, whose rows have their own")
        if self.table and self.rule is None:
            object.__setattr__(self, "rule", "two-sided")

    def tests(self, question: Question) -> list[RowTest]:
        """What is tested in each of them, fixed before the first."""
        release, claim = as_release(self.released), question.claim
        assert claim is not None
        total = self.runs * self.n
        if self.table:
            return table_of_beliefs(question, total, release, rule=self.rule or "two-sided")
        methods = [as_method(method) for method in (METHODS if self.methods is None else self.methods)]
        if self.methods is None and not release.allows_all(total):
            methods = [method for method in methods if not method.releases_all]
        # Each method tests the claim itself, and bounds ε in the claim's own family if there is one.
        family = claim.own_family() if claim.parameter_names else None
        if question.runs:
            if self.methods is None:
                methods = [method for method in methods if method.holds_as_law]
            methods = [method.between_runs(question.runs) for method in methods]
        rows = [row_test(question, method, family, release, total) for method in methods]
        return [replace(row, claim=claim, tests_claim_itself=True) for row in rows]


@dataclass(frozen=True)
class Rejections:
    """How often one test rejected the claim at one level."""

    method: str
    level: float
    rejected: int
    repetitions: int
    assumes_independence: bool = False
    counts: tuple[int, ...] = ()
    """The numbers of released guesses that were tried."""
    row: Beliefs | None = None
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
    """The lower bounds on ε that one test gave, on average."""

    method: str
    mean: float
    spread: float
    """Standard deviation over the audits."""
    above_truth: float
    """Fraction of audits whose bound exceeds the true ε."""
    row: Beliefs | None = None
    """The beliefs, for a row of an audit's table."""


@dataclass(frozen=True)
class Calibration:
    """Repeated audits of one mechanism against one claim."""

    mechanism: Mechanism
    audits: Audits
    question: Question
    rejections: tuple[Rejections, ...]
    bounds: tuple[MeanBound, ...]

    @property
    def claim(self) -> Claim:
        """The claim that was tested."""
        assert self.question.claim is not None
        return self.question.claim

    @property
    def claim_is_true(self) -> bool:
        """Whether it is the one that the mechanism satisfies."""
        return str(self.claim) == str(self.mechanism.claim)

    @property
    def true_epsilon(self) -> float:
        """ε of the claim."""
        return self.claim.epsilon(self.question.delta)

    def __str__(self) -> str:
        """The rates and the mean bounds as tables."""
        from rich.console import Group

        from tightaudit.render.terminal.calibration import calibration_view
        from tightaudit.render.terminal.tables import without_colours

        return without_colours(Group(*calibration_view(self)))

    def _repr_html_(self) -> str:
        from tightaudit.render.notebook import as_html
        from tightaudit.render.terminal.calibration import calibration_view

        return as_html(calibration_view(self))


def calibrate(
    mechanism: Mechanism | str,
    audits: Audits,
    *,
    claim: Claim | str | None = None,
    levels: Sequence[float] = (0.05,),
    delta: float = 1e-5,
    bounds: bool = True,
    workers: int = -1,
    progress: Progress | None = None,
) -> Calibration:
    """Audit a mechanism many times and count how often each method rejects the claim it satisfies.

    Another `claim` may be tested. Mean bounds on ε are at `delta` and hold at the first of the levels;
    `bounds=False` leaves them out, for they cost more than rejections. The same seed gives the same numbers
    whatever `workers` is (-1: all cores). `progress(done, total)` is called as work gets done.

    >>> audits = Audits(n=100, released=20, methods=["exact"], times=400)
    >>> result = calibrate("gaussian(mu=1)", audits, workers=1)
    >>> result.rejections[0].exceeds, round(result.true_epsilon, 3)
    (False, 4.377)
    """
    if not isinstance(audits, Audits):
        raise InputError("audits", audits, "Audits, such as ta.Audits(n=1000)")
    checks.flag("bounds", bounds)
    audited = as_mechanism(mechanism)
    tested = audited.claim if claim is None else as_claim(claim)
    workers = machine.workers(workers)
    cores = (os.cpu_count() or 1) if workers == -1 else workers
    machine.require_memory("n", audits.n, _BYTES_PER_CANARY * audits.runs * min(cores, audits.times))
    machine.require_memory("repetitions", audits.times, _BYTES_PER_AUDIT)
    if not isinstance(levels, Sequence) or not levels:
        raise InputError("levels", levels, "a list of at least one level")
    for level in levels:
        checks.between("level", level)
    question = Question.of(
        claim=tested,
        delta=delta if tested.point is None else None,
        confidence=1 - levels[0],
        runs=(audits.n,) * audits.runs if audits.runs > 1 else (),
    )
    if audits.looks is not None:
        if claim is not None:
            raise InputError("claim", str(tested), "none with looks: each tests what is true so far")
        return _calibrate_looks(audited, audits, question, audits.looks, levels, _Work(workers, progress, 0))
    searched = bounds and bool(tested.parameter_names)
    if searched:
        question.require_bounds()
    rows = audits.tests(question)
    chunks = _chunks(audits, 1000)
    work = _Work(workers, progress, len(chunks))
    drawn = work.done(delayed(_statistics)(audited, rows, audits, *chunk) for chunk in chunks)
    # For each row and each of its tests, the statistic of every audit; few of them differ.
    columns = [
        [np.concatenate(parts) for parts in zip(*tests, strict=True)] for tests in zip(*drawn, strict=True)
    ]
    distinct = [[np.unique(statistics).tolist() for statistics in column] for column in columns]
    tests = [
        (row, test, statistics)
        for row, column in zip(rows, distinct, strict=True)
        for test, statistics in zip(row.tests, column, strict=True)
    ]
    work.expect(len(levels) * len(tests) + (sum(len(each) for _, _, each in tests) if searched else 0))
    limits = work.done(
        delayed(_largest_rejected)(row, test, statistics, row.share(level))
        for level in levels
        for row, test, statistics in tests
    )
    rejections = []
    for level in levels:
        hits = [np.any([statistics <= next(limits) for statistics in column], axis=0) for column in columns]
        for row, hit in zip(rows, hits, strict=True):
            name, assumed = row.method.label, row.method.assumes.independent_outcomes
            beliefs = row.beliefs if audits.table else None
            times = int(np.count_nonzero(hit))
            rejections.append(Rejections(name, level, times, audits.times, assumed, row.counts, beliefs))
        if audits.table:
            rejections += _verdicts(question, rows, hits, level)
    means: list[MeanBound] = []
    if searched:
        found = work.done(
            delayed(_epsilon)(row, test, statistic) for row, test, each in tests for statistic in each
        )
        for row, column, each in zip(rows, columns, distinct, strict=True):
            known = [{statistic: next(found) for statistic in statistics} for statistics in each]
            epsilons = np.max(
                [
                    [table[statistic] for statistic in statistics.tolist()]
                    for table, statistics in zip(known, column, strict=True)
                ],
                axis=0,
            )
            beliefs = row.beliefs if audits.table else None
            means.append(_mean_bound(row.method.label, epsilons, tested.epsilon(question.delta), beliefs))
    return Calibration(audited, audits, question, tuple(rejections), tuple(means))


def _verdicts(
    question: Question, rows: list[RowTest], hits: list[BoolArray], level: float
) -> Iterator[Rejections]:
    """How often the words of a report speak against the claim, by what was stated.

    Its ε never does by itself: beside a claim that stands it is at most the claimed one.
    """
    for stated, said in ((False, "nothing stated"), (True, "independence stated")):
        verdict = Verdict.of(replace(question, independent=stated), rows)
        if verdict.deciding is None:
            continue
        against = hits[verdict.deciding]
        yield Rejections(f"verdict, {said}", level, int(against.sum()), against.size, stated)


def _chunks(audits: Audits, most: int) -> list[tuple[int, np.random.SeedSequence]]:
    """Audits that are simulated together, at most so many at a time, and their random numbers."""
    size = max(1, min(most, _CELLS_PER_CHUNK // (audits.runs * audits.n)))
    sizes = [min(size, audits.times - start) for start in range(0, audits.times, size)]
    return list(zip(sizes, np.random.SeedSequence(audits.seed).spawn(len(sizes)), strict=True))


def _calibrate_looks(
    mechanism: Mechanism,
    audits: Audits,
    question: Question,
    looks: Looks,
    levels: Sequence[float],
    work: "_Work",
) -> Calibration:
    """How often each look rejects what is true so far, at its share of the level, and how often any does."""
    rows = [
        table_of_beliefs(
            replace(question, claim=claim, family=claim.own_family()),
            audits.n,
            as_release(audits.released),
            rule=mechanism.rule,
        )[0]
        for claim in (mechanism.after(step).claim for step in looks.at)
    ]
    chunks = _chunks(audits, 100)
    work.expect(len(chunks) + len(levels) * len(rows))
    drawn = work.done(
        delayed(_statistics_at_looks)(mechanism, rows, audits, looks, *chunk) for chunk in chunks
    )
    columns = [np.concatenate(parts) for parts in zip(*drawn, strict=True)]
    limits = work.done(
        delayed(_largest_rejected)(row, row.tests[0], np.unique(column).tolist(), level * looks.share(place))
        for level in levels
        for place, (row, column) in enumerate(zip(rows, columns, strict=True))
    )
    rejections = []
    for level in levels:
        hits = [column <= next(limits) for column in columns]
        for place, (step, hit) in enumerate(zip(looks.at, hits, strict=True)):
            own = Rejections(
                f"after {step} steps", level * looks.share(place), int(hit.sum()), audits.times, True
            )
            rejections.append(own)
        anywhere = int(np.any(hits, axis=0).sum())
        rejections.append(Rejections(f"any of {len(looks.at)} looks", level, anywhere, audits.times, True))
    return Calibration(mechanism, audits, question, tuple(rejections), ())


def _statistics_at_looks(
    mechanism: Mechanism,
    rows: list[RowTest],
    audits: Audits,
    looks: Looks,
    times: int,
    stream: np.random.SeedSequence,
) -> list[list[int]]:
    rng = np.random.default_rng(stream)
    members = rng.random((times, audits.n)) < 0.5
    guessing = Guessing(mechanism.rule, mechanism.threshold)
    found = []
    for row, scores in zip(rows, mechanism.scores_after(looks.at, members, rng), strict=True):
        (test,) = row.tests
        found.append(
            [
                test.statistic(release(each, bits, released=test.released, guessing=guessing))
                for each, bits in zip(scores, members, strict=True)
            ]
        )
    return found


def _mean_bound(method: str, epsilons: FloatArray, true_epsilon: float, beliefs: Beliefs | None) -> MeanBound:
    with np.errstate(invalid="ignore"):  # the spread around an infinite mean
        mean, spread = float(epsilons.mean()), float(epsilons.std())
    return MeanBound(method, mean, spread, float(np.mean(epsilons > true_epsilon)), beliefs)


class _Work:
    """Jobs on several cores, results in their order, and how many are done of how many that are known of."""

    def __init__(self, workers: int, progress: Progress | None, total: int) -> None:
        self._workers, self._progress, self._done, self._total = workers, progress, 0, total

    def expect(self, more: int) -> None:
        self._total += more

    def done(self, jobs: Iterable[Any]) -> Iterator[Any]:
        for result in results(jobs, n_jobs=self._workers, return_as="generator"):
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total)
            yield result


def _statistics(
    mechanism: Mechanism, rows: list[RowTest], audits: Audits, runs: int, stream: np.random.SeedSequence
) -> list[list[list[int]]]:
    """What some runs came to, for every row and each of its tests."""
    rng = np.random.default_rng(stream)
    if audits.runs == 1:
        merged = apart = mechanism.play(audits.n, audits.n, rng, runs, audits.rule)
    else:
        merged, apart = mechanism.play_together(audits.n, audits.runs, rng, runs, audits.rule)
    found = []
    for row in rows:
        played = apart if row.method.independent_runs > 1 else merged
        found.append(
            [[test.statistic(evidence.top(test.released)) for evidence in played] for test in row.tests]
        )
    return found


def _largest_rejected(row: RowTest, test: Test, statistics: list[int], level: float) -> int:
    """The largest of the statistics, given in ascending order, whose p-value is at most the level; or -1."""
    claim = row.claim
    assert claim is not None
    accepted = bisect_left(statistics, True, key=lambda statistic: test.p_value(claim, statistic) > level)
    return statistics[accepted - 1] if accepted else -1


def _epsilon(row: RowTest, test: Test, statistic: int) -> float:
    """The ε of the bound; ∞ where the whole family is rejected, which is above every truth."""
    return row.bound(test, test.evidence(statistic), row.shared_confidence).size

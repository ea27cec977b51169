"""How often a method rejects a true claim: repeated audits of a mechanism whose privacy is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import betaincinv

from tightaudit import checks
from tightaudit.bounds import Bound, lower_bound
from tightaudit.checks import FloatArray
from tightaudit.errors import InputError
from tightaudit.game import Evidence
from tightaudit.mechanisms.base import Mechanism
from tightaudit.pvalues.base import METHODS, Method, p_value, resolve
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import TradeOff

Progress = Callable[[int, int], None]

_CELLS_PER_CHUNK = 500_000
_INTERVAL_TAIL = 0.025


@dataclass(frozen=True)
class Rejections:
    """How often one method rejected the claim at one level."""

    method: str
    level: float
    rejected: int
    repetitions: int

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


@dataclass(frozen=True)
class Calibration:
    """Repeated audits of one mechanism against one claim."""

    mechanism: str
    independent: bool
    claim: str
    n: int
    released: int
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
    released: int,
    methods: Sequence[str | Method] | None = None,
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

    Methods are all of them by default. The same seed gives the same numbers whatever `workers` is (-1: all
    cores). `progress(done, total)` is called as work gets done. `bounds=False` leaves out mean bounds, which
    cost more than rejections.

    >>> from tightaudit.mechanisms.gaussian import GaussianMechanism
    >>> result = calibrate(
    ...     GaussianMechanism(1.0), n=100, released=20, methods=["exact"], repetitions=400, workers=1
    ... )
    >>> result.rejections[0].exceeds, round(result.true_epsilon, 3)
    (False, 4.377)
    """
    sizes = Evidence(n=n, released=released, errors=0)
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
    names = list(METHODS) if methods is None else list(methods)
    chosen = [resolve(method) for method in names]
    if methods is None and sizes.released < sizes.n:
        chosen = [method for method in chosen if not method.releases_all]
    delta = tested.claimed_delta if isinstance(tested, ApproxDP) else checks.probability("delta", delta)

    chunk = max(1, min(1000, _CELLS_PER_CHUNK // sizes.n))
    chunks = [min(chunk, repetitions - start) for start in range(0, repetitions, chunk)]
    streams = np.random.SeedSequence(seed).spawn(len(chunks))
    report = _Reporter(progress, len(chunks))
    drawing = [delayed(_errors)(mechanism, sizes, *share) for share in zip(chunks, streams, strict=True)]
    errors = np.concatenate(list(report.follow(_in_parallel(workers, drawing))))
    distinct, inverse = np.unique(errors, return_inverse=True)
    searched = bounds and bool(tested.parameter_names)
    jobs = [(method, int(count)) for method in chosen for count in distinct]
    report.expect(len(jobs) * (2 if searched else 1))
    testing = [delayed(_p_value)(method, tested, sizes, count) for method, count in jobs]
    values = list(report.follow(_in_parallel(workers, testing)))
    by_method = np.reshape(values, (len(chosen), distinct.size))
    rejections = tuple(
        Rejections(method.name, level, int(np.count_nonzero(p[inverse] <= level)), repetitions)
        for level in levels
        for method, p in zip(chosen, by_method, strict=True)
    )
    true_epsilon = tested.epsilon(delta)
    means: tuple[MeanBound, ...] = ()
    if searched:
        goal = (delta, confidence)
        bounding = [delayed(_bound)(method, tested, sizes, count, *goal) for method, count in jobs]
        found = list(report.follow(_in_parallel(workers, bounding)))
        epsilons = np.reshape(found, (len(chosen), distinct.size))
        means = tuple(
            _mean_bound(method, row[inverse], true_epsilon)
            for method, row in zip(chosen, epsilons, strict=True)
        )
    return Calibration(
        mechanism=str(mechanism),
        independent=mechanism.independent,
        claim=str(tested),
        n=sizes.n,
        released=sizes.released,
        repetitions=repetitions,
        seed=seed,
        delta=delta,
        confidence=confidence,
        true_epsilon=true_epsilon,
        rejections=rejections,
        bounds=means,
    )


def _mean_bound(method: Method, epsilons: FloatArray, true_epsilon: float) -> MeanBound:
    with np.errstate(invalid="ignore"):  # the spread around an infinite mean
        mean, spread = float(epsilons.mean()), float(epsilons.std())
    return MeanBound(method.name, mean, spread, float(np.mean(epsilons > true_epsilon)))


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


def _errors(
    mechanism: Mechanism, sizes: Evidence, runs: int, stream: np.random.SeedSequence
) -> NDArray[np.int64]:
    rng = np.random.default_rng(stream)
    audits = mechanism.play(sizes.n, sizes.released, rng, runs)
    return np.array([evidence.errors for evidence in audits])


def _p_value(method: Method, claim: TradeOff, sizes: Evidence, errors: int) -> float:
    return p_value(Evidence(sizes.n, sizes.released, errors), claim, method=method)


def _bound(
    method: Method, claim: TradeOff, sizes: Evidence, errors: int, delta: float, confidence: float
) -> float:
    """The ε of the bound; ∞ where the whole family is rejected, which is above every truth."""
    evidence = Evidence(sizes.n, sizes.released, errors)
    bound: Bound = lower_bound(
        evidence, claim.own_family(), delta=delta, confidence=confidence, method=method
    )
    return np.inf if bound.epsilon is None else bound.epsilon

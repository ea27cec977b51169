"""Several runs, independent of each other: any dependence inside a run, none between runs.

For a method that holds under any dependence let F(u) be its p-value at u errors. The errors K of a run are
then stochastically at least K*, which has the distribution function F. Runs are independent, so ΣK is at
least ΣK*, and Pr[ΣK* ≤ U], a convolution, is a p-value. For every λ ≥ 0, e^(λU)·Π max E[e^(-λK)] is an upper
bound on the same probability, so that the smaller of the two is a p-value too (docs/few-runs.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.evidence.counts import Evidence, released_of_each, shared_evenly
from tightaudit.methods.any_dependence import QUICK_PROGRAM, AnyDependence
from tightaudit.methods.base import USUAL_LEVEL, Assumptions, Method, in_normal_quantiles
from tightaudit.methods.fdp_recursion import FdpRecursion
from tightaudit.methods.parts.dual_search import AHEAD, last_rejected_by_duals
from tightaudit.methods.parts.error_law import COARSE, FINE, Dual, laplace_dual, solved
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray

Part = tuple[int, int]
"""The canaries of a run and how many of its guesses are released."""
_MOST_WORK = 6000
"""Programs for the distribution function times the size of each, above which they take too long."""
_MOST_NUMBERS = 3
"""Different numbers of guesses released by runs for which programs are solved."""
_RATES = (1e-3, 5.0)
_RATE_PRECISION = 0.05
"""Between which λ is searched for, and how finely, in its logarithm."""


@dataclass(frozen=True)
class BetweenRuns(Method):
    """The errors of several runs together, each run by a method that holds under any dependence.

    >>> import tightaudit as ta
    >>> five = ta.Evidence(n=50_000, released=1000, errors=53, runs=5)
    >>> bound = ta.lower_bound(five, "gaussian", delta=1e-5, method="fdp-recursion")
    >>> bound.method.name, f"{bound.epsilon:.3f}"
    ('between-runs', '3.538')
    """

    inside: FdpRecursion | AnyDependence = field(default_factory=AnyDependence)
    """The method for one run."""
    sizes: tuple[int, ...] = ()
    """The canaries of each run; empty as long as only the number of runs is known."""
    runs: int = 0
    """The number of runs, of the same size, where sizes are still to be fixed."""
    name = "between-runs"
    assumes = Assumptions(independent_outcomes=False)
    resolution = 1e-4
    reference = "Convolution of worst laws, and of their exponential moments; docs/few-runs.md"

    def __post_init__(self) -> None:
        if not self.sizes:
            checks.count("runs", self.runs, minimum=2)

    @property
    def open(self) -> bool:  # type: ignore[override]
        return not self.sizes

    @property
    def label(self) -> str:
        return f"{self.name}, {self.inside.name}"

    @property
    def options(self) -> dict[str, Any]:
        return {"inside": self.inside.name, "sizes": list(self.sizes)}

    def fixed(self, n: int, typical: Claim, level: float = USUAL_LEVEL) -> BetweenRuns:  # noqa: ARG002
        if self.sizes:
            return self
        return replace(self, sizes=shared_evenly(n, self.runs))

    @property
    def independent_runs(self) -> int:
        return len(self.sizes) or self.runs

    @property
    def stand_in(self) -> BetweenRuns:
        return replace(self, inside=FdpRecursion())

    @property
    def quick(self) -> BetweenRuns:
        return self if isinstance(self.inside, FdpRecursion) else self.stand_in

    def most_released(self, n: int) -> int:  # noqa: ARG002
        # With more, programs take too long, and what they gain is worth more than what more guesses do.
        return sum(min(size, QUICK_PROGRAM) for size in self.sizes)

    def remark(self, released: int) -> str | None:
        ways = "the smaller of two bounds was taken, by convolution and by exponential moments"
        if not self._solves(self._parts(released)):
            ways = "by convolution of what fdp-recursion says of each run"
        return f"{len(self.sizes)} runs, any dependence inside of each; {ways}"

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        parts, errors = self._parts(evidence.released), evidence.errors
        found = _convolved(claim, parts, errors)
        if self._solves(parts) and found > 0:
            found = min(found, _Duals.at(claim, parts, errors).p_value(claim))
        return found

    def excess(self, claim: Claim, evidence: Evidence, level: float) -> float:
        """Positive if not rejected; programs are solved only where the recursion leaves it open."""
        parts, errors = self._parts(evidence.released), evidence.errors
        found = _convolved(claim, parts, errors)
        if found > level and self._solves(parts):
            found = min(found, _Duals.at(claim, parts, errors).p_value(claim))
        return in_normal_quantiles(found, level)

    def last_rejected(self, family: Family, evidence: Evidence, level: float) -> float:
        """The largest leak that is rejected, with programs for two or three claims."""
        parts, errors = self._parts(evidence.released), evidence.errors

        def rough(claim: Claim) -> float:
            return in_normal_quantiles(_convolved(claim, parts, errors), level)

        if not self._solves(parts):
            return family.last_rejected(rough)
        leak = 0.0 if rough(family.most_private) > 0 else family.last_rejected(rough, AHEAD)
        if leak == 0 or family.leaking(leak).curve_kinks.size:
            # A dual stands on the kinks of its claim, and says little about one with kinks elsewhere.
            return family.last_rejected(
                lambda claim: self.excess(claim, evidence, level), 10 * self.resolution, rejected=leak
            )
        return last_rejected_by_duals(
            family,
            lambda claim: _Duals.at(claim, parts, errors).p_value,
            rough,
            start=leak,
            level=level,
            resolution=self.resolution,
        )

    def mean_if_independent(self, truth: Claim, n: int, released: int) -> float:  # noqa: ARG002
        parts = self._parts(released)
        return sum(runs * Method.mean_if_independent(self, truth, *part) for part, runs in parts.items())

    def _parts(self, released: int) -> Counter[Part]:
        """How many runs there are of each kind; those that release nothing say nothing."""
        each = released_of_each(self.sizes, released)
        return Counter(part for part in zip(self.sizes, each, strict=True) if part[1])

    def _solves(self, parts: Mapping[Part, int]) -> bool:
        """Whether programs are worth their time: as many times as there are numbers released."""
        limit = QUICK_PROGRAM if len({released for _, released in parts}) <= _MOST_NUMBERS else 0
        return isinstance(self.inside, AnyDependence) and all(
            released <= min(limit, self.inside.largest_program) for _, released in parts
        )


def _convolved(claim: Claim, parts: Mapping[Part, int], errors: int) -> float:
    """Pr[ΣK* ≤ errors], with the distribution functions that the recursion gives."""
    recursion = FdpRecursion()
    return _at_most(
        {part: recursion.distribution(claim, *part, up_to=errors) for part in parts}, parts, errors
    )


def _at_most(laws: Mapping[Part, FloatArray], parts: Mapping[Part, int], errors: int) -> float:
    """The probability that independent counts with these distribution functions add up to at most `errors`.

    >>> _at_most({(9, 1): np.array([0.5, 1.0])}, {(9, 1): 2}, 1)
    0.75
    """
    total = np.ones(1)
    for part, runs in parts.items():
        # What bounds Pr[K ≤ u+1] bounds Pr[K ≤ u].
        law = np.minimum.accumulate(np.clip(laws[part], 0.0, 1.0)[::-1])[::-1]
        masses = np.diff(law, prepend=0.0)
        for _ in range(runs):
            total = np.convolve(total, masses)[: errors + 1]
    return min(1.0, float(total.sum()))


@dataclass(frozen=True)
class _Duals:
    """Solutions of the dual programs of all runs: together they bound the p-value of every claim."""

    parts: Mapping[Part, int]
    errors: int
    laws: Mapping[int, list[Dual]]
    """For each number released, those of Pr[K ≤ u], u = 0, 1, …; past the last one it may be 1."""
    moments: Mapping[int, Dual]
    """For each number released, that of E[e^(-rate·K)]."""
    rate: float

    @classmethod
    def at(cls, claim: Claim, parts: Mapping[Part, int], errors: int) -> _Duals:
        """The best ones for a claim."""
        # A dual is tied to the number released, not to that of canaries: runs of other sizes can use it.
        sizes = {released: max(n for n, each in parts if each == released) for _, released in parts}

        def moments(rate: float, points: int) -> dict[int, Dual]:
            return {released: laplace_dual(claim, n, released, rate, points) for released, n in sizes.items()}

        rate = _best_rate(lambda rate: _log_product(claim, parts, moments(rate, COARSE)), errors)
        laws = {released: _law_duals(claim, n, released, errors) for released, n in sizes.items()}
        return cls(parts, errors, laws, moments(rate, FINE), rate)

    def p_value(self, claim: Claim) -> float:
        laws = {}
        for n, released in self.parts:
            law, duals = np.ones(min(self.errors, released) + 1), self.laws[released]
            law[: len(duals)] = [dual.p_value(claim, n) for dual in duals]
            laws[n, released] = law
        log_bound = self.rate * self.errors + _log_product(claim, self.parts, self.moments)
        return min(_at_most(laws, self.parts, self.errors), math.exp(min(0.0, log_bound)))


def _law_duals(claim: Claim, n: int, released: int, errors: int) -> list[Dual]:
    """For u = 0, 1, … errors, until nothing is left to bound; none where that would take too long."""
    duals: list[Dual] = []
    at_most = FdpRecursion().distribution(claim, n, released, errors)
    if released * int(np.count_nonzero(at_most < 1)) > _MOST_WORK:
        return duals
    for count in range(min(errors, released - 1) + 1):
        duals.append(solved(claim, Evidence(n, released, count), float(at_most[count])))
        if duals[-1].p_value(claim, n) >= 1:
            break
    return duals


def _log_product(claim: Claim, parts: Mapping[Part, int], moments: Mapping[int, Dual]) -> float:
    """The logarithm of the product of what the claim allows E[e^(-rate·K)] to be, run by run."""
    return sum(runs * _log(moments[released].p_value(claim, n)) for (n, released), runs in parts.items())


def _best_rate(log_moments: Callable[[float], float], errors: int) -> float:
    """The λ with the smallest bound, about: any would do."""
    found = minimize_scalar(
        lambda log_rate: math.exp(log_rate) * errors + log_moments(math.exp(log_rate)),
        bounds=(math.log(_RATES[0]), math.log(_RATES[1])),
        method="bounded",
        options={"xatol": _RATE_PRECISION},
    )
    return math.exp(float(found.x))


def _log(moment: float) -> float:
    return math.log(min(max(moment, np.finfo(float).tiny), 1.0))

"""What every method is, and the test it becomes once its options are fixed: a statistic and its tail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, ClassVar, TypeAlias

from scipy.special import ndtri

from tightaudit.claims.base import Claim
from tightaudit.claims.family import RESOLUTION, Family
from tightaudit.claims.text import as_claim
from tightaudit.evidence.counts import Evidence, WeightedCount
from tightaudit.support.errors import InputError
from tightaudit.support.registry import Registry

AnyEvidence: TypeAlias = Evidence | WeightedCount
"""Counts of errors, or a weighted number of them: which one is a method's own business."""

USUAL_LEVEL = 0.05
"""What options are fixed for where nobody has named a level."""


@dataclass(frozen=True)
class Assumptions:
    """The beliefs a p-value rests on, beyond the claim itself."""

    independent_outcomes: bool
    """Whether each canary's outcome must depend only on its own bit and its own noise."""
    claims: str = "every trade-off function"
    """Which claims the method covers."""
    evidence: str = "any number of guesses released"
    """What the evidence has to be like."""
    caveat: str | None = None
    """Where the method is known to reject true claims too often although its assumptions hold."""


class Method(ABC):
    """How likely are so few errors if the claim holds? One answer per method.

    A method that counts the errors among the released guesses has a name, what it assumes, a reference and
    `p_value`, and nothing else has to be said. One with another statistic, or with options that are better
    fixed for each n, says so by the methods below.

    >>> import tightaudit as ta
    >>> ta.Exact().assumes.independent_outcomes
    True
    """

    name: ClassVar[str]
    assumes: ClassVar[Assumptions]
    reference: ClassVar[str]
    resolution: ClassVar[float] = RESOLUTION
    """How finely a family's parameter is worth searching, relative to itself."""
    releases_all: ClassVar[bool] = False
    """Whether the method needs every guess released."""
    open: bool = False
    """Whether options are still to be fixed."""
    holds_as_law: ClassVar[bool] = False
    """Whether its p-values, of all counts, are a distribution function that holds under any dependence."""
    weighted: ClassVar[bool] = False
    """Whether its statistic is another number than that of the errors among the released."""

    @abstractmethod
    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        """Probability, under the claim, of at most the errors seen (or an upper bound on it)."""

    def excess(self, claim: Claim, evidence: Evidence, level: float) -> float:
        """How far the p-value is above the level: not positive means rejected.

        In normal quantiles, where it is nearly linear in a family's parameter. A method that can decide
        at one level faster than it finds its p-value may return any number of the right sign.
        """
        return in_normal_quantiles(self.p_value(claim, evidence), level)

    def last_rejected(self, family: Family, evidence: Evidence, level: float) -> float:
        """The largest leak among a family that is rejected, where both kinds are among its limits."""
        return family.last_rejected(lambda claim: self.excess(claim, evidence, level), self.resolution)

    def fixed(self, n: int, typical: Claim, level: float = USUAL_LEVEL) -> Method:  # noqa: ARG002
        """The method with every option fixed, for n guesses about a mechanism like the typical claim.

        With options that it fixes itself it can reject the typical claim at the level, if any can.
        """
        return self

    @property
    def stand_in(self) -> Method:
        """A quick method with the same beliefs, to compare numbers of released guesses with."""
        return as_method("exact" if self.assumes.independent_outcomes else "fdp-recursion")

    @property
    def quick(self) -> Method:
        """The method where many bounds are wanted at once: itself, unless it takes seconds."""
        return self

    def most_released(self, n: int) -> int:
        """The largest number to release that is worth considering."""
        return n

    def statistic(self, evidence: AnyEvidence) -> int:
        """What the p-value grows with: the number of errors."""
        if not isinstance(evidence, Evidence):
            raise InputError("evidence", evidence, f"released guesses and errors for method {self.name}")
        return evidence.errors

    def evidence(self, n: int, released: int, statistic: int) -> Any:
        """Evidence with this statistic, as `p_value` takes it."""
        return Evidence(n, released, statistic)

    def weighted_strata(self, released: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The statistic as a weighted count: sizes of strata of ranks, best first, and their weights."""
        return (released,), (1,)

    @property
    def law(self) -> Method:
        """The method whose p-value is the exact law of the statistic, for independent outcomes."""
        return as_method("exact")

    def mean_if_independent(self, truth: Claim, n: int, released: int) -> float:
        """The statistic to expect from them."""
        from tightaudit.methods.exact import expected_errors

        return expected_errors(truth, n=n, released=released)

    def between_runs(self, runs: tuple[int, ...]) -> Method:  # noqa: ARG002
        """The method for several runs of these sizes that are independent of each other."""
        expected = "fdp-recursion or any-dependence; if outcomes are independent, rank all runs together"
        raise InputError("method", self.name, f"one for several runs: {expected}")

    def remark(self, released: int) -> str | None:  # noqa: ARG002
        """What a reader of the result should know about how it was computed for this number released."""
        return None

    @property
    def independent_runs(self) -> int:
        """How many runs must be independent of each other; 1 for a method that knows of one run only."""
        return 1

    @property
    def label(self) -> str:
        """Its name, with what tells it from other methods of the same name."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """The method's options by name."""
        return asdict(self) if is_dataclass(self) else {}


@dataclass(frozen=True)
class Test:
    """A method whose options are fixed, for n guesses of which some are released: a statistic and its tail.

    >>> import tightaudit as ta
    >>> test = Test(ta.Exact(), n=1000, released=200)
    >>> round(test.p_value(ta.Gaussian(1.0), 15), 6)
    0.009153
    """

    __test__ = False  # pytest takes classes of this name for its own

    method: Method
    n: int
    released: int

    @classmethod
    def of(
        cls,
        method: str | Method,
        evidence: AnyEvidence,
        typical: Callable[[], Claim],
        level: float = USUAL_LEVEL,
    ) -> Test:
        """The test for evidence at hand, options fixed for a typical claim, which is asked for if needed."""
        if not isinstance(evidence, AnyEvidence):
            raise InputError("evidence", evidence, "what ta.release returns, or ta.Evidence from counts")
        chosen = as_method(method)
        if isinstance(evidence, Evidence) and evidence.sizes:
            chosen = chosen.between_runs(evidence.sizes)
        fixed = chosen.fixed(evidence.n, typical(), level) if chosen.open else chosen
        return cls(fixed, evidence.n, evidence.released if isinstance(evidence, Evidence) else evidence.n)

    def statistic(self, evidence: AnyEvidence) -> int:
        """What the evidence comes to."""
        return self.method.statistic(evidence)

    def p_value(self, claim: Claim, statistic: int) -> float:
        """The probability of at most this statistic under the claim."""
        return self.method.p_value(claim, self.evidence(statistic))

    def excess(self, claim: Claim, statistic: int, level: float) -> float:
        """How far the p-value is above the level; not positive means rejected."""
        return self.method.excess(claim, self.evidence(statistic), level)

    def last_rejected(self, family: Family, statistic: int, level: float) -> float:
        """The largest leak among a family that is rejected."""
        return self.method.last_rejected(family, self.evidence(statistic), level)

    def evidence(self, statistic: int) -> Any:
        """Evidence with this statistic."""
        return self.method.evidence(self.n, self.released, statistic)

    def probability_if_independent(self, truth: Claim, statistic: int) -> float:
        """The exact probability of at most this statistic from independent channels of a mechanism."""
        return self.method.law.p_value(truth, self.evidence(statistic))

    def mean_if_independent(self, truth: Claim) -> float:
        """The statistic to expect from them."""
        return self.method.mean_if_independent(truth, self.n, self.released)

    @property
    def strata(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The statistic as a weighted count: sizes of strata of ranks, best first, and their weights."""
        return self.method.weighted_strata(self.released)

    @property
    def largest(self) -> int:
        """The statistic if every guess is wrong."""
        return sum(size * weight for size, weight in zip(*self.strata, strict=True))

    @property
    def remark(self) -> str | None:
        """What a reader should know about how p-values are computed, if anything."""
        return self.method.remark(self.released)

    def counts(self, evidence: AnyEvidence) -> dict[str, int | None]:
        """The numbers that a result rests on, for people and for JSON; None where there is none."""
        return {
            "n": self.n,
            "released": evidence.released if isinstance(evidence, Evidence) else None,
            "errors": evidence.errors if isinstance(evidence, Evidence) else None,
            "statistic": self.statistic(evidence) if self.method.weighted else None,
        }


def in_normal_quantiles(p: float, level: float) -> float:
    """How far a p-value is above a level, on the scale where tails of sums are straight lines.

    >>> in_normal_quantiles(0.05, 0.05)
    0.0
    """
    return float(ndtri(p) - ndtri(level))


METHODS: Registry[type[Method]] = Registry(
    "method", folder="tightaudit.methods", plugins="tightaudit.methods"
)


def as_method(given: str | Method) -> Method:
    """A method as it is, or by name with its default options.

    >>> as_method("exact").name
    'exact'
    """
    if isinstance(given, Method):
        return given
    if not isinstance(given, str):
        raise InputError("method", given, "a name or a configured method")
    return METHODS[given]()


def p_value(evidence: AnyEvidence, claim: Claim | str, *, method: str | Method = "exact") -> float:
    """The probability of so few errors under the claim, by the chosen method.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=15)
    >>> round(ta.p_value(evidence, "gaussian(mu=1)"), 6)
    0.009153
    """
    tested = as_claim(claim)
    test = Test.of(method, evidence, lambda: tested)
    return test.p_value(tested, test.statistic(evidence))

"""What every p-value method is: a configured, frozen object that says what it assumes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

from scipy.special import ndtri

from tightaudit.errors import InputError
from tightaudit.game import Evidence, WeightedCount
from tightaudit.registry import Registry
from tightaudit.tradeoffs.base import TradeOff


@dataclass(frozen=True)
class Assumptions:
    """The beliefs a p-value rests on, beyond the claim itself."""

    independent_outcomes: bool
    """Whether each canary's outcome must depend on its own bit and its own noise alone."""
    claims: str
    """Which claims the method covers."""
    evidence: str
    """What the evidence has to be like."""
    caveat: str | None = None
    """Where the method is known to reject true claims too often although its assumptions hold."""


class Method(ABC):
    """How likely are so few errors if the claim holds? One answer per method.

    >>> import tightaudit as ta
    >>> ta.Exact().assumes.independent_outcomes
    True
    """

    name: ClassVar[str]
    assumes: ClassVar[Assumptions]
    reference: ClassVar[str]
    resolution: ClassVar[float] = 1e-8
    """How finely a family's parameter is worth searching, relative to itself."""
    takes: ClassVar[tuple[type, ...]] = (Evidence,)
    """The kinds of evidence it can use."""
    releases_all: ClassVar[bool] = False
    """Whether the method needs every guess released."""

    @abstractmethod
    def p_value(self, claim: TradeOff, evidence: Evidence) -> float:
        """Probability, under the claim, of at most the errors seen (or an upper bound on it)."""

    def excess(self, claim: TradeOff, evidence: Evidence, level: float) -> float:
        """How far the p-value is above the level: not positive means rejected.

        In normal quantiles, where it is nearly linear in a family's parameter. A method that can decide
        at one level faster than it finds its p-value may return any number of the right sign.
        """
        return in_normal_quantiles(self.p_value(claim, evidence), level)

    plans: ClassVar[bool] = False
    """Whether options that were left open are planned from n and a typical claim before a search."""

    def planned(self, n: int, typical: TradeOff) -> Method:  # noqa: ARG002
        """The method with every option fixed, for a mechanism thought to be like the typical claim."""
        return self

    def reduced(self, evidence: Evidence) -> Evidence | WeightedCount:
        """What of the evidence the p-value depends on."""
        return Evidence(evidence.n, evidence.released, evidence.errors)

    def remark(self, evidence: Evidence) -> str | None:  # noqa: ARG002
        """What a reader of the result should know about how it was computed for evidence of this size."""
        return None


def in_normal_quantiles(p: float, level: float) -> float:
    """How far a p-value is above a level, on the scale where tails of sums are straight lines.

    >>> in_normal_quantiles(0.05, 0.05)
    0.0
    """
    return float(ndtri(p) - ndtri(level))


METHODS: Registry[type[Method]] = Registry("method", plugins="tightaudit.methods")


def resolve(method: str | Method) -> Method:
    """A method by name with its default options, or a configured one as it is.

    >>> resolve("exact").name
    'exact'
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise InputError("method", method, "a name or a configured method")
    return METHODS[method]()


def p_value(evidence: Evidence | WeightedCount, claim: TradeOff, *, method: str | Method = "exact") -> float:
    """The probability of so few errors under the claim, by the chosen method.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=15)
    >>> round(ta.p_value(evidence, ta.Gaussian(1.0)), 6)
    0.009153
    """
    chosen = resolve(method)
    require_evidence(chosen, evidence)
    if not isinstance(claim, TradeOff):
        raise InputError("claim", claim, "a claim with all its parameters, such as Gaussian(1.0)")
    return chosen.planned(evidence.n, claim).p_value(claim, cast("Evidence", evidence))


def require_evidence(method: Method, evidence: object) -> None:
    """Refuse evidence of a kind the method cannot use."""
    if not isinstance(evidence, method.takes):
        kinds = " or ".join(kind.__name__ for kind in method.takes)
        raise InputError("evidence", evidence, f"evidence of the kind {kinds} for method {method.name}")

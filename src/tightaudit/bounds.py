"""From p-values to a lower bound: the least private claim of a family that the evidence rejects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from tightaudit import checks
from tightaudit.errors import InputError
from tightaudit.game import Evidence, WeightedCount
from tightaudit.planning import typical_claim
from tightaudit.pvalues.base import Method, require_evidence, resolve
from tightaudit.search import Status, search
from tightaudit.tradeoffs.base import Family, TradeOff


@dataclass(frozen=True)
class Bound:
    """A lower bound on ε at δ, with what it rests on.

    `bounded`: every claim of the family up to `parameter` is rejected, so ε is at least `epsilon`.
    `none-rejected`: not even the most private claim is, and the bound is 0.
    `all-rejected`: the errors are too few for every member of the family. There is no bound to name;
    the family does not describe the mechanism.
    """

    epsilon: float | None
    parameter: float | None
    status: Status
    delta: float
    confidence: float
    family: Family
    method: Method
    evidence: Evidence | WeightedCount

    def __str__(self) -> str:
        """One sentence that can be quoted, beliefs included.

        >>> import tightaudit as ta
        >>> evidence = ta.Evidence(n=10_000, released=2_000, errors=250)
        >>> bound = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5)
        >>> print(bound)  # doctest: +NORMALIZE_WHITESPACE
        ε ≥ 4.239 at δ=1e-05 with 95% confidence
        (exact; if outcomes are independent and the privacy curve is of the family gaussian)
        """
        sure = f"{100 * self.confidence:.10g}% confidence"
        if self.status == "none-rejected":
            return f"no lower bound at δ={self.delta:g}: nothing is rejected with {sure} ({self.beliefs})"
        if self.status == "all-rejected":
            return (
                f"every claim of the family {self.family} is rejected with {sure} ({self.beliefs}): "
                "the family does not describe this mechanism"
            )
        return f"ε ≥ {rounded_down(self.epsilon or 0.0)} at δ={self.delta:g} with {sure} ({self.beliefs})"

    @property
    def rejected(self) -> TradeOff | None:
        """The least private claim of the family that is rejected; None if there is none to name."""
        if self.status != "bounded":
            return None
        return self.family.most_private if not self.parameter else self.family.member(self.parameter)

    @property
    def remark(self) -> str | None:
        """What a reader should know about how the bound was computed, if anything."""
        return self.method.remark(self.evidence) if isinstance(self.evidence, Evidence) else None

    @property
    def beliefs(self) -> str:
        """The method, and what has to be believed for the bound to hold."""
        believed = []
        if self.method.assumes.independent_outcomes:
            believed.append("outcomes are independent")
        if self.family.delta is None:
            believed.append(f"the privacy curve is of the family {self.family}")
        return f"{self.method.name}; if {' and '.join(believed)}" if believed else self.method.name


def rounded_down(epsilon: float) -> str:
    """A lower bound to three decimals, which must not gain from being printed.

    >>> rounded_down(4.2399)
    '4.239'
    """
    return f"{math.floor(epsilon * 1000) / 1000:.3f}"


def lower_bound(
    evidence: Evidence | WeightedCount,
    family: Family,
    *,
    delta: float,
    confidence: float = 0.95,
    method: str | Method = "exact",
) -> Bound:
    """The largest ε at δ that the evidence rules out staying below, with the given confidence.

    Searches the family for the least private claim whose p-value is at most 1 - confidence, and returns
    that rejected claim's ε, never a value on the other side of the line.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=25)
    >>> bound = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5)
    >>> round(bound.epsilon, 4), round(bound.parameter, 4), bound.status
    (3.6458, 0.8532, 'bounded')
    """
    if not isinstance(family, Family):
        expected = "a family, such as Gaussian.family(): a claim with one parameter left out"
        raise InputError("family", str(family), expected)
    delta = checks.probability("delta", delta)
    confidence = checks.confidence(confidence)
    chosen = resolve(method)
    if family.delta is not None and family.delta != delta:
        raise InputError("delta", delta, f"the δ of the family {family}")
    if family.delta is None and math.isinf(family.leaking(min(1.0, family.upper)).epsilon(delta)):
        raise InputError(
            "delta", delta, f"a δ at which claims of the family {family} have a finite ε, or another family"
        )
    require_evidence(chosen, evidence)
    if chosen.plans:
        chosen = chosen.planned(evidence.n, typical_claim(None, family, delta))
    level = 1 - confidence

    def excess(claim: TradeOff) -> float:
        return chosen.excess(claim, cast("Evidence", evidence), level)

    found = search(family, excess, delta=delta, resolution=chosen.resolution)
    return Bound(found.epsilon, found.parameter, found.status, delta, confidence, family, chosen, evidence)

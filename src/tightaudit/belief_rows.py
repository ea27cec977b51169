"""The rows of the table of beliefs: method, number released and claim tested, before any error is seen.

Two beliefs can be held or not: that canaries' outcomes are independent, and that the privacy curve has the
shape of a family. Each combination is one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightaudit import checks
from tightaudit.bounds import Bound, lower_bound, rounded_down
from tightaudit.checks import FloatArray
from tightaudit.game import Evidence, Guessing, WeightedCount
from tightaudit.planning import member_at, typical_claim
from tightaudit.pvalues.any_dependence import AnyDependence
from tightaudit.pvalues.base import Method, p_value, resolve
from tightaudit.pvalues.exact import Exact
from tightaudit.pvalues.rank_weighted import RankWeighted
from tightaudit.releases import ReleaseRule
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.gaussian import Gaussian

UNCONDITIONAL = "whatever the dependence between canaries and the shape of the curve"
LARGEST_PROGRAM, LARGEST_PROGRAM_OF_BEST = 1000, 400
"""Released guesses up to which the linear program is worth its seconds; several counts share them."""


@dataclass(frozen=True)
class Row:
    """One combination of beliefs, and what follows from it."""

    independent: bool
    """Whether the row believes that outcomes are independent."""
    shape: Family | None
    """The family the privacy curve is believed to be of; None if no shape is assumed."""
    bound: Bound
    evidence: Evidence
    """The evidence with the number released that the bound is from."""
    counts: tuple[int, ...]
    """The numbers of released guesses that were tried; the bound is that of one of them."""
    confidence: float
    cost: float | None
    """By how much trying several counts lowered ε at the one chosen; None if one was tried."""
    tested: TradeOff | None
    """The claim as this row tests it."""
    p_value: float | None

    @property
    def method(self) -> Method:
        """The method of the row."""
        return self.bound.method

    @property
    def rejected(self) -> bool | None:
        """Whether the claim is rejected; None without a claim."""
        return None if self.p_value is None else self.p_value <= 1 - self.confidence

    @property
    def beliefs(self) -> str:
        """What has to be believed, in words.

        >>> import tightaudit as ta
        >>> report = ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5)
        >>> [row.beliefs for row in report.rows][1:]
        ['outcomes are independent', 'the privacy curve is of the family gaussian', 'nothing']
        """
        believed = []
        if self.independent:
            believed.append("outcomes are independent")
        if self.shape is not None:
            believed.append(f"the privacy curve is of the family {self.shape}")
        return " and ".join(believed) or "nothing"

    @property
    def condition(self) -> str:
        """The beliefs as the end of a sentence."""
        return UNCONDITIONAL if self.beliefs == "nothing" else f"if {self.beliefs}"

    @property
    def finding(self) -> str:
        """The bound in one sentence."""
        sure = f"with {100 * self.confidence:.10g}% confidence"
        if self.bound.status == "none-rejected":
            return f"No lower bound at δ = {self.bound.delta:g} {sure}: nothing is rejected."
        if self.bound.epsilon is None:
            return f"Every claim of the family {self.bound.family} is rejected {sure}, {self.condition}."
        epsilon = rounded_down(self.bound.epsilon)
        return f"ε ≥ {epsilon} at δ = {self.bound.delta:g} {sure}, {self.condition}."


@dataclass(frozen=True)
class RowPlan:
    """All of a row that is fixed before the errors are looked at."""

    method: Method
    shape: Family | None
    family: Family
    """The family searched for the bound: the shape, or (ε, δ)-DP."""
    counts: tuple[int, ...]
    tested: TradeOff | None
    delta: float
    confidence: float

    def row(self, evidence: Evidence) -> Row:
        """The row that follows from the errors."""
        tries = [evidence.release(count) for count in self.counts]
        bounds = [self.bound(released, self.corrected_confidence) for released in tries]
        best, chosen = max(zip(bounds, tries, strict=True), key=lambda found: _size(found[0]))
        cost = None
        if len(tries) > 1 and best.epsilon is not None:
            alone = self.bound(chosen, self.confidence).epsilon
            cost = None if alone is None else alone - best.epsilon
        p = None
        if self.tested is not None:
            each = [p_value(released, self.tested, method=self.method) for released in tries]
            p = float(self.corrected(np.array(each)))
        independent = self.method.assumes.independent_outcomes
        return Row(independent, self.shape, best, chosen, self.counts, self.confidence, cost, self.tested, p)

    def bound(self, evidence: Evidence | WeightedCount, confidence: float) -> Bound:
        """The bound in the row's family by its method."""
        return lower_bound(evidence, self.family, delta=self.delta, confidence=confidence, method=self.method)

    @property
    def corrected_confidence(self) -> float:
        """The confidence each count is tested with, so that the best of them has the row's."""
        return 1 - self.share(1 - self.confidence)

    def share(self, level: float) -> float:
        """The level at which each count may reject, so that the best of them keeps the whole (Bonferroni)."""
        return level / len(self.counts)

    @staticmethod
    def corrected(p_values: FloatArray) -> FloatArray:
        """One p-value for the best of several, down the first axis.

        >>> float(RowPlan.corrected(np.array([0.5, 0.02])))
        0.04
        """
        return np.minimum(1.0, len(p_values) * np.min(p_values, axis=0))


def plan_rows(
    n: int,
    *,
    claim: TradeOff | None,
    null: Family | None,
    delta: float,
    confidence: float,
    release: ReleaseRule,
    method: str | Method | None = None,
    guessing: Guessing | None = None,
) -> list[RowPlan]:
    """The rows of the table, strongest belief first.

    >>> import tightaudit as ta
    >>> rows = plan_rows(
    ...     10_000, claim=ta.Gaussian(1.0), null=None, delta=1e-5, confidence=0.95, release=ReleaseRule()
    ... )
    >>> [(row.method.name, row.counts) for row in rows][:2]
    [('rank-weighted', (10000,)), ('exact', (200,))]
    """
    shape = _shape(claim, null)
    typical = typical_claim(claim, shape, delta)
    plans = []
    for independent in (True, False) if method is None else (None,):
        for believed in (shape, None) if shape is not None else (None,):
            chosen = (
                resolve(method)
                if method is not None
                else _method(independent, believed, release, typical, guessing)
            )
            chosen = chosen.planned(n, typical)
            family = believed or ApproxDP.family(delta=delta)
            counts = release.counts(n, chosen, family, typical, 1 - confidence, guessing)
            tested = _tested(claim, believed, delta)
            plans.append(RowPlan(chosen, believed, family, counts, tested, delta, confidence))
    return plans


def _method(
    independent: bool | None,
    shape: Family | None,
    release: ReleaseRule,
    typical: TradeOff,
    guessing: Guessing | None,
) -> Method:
    """The best method for a row's beliefs.

    With a shape to plan for, weighting all guesses by rank beats counting the errors of some, if ranks are
    in order of confidence: two-sided guessing gets that wrong for a claim whose directions differ, and
    one-sided guessing always. Without a shape the count is as good: against (ε, δ)-DP every guess is alike.
    Who fixes the number released gets it.
    """
    if not independent:
        best = release.chosen == "best"
        return AnyDependence(largest_program=LARGEST_PROGRAM_OF_BEST if best else LARGEST_PROGRAM)
    ordered = guessing == "threshold" or (guessing in (None, "two-sided") and _symmetric(typical))
    weighted = shape is not None and isinstance(release.chosen, str) and ordered
    return RankWeighted() if weighted else Exact()


def _symmetric(claim: TradeOff) -> bool:
    alpha = np.linspace(0, 1, 33)
    return bool(np.allclose(claim.f(alpha), claim.inverse(alpha), rtol=0, atol=1e-6))


def _size(bound: Bound) -> float:
    return math.inf if bound.epsilon is None else bound.epsilon


def _shape(claim: TradeOff | None, null: Family | None) -> Family | None:
    """The family of the rows that believe in a shape; None for an (ε, δ) claim or family."""
    if null is not None:
        return null if null.delta is None else None
    if isinstance(claim, ApproxDP):
        return None
    if claim is not None and claim.parameter_names:
        return claim.own_family()
    return Gaussian.family()


def _tested(claim: TradeOff | None, shape: Family | None, delta: float) -> TradeOff | None:
    """The claim as a row tests it: itself, or what it says about a curve of the row's shape or of none."""
    if claim is None:
        return None
    if shape is not None:
        return member_at(shape, claim.claimed_epsilon, delta) if isinstance(claim, ApproxDP) else claim
    if isinstance(claim, ApproxDP):
        return claim
    epsilon = claim.epsilon(delta)
    # A claim that allows more than can be tested cannot be rejected; revealing everything never is.
    return ApproxDP(epsilon, delta) if epsilon <= checks.LARGEST_EPSILON else ApproxDP(0.0, 1.0)

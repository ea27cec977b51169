"""The rows of the table of beliefs: test, number released and claim tested, before any error is seen.

Of outcomes it can be believed that they are independent; if there are several runs, that those are, with
any dependence inside a run; or nothing. Of the privacy curve, that it is in a family, or nothing. Each
combination is one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tightaudit.auditing.question import Question
from tightaudit.bounds.beliefs import Beliefs
from tightaudit.bounds.one_run import Bound, search
from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.parts.typical import as_seen_by
from tightaudit.evidence.counts import Evidence, Rule
from tightaudit.methods.any_dependence import QUICK_PROGRAM, AnyDependence
from tightaudit.methods.base import AnyEvidence, Method, Test, as_method
from tightaudit.methods.between_runs import BetweenRuns
from tightaudit.methods.exact import Exact
from tightaudit.methods.rank_weighted import RankWeighted
from tightaudit.planning.release import Release, Setting


@dataclass(frozen=True)
class Row:
    """One combination of beliefs, and what follows from it."""

    bound: Bound
    evidence: Evidence
    """The evidence with the number released that the bound is from."""
    counts: tuple[int, ...]
    """The numbers of released guesses that were tried; the bound is that of one of them."""
    confidence: float
    cost: float | None
    """By how much trying several counts lowered ε at the one chosen; None if one was tried."""
    tested: Claim | None
    """The claim as this row tests it."""
    tests_claim_itself: bool
    """Whether that is the claim itself, and not what it says about another curve."""
    p_value: float | None

    @property
    def beliefs(self) -> Beliefs:
        """What has to be believed for the row to hold."""
        return self.bound.beliefs

    @property
    def epsilon(self) -> float | None:
        """The lower bound on ε; None if the whole family is rejected."""
        return self.bound.epsilon

    @property
    def method(self) -> Method:
        """The method of the row."""
        return self.bound.method

    @property
    def rejected(self) -> bool | None:
        """Whether the claim is rejected; None without a claim."""
        return None if self.p_value is None else self.p_value <= 1 - self.confidence


@dataclass(frozen=True)
class RowTest:
    """All of a row that is fixed before anyone looks at the errors."""

    tests: tuple[Test, ...]
    """One for each number of released guesses to try."""
    family: Family
    """The family searched for the bound: the one believed in, or (ε, δ)-DP."""
    claim: Claim | None
    """The claim as the row tests it."""
    tests_claim_itself: bool
    delta: float
    confidence: float

    @property
    def method(self) -> Method:
        """The method, its options fixed."""
        return self.tests[0].method

    @property
    def beliefs(self) -> Beliefs:
        """What the row believes."""
        return Beliefs.of(self.method, self.family)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of released guesses to try."""
        return tuple(test.released for test in self.tests)

    def row(self, evidence: Evidence) -> Row:
        """The row that follows from the errors."""
        tries = [evidence.top(count) for count in self.counts]
        bounds = [
            self.bound(test, tried, self.shared_confidence)
            for test, tried in zip(self.tests, tries, strict=True)
        ]
        best = max(bounds, key=lambda bound: bound.size)
        cost = None
        if len(tries) > 1 and best.epsilon is not None:
            alone = self.bound(best.test, best.evidence, self.confidence).epsilon
            cost = None if alone is None else alone - best.epsilon
        p = None
        if self.claim is not None:
            each = (
                test.p_value(self.claim, test.statistic(tried))
                for test, tried in zip(self.tests, tries, strict=True)
            )
            # One p-value for the best of several (Bonferroni).
            p = min(1.0, len(tries) * min(each))
        return Row(
            bound=best,
            evidence=tries[bounds.index(best)],
            counts=self.counts,
            confidence=self.confidence,
            cost=cost,
            tested=self.claim,
            tests_claim_itself=self.tests_claim_itself,
            p_value=p,
        )

    def bound(self, test: Test, evidence: AnyEvidence, confidence: float) -> Bound:
        """The bound in the row's family by one of its tests."""
        return search(test, evidence, self.family, self.delta, confidence)

    @property
    def shared_confidence(self) -> float:
        """The confidence each count is tested with, so that the best of them has the row's."""
        return 1 - self.share(1 - self.confidence)

    def share(self, level: float) -> float:
        """The level at which each count may reject, so that the best of them keeps the whole (Bonferroni)."""
        return level / len(self.tests)


def table_of_beliefs(
    question: Question,
    n: int,
    release: Release,
    *,
    method: str | Method | None = None,
    rule: Rule = "two-sided",
) -> list[RowTest]:
    """The rows of the table for n canaries, strongest belief first; `method` replaces theirs.

    >>> import tightaudit as ta
    >>> from tightaudit.planning.release import Planned
    >>> rows = table_of_beliefs(Question.of(claim="gaussian(mu=1)", delta=1e-5), 10_000, Planned())
    >>> [(row.method.name, row.counts) for row in rows][:2]
    [('rank-weighted', (10000,)), ('exact', (200,))]
    """
    kinds = kinds_of_rows(question, release, method=method, rule=rule)
    return [row_test(question, chosen, family, release, n, rule) for chosen, family in kinds]


def kinds_of_rows(
    question: Question,
    release: Release,
    *,
    method: str | Method | None = None,
    rule: Rule = "two-sided",
    planned_runs: Sequence[int] = (),
) -> list[tuple[Method, Family | None]]:
    """The method of each row, its options still open, and the family that it believes in.

    Before there are runs, `planned_runs` has the numbers of them to be considered.
    """
    families: tuple[Family | None, ...] = (question.family, None)
    if question.family is None:
        families = (None,)
    elif question.family.besides is not None:
        # (ε, δ)-DP of the whole says nothing about a part of it.
        families = (question.family,)
    if method is not None:
        given = as_method(method)
        pooled = question.runs and given.holds_as_law
        named = [given.between_runs(question.runs), given] if pooled else [given]
        return [(each, family) for each in named for family in families]
    dependent = AnyDependence(QUICK_PROGRAM) if release.tries_several else AnyDependence()
    apart = [BetweenRuns(dependent, runs=number) for number in planned_runs]
    if question.runs:
        apart = [BetweenRuns(dependent, question.runs)]
    independent = [(_independent(family, release, question.typical, rule), family) for family in families]
    return independent + [(each, family) for each in (*apart, dependent) for family in families]


def row_test(
    question: Question,
    method: Method,
    believed: Family | None,
    release: Release,
    n: int,
    rule: Rule = "two-sided",
) -> RowTest:
    """One row: its method's options fixed, the number to release decided."""
    fixed = method.fixed(n, question.typical, question.level)
    family = believed or ApproxDP.family(delta=question.delta)
    asked = question.claim
    tested = None if asked is None else as_seen_by(family, asked, question.delta)
    itself = asked is not None and (tested is asked if family.assumes_shape else asked.point is not None)
    decides = (tested, question.delta) if itself and tested is not None else None
    setting = Setting(n, fixed, family, question.typical, question.level, rule, decides)
    counts = release.counts_for(setting)
    return RowTest(
        tests=tuple(Test(fixed, n, count) for count in counts),
        family=family,
        claim=tested,
        tests_claim_itself=itself,
        delta=question.delta,
        confidence=question.confidence,
    )


def _independent(family: Family | None, release: Release, typical: Claim, rule: Rule) -> Method:
    """The best method for a row that believes in independent outcomes.

    With a family to plan for, weighting all guesses by rank beats counting the errors of some, if ranks are
    in order of confidence: two-sided guessing gets that wrong for a claim whose directions differ, and
    one-sided guessing always. Without one the count is as good: against (ε, δ)-DP every guess is alike.
    Who fixes the number released gets it.
    """
    ordered = rule == "threshold" or (rule == "two-sided" and typical.symmetric)
    return RankWeighted() if family is not None and release.open and ordered else Exact()

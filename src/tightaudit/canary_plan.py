"""How many canaries an audit needs, before a run is spent on it.

For each row of the table of beliefs: the law of the count, if the mechanism is what it is thought to be, is
exact, and the bound falls with the count. So the spread of the bound is that of the count, and power is the
probability of a count at most the critical one. Only the number of canaries is searched for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal, TypeAlias

from scipy.special import ndtri

from tightaudit import checks
from tightaudit.belief_rows import RowPlan, plan_rows
from tightaudit.errors import InputError
from tightaudit.game import Evidence, WeightedCount
from tightaudit.outcomes import Outcomes
from tightaudit.planning import member_at, typical_claim
from tightaudit.progress import Progress
from tightaudit.pvalues.any_dependence import AnyDependence
from tightaudit.pvalues.base import Method
from tightaudit.pvalues.fdp_recursion import FdpRecursion
from tightaudit.releases import ReleaseRule
from tightaudit.tradeoffs.base import Family, TradeOff

FEWEST, MOST = 50, 10**8
"""Canaries between which a plan looks; a bound that needs more is called out of reach."""
_PRECISION = 1.04
_LOW, _HIGH = 0.1, 0.9
Care: TypeAlias = Literal["roughly", "closely", "on average"]
"""How carefully a bound is forecast: its median without linear programs, its median, its mean."""


@dataclass(frozen=True)
class Goal:
    """What the auditor wants: to certify a share of ε, or to catch a mechanism that leaks more than it says.

    `share`: the mean bound is to reach this share of the true ε. `leak` and `power`: if ε is `leak` times
    what is claimed, the claim is to be rejected with this probability.
    """

    share: float | None = None
    leak: float | None = None
    power: float = 0.9

    def __post_init__(self) -> None:
        if (self.share is None) == (self.leak is None):
            raise InputError("goal", (self.share, self.leak), "either a share to certify or a leak to catch")
        if self.share is not None and not 0 < checks.number("certify", self.share) < 1:
            raise InputError("certify", self.share, "a share of ε between 0 and 1")
        if self.leak is not None and not checks.number("catch", self.leak) > 1:
            raise InputError("catch", self.leak, "a factor above 1")
        if not 0 < checks.number("power", self.power) < 1:
            raise InputError("power", self.power, "a probability between 0 and 1")

    def __str__(self) -> str:
        if self.share is not None:
            return f"certify {100 * self.share:g}% of ε on average"
        return f"catch {self.leak:g} times the claimed ε with {100 * self.power:g}% power"


@dataclass(frozen=True)
class Forecast:
    """What one row of the table can expect from n canaries."""

    row: RowPlan
    n: int
    outcomes: Outcomes

    @property
    def released(self) -> int:
        """Guesses to release."""
        return self.row.counts[0]

    @property
    def method(self) -> Method:
        """The method, its options fixed."""
        return self.row.method

    def bound_at(self, probability: float) -> float:
        """The bound that a count at this quantile gives; a low quantile is a lucky, large bound."""
        return self._bound(self.outcomes.quantile(probability))

    def _bound(self, evidence: Evidence | WeightedCount) -> float:
        found = self.row.bound(evidence, self.row.confidence).epsilon
        # Every member rejected: the family has nothing larger to offer.
        return self.row.family.least_private.epsilon(self.row.delta) if found is None else found

    @cached_property
    def roughly(self) -> float:
        """About the bound to expect, quickly and if anything too low: no linear program is solved."""
        guide = FdpRecursion() if isinstance(self.method, AnyDependence) else self.method
        quick = replace(self, row=replace(self.row, method=guide))
        return quick.bound_at(0.5)

    @cached_property
    def mean(self) -> float:
        """The bound to expect: by a parabola in the normal score through the median and the spread."""
        low, high = self.spread
        curvature = (low + high - 2 * self._median) / (2 * float(ndtri(_HIGH)) ** 2)
        return max(0.0, self._median + curvature)

    @cached_property
    def _median(self) -> float:
        return self.bound_at(0.5)

    @cached_property
    def spread(self) -> tuple[float, float]:
        """The bounds that one audit in ten stays below, and one in ten exceeds."""
        return self.bound_at(_HIGH), self.bound_at(_LOW)

    @cached_property
    def power(self) -> float | None:
        """How likely the claim is rejected; None without a claim."""
        if self.row.tested is None:
            return None
        level, tested = 1 - self.row.confidence, self.row.tested

        def rejected(count: int) -> bool:
            return self.method.excess(tested, self.outcomes.evidence(count), level) <= 0  # type: ignore[arg-type]

        if not rejected(0):
            return 0.0
        low, high = 0, self.outcomes.largest
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if rejected(middle) else (low, middle)
        return self.outcomes.probability_up_to(low)


@dataclass(frozen=True)
class PlannedRow:
    """The canaries one row needs, and what they promise; or that no number of them does."""

    forecast: Forecast
    """At the number of canaries needed, or at the most that was tried."""
    reached: bool

    @property
    def n(self) -> int | None:
        """Canaries needed; None if no number will do."""
        return self.forecast.n if self.reached else None

    @property
    def independent(self) -> bool:
        """Whether the row believes that outcomes are independent."""
        return self.forecast.method.assumes.independent_outcomes

    @property
    def shape(self) -> Family | None:
        """The family the row believes in; None for any."""
        return self.forecast.row.shape


@dataclass(frozen=True)
class Plan:
    """A plan per row of the table of beliefs, strongest belief first."""

    goal: Goal
    truth: TradeOff
    """The mechanism planned for."""
    claim: TradeOff | None
    delta: float
    confidence: float
    canary_strength: float
    rows: tuple[PlannedRow, ...]
    forecast: Callable[[int], list[Forecast]]
    """What each row can expect from any number of canaries."""
    canaries: int | None = None
    """The number of canaries, if it was given instead of searched for."""

    @property
    def true_epsilon(self) -> float:
        """ε of the mechanism planned for."""
        return self.truth.epsilon(self.delta)

    def __str__(self) -> str:
        """The plan as a table."""
        from tightaudit.report.plan_text import plain_plan

        return plain_plan(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        from tightaudit.report.plan_text import plan_fields

        return plan_fields(self)

    def to_plot(self, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Draw the expected bound of every row against the number of canaries."""
        from tightaudit.report.plan_plot import draw_plan

        draw_plan(self, path, progress=progress)


def plan(
    claim: TradeOff | None = None,
    *,
    null: Family | None = None,
    delta: float,
    certify: float | None = None,
    catch: float | None = None,
    power: float = 0.9,
    confidence: float = 0.95,
    canary_strength: float = 1.0,
    canaries: int | None = None,
    progress: Progress | None = None,
) -> Plan:
    """How many canaries, which method and how many guesses, and what to expect, for each row of beliefs.

    Wants either `certify`, a share of the true ε that the mean bound is to reach (0.8 if nothing is said), or
    `catch`, how many times its claimed ε a mechanism leaks that is to be rejected with probability `power`.
    `canary_strength` is how strong the canaries are: at 0.7 their scores tell as much as those of a mechanism
    with 0.7 times the μ. With `canaries` that number is taken as given, and what it promises is said.

    >>> import tightaudit as ta
    >>> found = ta.plan(ta.Gaussian(1.0), delta=1e-5, certify=0.8, canaries=500)
    >>> [(row.forecast.method.name, row.reached) for row in found.rows][:2]
    [('rank-weighted', True), ('exact', False)]
    """
    delta, confidence = checks.probability("delta", delta), checks.confidence(confidence)
    if claim is not None and not isinstance(claim, TradeOff):
        raise InputError("claim", claim, "a claim with all its parameters, such as Gaussian(1.0)")
    if claim is None and null is None:
        raise InputError("claim", None, "a claim, or a family to plan for")
    strength = checks.positive("canary_strength", canary_strength, maximum=1.0)
    goal = Goal(0.8 if certify is None and catch is None else certify, catch, power)
    if goal.leak is not None and claim is None:
        raise InputError("catch", goal.leak, "a claim that is exceeded")
    typical = typical_claim(claim, null, delta)
    typical = typical if typical is claim else _printable(typical)
    truth = typical if goal.leak is None else _leaking(typical, goal.leak, delta)
    weak = _weakened(truth, strength)

    def forecast(n: int) -> list[Forecast]:
        rows = plan_rows(
            n,
            claim=claim,
            null=null,
            delta=delta,
            confidence=confidence,
            release=ReleaseRule("auto"),
            guessing="threshold",
        )
        return [Forecast(row, n, Outcomes(weak, row.method, n, row.counts[0])) for row in rows]

    target = None if goal.share is None else goal.share * truth.epsilon(delta)

    def reaches(found: Forecast, care: Care) -> bool:
        if target is None:
            return (found.power or 0.0) >= goal.power
        if care == "on average":
            return found.mean >= target
        return (found._median if care == "closely" else found.roughly) >= target

    rows = []
    count = len(forecast(FEWEST if canaries is None else checks.count("canaries", canaries, minimum=1)))
    for place in range(count):
        if canaries is not None:
            found = forecast(canaries)[place]
            rows.append(PlannedRow(found, reaches(found, "on average")))
        else:
            rows.append(_searched(lambda n, place=place: forecast(n)[place], reaches))  # type: ignore[misc]
        if progress is not None:
            progress(place + 1, count)
    return Plan(goal, truth, claim, delta, confidence, strength, tuple(rows), forecast, canaries)


def _searched(forecast: Callable[[int], Forecast], reaches: Callable[[Forecast, Care], bool]) -> PlannedRow:
    """The fewest canaries that reach the goal, to a few percent: roughly, then closely, then on average."""
    low = high = float(FEWEST)
    while not reaches(forecast(_tidy(high)), "roughly"):
        low, high = high, 10 * high
        if high > MOST:
            last = forecast(_tidy(low))
            return PlannedRow(last, reaches(last, "on average"))
    low, high = _bisected(low, high, lambda n: reaches(forecast(_tidy(n)), "roughly"))
    # What was found without linear programs is too many; they halve it at best.
    while low > FEWEST and reaches(forecast(_tidy(low)), "closely"):
        low, high = max(FEWEST, low / 2), low
    low, high = _bisected(low, high, lambda n: reaches(forecast(_tidy(n)), "closely"))
    found = forecast(_tidy(high))
    while not reaches(found, "on average") and high < MOST:
        high *= _PRECISION
        found = forecast(_tidy(high))
    return PlannedRow(found, reaches(found, "on average"))


def _bisected(low: float, high: float, reached: Callable[[float], bool]) -> tuple[float, float]:
    while high / low > _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return low, high


def _tidy(n: float) -> int:
    """Rounded up to a number with three digits, which people can remember."""
    scale = 10 ** max(0, math.floor(math.log10(n)) - 2)
    return math.ceil(n / scale) * scale


def _leaking(typical: TradeOff, factor: float, delta: float) -> TradeOff:
    """The member of the same family with so many times the ε."""
    family = typical.own_family()
    return _printable(member_at(family, factor * typical.epsilon(delta), delta))


def _printable(member: TradeOff) -> TradeOff:
    """The member with its parameter rounded to a number that people can read."""
    family = member.own_family()
    return family.member(float(f"{member.parameters[family.parameter]:.4g}"))


def _weakened(truth: TradeOff, strength: float) -> TradeOff:
    """What canaries show that are weaker than the strongest there are."""
    if strength == 1:
        return truth
    if not truth.parameter_names:
        raise InputError("canary_strength", strength, f"a claim with a family; {truth} has none")
    family = truth.own_family()
    return family.leaking(strength * family.leak(truth))

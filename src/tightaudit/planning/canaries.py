"""How many canaries an audit needs, before a run is spent on it.

Each row of the table of beliefs gets a forecast; only the number of canaries is searched for.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from os import PathLike
from typing import Any, TypeAlias

from tightaudit.auditing.question import Question
from tightaudit.auditing.rows import kinds_of_rows, row_test
from tightaudit.bounds.beliefs import Beliefs
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.methods.base import in_normal_quantiles
from tightaudit.planning.forecast import Forecast
from tightaudit.planning.release import Planned
from tightaudit.support import checks
from tightaudit.support.errors import InputError
from tightaudit.support.progress import Progress

FEWEST, MOST = 50, 10**8
"""Canaries between which a plan looks; a bound that needs more is called out of reach."""
MOST_RUNS = 1000
SIZES = tuple(round(10 ** (half / 2)) for half in range(4, 15))
"""Canaries at which a plan's curves are computed."""
_PRECISION, _ROUGHLY = 1.05, 1.5
"""Factors by which the number of canaries may be too large, at the end and on the way there."""
_NEVER = 1e-6
"""Power too small, or lack of it, to tell numbers of canaries apart."""
_MEAN, _MEDIAN, _NEARLY_MEAN, _QUICK_MEDIAN = (
    attrgetter(name) for name in ("mean", "median", "nearly_mean", "quickly.median")
)
Care: TypeAlias = Callable[[Forecast], float]
"""How carefully the mean bound is forecast: which number of a forecast stands for it."""


@dataclass(frozen=True)
class Goal:
    """What the auditor wants: to certify a share of ε, or to catch a mechanism that leaks more than it says.

    `certify`: the mean bound should reach this share of the true ε. `catch` and `power`: if ε is `catch`
    times the claimed one, the claim should be rejected with this probability.

    >>> print(Goal(certify=0.9)), print(Goal(catch=2.0))
    certify 90% of ε on average
    catch 2 times the claimed ε with 90% power
    (None, None)
    """

    certify: float | None = None
    catch: float | None = None
    power: float = 0.9

    def __post_init__(self) -> None:
        if (self.certify is None) == (self.catch is None):
            given = (self.certify, self.catch)
            raise InputError("goal", given, "either a share to certify or a leak to catch")
        if self.certify is not None:
            checks.between("certify", self.certify, "a share of ε between 0 and 1")
        if self.catch is not None and not checks.number("catch", self.catch) > 1:
            raise InputError("catch", self.catch, "a factor above 1")
        checks.between("power", self.power, "a probability between 0 and 1")

    def __str__(self) -> str:
        if self.certify is not None:
            return f"certify {100 * self.certify:g}% of ε on average"
        return f"catch {self.catch:g} times the claimed ε with {100 * self.power:g}% power"


@dataclass(frozen=True)
class PlannedRow:
    """The canaries that one row needs and what to expect of them, or that no number is enough."""

    forecast: Forecast
    """At the number of canaries needed, or at the most that was tried."""
    reached: bool

    @property
    def n(self) -> int | None:
        """Canaries needed in each run; None if no number is enough."""
        return self.tried if self.reached else None

    @property
    def tried(self) -> int:
        """Canaries in each run that the forecast is for."""
        return self.forecast.test.n // self.beliefs.runs

    @property
    def beliefs(self) -> Beliefs:
        """What the row believes."""
        return self.forecast.row.beliefs


@dataclass(frozen=True, repr=False)
class Plan:
    """A plan per row of the table of beliefs, strongest belief first."""

    goal: Goal
    question: Question
    truth: Claim
    """The mechanism planned for."""
    canary_strength: float
    rows: tuple[PlannedRow, ...]
    forecast: Callable[[int], list[Forecast]]
    """What each row can expect from any number of canaries."""
    canaries: int | None = None
    """The number of canaries in each run, if it was given instead of searched for."""

    @property
    def true_epsilon(self) -> float:
        """ε of the mechanism planned for."""
        return self.truth.epsilon(self.question.delta)

    def __str__(self) -> str:
        """The plan as a table."""
        from tightaudit.render.terminal.plan import plain_plan

        return plain_plan(self)

    def __repr__(self) -> str:
        return f"Plan(goal={str(self.goal)!r}, canaries={[row.n for row in self.rows]})"

    def _repr_html_(self) -> str:
        from tightaudit.render.notebook import as_html
        from tightaudit.render.terminal.plan import plan_view

        return as_html(plan_view(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        from tightaudit.render.json.plan import plan_fields

        return plan_fields(self)

    def curves(self, *, progress: Progress | None = None) -> list[tuple[int, list[float]]]:
        """For numbers of canaries from 100 to ten million, the median bound of every row."""
        found = []
        for done, n in enumerate(SIZES, start=1):
            found.append((n, [forecast.median for forecast in self.forecast(n)]))
            if progress is not None:
                progress(done, len(SIZES))
        return found

    def to_plot(self, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Draw the expected bound of every row against the number of canaries, as PNG, SVG or PDF."""
        from tightaudit.render.pictures import require_picture
        from tightaudit.render.plan_plot import draw_plan

        require_picture("path", path)

        draw_plan(self, self.curves(progress=progress), path)


def plan(
    claim: Claim | str | None = None,
    *,
    claim_epsilon: float | None = None,
    family: Family | str | None = None,
    delta: float,
    goal: Goal | None = None,
    confidence: float = 0.95,
    canary_strength: float = 1.0,
    canaries: int | None = None,
    runs: int | Sequence[int] = (),
    progress: Progress | None = None,
) -> Plan:
    """How many canaries, which method and how many guesses, and what to expect, for each row of beliefs.

    The default goal is `Goal(certify=0.8)`, a share of the true ε that the mean bound should reach. With
    `Goal(catch=2.0)`, the claim should be rejected if the mechanism leaks twice its ε. `canary_strength` is
    how strong the canaries are: at 0.7 their scores reveal as much as those of a mechanism with 0.7 times the
    μ. `canaries` fixes their number, and the plan says what to expect. `runs` are numbers of runs to
    consider: each has rows for runs that are independent of each other, with so many canaries in every run.

    >>> import tightaudit as ta
    >>> found = ta.plan("gaussian(mu=1)", delta=1e-5, canaries=500)
    >>> [(row.forecast.method.name, row.reached) for row in found.rows][:2]
    [('rank-weighted', True), ('exact', False)]
    """
    if claim is None and claim_epsilon is None and family is None:
        raise InputError("claim", None, "a claim, or a family to plan for")
    question = Question.of(
        claim=claim, claim_epsilon=claim_epsilon, family=family, delta=delta, confidence=confidence
    )
    question.require_bounds()
    delta = question.delta
    if not question.typical.epsilon(delta) > 0:
        raise InputError("delta", delta, "a δ at which the planned mechanism has an ε above 0")
    strength = checks.positive("canary_strength", canary_strength, maximum=1.0)
    wanted = Goal(certify=0.8) if goal is None else goal
    if not isinstance(wanted, Goal):
        raise InputError("goal", goal, "a Goal, such as Goal(catch=2.0)")
    if wanted.catch is not None and question.claim is None:
        raise InputError("catch", wanted.catch, "a claim to exceed")
    typical = question.typical if question.typical is question.claim else _printable(question.typical)
    truth = typical if wanted.catch is None else _leaking(typical, wanted.catch, delta)
    shown = _weakened(truth, strength)
    target = None if wanted.certify is None else wanted.certify * truth.epsilon(delta)

    several = runs if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    numbers = [checks.count("runs", number, minimum=2, maximum=MOST_RUNS) for number in several]
    kinds = kinds_of_rows(question, Planned(), rule="threshold", planned_runs=numbers)

    @cache
    def row(place: int, n: int) -> Forecast:
        method, believed = kinds[place]
        total = n * method.independent_runs
        return Forecast(row_test(question, method, believed, Planned(), total, "threshold"), shown)

    def forecast(n: int) -> list[Forecast]:
        return [row(place, n) for place in range(len(kinds))]

    def surplus(found: Forecast, care: Care) -> float:
        if target is None:
            power = min(max(found.power or 0.0, _NEVER), 1 - _NEVER)
            return in_normal_quantiles(power, wanted.power)
        return care(found) - target

    rows = []
    given = None if canaries is None else checks.count("canaries", canaries, minimum=1, maximum=MOST)
    for place in range(len(kinds)):
        if given is not None:
            found = row(place, given)
            rows.append(PlannedRow(found, surplus(found, _MEAN) >= 0))
        else:
            rows.append(_searched(partial(row, place), surplus))
        if progress is not None:
            progress(place + 1, len(kinds))
    return Plan(wanted, question, truth, strength, tuple(rows), forecast, canaries)


def _searched(forecast: Callable[[int], Forecast], surplus: Callable[[Forecast, Care], float]) -> PlannedRow:
    """The fewest canaries that reach the goal, to a few percent: roughly, closely, exactly."""

    def at(n: float, care: Care) -> float:
        return surplus(forecast(_tidy(n)), care)

    low = high = float(FEWEST)
    tried = [high]
    while at(high, _QUICK_MEDIAN) < 0:
        low, high = high, 10 * high
        if high > MOST:
            best = max(tried, key=lambda n: at(n, _QUICK_MEDIAN))
            return PlannedRow(forecast(_tidy(best)), at(best, _MEAN) >= 0)
        tried.append(high)
    slope = 1.0
    if low < high:
        slope = (at(high, _QUICK_MEDIAN) - at(low, _QUICK_MEDIAN)) / math.log(high / low)
        high = _crossing(low, high, lambda n: at(n, _QUICK_MEDIAN), _ROUGHLY)
        high = max(FEWEST, high * math.exp(-at(high, _MEDIAN) / slope))
    low, high = _bracket(high, slope, lambda n: at(n, _NEARLY_MEAN))
    high = _crossing(low, high, lambda n: at(n, _NEARLY_MEAN), _PRECISION)
    while at(high, _MEAN) < 0 and high < MOST:
        high *= _PRECISION
    return PlannedRow(forecast(_tidy(high)), at(high, _MEAN) >= 0)


def _bracket(start: float, slope: float, surplus: Callable[[float], float]) -> tuple[float, float]:
    """Numbers on both sides of the crossing, or at a limit: steps along a line of this slope in ln n."""
    before = place = start
    first = value = surplus(start)
    while (value < 0) == (first < 0):
        step = abs(value) / slope + math.log(_PRECISION)
        before, place = place, min(max(place * math.exp(math.copysign(step, -value)), FEWEST), MOST)
        if place == before:
            break
        value = surplus(place)
    return min(before, place), max(before, place)


def _crossing(low: float, high: float, surplus: Callable[[float], float], precision: float) -> float:
    """Where the surplus, not negative at `high`, begins to be so, but for that factor: by lines in ln n.

    Each try is a little beyond the place where the line through both ends crosses 0, on the side of the end
    that is further away, so that both close in; an end that stays where it is loses weight (Illinois). Near
    the end it is the middle, because a forecast is not quite smooth.
    """
    below, above, margin = surplus(low), surplus(high), math.sqrt(precision)
    if below >= 0 or above < 0:
        return low if below >= 0 else high
    moved = 0
    while high / low > precision:
        place = low * (high / low) ** (below / (below - above))
        place = place * margin if high / place > place / low else place / margin
        place = min(max(place, low * margin), high / margin)
        if high / low < precision**4:
            place = math.sqrt(low * high)
        found = surplus(place)
        if found >= 0:
            high, above, below, moved = place, found, below / 2 if moved > 0 else below, 1
        else:
            low, below, above, moved = place, found, above / 2 if moved < 0 else above, -1
    return high


def _tidy(n: float) -> int:
    """Rounded up to a number with three digits, which people can remember."""
    scale = 10 ** max(0, math.floor(math.log10(n)) - 2)
    return math.ceil(n / scale) * scale


def _leaking(typical: Claim, factor: float, delta: float) -> Claim:
    """The member of the same family with `factor` times the ε."""
    claimed = typical.epsilon(delta)
    if factor * claimed > checks.LARGEST_EPSILON:
        raise InputError("catch", factor, f"at most {checks.LARGEST_EPSILON / claimed:.3g} here")
    family = typical.own_family()
    return _printable(family.at_epsilon(factor * claimed, delta))


def _printable(member: Claim) -> Claim:
    """The member with its parameter rounded to a number that people can read."""
    family = member.own_family()
    return family.member(float(f"{member.parameters[family.parameter]:.4g}"))


def _weakened(truth: Claim, strength: float) -> Claim:
    """What canaries show that are weaker than the strongest possible."""
    if strength == 1:
        return truth
    if not truth.parameter_names:
        raise InputError("canary_strength", strength, f"a claim with a family; {truth} has none")
    family = truth.own_family()
    return family.leaking(strength * family.leak(truth))

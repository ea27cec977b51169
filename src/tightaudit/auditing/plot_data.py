"""The data of an audit's pictures: the scores, the trade-off they achieve, and the bound as r varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightaudit.auditing.question import Question
from tightaudit.auditing.rows import Row
from tightaudit.auditing.verdict import Verdict
from tightaudit.claims.base import Claim
from tightaudit.evidence.run import Run
from tightaudit.methods.base import Test
from tightaudit.planning.release import candidate_counts
from tightaudit.support.checks import FloatArray

_MOST_BINS = 50
_POINTS = 100
_DRAWN = 1e-3
"""How finely a bound is worth searching that is only drawn."""


@dataclass(frozen=True)
class Histogram:
    """How many members and non-members have scores between the edges."""

    edges: list[float]
    members: list[int]
    non_members: list[int]
    outside: int
    """Scores beyond the edges."""


@dataclass(frozen=True)
class Curve:
    """Points of a line, x against y."""

    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class TradeOffs:
    """False-negative against false-positive rates."""

    achieved: Curve | None
    """By calling the highest scores members: an estimate. None if all canaries are on one side."""
    claimed: Curve | None
    rejected: Curve | None
    """The least private claim that the headline's row rejects."""
    deciding: Curve | None
    """The same for the row that decides the claim, if it is another."""


@dataclass(frozen=True)
class PlotData:
    """Everything a picture shows."""

    scores: Histogram | None
    """None if the scores cannot be drawn."""
    trade_offs: TradeOffs
    bounds: tuple[Curve, ...]
    """For each row, exploratory bounds on ε against the number released, by quick methods."""

    @classmethod
    def of(cls, run: Run, question: Question, rows: Sequence[Row], decides: Verdict) -> PlotData:
        """The data for a report with these rows."""
        headline, deciding = decides.headline or 0, decides.deciding
        second = None if deciding is None or deciding == headline else rows[deciding].bound.rejected
        alpha = np.unique(np.concatenate([np.linspace(0, 1, _POINTS), np.geomspace(1e-6, 1, _POINTS)]))

        def curve(claim: Claim | None) -> Curve | None:
            return None if claim is None else Curve(alpha.tolist(), claim.f(alpha).tolist())

        return cls(
            scores=_histogram(run),
            trade_offs=TradeOffs(
                _achieved(run),
                curve(question.claim),
                curve(rows[headline].bound.rejected),
                curve(second),
            ),
            bounds=tuple(_explored(row, question) for row in rows),
        )


def _histogram(run: Run) -> Histogram | None:
    finite = np.isfinite(run.scores)
    scores, members = run.scores[finite], run.members[finite]
    if scores.size == 0:
        return None
    low, high = (float(edge) for edge in np.quantile(scores, [0.001, 0.999]))
    width = high - low
    if not np.isfinite(width):
        return None
    if width == 0 or low + width / _MOST_BINS == low:
        low, high = low - max(1.0, abs(low)) * 0.5, low + max(1.0, abs(low)) * 0.5
    edges = np.linspace(low, high, int(np.clip(np.sqrt(scores.size), 5, _MOST_BINS)) + 1)
    inside, apart = (np.histogram(scores[members == is_in], edges)[0].tolist() for is_in in (True, False))
    outside = int(np.count_nonzero((run.scores < low) | (run.scores > high)))
    return Histogram(edges.tolist(), inside, apart, outside)


def _achieved(run: Run) -> Curve | None:
    scores, members = run.scores, run.members
    inside = int(np.count_nonzero(members))
    if inside in (0, scores.size):
        return None
    order = np.argsort(-scores, kind="stable")
    ranked, keys = members[order], scores[order]
    last_of_ties = np.append(keys[1:] != keys[:-1], True)
    hits = np.append(0, np.cumsum(ranked)[last_of_ties])
    called = np.append(0, np.flatnonzero(last_of_ties) + 1)
    pick = np.unique(np.linspace(0, hits.size - 1, 2 * _POINTS).astype(int))
    alarms: FloatArray = (called[pick] - hits[pick]) / (scores.size - inside)
    return Curve(alarms.tolist(), (1 - hits[pick] / inside).tolist())


def _explored(row: Row, question: Question) -> Curve:
    """The row's bound for other numbers released, by a quick method; its own where all are released."""
    evidence = row.evidence
    if row.method.releases_all:
        return Curve([], []) if row.epsilon is None else Curve([float(evidence.n)], [row.epsilon])
    family, x, y, leak = row.bound.family, [], [], 0.0
    for count in candidate_counts(evidence.n):
        if count > row.method.most_released(evidence.n):
            continue
        test = Test(row.method.quick, evidence.n, count)
        statistic = test.statistic(evidence.top(count))

        def excess(claim: Claim, test: Test = test, statistic: int = statistic) -> float:
            return test.excess(claim, statistic, question.level)

        if excess(family.most_private) > 0:
            epsilon = 0.0
        elif excess(family.least_private) <= 0:
            continue
        else:
            # Numbers released are in order, so the last bound is often just below the next.
            leak = family.last_rejected(excess, _DRAWN, rejected=leak)
            epsilon = family.leaking(leak).epsilon(question.delta)
        x.append(float(count))
        y.append(epsilon)
    return Curve(x, y)

"""The pictures of an audit: the scores, the trade-off they achieve, and the bound as r varies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tightaudit.auditing import Report
from tightaudit.belief_rows import Row
from tightaudit.bounds import lower_bound
from tightaudit.checks import FloatArray
from tightaudit.planning import candidate_counts
from tightaudit.pvalues.any_dependence import AnyDependence
from tightaudit.report.svg import Axis, Plot

_MOST_BINS = 50
_POINTS = 200
_LONGEST_LABEL = 52
_STYLES = ("one", "two", "three", "four")


@dataclass(frozen=True)
class Figure:
    """A plot with its heading and caption; no plot where there is nothing to draw."""

    heading: str
    svg: str | None
    caption: str


def figures(report: Report) -> Iterator[Figure]:
    """All figures of the report, in reading order."""
    yield _histogram(report)
    yield _trade_off(report)
    yield _bound_by_count(report)


def _histogram(report: Report) -> Figure:
    heading = "Scores of members and non-members"
    finite = np.isfinite(report.run.scores)
    scores, members = report.run.scores[finite], report.run.members[finite]
    if scores.size == 0:
        return Figure(heading, None, "No score is finite; there is nothing to draw.")
    low, high = (float(edge) for edge in np.quantile(scores, [0.001, 0.999]))
    width = high - low
    if not np.isfinite(width):
        return Figure(heading, None, "The scores span more than can be drawn.")
    if width == 0 or low + width / _MOST_BINS == low:
        low, high = low - max(1.0, abs(low)) * 0.5, low + max(1.0, abs(low)) * 0.5
    bins = int(np.clip(np.sqrt(scores.size), 5, _MOST_BINS))
    edges = np.linspace(low, high, bins + 1)
    counts = [np.histogram(scores[members == inside], edges)[0] for inside in (True, False)]
    top = float(max(count.max() for count in counts)) * 1.05 or 1.0
    plot = Plot(
        "Histograms of the scores of members and of non-members",
        Axis("score", low, high),
        Axis("canaries", 0, top),
    )
    for style, label, count in zip(_STYLES, ("members", "non-members"), counts, strict=False):
        x, y = np.repeat(edges, 2), np.concatenate([[0], np.repeat(count, 2), [0]])
        plot.area(
            x.tolist(), y.tolist(), style, f"{label} ({int(np.sum(members == (label == 'members'))):,})"
        )
        plot.line(x.tolist(), y.tolist(), style)
    outside = int(np.count_nonzero((report.run.scores < low) | (report.run.scores > high)))
    rest = f" {outside:,} scores lie outside the picture." if outside else ""
    return Figure(heading, plot.to_svg(), f"Where the two differ, the mechanism leaks.{rest}")


def _trade_off(report: Report) -> Figure:
    heading = "The trade-off achieved, and what is rejected"
    plot = Plot(
        "Trade-off between false-positive and false-negative rate: what the scores achieve, "
        "the claim, and the region of rejected claims",
        Axis("false-positive rate", 0, 1),
        Axis("false-negative rate", 0, 1),
    )
    alpha = np.unique(np.concatenate([np.linspace(0, 1, _POINTS), np.geomspace(1e-6, 1, _POINTS)]))
    row = report.headline or report.rows[0]
    caption = (
        "A claim is a curve; the lower, the less private. Every claim whose curve stays in the shaded "
        f"region is rejected with {100 * report.confidence:g}% confidence, {row.condition}."
    )
    if row.bound.rejected is not None:
        rejected = np.asarray(row.bound.rejected.f(alpha))
        plot.area([*alpha, 0.0], [*rejected, 1.0], "region", "rejected")
    else:
        caption = (
            "A claim is a curve; the lower, the less private. No region is rejected in the headline's row."
        )
    plot.line([0, 1], [1, 0], "chance", "no leakage")
    if report.claim is not None:
        plot.line(
            alpha.tolist(), np.asarray(report.claim.f(alpha)).tolist(), "two", _cut(f"claim {report.claim}")
        )
    achieved = _achieved(report)
    if achieved is not None:
        plot.line(achieved[0].tolist(), achieved[1].tolist(), "one", "achieved by the scores (an estimate)")
    return Figure(heading, plot.to_svg(), caption)


def _achieved(report: Report) -> tuple[FloatArray, FloatArray] | None:
    """False-positive and false-negative rates of calling the highest scores members."""
    scores, members = report.run.scores, report.run.members
    inside = int(np.count_nonzero(members))
    if inside in (0, scores.size):
        return None
    order = np.argsort(-scores, kind="stable")
    ranked, keys = members[order], scores[order]
    last_of_ties = np.append(keys[1:] != keys[:-1], True)
    hits = np.append(0, np.cumsum(ranked)[last_of_ties])
    called = np.append(0, np.flatnonzero(last_of_ties) + 1)
    pick = np.unique(np.linspace(0, hits.size - 1, _POINTS).astype(int))
    return (called[pick] - hits[pick]) / (scores.size - inside), 1 - hits[pick] / inside


def _bound_by_count(report: Report) -> Figure:
    heading = "The bound as the number released varies"
    counts = candidate_counts(report.evidence.n)
    curves = [_explored(row, report, counts) for row in report.rows]
    chosen = [row.bound.epsilon or 0.0 for row in report.rows]
    top = max([*chosen, *(value for curve in curves for value in curve[1]), 0.1]) * 1.08
    low = min([*counts, *(row.evidence.released for row in report.rows)])
    high = max(counts)
    plot = Plot(
        "Lower bound on ε against the number of released guesses, one line per row of the table",
        Axis("guesses released", low * 0.9, high * 1.1, logarithmic=True),
        Axis("ε at least", 0, top),
    )
    for style, row, curve in zip(_STYLES, report.rows, curves, strict=False):
        plot.line(*curve, style, _label(row))
    for style, row in zip(_STYLES, report.rows, strict=False):
        if row.bound.epsilon is not None:
            plot.dot(row.evidence.released, row.bound.epsilon, style)
    caption = (
        "Dots mark the table's own bounds. The lines are exploratory: picking the number released by where a "
        "line is highest needs a correction, which --release best makes."
    )
    if any(isinstance(row.method, AnyDependence) for row in report.rows):
        caption += (
            " Lines of any-dependence are those of the simpler methods it falls back on, a little below it."
        )
    return Figure(heading, plot.to_svg(), caption)


def _explored(row: Row, report: Report, counts: list[int]) -> tuple[list[float], list[float]]:
    method = AnyDependence(largest_program=0) if isinstance(row.method, AnyDependence) else row.method
    if method.releases_all:
        counts = [report.evidence.n]
    x, y = [], []
    for count in counts:
        bound = lower_bound(
            report.evidence.release(count),
            row.bound.family,
            delta=report.delta,
            confidence=report.confidence,
            method=method,
        )
        if bound.epsilon is not None:
            x.append(float(count))
            y.append(bound.epsilon)
    return x, y


def _label(row: Row) -> str:
    outcomes = "independent" if row.independent else "any dependence"
    return _cut(f"{outcomes}, {'any curve' if row.shape is None else row.shape}")


def _cut(text: str) -> str:
    """What fits under a plot; the table has it in full."""
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"

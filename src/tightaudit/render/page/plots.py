"""The pictures of an audit's page, drawn from the data in the report."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tightaudit.auditing.report import Looked, Report
from tightaudit.render import wording
from tightaudit.render.page.svg import Axis, Plot

_LONGEST_LABEL = 52
_STYLES = ("one", "two", "three", "four", "five", "six")


@dataclass(frozen=True)
class Figure:
    """A plot with its heading and caption; no plot where there is nothing to draw."""

    heading: str
    svg: str | None
    caption: str


def figures(report: Report) -> Iterator[Figure]:
    """All figures of the report, in reading order."""
    if report.looked is not None:
        yield _looks(report.looked)
    yield _scores(report)
    yield _trade_offs(report)
    yield _bounds(report)


def _looks(looked: Looked) -> Figure:
    steps = [float(look.step) for look in looked.taken]
    bounds = [look.epsilon or 0.0 for look in looked.taken]
    claimed = [look.claimed or 0.0 for look in looked.taken]
    plot = Plot(
        "Lower bound on ε, and claimed ε, against the steps of the training, looks marked",
        Axis("steps", 0, 1.02 * looked.looks.at[-1]),
        Axis("ε", 0, max([0.1, *bounds, *claimed]) * 1.08),
    )
    plot.line([0.0, *steps], [0.0, *claimed], "two", "claimed for the steps so far")
    plot.line(steps, bounds, "one", "audited, at least")
    for look, bound in zip(looked.taken, bounds, strict=True):
        plot.dot(look.step, bound, "one", "rejected" if look.rejected else None)
    caption = (
        f"Every dot is a look. Together they have {wording.percent(looked.confidence)} confidence; "
        f"{len(looked.looks.at) - len(looked.taken)} of {len(looked.looks.at)} are still to come."
    )
    return Figure("How did it go over the steps?", plot.to_svg(), caption)


def _scores(report: Report) -> Figure:
    heading = "Can the scores tell members apart?"
    shown = report.plot_data.scores
    if shown is None:
        return Figure(heading, None, "The scores are not finite, or their range is too wide to draw.")
    members = int(np.count_nonzero(report.run.members))
    plot = Plot(
        "Histograms of the scores of members and of non-members",
        Axis("score", shown.edges[0], shown.edges[-1]),
        Axis("canaries", 0, max(*shown.members, *shown.non_members) * 1.05 or 1.0),
    )
    for style, label, size, counts in (
        ("one", "members", members, shown.members),
        ("two", "non-members", report.run.n - members, shown.non_members),
    ):
        x, y = np.repeat(shown.edges, 2), np.concatenate([[0], np.repeat(counts, 2), [0]])
        plot.area(x.tolist(), y.tolist(), style, f"{label} ({size:,})")
        plot.line(x.tolist(), y.tolist(), style)
    rest = f" {shown.outside:,} scores lie outside the picture." if shown.outside else ""
    return Figure(heading, plot.to_svg(), f"Where the two histograms differ, the mechanism leaks.{rest}")


def _trade_offs(report: Report) -> Figure:
    plot = Plot(
        "Trade-off between false-positive and false-negative rate: what the scores achieve, "
        "the claim, and the region of rejected claims",
        Axis("false-positive rate", 0, 1),
        Axis("false-negative rate", 0, 1),
    )
    shown, row = report.plot_data.trade_offs, report.headline or report.rows[0]
    caption = "A claim is a curve; lower means less private. "
    if shown.rejected is not None:
        plot.area([*shown.rejected.x, 0.0], [*shown.rejected.y, 1.0], "region", "rejected on what was stated")
        caption += (
            "Every claim whose curve stays inside the shaded region is rejected with "
            f"{wording.percent(report.question.confidence)} confidence, {wording.condition(row.beliefs)}."
        )
    else:
        caption += "No region is rejected in the headline's row."
    if shown.deciding is not None and report.claim_row is not None:
        plot.area(
            [*shown.deciding.x, 0.0], [*shown.deciding.y, 1.0], "second", "rejected in the row that decides"
        )
        beliefs = wording.condition(report.claim_row.beliefs)
        caption += f" The row that decides the claim (◀) rejects more, {beliefs}."
        if report.claim_row.rejected and not row.rejected:
            caption += " The claim leaves the first region only near the corners, by too little to see."
    plot.line([0, 1], [1, 0], "chance", "no leakage")
    if shown.claimed is not None:
        plot.line(shown.claimed.x, shown.claimed.y, "two", _cut(f"claim {report.question.claim}"))
    if shown.achieved is not None:
        plot.line(shown.achieved.x, shown.achieved.y, "one", "achieved by the scores (an estimate)")
    return Figure("How well the guesses do, and what that rules out", plot.to_svg(), caption)


def _bounds(report: Report) -> Figure:
    curves = report.plot_data.bounds
    counts = [count for curve in curves for count in curve.x]
    counts += [float(row.evidence.released) for row in report.rows]
    bounds = [row.epsilon or 0.0 for row in report.rows]
    bounds += [epsilon for curve in curves for epsilon in curve.y]
    plot = Plot(
        "Lower bound on ε against the number of released guesses, one line per row of the table",
        Axis("guesses released", min(counts) * 0.9, max(counts) * 1.1, logarithmic=True),
        Axis("ε at least", 0, max([0.1, *bounds]) * 1.08),
    )
    for style, row, curve in zip(_STYLES, report.rows, curves, strict=False):
        if len(curve.x) > 1:
            plot.line(curve.x, curve.y, style, _cut(wording.in_legend(row.beliefs)))
    for style, row in zip(_STYLES, report.rows, strict=False):
        if row.epsilon is not None:
            alone = row.method.name if row.method.releases_all else None
            plot.dot(row.evidence.released, row.epsilon, style, alone)
    caption = (
        "Dots are the bounds in the table. Lines are exploratory, from quick methods that may be a little "
        "lower. Picking the number where a line is highest needs a correction, which releasing the best of "
        "several numbers makes."
    )
    return Figure("Would another number of guesses have helped?", plot.to_svg(), caption)


def _cut(text: str) -> str:
    """What fits under a plot; the table has it in full."""
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"

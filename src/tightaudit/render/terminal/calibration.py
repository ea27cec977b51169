"""What a calibration found, as tables."""

import math

from rich.console import RenderableType
from rich.table import Table

from tightaudit.render.terminal.tables import method_table
from tightaudit.render.wording import INDEPENDENT, in_cells, rounded_down
from tightaudit.simulate.calibration import Calibration, MeanBound, Rejections


def calibration_view(result: Calibration) -> list[RenderableType]:
    """A sentence, the rejection rates and the mean bounds, to be printed one after the other."""
    shared = INDEPENDENT if result.mechanism.independent else "dependent"
    audits = result.audits
    each = f"{audits.runs} runs of n={audits.n:,}" if audits.runs > 1 else f"n={audits.n:,}"
    intro = (
        f"{audits.times:,} audits of {result.mechanism} ({shared} outcomes), each with {each}, "
        f"released {audits.released}; the claim {result.claim} is tested."
    )
    parts: list[RenderableType] = [intro, _rejection_table(result)]
    if result.bounds:
        parts += [
            _bound_table(result),
            f"true ε = {result.true_epsilon:.3f} at δ = {result.question.delta:g}",
        ]
    return parts


def _table(result: Calibration, *headings: str) -> Table:
    """A row per method, or per row of an audit's table of beliefs."""
    table = method_table(*headings)
    if result.audits.table:
        table.columns[0].header = "outcomes, curve"
    return table


def _rejection_table(result: Calibration) -> Table:
    table = _table(result, "level", "rejected", "95% interval")
    table.add_column("")
    for row in result.rejections:
        low, high = row.interval
        assumed = row.assumes_independence and not result.mechanism.independent
        verdict = ("too often" if row.exceeds else "holds") if result.claim_is_true else "not the true claim"
        table.add_row(
            _name(row),
            f"{row.level:.2%}",
            f"{row.rate:.2%}",
            f"{low:.2%}–{high:.2%}",
            f"{verdict}; assumes independence" if assumed else verdict,
        )
    return table


def _bound_table(result: Calibration) -> Table:
    table = _table(result, "mean ε bound", "spread", "above the truth")
    for row in result.bounds:
        infinite = math.isinf(row.mean)
        table.add_row(
            _name(row),
            "family rejected in some" if infinite else rounded_down(row.mean),
            "" if infinite else f"{row.spread:.3f}",
            f"{row.above_truth:.2%}",
        )
    return table


def _name(row: Rejections | MeanBound) -> str:
    return row.method if row.row is None else in_cells(row.row)

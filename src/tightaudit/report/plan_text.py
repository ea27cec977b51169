"""A plan as a table, and as plain values."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

import tightaudit
from tightaudit.bounds import rounded_down
from tightaudit.pvalues.rank_weighted import RankWeighted

if TYPE_CHECKING:
    from tightaudit.canary_plan import Plan, PlannedRow

WIDTH = 80


def plan_view(plan: Plan) -> Group:
    """The plan for a terminal."""
    epsilon = f"ε = {plan.true_epsilon:.3f} at δ = {plan.delta:g}"
    heading = f"To {plan.goal}, with {100 * plan.confidence:g}% confidence. "
    heading += f"Planned for {plan.truth}, {epsilon}."
    if plan.canary_strength != 1:
        heading += f" Canaries are taken to be {plan.canary_strength:g} times as strong as the strongest."
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("outcomes", "curve", "method"):
        table.add_column(name, no_wrap=True)
    last = "power" if plan.goal.leak is not None else "of ε"
    for name in ("canaries", "release", "ε ≥", "80% in", last):
        table.add_column(name, justify="right", no_wrap=True)
    for row in plan.rows:
        table.add_row(*_cells(plan, row))
    notes: list[Text | Table] = [Text(heading), table]
    if plan.canaries is not None and any(not row.reached for row in plan.rows):
        notes.append(Text(f"✗ the goal is not reached with {plan.canaries:,} canaries."))
    elif any(not row.reached for row in plan.rows):
        most = max(row.forecast.n for row in plan.rows if not row.reached)
        notes.append(
            Text(f"✗ not with any number of canaries: shown is what {most:,} give, in effect the ceiling.")
        )
    notes.append(
        Text(
            "ε ≥ is the mean bound; four audits in five are in the range after it, if outcomes are "
            "independent and the mechanism is the one planned for, whatever the row believes."
        )
    )
    return Group(*notes)


def _cells(plan: Plan, row: PlannedRow) -> list[str]:
    forecast = row.forecast
    low, high = forecast.spread
    share = f"{100 * forecast.mean / plan.true_epsilon:.0f}%"
    if plan.goal.leak is not None:
        share = "" if forecast.power is None else f"{100 * forecast.power:.0f}%"
    return [
        "independent" if row.independent else "any",
        "any" if row.shape is None else "shape",
        forecast.method.name,
        f"{forecast.n:,}" if row.reached else "✗" if plan.canaries is None else f"✗ {forecast.n:,}",
        f"{forecast.released:,}",
        rounded_down(forecast.mean),
        f"{low:.2f}–{high:.2f}",
        share,
    ]


def plain_plan(plan: Plan) -> str:
    """The plan as plain text."""
    buffer = io.StringIO()
    Console(file=buffer, width=WIDTH, highlight=False, color_system=None).print(plan_view(plan))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def plan_fields(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, for JSON."""
    return {
        "goal": {"certify": plan.goal.share, "catch": plan.goal.leak, "power": plan.goal.power},
        "claim": None if plan.claim is None else str(plan.claim),
        "planned_for": str(plan.truth),
        "true_epsilon": plan.true_epsilon,
        "delta": plan.delta,
        "confidence": plan.confidence,
        "canary_strength": plan.canary_strength,
        "rows": [_row_fields(row) for row in plan.rows],
        "version": tightaudit.__version__,
    }


def _row_fields(row: PlannedRow) -> dict[str, Any]:
    forecast, method = row.forecast, row.forecast.method
    strata = weights = None
    if isinstance(method, RankWeighted):
        strata, weights = list(method.strata), list(method.weights)
    low, high = forecast.spread
    return {
        "independent": row.independent,
        "shape": None if row.shape is None else str(row.shape),
        "method": method.name,
        "canaries": row.n,
        "tried": forecast.n,
        "released": forecast.released,
        "strata": strata,
        "weights": weights,
        "mean_bound": forecast.mean,
        "bound_one_in_ten_below": low,
        "bound_one_in_ten_above": high,
        "power": forecast.power,
    }

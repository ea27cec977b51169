"""A plan as a table."""

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tightaudit.planning.canaries import Plan, PlannedRow
from tightaudit.render.terminal.tables import without_colours
from tightaudit.render.wording import ANY, outcomes, percent, rounded_down


def plan_view(plan: Plan) -> Group:
    """The plan for a terminal."""
    epsilon = f"ε = {plan.true_epsilon:.3f} at δ = {plan.question.delta:g}"
    heading = f"To {plan.goal}, with {percent(plan.question.confidence)} confidence. "
    heading += f"Planned for {plan.truth}, {epsilon}."
    if plan.canary_strength != 1:
        heading += f" Canaries are assumed to be {plan.canary_strength:g} times as strong as the strongest."
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("outcomes", "curve", "method"):
        table.add_column(name, no_wrap=True)
    last = "power" if plan.goal.catch is not None else "of ε"
    for name in ("canaries", "release", "ε ≥", "80% in", last):
        table.add_column(name, justify="right", no_wrap=True)
    for row in plan.rows:
        table.add_row(*_cells(plan, row))
    notes: list[Text | Table] = [Text(heading), table]
    if plan.question.family is not None:
        notes.append(
            Text(f"Curve family: the privacy curve is assumed to be in the family {plan.question.family}.")
        )
    if plan.canaries is not None and any(not row.reached for row in plan.rows):
        notes.append(Text(f"✗ the goal is not reached with {plan.canaries:,} canaries."))
    elif any(not row.reached for row in plan.rows):
        most = max(row.tried for row in plan.rows if not row.reached)
        notes.append(
            Text(
                f"✗ out of reach with any number of canaries; shown: the best, at most with {most:,} of them."
            )
        )
    if any(row.beliefs.runs > 1 for row in plan.rows):
        notes.append(
            Text(
                "Several runs: independent of each other, any dependence inside of each. Canaries, and "
                "guesses to release, are those of each run."
            )
        )
    notes.append(
        Text(
            "An audit decides by the row whose beliefs you state: --independent for independent outcomes, "
            "--family-known for the family."
        )
    )
    notes.append(
        Text(
            "ε ≥ is the mean bound; 80% of audits fall in the range after it. Both suppose independent "
            "outcomes and the mechanism planned for, whatever the row believes."
        )
    )
    return Group(*notes)


def _cells(plan: Plan, row: PlannedRow) -> list[str]:
    forecast = row.forecast
    low, high = forecast.spread
    share = f"{100 * forecast.mean / plan.true_epsilon:.0f}%"
    if plan.goal.catch is not None:
        share = "" if forecast.power is None else f"{100 * forecast.power:.0f}%"
    return [
        outcomes(row.beliefs),
        ANY if row.beliefs.family is None else "family",
        forecast.method.name,
        f"{row.tried:,}" if row.reached else "✗" if plan.canaries is None else f"✗ {row.tried:,}",
        f"{forecast.test.released // row.beliefs.runs:,}",
        rounded_down(forecast.mean),
        f"{low:.2f}–{high:.2f}",
        share,
    ]


def plain_plan(plan: Plan) -> str:
    """The plan as plain text."""
    return without_colours(plan_view(plan))

"""A plan as plain values."""

from typing import Any

import tightaudit
from tightaudit.planning.canaries import Plan, PlannedRow


def plan_fields(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, for JSON."""
    return {
        "goal": {"certify": plan.goal.certify, "catch": plan.goal.catch, "power": plan.goal.power},
        "claim": None if plan.question.claim is None else str(plan.question.claim),
        "planned_for": str(plan.truth),
        "true_epsilon": plan.true_epsilon,
        "delta": plan.question.delta,
        "confidence": plan.question.confidence,
        "canary_strength": plan.canary_strength,
        "rows": [_row_fields(row) for row in plan.rows],
        "version": tightaudit.__version__,
    }


def _row_fields(row: PlannedRow) -> dict[str, Any]:
    forecast, beliefs = row.forecast, row.beliefs
    low, high = forecast.spread
    return {
        "independent": beliefs.independent,
        "runs": beliefs.runs,
        "family": None if beliefs.family is None else str(beliefs.family),
        "method": forecast.method.name,
        "canaries": row.n,
        "tried": row.tried,
        "released": forecast.test.released,
        "options": forecast.method.options,
        "mean_bound": forecast.mean,
        "bound_one_in_ten_below": low,
        "bound_one_in_ten_above": high,
        "power": forecast.power,
    }

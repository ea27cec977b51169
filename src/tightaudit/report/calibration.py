"""What a calibration found, for people and for scripts."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from tightaudit.bounds import rounded_down
from tightaudit.calibration import Calibration
from tightaudit.report.terminal import method_table


def calibration_view(result: Calibration) -> list[RenderableType]:
    """A sentence, the rejection rates and the mean bounds, to be printed one after the other."""
    shared = "independent" if result.independent else "dependent"
    intro = (
        f"{result.repetitions:,} audits of {result.mechanism} ({shared} outcomes), each with n={result.n:,}, "
        f"release {result.release}; the claim {result.claim} is tested."
    )
    parts: list[RenderableType] = [intro, _rejection_table(result)]
    if result.bounds:
        parts += [_bound_table(result), f"true ε = {result.true_epsilon:.3f} at δ = {result.delta:g}"]
    return parts


def _table(result: Calibration, *headings: str) -> Table:
    """A row per method, or per row of an audit's table of beliefs."""
    table = method_table(*headings)
    if result.rejections[0].row is not None:
        table.columns[0].header = "outcomes, curve"
    return table


def _rejection_table(result: Calibration) -> Table:
    table = _table(result, "level", "rejected", "95% interval")
    table.add_column("")
    for row in result.rejections:
        low, high = row.interval
        assumed = row.assumes_independence and not result.independent
        verdict = (
            ("too often" if row.exceeds else "holds") if result.claim_is_true else "claim not the true one"
        )
        table.add_row(
            row.row or row.method,
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
            row.row or row.method,
            "family rejected in some" if infinite else rounded_down(row.mean),
            "" if infinite else f"{row.spread:.3f}",
            f"{row.above_truth:.2%}",
        )
    return table


def calibration_fields(result: Calibration) -> dict[str, Any]:
    """The calibration as plain values; a mean that is not finite is null."""
    fields = asdict(result)
    fields["rejections"] = [
        {**asdict(row), "rate": row.rate, "interval": list(row.interval), "exceeds": row.exceeds}
        for row in result.rejections
    ]
    fields["bounds"] = [
        {**asdict(row), "mean": finite_or_none(row.mean), "spread": finite_or_none(row.spread)}
        for row in result.bounds
    ]
    fields["true_epsilon"] = finite_or_none(result.true_epsilon)
    return fields


def finite_or_none(value: float) -> float | None:
    """The value, or None where JSON has no number for it.

    >>> finite_or_none(math.inf) is None
    True
    """
    return value if math.isfinite(value) else None

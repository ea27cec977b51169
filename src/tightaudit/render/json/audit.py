"""An audit as plain values, complete and versioned; docs/audit-json.md says what each field is."""

import json
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np

import tightaudit
from tightaudit.auditing.audit import coin_p_value
from tightaudit.auditing.report import Report
from tightaudit.auditing.rows import Row
from tightaudit.render import wording
from tightaudit.render.json.bound import bound_fields
from tightaudit.render.json.numbers import finite_or_none
from tightaudit.support.writing import replacing

SCHEMA = "tightaudit.audit/1"


def audit_fields(report: Report) -> dict[str, Any]:
    """Everything a report knows, as plain values.

    >>> import tightaudit as ta
    >>> fields = audit_fields(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> fields["schema"], fields["headline"], fields["epsilon"]
    ('tightaudit.audit/1', 3, 0.0)
    """
    run, question, guessing = report.run, report.question, report.evidence.guessing
    assert guessing is not None
    return {
        "schema": SCHEMA,
        "version": tightaudit.__version__,
        "verdict": report.verdict,
        "violated": report.violated,
        "epsilon": report.epsilon,
        "status": None if report.headline is None else report.headline.bound.status,
        "delta": question.delta,
        "confidence": question.confidence,
        "headline": report.decides.headline,
        "claim": None
        if question.claim is None
        else {
            "text": str(question.claim),
            "epsilon": finite_or_none(report.question.claimed_epsilon),
            "row": report.decides.deciding,
        },
        "stated": {
            "independent": bool(question.independent),
            "why": question.independent if isinstance(question.independent, str) else None,
            "family_known": question.family_known,
        },
        "visible": {
            "epsilon": report.visible.epsilon,
            "mechanism": None if report.visible.mechanism is None else str(report.visible.mechanism),
            "often": report.visible.often,
        },
        "checkup": None if report.checkup is None else report.checkup.to_dict(),
        "looks": [] if report.looked is None else [asdict(look) for look in report.looked.taken],
        "rows": [_row(row) for row in report.rows],
        "run": {
            "source": run.source,
            "n": run.n,
            "runs": list(run.sizes),
            "members": int(np.count_nonzero(run.members)),
            "coin_p_value": coin_p_value(run),
            "seed": run.seed,
        },
        "guessing": {**asdict(guessing), "errors": report.evidence.errors},
        "released": report.release.said,
        "plot_data": asdict(report.plot_data),
        "warnings": list(report.warnings),
        "command": report.command,
    }


def write_json(report: Report, path: str | PathLike[str]) -> None:
    """Write the fields to a file that appears only when it is complete."""
    with replacing(path) as file:
        file.write((json.dumps(audit_fields(report), allow_nan=False, indent=2) + "\n").encode())


def _row(row: Row) -> dict[str, Any]:
    return {
        "beliefs": {
            "independent_outcomes": row.beliefs.independent,
            "independent_runs": row.beliefs.runs,
            "family": None if row.beliefs.family is None else str(row.beliefs.family),
        },
        **bound_fields(row.bound),
        "confidence": row.confidence,
        "finding": wording.finding(row),
        "counts_tried": list(row.counts),
        "cost_of_trying": row.cost,
        "claim_tested": None if row.tested is None else str(row.tested),
        "tests_claim_itself": row.tests_claim_itself,
        "p_value": row.p_value,
        "rejected": row.rejected,
    }

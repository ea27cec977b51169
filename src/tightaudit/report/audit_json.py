"""An audit as JSON, complete and versioned; docs/audit-json.md says what each field is."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import numpy as np

import tightaudit
from tightaudit.auditing import Report, coin_p_value
from tightaudit.belief_rows import Row
from tightaudit.report.calibration import finite_or_none
from tightaudit.report.fields import bound_fields
from tightaudit.writing import replacing

SCHEMA = "tightaudit.audit/1"


def audit_fields(report: Report) -> dict[str, Any]:
    """Everything a report knows, as plain values.

    >>> import tightaudit as ta
    >>> fields = audit_fields(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> fields["schema"], fields["headline"], fields["epsilon"]
    ('tightaudit.audit/1', 3, 0.0)
    """
    run, evidence, headline = report.run, report.evidence, report.headline
    return {
        "schema": SCHEMA,
        "version": tightaudit.__version__,
        "verdict": report.verdict,
        "violated": report.violated,
        "epsilon": None if headline is None else headline.bound.epsilon,
        "status": None if headline is None else headline.bound.status,
        "delta": report.delta,
        "confidence": report.confidence,
        "headline": _index(report, headline),
        "claim": _claim(report),
        "stated": {
            "independent": report.independent,
            "why": report.why,
            "shape_known": report.shape_known,
        },
        "rows": [_row(row) for row in report.rows],
        "run": {
            "source": run.source,
            "n": run.n,
            "members": int(np.count_nonzero(run.members)),
            "coin_p_value": coin_p_value(run),
            "seed": run.seed,
        },
        "guessing": {
            "rule": evidence.guessing,
            "threshold": evidence.threshold,
            "seed": evidence.seed,
            "errors": evidence.errors,
        },
        "release": report.release.chosen,
        "warnings": list(report.warnings),
        "command": report.command,
    }


def write_json(report: Report, path: str | PathLike[str]) -> None:
    """Write the fields to a file that appears only when it is complete."""
    with replacing(path) as file:
        file.write((json.dumps(audit_fields(report), allow_nan=False, indent=2) + "\n").encode())


def _claim(report: Report) -> dict[str, Any] | None:
    if report.claim is None:
        return None
    return {
        "text": str(report.claim),
        "epsilon": finite_or_none(report.claim.epsilon(report.delta)),
        "row": _index(report, report.claim_row),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "beliefs": {
            "independent_outcomes": row.independent,
            "shape": None if row.shape is None else str(row.shape),
        },
        **bound_fields(row.bound),
        "confidence": row.confidence,
        "finding": row.finding,
        "counts_tried": list(row.counts),
        "cost_of_trying": row.cost,
        "claim_tested": None if row.tested is None else str(row.tested),
        "p_value": row.p_value,
        "rejected": row.rejected,
    }


def _index(report: Report, wanted: Row | None) -> int | None:
    return next((at for at, row in enumerate(report.rows) if row is wanted), None)

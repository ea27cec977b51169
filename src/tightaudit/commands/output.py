"""What several commands print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import tightaudit
from tightaudit.bounds import Bound
from tightaudit.game import Evidence
from tightaudit.pvalues.base import Method
from tightaudit.tradeoffs.base import Family, TradeOff


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def setting(null: TradeOff | Family, method: Method, evidence: Evidence) -> dict[str, Any]:
    """What a result was computed from and rests on."""
    return {
        "null": str(null),
        "method": method.name,
        "assumes": {
            "independent_outcomes": method.assumes.independent_outcomes,
            "claims": method.assumes.claims,
            "evidence": method.assumes.evidence,
        },
        "caveat": method.assumes.caveat,
        "remark": method.remark(evidence),
        "reference": method.reference,
        "n": evidence.n,
        "released": evidence.released,
        "errors": evidence.errors,
        "version": tightaudit.__version__,
    }


def bound_fields(bound: Bound) -> dict[str, Any]:
    fields = setting(bound.family, bound.method, bound.evidence)
    fields["assumes"]["family"] = None if bound.family.delta is not None else str(bound.family)
    return {
        "epsilon": bound.epsilon,
        "parameter": bound.parameter,
        "parameter_name": bound.family.parameter,
        "status": bound.status,
        "delta": bound.delta,
        "confidence": bound.confidence,
        **fields,
    }


def print_notes(method: Method, evidence: Evidence) -> None:
    if method.assumes.caveat is not None:
        print(f"caution: {method.name} {method.assumes.caveat}")
    if (remark := method.remark(evidence)) is not None:
        print(f"note: {remark}")


def print_json(fields: dict[str, Any]) -> None:
    print(json.dumps(fields, allow_nan=False))

"""Results as plain values, for JSON."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

import tightaudit
from tightaudit.bounds import Bound
from tightaudit.game import Evidence, WeightedCount
from tightaudit.pvalues.base import Method
from tightaudit.tradeoffs.base import Family, TradeOff


def setting(null: TradeOff | Family, method: Method, evidence: Evidence | WeightedCount) -> dict[str, Any]:
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
        "options": asdict(method) if is_dataclass(method) else {},
        "remark": method.remark(evidence) if isinstance(evidence, Evidence) else None,
        "reference": method.reference,
        **_counts(method, evidence),
        "version": tightaudit.__version__,
    }


def bound_fields(bound: Bound) -> dict[str, Any]:
    """A bound with everything it was computed from."""
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


def _counts(method: Method, evidence: Evidence | WeightedCount) -> dict[str, Any]:
    reduced = method.reduced(evidence) if isinstance(evidence, Evidence) else evidence
    statistic = reduced.statistic if isinstance(reduced, WeightedCount) else None
    released, errors = (
        (evidence.released, evidence.errors) if isinstance(evidence, Evidence) else (None, None)
    )
    return {"n": evidence.n, "released": released, "errors": errors, "statistic": statistic}

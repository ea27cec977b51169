"""Results as plain values, for JSON."""

from __future__ import annotations

from typing import Any

import tightaudit
from tightaudit.bounds import Bound
from tightaudit.game import Evidence
from tightaudit.pvalues.base import Method
from tightaudit.tradeoffs.base import Family, TradeOff


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

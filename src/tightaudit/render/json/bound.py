"""P-values and bounds as plain values."""

from typing import Any

import tightaudit
from tightaudit.bounds.one_run import Bound
from tightaudit.methods.base import AnyEvidence, Test


def setting_fields(test: Test, evidence: AnyEvidence) -> dict[str, Any]:
    """What a result was computed by and from, and what it rests on."""
    method = test.method
    return {
        "method": method.name,
        "assumes": {
            "independent_outcomes": method.assumes.independent_outcomes,
            "independent_runs": method.independent_runs,
            "claims": method.assumes.claims,
            "evidence": method.assumes.evidence,
        },
        "caveat": method.assumes.caveat,
        "options": method.options,
        "remark": test.remark,
        "reference": method.reference,
        **test.counts(evidence),
        "version": tightaudit.__version__,
    }


def bound_fields(bound: Bound) -> dict[str, Any]:
    """A bound with everything it was computed from."""
    fields = setting_fields(bound.test, bound.evidence)
    fields["assumes"]["family"] = bound.beliefs.family and str(bound.beliefs.family)
    return {
        "epsilon": bound.epsilon,
        "parameter": bound.parameter,
        "parameter_name": bound.family.parameter,
        "status": bound.status,
        "delta": bound.delta,
        "confidence": bound.confidence,
        "family": str(bound.family),
        **fields,
    }

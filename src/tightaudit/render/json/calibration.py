"""A calibration as plain values."""

from typing import Any

import tightaudit
from tightaudit.planning.release import as_release
from tightaudit.render.json.numbers import finite_or_none
from tightaudit.render.wording import in_cells
from tightaudit.simulate.calibration import Calibration, MeanBound, Rejections


def calibration_fields(result: Calibration) -> dict[str, Any]:
    """Everything a calibration found; a mean that is not finite is null."""
    audits = result.audits
    return {
        "mechanism": str(result.mechanism),
        "independent": result.mechanism.independent,
        "claim": str(result.claim),
        "claim_is_true": result.claim_is_true,
        "n": audits.n,
        "runs": audits.runs,
        "released": as_release(audits.released).said,
        "repetitions": audits.times,
        "seed": audits.seed,
        "delta": result.question.delta,
        "confidence": result.question.confidence,
        "true_epsilon": finite_or_none(result.true_epsilon),
        "rejections": [
            {**_fields(row), "rate": row.rate, "interval": list(row.interval), "exceeds": row.exceeds}
            for row in result.rejections
        ],
        "bounds": [
            {**_fields(row), "mean": finite_or_none(row.mean), "spread": finite_or_none(row.spread)}
            for row in result.bounds
        ],
        "version": tightaudit.__version__,
    }


def _fields(row: Rejections | MeanBound) -> dict[str, Any]:
    plain = {name: value for name, value in vars(row).items() if name != "row"}
    return {**plain, "row": None if row.row is None else in_cells(row.row)}

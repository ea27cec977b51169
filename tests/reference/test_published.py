"""What others have published about the same formulas, and how far we are from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import tightaudit as ta

PUBLISHED: dict[str, Any] = json.loads((Path(__file__).parent / "published.json").read_text(encoding="utf-8"))
JAX_PRIVACY = PUBLISHED["jax_privacy"]
SIDE, LEVEL, DELTA = 10_000, 0.05, 1e-6
STATED_TO = 1e-5


def thresholds_of(shift: float) -> tuple[list[tuple[int, int]], int]:
    """(released, errors) at every corner of the convex hull of the ROC curve, and how many corners it has.

    JAX-Privacy looks at these thresholds alone, and divides its level by their number. Slopes of the hull
    fall from left to right, so a corner stays only while they do.
    """
    quantiles = ndtri((np.arange(SIDE) + 0.5) / SIDE)
    cuts = np.append(np.union1d(quantiles, quantiles + shift), np.inf)
    missed = np.searchsorted(quantiles + shift, cuts).tolist()
    spared = np.searchsorted(quantiles, cuts).tolist()
    corners: list[tuple[int, int]] = []
    for point in zip(missed, spared, strict=True):
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (point[0] - x1) > (point[1] - y1) * (x1 - x0):
                break
            corners.pop()
        corners.append(point)
    counts = [(2 * SIDE - miss - spare, SIDE - spare) for miss, spare in corners]
    return [(released, errors) for released, errors in counts if 2 * errors < released], len(corners)


def largest_bound(case: dict[str, Any]) -> float:
    """The largest bound over the thresholds, each at its share of the level."""
    counts, corners = thresholds_of(case["shift"])
    family = ta.ApproxDP.family(delta=DELTA) if case["method"] == "steinke" else ta.Gaussian.family()
    confidence, best = 1 - LEVEL / corners, 0.0
    claim: ta.Claim | None = None
    for released, errors in sorted(counts, key=lambda count: count[1] / count[0] + 1 / count[0] ** 0.5):
        evidence = ta.Evidence(2 * SIDE, released, errors)
        if claim is not None and ta.p_value(evidence, claim, method=case["method"]) > LEVEL / corners:
            continue
        bound = ta.lower_bound(evidence, family, delta=DELTA, confidence=confidence, method=case["method"])
        if bound.epsilon is not None and bound.epsilon > best:
            best, claim = bound.epsilon, family.at_epsilon(bound.epsilon, DELTA)
    return best


def test_bounds_that_jax_privacy_states(record_property: Any) -> None:
    deviations = {}
    for case in JAX_PRIVACY["bounds"]:
        ours, theirs = largest_bound(case), case["epsilon"]
        deviations[f"{case['method']}, shift {case['shift']}"] = abs(ours - theirs) / max(theirs, 1e-300)
        assert ours == pytest.approx(theirs, rel=STATED_TO, abs=1e-12)
    worst = max(deviations, key=lambda name: deviations[name])
    print(f"largest deviation from JAX-Privacy's bounds: {deviations[worst]:.1e}, relative ({worst})")
    record_property("largest_deviation", deviations[worst])

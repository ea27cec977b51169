"""The recursion against a plain loop without early stopping, on curves from the definition of f."""

from __future__ import annotations

import pytest
from tests.conftest import SAMPLE_CLAIMS

import tightaudit as ta


def rejected_by_the_book(claim: ta.Claim, n: int, r: int, errors: int, level: float) -> bool:
    correct = r - errors
    a, h = level * correct / n, level * errors / n
    for i in range(correct - 1, -1, -1):
        raised = max(h, claim.inverse(max(0.0, 1 - a)) if a <= 1 else 1.0)
        a, h = a + i / (r - i) * (raised - h), raised
    return a + h > r / n


SYMMETRIC = [
    claim
    for claim in SAMPLE_CLAIMS
    if not isinstance(claim, ta.SubsampledGaussian | ta.Tabulated | ta.PrivacyLoss)
]


@pytest.mark.parametrize("claim", SYMMETRIC, ids=str)
@pytest.mark.parametrize(
    ("n", "released", "errors"), [(50, 50, 9), (300, 60, 4), (300, 60, 0), (40, 1, 0), (300, 200, 70)]
)
def test_smallest_rejecting_level(claim: ta.Claim, n: int, released: int, errors: int) -> None:
    p = ta.p_value(ta.Evidence(n, released, errors), claim, method="fdp-recursion")
    assert 0 < p <= 1
    if 1e-9 < p < 1:
        assert rejected_by_the_book(claim, n, released, errors, p * (1 + 1e-5))
    if p > 1e-9:
        assert not rejected_by_the_book(claim, n, released, errors, p * (1 - 1e-5))


@pytest.mark.parametrize("claim", SAMPLE_CLAIMS, ids=str)
def test_decision_at_a_level_agrees_with_the_p_value(claim: ta.Claim) -> None:
    evidence, method = ta.Evidence(400, 80, 6), ta.FdpRecursion()
    p = method.p_value(claim, evidence)
    for level in (0.001, 0.05, 0.5):
        assert (method.excess(claim, evidence, level) <= 0) == (p <= level)

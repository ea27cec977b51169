"""Numbers from two implementations that share nothing with this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tightaudit as ta

HERE = Path(__file__).parent
CASES: dict[str, list[dict[str, Any]]] = json.loads((HERE / "cases.json").read_text())
HIGH_PRECISION: list[dict[str, Any]] = json.loads((HERE / "high_precision.json").read_text())


def evidence_of(case: dict[str, Any]) -> ta.Evidence:
    return ta.Evidence(n=case["n"], released=case["released"], errors=case["errors"])


@pytest.mark.parametrize("case", CASES["p_values"], ids=lambda case: case["null"])
def test_p_values_of_the_reference(case: dict[str, Any]) -> None:
    claim, evidence = ta.as_claim(case["null"]), evidence_of(case)
    assert ta.p_value(evidence, claim, method="exact") == pytest.approx(case["exact"], rel=1e-10)
    if "order-statistics" in case:
        p = ta.p_value(evidence, claim, method="order-statistics")
        assert p == pytest.approx(case["order-statistics"], rel=5e-6)
    for method in ("steinke", "fdp-recursion"):
        if method in case:
            assert ta.p_value(evidence, claim, method=method) == pytest.approx(case[method], rel=1e-6)
    if "expected_errors" in case:
        mean = ta.expected_errors(claim, n=case["n"], released=case["released"])
        assert mean == pytest.approx(case["expected_errors"], rel=1e-6)


@pytest.mark.parametrize("case", CASES["bounds"], ids=lambda case: case["family"])
def test_bounds_of_the_reference(case: dict[str, Any]) -> None:
    for method in ("exact", "order-statistics"):
        if method not in case:
            continue
        bound = ta.lower_bound(
            evidence_of(case),
            case["family"],
            delta=case["delta"],
            confidence=case["confidence"],
            method=method,
        )
        assert bound.epsilon == pytest.approx(case[method], abs=1e-5)
        if method == "exact":
            assert bound.parameter == pytest.approx(case["parameter"], abs=1e-6)


@pytest.mark.parametrize("case", HIGH_PRECISION, ids=lambda case: f"{case['null']}-{case['released']}")
def test_exact_against_thirty_digits(case: dict[str, Any]) -> None:
    """`high_precision.py` integrates over the outcome with mpmath; p goes down to 1e-14."""
    p = ta.p_value(evidence_of(case), ta.as_claim(case["null"]), method="exact")
    assert p == pytest.approx(float(case["exact"]), rel=1e-11)


@pytest.mark.parametrize("case", CASES["bounds"], ids=lambda case: case["family"])
def test_steinke_bounds_of_the_reference(case: dict[str, Any]) -> None:
    family = ta.ApproxDP.family(delta=case["delta"])
    bound = ta.lower_bound(evidence_of(case), family, delta=case["delta"], method="steinke")
    assert bound.epsilon == pytest.approx(case["steinke on approx-dp"], abs=1e-6)


@pytest.mark.parametrize(
    ("claim", "counts", "optimum", "recursion", "steinke"),
    [
        (ta.Gaussian(1.0), (100, 100, 9), 0.0757, 0.0971, None),
        (ta.Gaussian(1.0), (1000, 200, 5), 0.0198, 0.0235, None),
        (ta.ApproxDP(1.0, 1e-3), (100, 100, 15), 0.005605, 0.00595, 0.01407),
        (ta.ApproxDP(1.0, 1e-4), (200, 50, 4), 0.001402, 0.00144, 0.00363),
    ],
    ids=str,
)
def test_check_values_under_any_dependence(
    claim: ta.Claim,
    counts: tuple[int, int, int],
    optimum: float,
    recursion: float,
    steinke: float | None,
) -> None:
    evidence = ta.Evidence(*counts)
    p = ta.p_value(evidence, claim, method="any-dependence")
    assert 0.995 * optimum <= p <= 1.005 * optimum
    assert ta.p_value(evidence, claim, method="fdp-recursion") == pytest.approx(recursion, rel=2e-3)
    if steinke is not None:
        assert ta.p_value(evidence, claim, method="steinke") == pytest.approx(steinke, rel=1e-3)


@pytest.mark.parametrize(
    ("n", "released", "epsilon"),
    [(10_000, 5000, 2.02), (10_000, 2000, 2.59), (100_000, 1000, 3.32), (1_000_000, 2000, 3.53)],
)
def test_recursion_wants_few_released(n: int, released: int, epsilon: float) -> None:
    """Expected counts of the 1-GDP mechanism, rounded; δ=1e-5."""
    errors = round(ta.expected_errors(ta.Gaussian(1.0), n=n, released=released))
    bound = ta.lower_bound(
        ta.Evidence(n, released, errors), ta.Gaussian.family(), delta=1e-5, method="fdp-recursion"
    )
    assert bound.epsilon == pytest.approx(epsilon, abs=0.01)


def test_worked_example_of_the_method() -> None:
    """Gaussian family, n=1000, r=100, u=10, δ=1e-5: 3.1645."""
    bound = ta.lower_bound(ta.Evidence(1000, 100, 10), ta.Gaussian.family(), delta=1e-5)
    assert bound.epsilon == pytest.approx(3.1645, abs=5e-5)


def test_worked_example_of_steinke() -> None:
    """The same counts: 1.626 on the (ε, δ) family, about 1.90 as the minimum over ε on the Gaussian one."""
    evidence = ta.Evidence(1000, 100, 10)
    shapeless = ta.lower_bound(evidence, ta.ApproxDP.family(delta=1e-5), delta=1e-5, method="steinke")
    assert shapeless.epsilon == pytest.approx(1.626, abs=5e-4)
    gaussian = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5, method="steinke")
    assert gaussian.epsilon == pytest.approx(1.90, abs=0.01)


def test_chernoff_falls_below_exact_at_very_small_levels() -> None:
    """Why order-statistics is not for tiny levels: μ=4, n=r=10⁴, u=160 gives 5e-7 against 1.1e-6."""
    evidence, claim = ta.Evidence(10_000, 10_000, 160), ta.Gaussian(4.0)
    assert ta.p_value(evidence, claim, method="order-statistics") == pytest.approx(5e-7, rel=0.1)
    assert ta.p_value(evidence, claim, method="exact") == pytest.approx(1.1e-6, rel=0.05)

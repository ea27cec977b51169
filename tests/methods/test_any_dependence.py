"""The linear program against a plain one that leaves nothing out, and the order of the methods."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from scipy.sparse import lil_array
from scipy.special import bdtr
from tests.conftest import SAMPLE_CLAIMS

import tightaudit as ta
from tightaudit.methods.any_dependence import LARGEST_PROGRAM
from tightaudit.methods.base import Method
from tightaudit.methods.parts import error_law


def plain_program(claim: ta.Claim, n: int, r: int, u: int, points: int) -> float:
    """All counts, both sums, a uniform grid of ε with the kinks: as the statement has it."""
    last = next(e for e in np.geomspace(0.1, 30, 60) if claim.symmetric_delta(float(e)) < 1e-6 or e > 29)
    epsilons = np.union1d(np.linspace(0, min(last, 9), points), claim.curve_kinks)
    slacks = 2 * r * epsilons.size
    rows = lil_array((slacks + epsilons.size, r + 1 + slacks))
    limits = np.zeros(slacks + epsilons.size)
    row = 0
    for j, epsilon in enumerate(epsilons):
        shrink = math.exp(-epsilon)
        for k in range(r):
            for gain, loss in (((k, r - k), (k + 1, k + 1)), ((k + 1, k + 1), (k, r - k))):
                rows[row, gain[0]] = shrink * gain[1]
                rows[row, loss[0]] = -loss[1]
                rows[row, r + 1 + row] = -1
                rows[slacks + j, r + 1 + row] = 1
                row += 1
        limits[slacks + j] = n * claim.symmetric_delta(float(epsilon)) * shrink
    objective = np.zeros(r + 1 + slacks)
    objective[: u + 1] = -1
    total = np.zeros((1, r + 1 + slacks))
    total[0, : r + 1] = 1
    result = linprog(objective, A_ub=rows.tocsr(), b_ub=limits, A_eq=total, b_eq=[1], method="highs")  # type: ignore[call-overload]
    assert result.status == 0
    return float(-result.fun)


@pytest.mark.parametrize(
    "claim",
    [
        ta.Gaussian(0.5),
        ta.Gaussian(1.0),
        ta.Gaussian(3.0),
        ta.Laplace(1.0),
        ta.ApproxDP(1.0, 0.01),
        ta.SubsampledGaussian(1.0, 0.3),
        ta.Tabulated([0.0, 0.1, 0.4, 1.0], [0.9, 0.5, 0.2, 0.0]),
    ],
    ids=str,
)
@pytest.mark.parametrize(("n", "released", "errors"), [(30, 30, 4), (150, 20, 1), (40, 20, 0)])
def test_against_the_program_written_out_in_full(claim: ta.Claim, n: int, released: int, errors: int) -> None:
    full = plain_program(claim, n, released, errors, points=60)
    p = ta.p_value(ta.Evidence(n, released, errors), claim, method="any-dependence")
    assert p == pytest.approx(full, rel=0.006)


@pytest.mark.parametrize("claim", SAMPLE_CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "released"), [(30, 30), (200, 40), (7, 1)])
def test_between_exact_and_the_other_valid_bounds(claim: ta.Claim, n: int, released: int) -> None:
    for errors in sorted({0, released // 8, released // 3, released}):
        evidence = ta.Evidence(n, released, errors)
        exact, optimum, recursion, steinke = (
            ta.p_value(evidence, claim, method=method)
            for method in ("exact", "any-dependence", "fdp-recursion", "steinke")
        )
        assert exact <= optimum * 1.000001 + 1e-9
        assert optimum <= min(recursion, steinke) * 1.01


@given(st.integers(1, 400), st.floats(0, 1), st.floats(0, 5), st.floats(0, 0.6))
@settings(max_examples=40, deadline=None)
def test_pure_dp_is_the_binomial_tail(n: int, share: float, epsilon: float, wrong: float) -> None:
    released = max(1, round(share * n))
    errors = round(wrong * released)
    p = ta.p_value(ta.Evidence(n, released, errors), ta.ApproxDP(epsilon, 0.0), method="any-dependence")
    tail = 1.0 if errors == released else bdtr(errors, released, 1 / (1 + math.exp(epsilon)))
    assert p == pytest.approx(tail, rel=1e-6, abs=1e-7)


def test_nothing_can_do_better_than_a_mechanism_that_exists() -> None:
    """All-or-nothing reveals everything with probability δ: no valid p-value for 0 errors is below δ."""
    evidence = ta.Evidence(100, 50, 0)
    p = ta.p_value(evidence, ta.ApproxDP(0.0, 0.03), method="any-dependence")
    assert p >= 0.03 * (1 - 1e-6)


def test_large_releases_fall_back_and_say_so() -> None:
    method = ta.AnyDependence()
    evidence = ta.Evidence(10**6, LARGEST_PROGRAM + 1, 100)
    claim = ta.Gaussian(1.0)
    others = [ta.p_value(evidence, claim, method=name) for name in ("fdp-recursion", "steinke")]
    assert method.p_value(claim, evidence) == min(others)
    assert "fdp-recursion" in str(method.remark(evidence.released))
    assert "linear program" in str(method.remark(100))


def test_the_limit_of_the_program_is_an_option() -> None:
    evidence, claim = ta.Evidence(1000, 200, 5), ta.Gaussian(1.0)
    limited = ta.AnyDependence(largest_program=199)
    assert limited.p_value(claim, evidence) == ta.p_value(evidence, claim, method="fdp-recursion")
    assert "more than 199" in str(limited.remark(evidence.released))
    assert ta.p_value(evidence, claim, method="any-dependence") < limited.p_value(claim, evidence)


def test_a_program_that_is_not_solved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unsolved:
        status, message = 4, "numerical difficulties"

    monkeypatch.setattr(error_law, "linprog", lambda *_, **__: Unsolved())
    with pytest.raises(ArithmeticError, match="not solved: numerical difficulties"):
        ta.p_value(ta.Evidence(100, 100, 9), ta.Gaussian(1.0), method="any-dependence")


def test_bound_lies_between_the_recursion_and_exact() -> None:
    evidence, family = ta.Evidence(500, 100, 8), ta.Gaussian.family()
    bounds = [
        ta.lower_bound(evidence, family, delta=1e-5, method=method)
        for method in ("fdp-recursion", "any-dependence", "exact")
    ]
    recursion, optimum, exact = (bound.epsilon or 0.0 for bound in bounds)
    assert recursion < optimum < exact
    parameter = bounds[1].parameter
    assert parameter is not None
    assert ta.p_value(evidence, ta.Gaussian(parameter), method="any-dependence") <= 0.05


@pytest.mark.parametrize("found_for", [0.6, 1.0, 1.7])
def test_one_dual_serves_every_claim(found_for: float) -> None:
    """The value of a dual at another claim is never below that claim's own optimum, and equal at its own."""
    evidence = ta.Evidence(400, 100, 14)
    dual = error_law.solved(ta.Gaussian(found_for), evidence, 1.0)
    others = [ta.Gaussian(mu) for mu in (0.3, 0.6, 1.0, 1.7)]
    for claim in [*others, ta.Laplace(1.0), ta.SubsampledGaussian(1.0, 0.5), ta.ApproxDP(1.0, 0.01)]:
        optimum = ta.p_value(evidence, claim, method="any-dependence")
        assert dual.p_value(claim, evidence.n) >= optimum * (1 - 2e-3)
    own = ta.Gaussian(found_for)
    assert dual.p_value(own, 400) == pytest.approx(
        ta.p_value(evidence, own, method="any-dependence"), rel=5e-3
    )


@pytest.mark.parametrize("family", ["gaussian", "subsampled-gaussian(q=0.5)", "published-sampling(q=0.3)"])
def test_bounds_by_the_dual_are_those_of_a_program_for_every_claim(family: str) -> None:
    searched, method = ta.as_family(family), ta.AnyDependence()
    evidence = ta.Evidence(1000, 120, 9)
    by_dual = method.last_rejected(searched, evidence, 0.05)
    one_by_one = Method.last_rejected(method, searched, evidence, 0.05)
    assert by_dual == pytest.approx(one_by_one, rel=5e-4)
    assert method.p_value(searched.leaking(by_dual), evidence) <= 0.05 * 1.002


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.4, 0.8])
def test_a_small_program_guesses_the_losses_of_a_large_one(mu: float, share: float) -> None:
    """Against the program that works out its losses at full size."""
    claim = ta.Gaussian(mu)
    errors = int(share * ta.expected_errors(claim, n=1500, released=400))
    evidence = ta.Evidence(1500, 400, errors)
    guessed, whole = (
        error_law.solved(claim, evidence, 1.0, guessed=size).p_value(claim, 1500) for size in (160, 400)
    )
    assert guessed == pytest.approx(whole, rel=5e-3)

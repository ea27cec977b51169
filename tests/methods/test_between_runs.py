"""Several runs: published check values, brute force over pairs of mechanisms, and what must not happen."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import tightaudit as ta
from tightaudit.methods.between_runs import BetweenRuns, _at_most
from tightaudit.methods.exact import expected_errors
from tightaudit.methods.parts.error_law import Program, grid_of, laplace_dual

RUNS, ERRORS, BOUNDS = (2, 3, 5, 10, 20), (21, 32, 53, 105, 210), (3.307, 3.411, 3.538, 3.663, 3.739)
"""1-GDP, δ = 1e-5, n = 10⁴ and r = 200 in each run, errors as expected: the bound by convolution."""


def bound(runs: int, released: int, errors: int, method: str) -> float:
    evidence = ta.Evidence(n=10_000 * runs, released=released * runs, errors=errors, runs=runs)
    return ta.lower_bound(evidence, "gaussian", delta=1e-5, method=method).epsilon or 0.0


@pytest.mark.parametrize(("runs", "errors", "published"), list(zip(RUNS, ERRORS, BOUNDS, strict=True)))
def test_check_values(runs: int, errors: int, published: float) -> None:
    assert bound(runs, 200, errors, "fdp-recursion") == pytest.approx(published, abs=1e-3)
    assert bound(runs, 200, errors, "any-dependence") >= published


def test_many_runs_with_few_released() -> None:
    """The exponential bound is the better one here; the published figures are for it."""
    for runs, convolved, exponential in ((10, 3.411, 3.436), (20, 3.525, 3.676)):
        errors = round(runs * expected_errors(ta.Gaussian(1.0), n=10_000, released=50))
        assert bound(runs, 50, errors, "fdp-recursion") == pytest.approx(convolved, abs=1e-3)
        assert bound(runs, 50, errors, "any-dependence") >= exponential


def constraints(claim: ta.Claim, n: int, epsilons: Any) -> tuple[Any, Any]:
    """What a claim says of the law of the errors among all n guesses, without slack variables.

    A sum of positive parts is the largest of the sums of some of the parts, which can be listed for small n.
    """
    rows, limits = [], []
    for epsilon in epsilons:
        for signs in itertools.product([0, 1], repeat=2 * n):
            row = np.zeros(n + 1)
            for k in range(n):
                ahead, behind = np.zeros(n + 1), np.zeros(n + 1)
                ahead[k], ahead[k + 1] = n - k, -math.exp(epsilon) * (k + 1)
                behind[k], behind[k + 1] = -math.exp(epsilon) * (n - k), k + 1
                row += signs[2 * k] * ahead + signs[2 * k + 1] * behind
            rows.append(row)
            limits.append(n * float(claim.symmetric_delta(epsilon)))
    return np.array(rows), np.array(limits)


def best_pair(claims: list[ta.Claim], sizes: tuple[int, int], errors: int, epsilons: Any) -> float:
    """The largest Pr[K₁+K₂ ≤ errors] that was found over pairs of mechanisms: one law after the other."""
    limits = [constraints(claim, n, epsilons) for claim, n in zip(claims, sizes, strict=True)]
    worth = np.add.outer(np.arange(sizes[0] + 1), np.arange(sizes[1] + 1)) <= errors
    rng, best = np.random.default_rng(1), 0.0
    for _ in range(20):
        laws = [rng.dirichlet(np.ones(n + 1)) for n in sizes]
        for place in (0, 1, 0, 1, 0, 1):
            gain = worth @ laws[1] if place == 0 else laws[0] @ worth
            matrix, limit = limits[place]
            found: Any = linprog(
                -gain, A_ub=matrix, b_ub=limit, A_eq=np.ones((1, gain.size)), b_eq=[1.0], method="highs"
            )
            laws[place], value = found.x, -found.fun
        best = max(best, value)
    return best


@pytest.mark.parametrize("claim", [ta.Gaussian(1.0), ta.ApproxDP(1.0, 0.05), ta.Laplace(1.0)], ids=str)
@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (3, 3), (2, 3)])
def test_no_pair_of_mechanisms_does_better(claim: ta.Claim, sizes: tuple[int, int]) -> None:
    epsilons = np.union1d(np.linspace(0, 5, 81), claim.curve_kinks)
    total = sum(sizes)
    for errors in range(total):
        evidence = ta.Evidence(n=total, released=total, errors=errors, runs=sizes)
        optimum = best_pair([claim, claim], sizes, errors, epsilons)
        for method in ("fdp-recursion", "any-dependence"):
            p = ta.p_value(evidence, claim, method=method)
            # Brute force looks at a grid of ε, which gives it a little more room.
            assert p >= optimum - (1e-6 if claim.piecewise_linear else 1e-3), (errors, method)


def test_two_coins_are_a_binomial() -> None:
    """Runs of one canary with (ε, 0)-DP have independent errors: the bound is exact."""
    claim, wrong = ta.ApproxDP(1.0, 0.0), 1 / (1 + math.e)
    evidence = ta.Evidence(n=5, released=5, errors=1, runs=(1,) * 5)
    expected = (1 - wrong) ** 5 + 5 * wrong * (1 - wrong) ** 4
    assert ta.p_value(evidence, claim, method="fdp-recursion") == pytest.approx(expected, rel=1e-4)


def test_convolution() -> None:
    law = np.array([0.1, 0.4, 1.0])
    masses = np.diff(law, prepend=0.0)
    exact = sum(
        masses[i] * masses[j] * masses[k]
        for i, j, k in itertools.product(range(3), repeat=3)
        if i + j + k <= 3
    )
    assert _at_most({(9, 2): law}, {(9, 2): 3}, 3) == pytest.approx(exact)
    # What bounds Pr[K ≤ 1] bounds Pr[K ≤ 0].
    assert _at_most({(9, 2): np.array([0.5, 0.4, 1.0])}, {(9, 2): 1}, 0) == pytest.approx(0.4)


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
def test_exponential_moments_against_a_plain_program(rate: float) -> None:
    claim, n, r, epsilons = ta.Gaussian(0.9), 12, 5, np.linspace(0, 5, 26)
    slacks = 2 * r * epsilons.size
    matrix, limits = np.zeros((slacks + epsilons.size, r + 1 + slacks)), np.zeros(slacks + epsilons.size)
    for row, (place, k, side) in enumerate(itertools.product(range(epsilons.size), range(r), (0, 1))):
        ahead, behind = (k, k + 1) if side == 0 else (k + 1, k)
        factor = math.exp(epsilons[place])
        matrix[row, ahead] = (r - k) if side == 0 else (k + 1)
        matrix[row, behind] = -factor * ((k + 1) if side == 0 else (r - k))
        matrix[row, r + 1 + row] = -1
        matrix[slacks + place, r + 1 + row] = 1
        limits[slacks + place] = n * claim.symmetric_delta(float(epsilons[place]))
    gain = np.zeros(r + 1 + slacks)
    gain[: r + 1] = np.exp(-rate * np.arange(r + 1))
    total = (np.arange(gain.size) <= r)[None, :].astype(float)
    solved: Any = linprog(-gain, A_ub=matrix, b_ub=limits, A_eq=total, b_eq=[1.0], method="highs")
    found = laplace_dual(claim, n, r, rate, 26).p_value(claim, n)
    assert found == pytest.approx(-solved.fun, rel=0.01)


def test_one_dual_serves_every_claim() -> None:
    """A search with duals found elsewhere ends where the p-value at the claim itself crosses the level."""
    evidence = ta.Evidence(n=2000, released=80, errors=6, runs=2)
    found = ta.lower_bound(evidence, "gaussian", delta=1e-5, method="any-dependence")
    assert found.parameter is not None
    assert ta.p_value(evidence, ta.Gaussian(found.parameter), method="any-dependence") <= 0.05
    assert ta.p_value(evidence, ta.Gaussian(1.01 * found.parameter), method="any-dependence") > 0.05


def test_runs_of_different_sizes() -> None:
    evidence = ta.Evidence(n=1500, released=75, errors=4, runs=(1000, 500))
    low, high = (
        ta.p_value(ta.Evidence(n=n, released=75, errors=4, runs=2), "gaussian(mu=1)", method="fdp-recursion")
        for n in (1000, 2000)
    )
    p = ta.p_value(evidence, "gaussian(mu=1)", method="fdp-recursion")
    assert min(low, high) < p < max(low, high)


def test_a_few_sizes_do_not_cost_much() -> None:
    """Runs of nearly the same size are told as much as runs of one size."""
    alike, mixed = (
        ta.lower_bound(
            ta.Evidence(n=9190, released=200, errors=10, runs=sizes),
            "gaussian",
            delta=1e-5,
            method="any-dependence",
        ).epsilon
        for sizes in ((919,) * 10, (915, 917, 919, 921, 923) * 2)
    )
    assert mixed == pytest.approx(alike, rel=0.01)


def test_one_run_is_no_several() -> None:
    one = ta.Evidence(n=1000, released=100, errors=8, runs=1)
    assert one == ta.Evidence(n=1000, released=100, errors=8)
    assert ta.p_value(one, "gaussian(mu=1)", method="fdp-recursion") == ta.p_value(
        ta.Evidence(1000, 100, 8), "gaussian(mu=1)", method="fdp-recursion"
    )


def test_bad_input() -> None:
    with pytest.raises(ta.InputError, match="runs=3: expected a number that divides n=1000"):
        ta.Evidence(n=1000, released=100, errors=8, runs=3)
    with pytest.raises(ta.InputError, match="runs=900 canaries in all: expected n=1000"):
        ta.Evidence(n=1000, released=100, errors=8, runs=(400, 500))
    with pytest.raises(ta.InputError, match="runs=1: expected"):
        BetweenRuns(runs=1)
    evidence = ta.Evidence(n=1000, released=100, errors=8, runs=2)
    for method in ("exact", "steinke", "rank-weighted"):
        with pytest.raises(ta.InputError, match=f"method={method}: expected one for several runs"):
            ta.p_value(evidence, "gaussian(mu=1)", method=method)


@pytest.mark.parametrize("errors", [0, 1, 3, 6])
def test_the_worst_laws_of_one_run_do_not_beat_several(errors: int) -> None:
    """Runs that are each as bad as a run can be for some count, added up exactly."""
    claim, n, r, runs = ta.Gaussian(1.0), 1000, 50, 3
    program = Program(n, r, errors)
    assert program.low == 0
    _, law = program.solve(claim, grid_of(claim, n, r, 60))
    masses = np.maximum(law, 0) / np.maximum(law, 0).sum()
    total = masses
    for _ in range(runs - 1):
        total = np.convolve(total, masses)
    for seen in (0, 3, 6, 12, 20):
        evidence = ta.Evidence(n=runs * n, released=runs * r, errors=seen, runs=runs)
        # The program's grid of ε leaves a law a little more room than the claim does.
        exact = total[: seen + 1].sum()
        assert exact <= 1.01 * ta.p_value(evidence, claim, method="any-dependence") + 1e-9, seen

"""The linear program against a plain one that leaves nothing out, and the order of the methods."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.linalg import LinAlgError
from scipy.optimize import linprog
from scipy.sparse import coo_array, lil_array
from scipy.special import bdtr
from tests.conftest import SAMPLE_CLAIMS

import tightaudit as ta
from tightaudit.methods.any_dependence import LARGEST_PROGRAM
from tightaudit.methods.base import Method
from tightaudit.methods.parts import chain_program, error_law
from tightaudit.support.checks import FloatArray


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


def test_where_arithmetic_breaks_down_there_is_still_a_valid_p_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise LinAlgError("not positive definite")

    evidence, claim = ta.Evidence(100, 100, 9), ta.Gaussian(1.0)
    optimum = ta.p_value(evidence, claim, method="any-dependence")
    monkeypatch.setattr(chain_program, "cholesky_banded", fails)
    p = ta.p_value(evidence, claim, method="any-dependence")
    assert optimum < p <= ta.p_value(evidence, claim, method="fdp-recursion")


@given(
    st.integers(1, 3000),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(
        [
            *(ta.Gaussian(mu) for mu in (1e-3, 0.1, 1.0, 4.0, 20.0)),
            *(ta.Laplace(mu) for mu in (0.01, 3.0)),
            *(
                ta.ApproxDP(*point)
                for point in ((0.0, 0.0), (0.0, 1.0), (3.0, 0.0), (1.0, 1e-9), (30.0, 0.2), (700.0, 1e-5))
            ),
            ta.SubsampledGaussian(2.0, 0.01),
            ta.Tabulated([0.0, 0.1, 0.4, 1.0], [0.9, 0.5, 0.2, 0.0]),
        ]
    ),
)
@example(1000, 0.999, 1 / 3, ta.Gaussian(0.1))
@example(100, 1.0, 0.1, ta.ApproxDP(700.0, 1e-5))
@settings(max_examples=60, deadline=None)
def test_there_is_always_a_p_value(n: int, share: float, wrong: float, claim: ta.Claim) -> None:
    released = max(1, round(share * n))
    evidence = ta.Evidence(n, released, round(wrong * released))
    exact, p, recursion = (
        ta.p_value(evidence, claim, method=method) for method in ("exact", "any-dependence", "fdp-recursion")
    )
    assert 0 <= exact <= p <= max(exact, recursion) <= 1


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


@pytest.mark.parametrize("claim", [ta.Gaussian(0.3), ta.Gaussian(3.0), ta.Laplace(1.0)], ids=str)
@pytest.mark.parametrize("share", [0.4, 0.8])
def test_a_mechanism_with_one_score_for_all_does_not_beat_the_dual(claim: ta.Claim, share: float) -> None:
    n = 400
    errors = int(share * ta.expected_errors(claim, n=n, released=n))
    dual = error_law.solved(claim, ta.Evidence(n, n, errors), 1.0)
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    shared = float(np.mean(bdtr(errors, n, np.asarray(claim.error_probability(quantiles)))))
    assert dual.p_value(claim, n) >= shared * (1 - 1e-4)


def outcomes_of_two_bits() -> dict[tuple[int, int], float]:
    """The probability of each pair of guesses when both bits are 0: (2, 0.01)-DP, found by hand.

    All probabilities depend on the number of errors only; one error is as likely as the claim allows.
    """
    epsilon, delta = 2.0, 0.01
    one = (1 + delta * math.exp(-epsilon)) / (math.exp(epsilon) / 2 + 1 + math.exp(-epsilon) / 2)
    none, two = math.exp(epsilon) * one / 2, (one / 2 - delta) * math.exp(-epsilon)
    return {(0, 0): none, (0, 1): one / 2, (1, 0): one / 2, (1, 1): two}


def test_a_mechanism_on_two_bits_for_which_steinkes_formula_is_too_small() -> None:
    law = outcomes_of_two_bits()
    assert sum(law.values()) == pytest.approx(1)
    claim = ta.ApproxDP(2.0, 0.01)
    # Flipping the first bit flips what the first guess is; every event is a set of pairs of guesses.
    flipped = {(1 - first, second): chance for (first, second), chance in law.items()}
    for one, other in ((law, flipped), (flipped, law)):
        most = sum(max(0.0, one[pair] - math.exp(2.0) * other[pair]) for pair in law)
        assert most <= 0.01 + 1e-12
    at_most_one_error = 1 - law[1, 1]
    assert at_most_one_error == pytest.approx(0.987125, abs=1e-6)
    evidence = ta.Evidence(2, 2, 1)
    for method in ("any-dependence", "steinke", "fdp-recursion"):
        assert ta.p_value(evidence, claim, method=method) >= at_most_one_error * (1 - 1e-9), method
    # The formula itself: Pr[B ≥ 1] + 4δ·Pr[B = 0].
    nothing_right = (1 / (1 + math.exp(2.0))) ** 2
    assert 1 - nothing_right + 0.04 * nothing_right < at_most_one_error


def most_of_any_mechanism(claim: ta.Claim, n: int, errors: int, epsilons: FloatArray) -> float:
    """The largest Pr[at most so many errors] over all mechanisms on n bits whose output is n guesses.

    One variable per input and output; for each bit, direction and ε a sum of positive parts over outputs.
    """
    vectors = list(itertools.product((0, 1), repeat=n))
    index = {pair: place for place, pair in enumerate(itertools.product(vectors, vectors))}
    rows: list[tuple[int, int, float]] = []
    limits: list[float] = []
    width = len(index)
    for place, bits, (epsilon, direction) in itertools.product(
        range(n), vectors, itertools.product(epsilons, (0, 1))
    ):
        if bits[place] != direction:
            continue
        other = (*bits[:place], 1 - bits[place], *bits[place + 1 :])
        budget = len(limits)
        limits.append(one_way_delta(claim, epsilon, to_one=direction == 1))
        for guesses in vectors:
            row = len(limits)
            limits.append(0.0)
            rows += [
                (row, index[bits, guesses], 1.0),
                (row, index[other, guesses], -math.exp(epsilon)),
                (row, width, -1.0),
                (budget, width, 1.0),
            ]
            width += 1
    places, columns, values = (np.array(part) for part in zip(*rows, strict=True))
    matrix = coo_array((values, (places, columns)), shape=(len(limits), width)).tocsr()
    gain = np.zeros(width)
    total = lil_array((len(vectors), width))
    for (bits, guesses), place in index.items():
        wrong = sum(bit != guess for bit, guess in zip(bits, guesses, strict=True))
        gain[place] = -(wrong <= errors) / len(vectors)
        total[vectors.index(bits), place] = 1.0
    result = linprog(  # type: ignore[call-overload]
        gain, A_ub=matrix, b_ub=limits, A_eq=total.tocsr(), b_eq=np.ones(len(vectors)), method="highs"
    )
    assert result.status == 0
    return float(-result.fun)


def one_way_delta(claim: ta.Claim, epsilon: float, *, to_one: bool) -> float:
    """The largest Q(S) - e^ε·P(S), or with P and Q exchanged, from the trade-off function on a grid."""
    alpha = np.append(0.0, np.geomspace(1e-9, 1, 20_001))
    beta = np.asarray(claim.f(alpha) if to_one else claim.inverse(alpha))
    return float(np.max(1 - beta - math.exp(epsilon) * alpha))


@pytest.mark.parametrize("claim", [ta.Gaussian(1.0), ta.Laplace(1.0), ta.ApproxDP(1.0, 0.05)], ids=str)
@pytest.mark.parametrize("n", [2, 3])
def test_nothing_smaller_is_valid_for_a_symmetric_claim(claim: ta.Claim, n: int) -> None:
    epsilons = np.union1d(np.linspace(0, 6, 25), claim.curve_kinks)
    for errors in range(n):
        brute = most_of_any_mechanism(claim, n, errors, epsilons)
        p = ta.p_value(ta.Evidence(n, n, errors), claim, method="any-dependence")
        if brute > 0.96:
            # So near to 1 the search for a smaller one stops early.
            assert brute - 1e-9 <= p <= 1
        else:
            # On a grid of ε brute force allows more than a smooth curve does.
            assert p == pytest.approx(brute, rel=3e-4 if claim.piecewise_linear else 5e-3)


def test_for_a_claim_that_is_not_symmetric_something_smaller_is_valid() -> None:
    claim = ta.SubsampledGaussian(4.0, 0.5)
    brute = most_of_any_mechanism(claim, 3, 0, np.linspace(0, 6, 25))
    assert ta.p_value(ta.Evidence(3, 3, 0), claim, method="any-dependence") > 1.02 * brute


@pytest.mark.parametrize(("errors", "claim"), [(150, ta.Gaussian(1.0)), (1200, ta.Gaussian(0.5))], ids=str)
def test_large_programs_are_close_to_small_grids_of_all_counts(errors: int, claim: ta.Claim) -> None:
    """What is left out of a program of 4000 changes nothing that can be seen."""
    n = 20_000 if errors == 150 else 4000
    dual = error_law.solved(claim, ta.Evidence(n, 4000, errors), 1.0)
    whole = error_law.Program(n, 4000, errors)
    whole.low, whole.high = max(0, whole.low - 100), whole.high + 400
    whole.worth = (np.arange(whole.low, whole.high + 1) <= errors).astype(float)
    wider = whole.solve(claim, dual.epsilons)[0]
    assert dual.p_value(claim, n) == pytest.approx(wider.p_value(claim, n), rel=1e-3)


@pytest.mark.parametrize(
    ("family", "counts"),
    [
        ("gaussian", (275, 109, 26)),
        ("subsampled-gaussian(q=0.3)", (2552, 309, 11)),
        ("subsampled-gaussian(q=0.3)", (2912, 223, 1)),
        ("subsampled-gaussian(q=0.3)", (632, 74, 12)),
    ],
)
def test_what_a_search_rejects_is_rejected_by_its_own_program(
    family: str, counts: tuple[int, int, int]
) -> None:
    """The search's dual is of another claim; that claim's own program may end a little higher."""
    evidence = ta.Evidence(*counts)
    bound = ta.lower_bound(evidence, family, delta=1e-5, method="any-dependence")
    assert bound.parameter is not None
    rejected = bound.family.member(bound.parameter)
    assert ta.p_value(evidence, rejected, method="any-dependence") <= 0.05
    next_one = bound.family.member(1.001 * bound.parameter)
    assert ta.p_value(evidence, next_one, method="any-dependence") > 0.05

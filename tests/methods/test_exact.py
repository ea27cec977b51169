"""The exact law against simulation, against itself at its edges, and its monotonicity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import bdtr
from tests.channels import error_rates
from tests.conftest import SAMPLE_CLAIMS, SAMPLE_FAMILIES

import tightaudit as ta

EVERY_CLAIM = pytest.mark.parametrize("claim", SAMPLE_CLAIMS, ids=str)


def simulated_errors(claim: ta.Claim, n: int, released: int, runs: int, seed: int) -> np.ndarray:
    """Error counts of n independent channels, drawn by their definition: confidence quantile, then error."""
    rng = np.random.default_rng(seed)
    top = np.sort(rng.random((runs, n)), axis=1)[:, :released]
    return np.sum(rng.random(top.shape) < error_rates(claim, top), axis=1)


@EVERY_CLAIM
@pytest.mark.parametrize(("n", "released"), [(40, 1), (40, 8), (40, 39), (200, 100), (15, 15)])
def test_law_by_simulation(claim: ta.Claim, n: int, released: int) -> None:
    runs = 20_000
    counts = simulated_errors(claim, n, released, runs, seed=n + released)
    for quantile in (0.02, 0.3, 0.8):
        errors = int(np.quantile(counts, quantile))
        p = ta.p_value(ta.Evidence(n, released, errors), claim)
        assert np.mean(counts <= errors) == pytest.approx(p, abs=4.5 * math.sqrt(p * (1 - p) / runs) + 1e-9)
    mean = ta.expected_errors(claim, n=n, released=released)
    assert counts.mean() == pytest.approx(mean, abs=4.5 * counts.std() / math.sqrt(runs) + 1e-3)


@EVERY_CLAIM
@pytest.mark.parametrize(("n", "released"), [(1, 1), (2, 1), (50, 1), (50, 49), (50, 50), (3000, 600)])
def test_monotone_in_the_errors_and_a_probability(claim: ta.Claim, n: int, released: int) -> None:
    steps = np.unique(np.linspace(0, released, 40).astype(int))
    p = [ta.p_value(ta.Evidence(n, released, int(u)), claim) for u in steps]
    assert np.all(np.isfinite(p))
    assert min(p) >= 0
    assert max(p) <= 1
    assert np.all(np.diff(p) >= -1e-12)
    assert p[-1] == 1


@given(
    st.sampled_from(SAMPLE_FAMILIES),
    st.integers(1, 10**7),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.02, 0.98),
    st.floats(1.0, 2.0),
)
@settings(max_examples=250, deadline=None)
def test_monotone_in_the_parameter(
    family: ta.Family, n: int, share: float, wrong: float, parameter: float, factor: float
) -> None:
    released = max(1, round(share * n))
    evidence = ta.Evidence(n, released, round(wrong * released / 2))
    scale = 1.0 if family.upper == 1 else 10.0
    low = parameter * scale
    high = min(low * factor, family.upper) if family.upper == 1 else low * factor
    more_private = ta.p_value(evidence, family.member(low))
    less_private = ta.p_value(evidence, family.member(high))
    assert 0 <= more_private <= less_private * (1 + 1e-9) + 1e-12 <= 1 + 1e-8


@given(st.sampled_from(SAMPLE_CLAIMS), st.integers(1, 5000), st.data())
@settings(max_examples=100, deadline=None)
def test_released_in_full_it_is_a_binomial_tail(claim: ta.Claim, n: int, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    evidence = ta.Evidence(n, n, errors)
    expected = 1.0 if errors == n else bdtr(errors, n, claim.error_mass(0.0))
    assert ta.p_value(evidence, claim, method="exact") == pytest.approx(expected, rel=1e-8, abs=1e-300)
    assert ta.p_value(evidence, claim, method="bits") == ta.p_value(evidence, claim, method="exact")


def test_pure_dp_is_a_binomial_tail_whatever_is_discarded() -> None:
    """With one error rate for all guesses, discarding some changes nothing."""
    claim = ta.ApproxDP(1.0, 0.0)
    for n, released, errors in ((100, 40, 5), (10**6, 1000, 200), (41, 40, 2)):
        p = ta.p_value(ta.Evidence(n, released, errors), claim)
        assert p == pytest.approx(bdtr(errors, released, 1 / (1 + math.e)), rel=1e-9)


def test_deep_tails_keep_their_digits() -> None:
    """U = 0 under pure DP is (1-p)^r exactly, far below what a double could add up from 1."""
    claim = ta.ApproxDP(0.5, 0.0)
    p = ta.p_value(ta.Evidence(2000, 900, 0), claim)
    assert math.log(p) == pytest.approx(900 * math.log1p(-1 / (1 + math.exp(0.5))), rel=1e-12)


@pytest.mark.parametrize("n", [10**6, 10**9, 10**12])
def test_large_counts_approach_the_normal_law(n: int) -> None:
    """Var = r·p̄(1-p̄) + Var(r·p̄(v)); at the mean the tail is a half up to the skewness."""
    claim = ta.Gaussian(1.0)
    released = n // 5
    mean = ta.expected_errors(claim, n=n, released=released)
    rate, edge = mean / released, claim.error_probability(0.8)
    spread = math.sqrt(released * (rate * (1 - rate) + (edge - rate) ** 2 * 0.8))
    for z, tail in ((-3, 0.001349898), (-1, 0.158655254), (0, 0.5)):
        p = ta.p_value(ta.Evidence(n, released, int(mean + z * spread)), claim)
        assert p == pytest.approx(tail, rel=40 / math.sqrt(spread))


@pytest.mark.parametrize("claim", SAMPLE_CLAIMS, ids=str)
@pytest.mark.parametrize("n", [2, 10, 1000, 10**9, 10**15])
def test_one_guess_errs_as_often_as_expected(claim: ta.Claim, n: int) -> None:
    """With one guess released, the mean number of errors is one minus the probability of none."""
    p = ta.p_value(ta.Evidence(n, 1, 0), claim)
    assert 1 - p == pytest.approx(ta.expected_errors(claim, n=n, released=1), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(
    ("mu", "q", "n", "released", "errors", "p", "digits"),
    [
        # Where the two sides of the channel meet and p jumps. Values from an integration over the score
        # by other code, to the digits given; the first also from 142 735 simulated runs.
        (5.0, 0.95, 10**4, 4750, 2, 0.0055, 1e-2),
        (6.0, 0.95, 10**5, 47_500, 8, 0.0216, 3e-3),
        (4.0, 0.9, 10**5, 41_900, 230, 0.088, 6e-3),
        (5.0, 0.999, 10**6, 483_649, 0, 1.3e-33, 4e-2),
        (0.1, 0.05, 10**9, 1, 0, 0.51016, 1e-5),
    ],
)
def test_subsampled_where_its_two_sides_meet(
    mu: float, q: float, n: int, released: int, errors: int, p: float, digits: float
) -> None:
    evidence = ta.Evidence(n, released, errors)
    assert ta.p_value(evidence, ta.SubsampledGaussian(mu, q)) == pytest.approx(p, rel=digits)


def test_deep_tail_at_a_billion() -> None:
    """3.2342203e-125 by mpmath."""
    p = ta.p_value(ta.Evidence(10**9, 5 * 10**8, 0), ta.Gaussian(5.0))
    assert p == pytest.approx(3.2342203e-125, rel=1e-6)


def test_bits_needs_every_guess() -> None:
    with pytest.raises(ta.InputError, match="released=5: expected all n=10"):
        ta.p_value(ta.Evidence(10, 5, 1), ta.Gaussian(1.0), method="bits")


def test_unknown_method_and_missing_parameter() -> None:
    evidence = ta.Evidence(10, 5, 1)
    with pytest.raises(ta.InputError, match="method=best: expected one of"):
        ta.p_value(evidence, ta.Gaussian(1.0), method="best")
    with pytest.raises(ta.InputError, match="claim="):
        ta.p_value(evidence, ta.Gaussian.family())  # type: ignore[arg-type]
    with pytest.raises(ta.InputError, match="evidence="):
        ta.p_value((10, 5, 1), ta.Gaussian(1.0))  # type: ignore[arg-type]
    with pytest.raises(ta.InputError, match="released=11"):
        ta.expected_errors(ta.Gaussian(1.0), n=10, released=11)

"""The paper's method against its own formulas, written out plainly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import betaln
from scipy.stats import binom
from tests.conftest import SAMPLE_CLAIMS

import tightaudit as ta
from tightaudit.support.checks import FloatArray


def rates_by_definition(claim: ta.Claim, n: int, released: int) -> FloatArray:
    """v_k = E[p(U_(k))] by Gauss–Legendre between the kinks, in ever shorter pieces towards both ends."""
    ends = np.geomspace(1e-12, 0.05, 40)
    edges = np.unique(np.concatenate([ends, np.linspace(0.05, 0.95, 37), 1 - ends, claim.kinks]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    t, weight = (middle + half * nodes).ravel(), (half * weights).ravel()
    k = np.arange(n - released + 1, n + 1)[:, None]
    log_density = (k - 1) * np.log(t) + (n - k) * np.log1p(-t) - betaln(k, n - k + 1)
    return np.exp(log_density) @ (weight * claim.error_probability(t))


def chernoff(rates: FloatArray, errors: int) -> float:
    if errors >= rates.sum():
        return 1.0
    best = minimize_scalar(
        lambda tilt: -tilt * errors + np.sum(np.log(1 - rates + rates * math.exp(tilt))),
        bounds=(-60, 0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return math.exp(best.fun)


PLAIN = [
    claim
    for claim in SAMPLE_CLAIMS
    if claim.kinks.size < 10 and not claim.grain and "mu=10" not in str(claim)
]


@pytest.mark.parametrize("claim", PLAIN, ids=str)
@pytest.mark.parametrize(("n", "released"), [(30, 7), (30, 30), (60, 1)])
def test_against_the_formulas_of_the_paper(claim: ta.Claim, n: int, released: int) -> None:
    rates = rates_by_definition(claim, n, released)
    for errors in sorted({0, released // 6, released // 3}):
        evidence = ta.Evidence(n, released, errors)
        p = ta.p_value(evidence, claim, method="order-statistics")
        assert p == pytest.approx(chernoff(rates, errors), rel=3e-5)
        shortfall = max(rates.sum() - errors, 0)
        hoeffding = ta.p_value(evidence, claim, method=ta.OrderStatistics(tail="hoeffding"))
        assert hoeffding == pytest.approx(math.exp(-2 * shortfall**2 / released), rel=3e-5)


@pytest.mark.parametrize("claim", SAMPLE_CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "released"), [(1000, 200), (1000, 1000), (10**6, 200_000), (10**8, 10**4)])
def test_rates_sum_to_the_expected_errors(claim: ta.Claim, n: int, released: int) -> None:
    """Σ v_k = r·E[p̄(W)], which `exact` computes by another integral: read off Hoeffding's form at u = 0."""
    p = ta.p_value(ta.Evidence(n, released, 0), claim, method=ta.OrderStatistics(tail="hoeffding"))
    mean = ta.expected_errors(claim, n=n, released=released)
    if p > 1e-300:
        shortfall = math.sqrt(max(-math.log(p), 0) * released / 2)
        assert shortfall == pytest.approx(mean, rel=1e-5, abs=1e-6)
    else:
        assert mean**2 / released > 300


def test_documented_failure_on_approx_dp() -> None:
    """(0, 0.3)-DP, n=1000, r=320, no error: counted directly, it happens in one run of ten.

    Every one of the J ~ Binomial(1000, 0.3) revealed bits is guessed right, the others with a fair coin.
    """
    claim, evidence = ta.ApproxDP(0.0, 0.3), ta.Evidence(1000, 320, 0)
    revealed = np.arange(1001)
    probability = float(np.sum(binom.pmf(revealed, 1000, 0.3) * 0.5 ** np.maximum(320 - revealed, 0)))
    assert probability == pytest.approx(0.10, abs=0.005)
    assert ta.p_value(evidence, claim, method="exact") == pytest.approx(probability, rel=1e-10)
    assert ta.p_value(evidence, claim, method="order-statistics") == pytest.approx(4e-6, rel=0.1)


def test_documented_failure_without_errors() -> None:
    """3-GDP, n=100, r=89: no error has probability 0.0634, and the product of 1-v_k is 0.0465."""
    claim, evidence = ta.Gaussian(3.0), ta.Evidence(100, 89, 0)
    rng = np.random.default_rng(8)
    bits = rng.random((100_000, 100)) < 0.5
    centred = 3.0 * bits + rng.standard_normal(bits.shape) - 1.5
    surest = np.argpartition(-np.abs(centred), 88, axis=1)[:, :89]
    wrong = np.take_along_axis((centred > 0) != bits, surest, axis=1)
    frequency = np.mean(~wrong.any(axis=1))
    assert frequency == pytest.approx(0.0634, abs=4 * math.sqrt(0.0634 / 100_000))
    assert ta.p_value(evidence, claim, method="exact") == pytest.approx(0.0634, abs=5e-5)
    assert ta.p_value(evidence, claim, method="order-statistics") == pytest.approx(0.0465, abs=5e-5)
    assert ta.OrderStatistics.assumes.caveat is not None


def test_tail_must_be_known() -> None:
    with pytest.raises(ta.InputError, match="tail=markov"):
        ta.OrderStatistics(tail="markov")  # type: ignore[arg-type]

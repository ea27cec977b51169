"""The classics against published forms, simulation and their edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, norm

import tightaudit as ta

COUNTS: dict[str, Any] = {
    "false_positives": 50,
    "negatives": 1000,
    "false_negatives": 100,
    "positives": 1000,
    "delta": 1e-5,
}


def test_check_values() -> None:
    result = ta.many_runs(**COUNTS)
    assert result.clopper_pearson == pytest.approx(2.599, abs=5e-4)
    assert result.gdp_mu == pytest.approx(2.6846, abs=5e-5)
    assert result.gdp == pytest.approx(14.457, abs=5e-4)
    assert result.beta_posterior == pytest.approx(2.669, abs=5e-4)


def test_clopper_pearson_by_scipy() -> None:
    fpr, fnr = beta.ppf(0.975, 51, 950), beta.ppf(0.975, 101, 900)
    assert ta.many_runs(**COUNTS).clopper_pearson == pytest.approx(math.log((1 - 1e-5 - fnr) / fpr))


def test_log_katz_by_hand() -> None:
    spread = math.sqrt(1 / 900 - 1 / 1000 + 1 / 50 - 1 / 1000)
    by_hand = math.log((0.9 - 1e-5) / 0.05) - norm.ppf(0.975) * spread
    assert ta.many_runs(**COUNTS).log_katz == pytest.approx(by_hand)


@pytest.mark.parametrize(("fp", "fn", "total"), [(50, 100, 1000), (0, 3, 200), (2, 0, 50), (30, 35, 100)])
def test_posterior_by_sampling(fp: int, fn: int, total: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.beta(fp + 0.5, total - fp + 0.5, 400_000)
    y = rng.beta(fn + 0.5, total - fn + 0.5, 400_000)
    with np.errstate(divide="ignore"):
        epsilon = np.maximum(0, np.maximum(np.log((1 - 1e-5 - x) / y), np.log((1 - 1e-5 - y) / x)))
    result = ta.many_runs(
        false_positives=fp, negatives=total, false_negatives=fn, positives=total, delta=1e-5
    )
    assert result.beta_posterior == pytest.approx(np.quantile(epsilon, 0.05), abs=0.01)


def test_covers_the_truth_on_the_gaussian_mechanism() -> None:
    """μ = 1, threshold ½: both rates are Φ(-½); Clopper–Pearson may exceed the truth in 5% of audits."""
    rng = np.random.default_rng(3)
    rate, delta = norm.cdf(-0.5), 1e-5
    truth = math.log((1 - delta - rate) / rate)
    above = 0
    audits = 250
    for fp, fn in rng.binomial(500, rate, (audits, 2)):
        result = ta.many_runs(
            false_positives=int(fp), negatives=500, false_negatives=int(fn), positives=500, delta=delta
        )
        above += result.clopper_pearson > truth
    assert above / audits <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / audits)


def test_perfect_and_useless_guesses() -> None:
    perfect = ta.many_runs(**(COUNTS | {"false_positives": 0, "false_negatives": 0}))
    assert perfect.clopper_pearson == pytest.approx(
        math.log((1 - 1e-5 - beta.ppf(0.975, 1, 1000)) / beta.ppf(0.975, 1, 1000))
    )
    assert perfect.log_katz == 0
    useless = ta.many_runs(**(COUNTS | {"false_positives": 500, "false_negatives": 500}))
    assert (useless.clopper_pearson, useless.gdp, useless.beta_posterior, useless.log_katz) == (0, 0, 0, 0)
    all_wrong = ta.many_runs(**(COUNTS | {"false_positives": 1000, "false_negatives": 1000}))
    assert (all_wrong.clopper_pearson, all_wrong.gdp) == (0, 0)
    assert math.isinf(ta.many_runs(**(COUNTS | {"delta": 0.0})).gdp)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"false_positives": 1001}, "false_positives=1001: expected at most negatives=1000"),
        ({"false_negatives": -1}, "false_negatives=-1"),
        ({"positives": 0}, "positives=0"),
        ({"negatives": 10.5}, "negatives=10.5"),
        ({"delta": 2}, "delta=2"),
        ({"confidence": 1.0}, "confidence=1.0"),
    ],
)
def test_bad_counts(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.many_runs(**(COUNTS | change))
    assert message in str(caught.value)

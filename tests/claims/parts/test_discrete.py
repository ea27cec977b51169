"""Claims made of pieces: tables, functions and privacy loss distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import tightaudit as ta
from tightaudit.support.checks import FloatArray

ALPHA = np.unique(np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-14, 0.01, 200)]))


def test_privacy_loss_of_randomized_response_is_approx_dp() -> None:
    e, d = 1.3, 0.05
    right = (1 - d) * math.exp(e) / (1 + math.exp(e))
    claim = ta.PrivacyLoss([e, -e, math.inf], [right, 1 - d - right, d])
    same = ta.ApproxDP(e, d)
    t = np.linspace(0, 1, 101)
    assert claim.f(ALPHA) == pytest.approx(same.f(ALPHA), abs=1e-14)
    assert claim.inverse(ALPHA) == pytest.approx(same.inverse(ALPHA), abs=1e-14)
    assert claim.error_mass(t) == pytest.approx(same.error_mass(t), abs=1e-14)
    assert claim.epsilon(d) == pytest.approx(e, rel=1e-12)
    assert claim.delta(0.4) == pytest.approx(same.delta(0.4), rel=1e-12)
    evidence = ta.Evidence(300, 60, 4)
    assert ta.p_value(evidence, claim) == pytest.approx(ta.p_value(evidence, same), rel=1e-10)


def test_table_of_approx_dp_is_approx_dp() -> None:
    same = ta.ApproxDP(1.0, 0.1)
    corner = 0.9 / (1 + math.e)
    claim = ta.Tabulated([0, corner, 0.9, 1], [0.9, corner, 0, 0])
    assert claim.f(ALPHA) == pytest.approx(same.f(ALPHA), abs=1e-14)
    evidence = ta.Evidence(500, 100, 10)
    assert ta.p_value(evidence, claim) == pytest.approx(ta.p_value(evidence, same), rel=1e-10)


@pytest.mark.parametrize(
    "claim",
    [ta.Gaussian(0.3), ta.Gaussian(1.0), ta.Gaussian(5.0), ta.Laplace(1.0), ta.SubsampledGaussian(1.0, 0.2)],
    ids=str,
)
def test_a_function_is_replaced_from_below_and_closely(claim: ta.Claim) -> None:
    below = ta.Tabulated.from_function(claim.f)
    gap = claim.f(ALPHA) - below.f(ALPHA)
    assert gap.min() >= -1e-15
    assert gap.max() < 2e-5
    evidence = ta.Evidence(1000, 200, int(0.7 * ta.expected_errors(claim, n=1000, released=200)))
    ours, theirs = ta.p_value(evidence, claim), ta.p_value(evidence, below)
    assert ours <= theirs <= ours * 1.01
    assert claim.epsilon(1e-5) <= below.epsilon(1e-5) <= claim.epsilon(1e-5) * 1.001 + 1e-3


def test_many_pieces_agree_with_the_curve_they_come_from() -> None:
    """A finely discretised Gaussian privacy loss, thousands of kinks, against the closed form."""
    mu = 1.0
    edges = np.linspace(-8, 9, 20_001)
    q = -np.diff(ndtr(mu - edges))
    p = -np.diff(ndtr(-edges))
    q, p = q[(q > 0) & (p > 0)], p[(q > 0) & (p > 0)]
    # What the grid leaves out is put where it hurts: on losses of +∞ under Q.
    losses = np.append(np.log(q) - np.log(p), math.inf)
    claim = ta.PrivacyLoss(losses, np.append(q, 1 - q.sum()))
    evidence = ta.Evidence(2000, 400, 40)
    assert ta.p_value(evidence, claim) == pytest.approx(ta.p_value(evidence, ta.Gaussian(mu)), rel=1e-4)
    orders = [ta.p_value(evidence, c, method="order-statistics") for c in (claim, ta.Gaussian(mu))]
    assert orders[0] == pytest.approx(orders[1], rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": [0, 0.5, 1], "beta": [1, 0.9, 0]}, "beta=0.9 at alpha=0.5: expected a convex"),
        (
            {"alpha": [0, 0.5, 1], "beta": [0.3, 0.4, 0]},
            "beta=0.3 then 0.4 at alpha=0.5: expected values that never rise",
        ),
        ({"alpha": [0, 1], "beta": [1, 0.5]}, "beta=0.5 at alpha=1: expected at most 1-alpha=0"),
        ({"alpha": [0, 0.5], "beta": [1, 0]}, "expected values that increase from 0 to 1"),
        ({"alpha": [0, 0.7, 0.5, 1], "beta": [1, 0.2, 0.1, 0]}, "expected values that increase from 0 to 1"),
        ({"alpha": [0, 1], "beta": [1.2, 0]}, "beta=1.2: expected values in [0, 1]"),
        ({"alpha": [0, 1], "beta": [1, float("nan")]}, "beta=nan"),
        ({"alpha": [0, 1], "beta": [1]}, "beta=1 values: expected as many as alpha, 2"),
    ],
)
def test_bad_tables(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.Tabulated(**arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: 1 - a**2, "function="),
        (lambda a: a, "never rise"),
        (lambda a: a * math.nan, "nan"),
        (lambda a: a[:3] * 0, "one value per α"),
        (lambda a: 0.5 * (1 - a) + 0.02 * np.sin(4 * np.pi * a) * (1 - a), "convex"),
    ],
)
def test_bad_functions(function: Any, message: str) -> None:
    with pytest.raises(ta.InputError, match=message):
        ta.Tabulated.from_function(function)


@pytest.mark.parametrize(
    ("losses", "masses", "message"),
    [
        ([1.0, -1.0], [0.5, 0.4], "masses=values with sum 0.9: expected a sum of 1"),
        ([-1.0, -2.0], [0.5, 0.5], "to be at most 1"),
        ([1.0, -math.inf], [0.5, 0.5], "losses above -inf"),
        ([1.0, -1.0], [1.2, -0.2], "masses=-0.2"),
        ([1.0], [0.5, 0.5], "as many as losses"),
        ([math.nan], [1.0], "losses=nan"),
        ([], [], "at least one entry"),
        (["a"], [1.0], "real numbers"),
    ],
)
def test_bad_privacy_losses(losses: list[Any], masses: list[float], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.PrivacyLoss(losses, masses)
    assert message in str(caught.value)


def test_everything_revealed() -> None:
    claim = ta.PrivacyLoss([math.inf], [1.0])
    values: FloatArray = claim.f(np.array([0.0, 0.5, 1.0]))
    assert values.tolist() == [0, 0, 0]
    assert claim.error_mass(0.0) == 0
    assert claim.epsilon(0.5) == math.inf
    assert ta.p_value(ta.Evidence(10, 5, 0), claim) == pytest.approx(1, abs=1e-13)

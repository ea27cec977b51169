"""The rank-weighted count: its exact law against check values, simulation and the plain count."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import expit
from tests.channels import error_rates
from tests.conftest import SAMPLE_CLAIMS

import tightaudit as ta
from tightaudit.methods.parts.strata import best_strata, cells
from tightaudit.methods.parts.weighted_errors import WeightedErrors
from tightaudit.simulate.calibration import Audits, calibrate
from tightaudit.support.checks import FloatArray

STRATA, WEIGHTS = (50, 100, 150, 200, 250, 250), (20, 15, 11, 8, 4, 1)


@pytest.mark.parametrize(("statistic", "printed"), [(1296, 0.0101), (1364, 0.0498), (1480, 0.2999)])
def test_printed_check_values(statistic: int, printed: float) -> None:
    law = WeightedErrors(ta.Gaussian(1.0), 1000, STRATA, WEIGHTS)
    assert law.tail(statistic) == pytest.approx(printed, abs=0.00005)


@pytest.mark.parametrize("claim", SAMPLE_CLAIMS, ids=str)
@pytest.mark.parametrize(
    ("n", "released"),
    [(1, 1), (3, 1), (3, 2), (50, 10), (50, 49), (1000, 200), (1000, 999), (200_000, 40_000)],
)
def test_one_stratum_of_weight_one_is_exact(claim: ta.Claim, n: int, released: int) -> None:
    mean = ta.expected_errors(claim, n=n, released=released)
    for errors in {max(0, int(mean - spread * np.sqrt(mean + 0.1))) for spread in (-1, 0, 2, 5)}:
        if errors > released:
            continue
        exact = ta.p_value(ta.Evidence(n, released, errors), claim)
        weighted = ta.p_value(
            ta.WeightedCount(n, errors), claim, method=ta.RankWeighted(strata=(released,), weights=(1,))
        )
        # A claim of thousands of small steps is seen as the slope it stands for, and what that may change
        # is added.
        below, above = (4e-5, 2e-4) if claim.top_kinks.size > 6 else (1e-8, 1e-8)
        assert exact * (1 - below) - 1e-12 <= weighted <= exact * (1 + above) + 1e-12


SETTINGS = [
    (ta.Gaussian(1.0), 50, (5, 10, 15, 20), (6, 4, 2, 1)),
    (ta.Gaussian(1.0), 50, (1,) * 10, tuple(range(10, 0, -1))),
    (ta.Gaussian(0.5), 50, (1, 1, 48), (9, 5, 1)),
    (ta.Gaussian(4.0), 50, (20, 20, 10), (5, 3, 1)),
    (ta.Gaussian(2.0), 1000, (100, 200, 300, 400), (8, 5, 3, 1)),
    (ta.Gaussian(1.0), 1000, (10, 990), (11, 10)),
    (ta.Gaussian(1.0), 1000, (500, 10, 490), (7, 3, 1)),
    (ta.Gaussian(1.0), 100_000, (5000, 20_000, 25_000, 50_000), (10, 6, 3, 1)),
    (ta.Laplace(1.0), 50, (10, 20, 20), (5, 3, 1)),
    (ta.Laplace(0.8), 1000, (300, 400, 300), (3, 2, 1)),
    (ta.Laplace(3.0), 1000, (600, 200, 200), (7, 4, 1)),
    (ta.Laplace(1.0), 100_000, (60_000, 20_000), (4, 1)),
    (ta.ApproxDP(1.0, 0.05), 50, (5, 15, 30), (4, 2, 1)),
    (ta.ApproxDP(1.0, 0.05), 1000, (40, 60, 900), (5, 2, 1)),
    (ta.ApproxDP(0.5, 0.2), 1000, (200, 300), (3, 1)),
    (ta.ApproxDP(2.0, 0.0), 1000, (10, 90, 900), (9, 4, 1)),
    (ta.SubsampledGaussian(1.0, 0.5), 50, (10, 20, 20), (6, 2, 1)),
    (ta.SubsampledGaussian(1.0, 0.5), 1000, (50, 150, 300, 500), (12, 6, 2, 1)),
    (ta.SubsampledGaussian(3.0, 0.1), 1000, (50, 50, 900), (20, 7, 1)),
    (ta.SubsampledGaussian(2.0, 0.2), 100_000, (2000, 8000, 30_000), (20, 8, 1)),
    (ta.PublishedSampling(2.0, 0.1), 1000, (50, 100, 850), (9, 3, 1)),
    (ta.Tabulated([0.0, 0.3, 1.0], [0.9, 0.3, 0.0]), 1000, (100, 400, 500), (5, 3, 1)),
]


DRAWS = int(os.environ.get("TIGHTAUDIT_DRAWS", "6000"))
"""`make monte-carlo` asks for a million."""
LARGEST_RANKED = 2000 if DRAWS <= 10_000 else 100
"""Guesses up to which each is drawn and ranked: a million times a thousand would take hours."""


@pytest.mark.parametrize(("claim", "n", "strata", "weights"), SETTINGS, ids=str)
def test_simulated_law(claim: ta.Claim, n: int, strata: tuple[int, ...], weights: tuple[int, ...]) -> None:
    rng = np.random.default_rng(n)
    simulate = _ranked if n <= LARGEST_RANKED else _spaced
    block = max(1, 2_000_000 // min(n, 1000))
    counts = np.concatenate(
        [
            simulate(claim, n, strata, weights, min(block, DRAWS - start), rng)
            for start in range(0, DRAWS, block)
        ]
    )
    law = WeightedErrors(claim, n, strata, weights)
    for level in (0.02, 0.2, 0.6):
        u = int(np.quantile(counts, level))
        found, p = float(np.mean(counts <= u)), law.tail(u)
        assert abs(found - p) <= 4 * np.sqrt(p * (1 - p) / DRAWS) + 1e-9


def _ranked(
    claim: ta.Claim,
    n: int,
    strata: tuple[int, ...],
    weights: tuple[int, ...],
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw score quantiles and errors of independent channels, rank them, and count."""
    per_rank = np.repeat(weights, strata)
    tops = np.sort(rng.random((draws, n)), axis=1)[:, : per_rank.size]
    wrong = rng.random(tops.shape) < error_rates(claim, tops)
    return (wrong @ per_rank).astype(np.float64)


def _spaced(
    claim: ta.Claim,
    n: int,
    strata: tuple[int, ...],
    weights: tuple[int, ...],
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """The same without ranking each guess: the last score of each stratum as a sum of exponential gaps.

    Those above it in its stratum are wrong as often as guesses between the last scores of two strata are.
    """
    parts = [*strata, n + 1 - sum(strata)]
    reached = np.cumsum(rng.gamma(parts, size=(draws, len(parts))), axis=1)
    tops = np.concatenate([np.zeros((draws, 1)), reached[:, :-1] / reached[:, -1:]], axis=1)
    mass = claim.top_error_mass(tops.ravel()).reshape(tops.shape)
    between = np.clip(np.diff(mass, axis=1) / np.diff(tops, axis=1), 0, 1)
    at_last = claim.top_error_probability(tops[:, 1:].ravel()).reshape(between.shape)
    errors = rng.binomial(np.array(strata) - 1, between) + (rng.random(between.shape) < at_last)
    return (errors @ np.array(weights)).astype(np.float64)


@settings(max_examples=15, deadline=None)
@given(
    mu=st.floats(0.1, 3.0),
    factor=st.floats(1.01, 1.5),
    errors=st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_monotone_in_the_parameter_and_in_the_statistic(mu: float, factor: float, errors: list[bool]) -> None:
    method = ta.RankWeighted(strata=(10, 20, 30), weights=(5, 2, 1))
    evidence = ta.Evidence(60, 60, sum(errors), np.array(errors))
    tight, loose = (method.p_value(ta.Gaussian(value), evidence) for value in (mu, mu * factor))
    assert tight <= loose * (1 + 1e-7) + 1e-12
    statistic = method.statistic(evidence)
    if statistic:
        fewer = method.p_value(ta.Gaussian(mu), ta.WeightedCount(60, statistic - 1))
        assert fewer <= tight * (1 + 1e-7) + 1e-12


def test_a_common_divisor_and_weightless_strata_change_nothing() -> None:
    claim, count = ta.Gaussian(1.0), ta.WeightedCount(1000, 300)
    plain = ta.RankWeighted(strata=(100, 300), weights=(5, 2))
    double = ta.RankWeighted(strata=(100, 300), weights=(10, 4))
    padded = ta.RankWeighted(strata=(100, 300, 600), weights=(5, 2, 0))
    p = ta.p_value(count, claim, method=plain)
    assert ta.p_value(ta.WeightedCount(1000, 601), claim, method=double) == p
    assert ta.p_value(count, claim, method=padded) == p


def test_deep_tails_keep_their_digits() -> None:
    """Against the closed form of one stratum that is everything: a binomial."""
    for errors in (10, 150, 300):
        exact = ta.p_value(ta.Evidence(1000, 1000, errors), ta.Gaussian(0.1), method="bits")
        method = ta.RankWeighted(strata=(1000,), weights=(1,))
        assert ta.p_value(ta.WeightedCount(1000, errors), ta.Gaussian(0.1), method=method) == pytest.approx(
            exact, rel=1e-8
        )


def _atoms(revealed: float, pairs: dict[float, float]) -> ta.PrivacyLoss:
    """Losses ±l with the given masses, the rest of the mass at ±0.5, and a share revealed."""
    pairs = {0.5: 1 - revealed - sum(pairs.values()), **pairs}
    losses = [math.inf] + [sign * loss for loss in pairs for sign in (1, -1)]
    masses = [revealed] + [mass * expit(sign * loss) for loss, mass in pairs.items() for sign in (1, -1)]
    return ta.PrivacyLoss(losses, masses)


def test_a_large_atom_among_many_small_ones() -> None:
    claim = _atoms(0.1, {0.25 + 0.01 * place: 1e-4 for place in range(8)})
    method = ta.RankWeighted((1050,), (1,))
    for errors in (0, 1, 5):
        exact = ta.p_value(ta.Evidence(10_000, 1050, errors), claim)
        assert method.p_value(claim, ta.WeightedCount(10_000, errors)) == pytest.approx(exact, rel=1e-7)


def test_opposite_losses_share_one_kink() -> None:
    for seed in range(20):
        losses = np.random.default_rng(seed).uniform(0.01, 3, 5)
        claim = _atoms(0.1, dict.fromkeys(losses.tolist(), 0.02))
        # Six scores and the revealed ones have six edges between them.
        assert claim.top_kinks.size == 6


@pytest.mark.parametrize("count", [248, 600])
def test_near_one_nothing_is_above_it_and_nothing_falls(count: int) -> None:
    claim = ta.SubsampledGaussian(3.0, 0.1)
    method = ta.RankWeighted((9, 6, 4, 4, 3, 3, 3, 3, 4), (32, 26, 22, 18, 15, 12, 10, 7, 5))
    fewer, p = (method.p_value(claim, ta.WeightedCount(1000, value)) for value in (count - 10, count))
    assert fewer - 1e-8 <= p <= 1


def test_tails_too_deep_to_follow_are_rounded_up() -> None:
    # Without an error at all: every guess is either revealed or right by chance.
    true = (1 - 0.5 * expit(-1.0)) ** 1000
    p = ta.p_value(
        ta.WeightedCount(1000, 0), ta.ApproxDP(1.0, 0.5), method=ta.RankWeighted((333, 667), (3, 1))
    )
    assert true < p < 1e-12
    assert (
        0 < ta.p_value(ta.WeightedCount(300_000, 3_763_882), "gaussian(mu=1)", method="rank-weighted") < 1e-12
    )


@pytest.mark.parametrize(
    "text",
    ["gaussian(mu=1)", "gaussian(mu=3)", "laplace(mu=1)", "randomized-response(epsilon=1,delta=0.01)",
     "subsampled-gaussian(mu=2,q=0.5)"],
)  # fmt: skip
def test_true_claims_are_rejected_no_more_often_than_the_level(text: str) -> None:
    result = calibrate(
        text,
        Audits(n=200, methods=("rank-weighted",), times=2000),
        levels=(0.05, 0.001),
        bounds=False,
        workers=1,
    )
    assert not any(row.exceeds for row in result.rejections)
    assert result.rejections[0].rejected > 0


@pytest.mark.parametrize(
    "claim",
    [ta.Gaussian(0.5), ta.Gaussian(1.0), ta.Gaussian(4.0), ta.Laplace(0.8), ta.Laplace(3.0),
     ta.SubsampledGaussian(1.0, 0.5), ta.SubsampledGaussian(1.0, 0.1), ta.ApproxDP(1.0, 1e-5)],
    ids=str,
)  # fmt: skip
def test_plans_lose_less_than_five_percent(claim: ta.Claim) -> None:
    """Of the information of the best weights that never increase, on a grid ten times as fine."""
    n, kinks = 1_000_000, claim.top_kinks
    fine = np.concatenate([[0.0], np.geomspace(1e-5, 0.05, 60), np.linspace(0.05, 1, 90), kinks])
    grid = cells(claim, np.unique(fine))
    strata, weights = best_strata(n, claim)
    middle = 0.5 * (grid.edges[1:] + grid.edges[:-1])
    place = np.searchsorted(np.cumsum(strata) / n, middle)
    spread = np.append(weights, 0)[np.minimum(place, len(weights))].astype(float)
    assert grid.information(spread) >= 0.95 * grid.information(grid.best_weights())


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 100, 1001])
def test_plans_fit_any_number_of_guesses(n: int) -> None:
    for claim in SAMPLE_CLAIMS:
        method = ta.RankWeighted().fixed(n, claim)
        assert sum(method.strata) <= n
        assert 0 <= ta.p_value(ta.WeightedCount(n, 0), claim, method=method) <= 1


@pytest.mark.parametrize(
    ("claim", "n"),
    [
        (ta.SubsampledGaussian(3.0, 0.1), 1000),
        (ta.SubsampledGaussian(5.0, 0.1), 3000),
        (ta.DpSgd(0.2, 0.1, 1), 1000),
        (ta.SubsampledGaussian(3.0, 0.1), 100_000),
        (ta.Gaussian(1.0), 1000),
    ],
    ids=str,
)
@pytest.mark.parametrize("level", [0.05, 1e-3])
def test_plans_can_reach_their_level(claim: ta.Claim, n: int, level: float) -> None:
    """In the first three the best weights are on so few guesses that no errors at all have p = .08 to .6."""
    method = ta.RankWeighted().fixed(n, claim, level)
    assert ta.p_value(ta.WeightedCount(n, 0), claim, method=method) <= level


def test_options_stay_the_same_throughout_a_search() -> None:
    coins = ta.draw_coins(500, seed=1)
    scores = coins.members + np.random.default_rng(1).standard_normal(500)
    evidence = ta.release(scores, coins.members, released=100)
    bound = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5, method="rank-weighted")
    assert isinstance(bound.method, ta.RankWeighted)
    assert bound.method.strata
    again = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5, method=bound.method)
    assert again.epsilon == bound.epsilon
    assert bound.parameter is not None
    assert ta.p_value(evidence, ta.Gaussian(bound.parameter), method=bound.method) <= 0.05


@pytest.mark.parametrize(
    ("strata", "weights", "message"),
    [
        ((10, 20), (2,), "weights="),
        ((10, 20), (1, 2), "never increase"),
        ((10, 0), (2, 1), "strata=0"),
        ((10,), (0,), "above 0"),
        ((10,), (-1,), "weights=-1"),
        ((10.5,), (1,), "strata=10.5"),
    ],
)
def test_bad_options(strata: tuple[int, ...], weights: tuple[int, ...], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.RankWeighted(strata, weights)
    assert message in str(caught.value)


def test_bad_evidence() -> None:
    method = ta.RankWeighted((10, 20), (2, 1))
    for evidence, message in (
        (ta.Evidence(100, 30, 3), "keeps its errors by rank"),
        (ta.WeightedCount(20, 3), "at most n=20"),
        (ta.WeightedCount(100, 41), "at most 40"),
    ):
        with pytest.raises(ta.InputError, match=message):
            ta.p_value(evidence, ta.Gaussian(1.0), method=method)
    with pytest.raises(ta.InputError, match="released guesses and errors for method exact"):
        ta.p_value(ta.WeightedCount(100, 3), ta.Gaussian(1.0), method="exact")

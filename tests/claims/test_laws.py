"""What holds for every claim, checked between formulas that were written down separately."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.conftest import SAMPLE_CLAIMS, SAMPLE_FAMILIES

import tightaudit as ta

EVERY_CLAIM = pytest.mark.parametrize("claim", SAMPLE_CLAIMS, ids=str)
LINE = np.linspace(0, 1, 1001)
GRID = np.unique(np.concatenate([np.linspace(0, 1, 200_001), np.geomspace(1e-40, 0.1, 20_000)]))


@EVERY_CLAIM
def test_f_is_a_trade_off_function(claim: ta.Claim) -> None:
    f = claim.f(LINE)
    assert np.all(np.diff(f) <= 1e-15)
    assert np.all((f >= 0) & (f <= 1 - LINE + 1e-15))
    assert np.all(np.diff(f, n=2) >= -1e-14)


@EVERY_CLAIM
def test_inverse_undoes_f(claim: ta.Claim) -> None:
    alpha = np.linspace(0.001, 0.999, 333)
    beta = claim.f(alpha)
    falling = (beta > 1e-9) & (claim.slope(alpha) < -1e-6)
    assert claim.inverse(beta[falling]) == pytest.approx(alpha[falling], abs=1e-7)
    # The least α that reaches β, also where f is flat.
    assert np.all(claim.inverse(beta) <= alpha + 1e-9)


@EVERY_CLAIM
def test_delta_is_the_largest_gap_of_f(claim: ta.Claim) -> None:
    """δ(ε) = max over α of 1 - e^ε·α - f(α), over both directions: the definition, on a grid."""
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        forward = np.max(1 - math.exp(epsilon) * GRID - claim.f(GRID))
        backward = np.max(1 - math.exp(epsilon) * GRID - claim.inverse(GRID))
        on_grid = max(forward, backward)
        assert claim.delta(epsilon) >= on_grid - 1e-12
        assert claim.delta(epsilon) == pytest.approx(on_grid, abs=4e-5)


@EVERY_CLAIM
def test_delta_and_epsilon_are_inverse(claim: ta.Claim) -> None:
    floor = claim.delta(600.0)
    for delta in (1e-9, 1e-5, 0.01, 0.1, 0.5):
        epsilon = claim.epsilon(delta)
        if delta < floor:
            assert epsilon == math.inf
        elif delta >= claim.delta(0.0):
            assert epsilon == 0
        else:
            assert claim.delta(epsilon) == pytest.approx(delta, rel=1e-7)
    assert claim.epsilon(1.0) == 0


@EVERY_CLAIM
def test_channel_gives_back_the_privacy_curve(claim: ta.Claim) -> None:
    """∫[1-(1+e^ε)p(t)]₊dt is the mean of δ in the two directions, however p and δ were computed."""
    t = (np.arange(200_000) + 0.5) / 200_000
    p = claim.error_probability(t)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        scale = math.exp(epsilon)
        mean = np.mean(np.maximum(1 - (1 + scale) * p, 0))
        forward = np.max(1 - scale * GRID - claim.f(GRID))
        backward = np.max(1 - scale * GRID - claim.inverse(GRID))
        assert mean == pytest.approx((max(forward, 0) + max(backward, 0)) / 2, abs=5e-5)


@EVERY_CLAIM
def test_symmetric_delta_is_the_mean_of_both_directions(claim: ta.Claim) -> None:
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        scale = math.exp(epsilon)
        forward = np.max(1 - scale * GRID - claim.f(GRID))
        backward = np.max(1 - scale * GRID - claim.inverse(GRID))
        mean = (max(forward, 0) + max(backward, 0)) / 2
        assert claim.symmetric_delta(epsilon) == pytest.approx(mean, abs=5e-5)
        assert claim.symmetric_delta(epsilon) <= claim.delta(epsilon) + 1e-15
    assert np.all(np.diff(claim.curve_kinks) > 0)


@EVERY_CLAIM
def test_detection_curve_has_the_symmetric_delta(claim: ta.Claim) -> None:
    """The largest TPR - e^ε·FPR along the curve is the δ of the relabelled pair; the curve is convex."""
    curve = claim.detection_curve()
    rates = np.unique(np.concatenate([np.linspace(0, 1, 4001), np.geomspace(1e-12, 0.01, 2000)]))
    alarms = np.array([curve(float(rate)) for rate in rates])
    assert alarms[0] == 0
    assert np.all(np.diff(alarms) >= -1e-14)
    assert np.all((alarms >= 0) & (alarms <= rates + 1e-12))
    even = np.array([curve(float(rate)) for rate in np.linspace(0, 1, 501)])
    assert np.all(np.diff(even, n=2) >= -1e-9)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        best = np.max(rates - math.exp(epsilon) * alarms)
        assert best == pytest.approx(claim.symmetric_delta(epsilon), abs=3e-4)


@pytest.mark.parametrize("claim", [ta.Gaussian(1.0), ta.Laplace(0.8), ta.ApproxDP(1.0, 0.05)], ids=str)
def test_detection_polygon_lies_just_below_the_closed_form(claim: ta.Claim) -> None:
    polygon, closed = ta.Claim.detection_curve(claim), claim.detection_curve()
    for rate in (1e-9, 1e-4, 0.01, 0.2, 0.5, 0.7, 0.9, 0.999):
        assert polygon(rate) <= closed(rate) * (1 + 1e-9) + 1e-15
        assert polygon(rate) == pytest.approx(closed(rate), rel=1e-5, abs=1e-14)


@EVERY_CLAIM
def test_least_error_of_one_guess(claim: ta.Claim) -> None:
    """A(0) = min over α of (α + f(α))/2."""
    assert claim.error_mass(0.0) == pytest.approx(np.min(GRID + claim.f(GRID)) / 2, abs=5e-6)
    assert claim.error_mass(1.0) == 0


@EVERY_CLAIM
def test_error_mass_is_the_integral_of_error_probability(claim: ta.Claim) -> None:
    t = np.linspace(0, 1, 100_001)
    p = claim.error_probability(t)
    assert np.all(np.diff(p) <= 1e-12)
    assert np.all((p >= 0) & (p <= 0.5 + 1e-15))
    cells = (p[1:] + p[:-1]) / 2 * np.diff(t)
    integral = np.append(np.cumsum(cells[::-1])[::-1], 0)
    assert np.max(np.abs(claim.error_mass(t) - integral)) < 6e-6


@EVERY_CLAIM
def test_error_mass_bends_only_at_its_kinks(claim: ta.Claim) -> None:
    """Between kinks A has a derivative: -p from the left and from the right."""
    kinks = claim.kinks
    assert np.all(np.diff(kinks) >= 0)
    for t in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95):
        step = 1e-6
        if kinks.size and np.min(np.abs(kinks - t)) < 2 * step:
            continue
        left = (claim.error_mass(t) - claim.error_mass(t - step)) / step
        right = (claim.error_mass(t + step) - claim.error_mass(t)) / step
        if isinstance(claim, ta.SubsampledGaussian) and claim.mu == 10:
            continue  # smooth, but on a scale far below the step
        assert left == pytest.approx(right, abs=2e-5)


@EVERY_CLAIM
def test_base_pair(claim: ta.Claim) -> None:
    pair = claim.base_pair()
    assert pair.q_atom == pytest.approx(1 - claim.f(0.0), abs=1e-15)
    assert pair.q_cdf(1.0) == 1
    assert pair.p_density(0.3) == 1
    middles = 0.2 + 0.5 * (np.arange(100_000) + 0.5) / 100_000
    mass = 0.5 * np.mean(pair.q_density(middles))
    assert mass == pytest.approx(pair.q_cdf(0.7) - pair.q_cdf(0.2), abs=2e-5)


@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0, 3.0, 5.0, 10.0])
@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0])
def test_subsampled_channel_is_consistent_everywhere(mu: float, q: float) -> None:
    """Each increment of A lies between p times the step at its two ends, and A/top never falls."""
    claim = ta.SubsampledGaussian(mu, q)
    top = np.unique(np.concatenate([np.geomspace(1e-40, 0.5, 1500), np.linspace(0.0005, 1, 1500)]))
    mass, rate = claim.top_error_mass(top), claim.top_error_probability(top)
    assert rate.max() <= 0.5 + 1e-12
    assert np.all(np.diff(mass / top) >= -1e-12)
    gain, step = np.diff(mass), np.diff(top)
    assert np.all(gain >= rate[:-1] * step * (1 - 1e-6) - 2e-16)
    assert np.all(gain <= rate[1:] * step * (1 + 1e-6) + 2e-16)


@pytest.mark.parametrize("family", SAMPLE_FAMILIES, ids=str)
def test_families_grow_less_private(family: ta.Family) -> None:
    parameters = np.linspace(0.02, 0.98, 25) if family.upper == 1 else np.geomspace(0.02, 20, 25)
    members = [family.most_private, *(family.leaking(float(p)) for p in parameters), family.least_private]
    t = np.linspace(0, 0.99, 50)
    for more, less in itertools.pairwise(members):
        assert np.all(less.error_mass(t) <= more.error_mass(t) + 1e-12)
        assert less.epsilon(0.2) >= more.epsilon(0.2) - 1e-9
    assert str(ta.as_family(str(family), delta=1e-5)) == str(family)


def test_limits_of_the_subsampled_family_are_its_limits() -> None:
    family = ta.SubsampledGaussian.family(q=0.3)
    t = np.linspace(0, 1, 101)
    assert family.member(200.0).error_mass(t) == pytest.approx(family.least_private.error_mass(t), abs=1e-12)
    assert family.member(1e-6).error_mass(t) == pytest.approx(family.most_private.error_mass(t), abs=1e-6)


def test_sampling_everyone_is_the_gaussian_mechanism() -> None:
    everyone, gaussian = ta.SubsampledGaussian(1.3, 1.0), ta.Gaussian(1.3)
    t = np.linspace(0, 1, 201)
    assert everyone.error_mass(t) == pytest.approx(gaussian.error_mass(t), rel=1e-12, abs=1e-15)
    assert everyone.error_probability(t) == pytest.approx(gaussian.error_probability(t), rel=1e-9)
    assert everyone.epsilon(1e-5) == pytest.approx(gaussian.epsilon(1e-5), rel=1e-12)


@pytest.mark.parametrize(
    ("claim", "delta", "epsilon"),
    [
        # Balle and Wang's analytic curve at published points: σ=1 and Δ=1 at δ=1e-5.
        (ta.Gaussian(1.0), 1e-5, 4.377178),
        (ta.Laplace(0.7), 0.0, 0.7),
        (ta.Laplace(0.7), 0.1, 0.7 + 2 * math.log(0.9)),
        (ta.ApproxDP(1.0, 1e-5), 1e-5, 1.0),
        (ta.ApproxDP(1.0, 1e-5), 1e-6, math.inf),
        (ta.Gaussian(1.0), 0.0, math.inf),
        (ta.Gaussian(1.0), 0.9, 0.0),
    ],
    ids=str,
)
def test_epsilon_at_known_points(claim: ta.Claim, delta: float, epsilon: float) -> None:
    assert claim.epsilon(delta) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("mu", [0.05, 1.0, 5.0, 30.0])
def test_gaussian_delta_in_thirty_digits(mu: float) -> None:
    from mpmath import mp, mpf

    mp.dps = 30
    m = mpf(mu)
    for epsilon in (0.0, 0.3, 2.0, 20.0, 100.0):
        exact = mp.ncdf(m / 2 - epsilon / m) - mp.exp(epsilon) * mp.ncdf(-m / 2 - epsilon / m)
        if exact > mpf("1e-300"):
            assert ta.Gaussian(mu).delta(epsilon) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(
    "claim", [ta.Gaussian(1.0), ta.Laplace(1.2), ta.SubsampledGaussian(2.0, 0.4)], ids=str
)
def test_channel_by_simulation(claim: ta.Claim) -> None:
    """Best guesses on real draws of the mechanism: the share of errors among the most confident ones."""
    rng = np.random.default_rng(5)
    size = 400_000
    bits = rng.random(size) < 0.5
    mu = claim.parameters["mu"]
    taken = bits & (rng.random(size) < claim.parameters.get("q", 1.0))
    if isinstance(claim, ta.Laplace):
        y = mu * taken + rng.laplace(size=size)
        # Rounded: the last digits of y know whether μ was added, and must not order the ties.
        loss = np.round(np.abs(y) - np.abs(y - mu), 9)
    else:
        q = claim.parameters.get("q", 1.0)
        y = mu * taken + rng.standard_normal(size)
        loss = np.log1p(q * np.expm1(mu * y - mu**2 / 2))
    wrong = (loss > 0) != bits
    order = np.argsort(-np.abs(loss), kind="stable")
    for top in (0.1, 0.5, 1.0):
        released = int(top * size)
        observed = np.mean(wrong[order[:released]])
        expected = claim.error_mass(1 - top) / top
        assert observed == pytest.approx(expected, abs=4.5 * math.sqrt(expected / released) + 1e-12)

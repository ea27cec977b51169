"""The claim of a whole training: against two accountants, one step in closed form, and simulation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.special import ndtr

import tightaudit as ta
from tightaudit.simulate.calibration import Audits, calibrate

SETTINGS = [
    (1.13, 0.1, 200),
    (0.734, 0.02, 1000),
    (1.0, 0.001, 10_000),
    (4.0, 0.5, 50),
    (0.6, 0.005, 2000),
    (2.0, 1.0, 10),
]


@pytest.mark.parametrize(("sigma", "q", "steps"), SETTINGS)
@pytest.mark.parametrize("delta", [1e-7, 1e-5, 1e-3])
def test_epsilon_agrees_with_both_accountants(sigma: float, q: float, steps: int, delta: float) -> None:
    claim = ta.DpSgd(sigma, q, steps)
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=q, value_discretization_interval=1e-4 if q > 0.001 else 2e-5
    )
    assert claim.epsilon(delta) == pytest.approx(
        pld.self_compose(steps).get_epsilon_for_delta(delta), rel=0.01
    )
    # `make oldest` has no PyTorch; every other run has.
    accountant = pytest.importorskip("opacus.accountants").PRVAccountant()
    accountant.history = [(sigma, q, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        published = accountant.get_epsilon(delta, eps_error=0.002)
    assert claim.epsilon(delta) == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize(("mu", "q"), [(1.0, 0.5), (0.5, 0.1), (2.0, 0.02), (1.0, 1.0)])
def test_one_step_is_the_subsampled_gaussian_rounded_to_the_safe_side(mu: float, q: float) -> None:
    claim, exact = ta.DpSgd(1 / mu, q, 1), ta.SubsampledGaussian(mu, q)
    shares = np.array([1e-4, 1e-3, 0.01, 0.1, 0.3, 0.6, 0.9, 1.0])
    ours, theirs = claim.top_error_mass(shares), exact.top_error_mass(shares)
    assert np.all(ours <= theirs * (1 + 1e-9))
    assert ours == pytest.approx(theirs, rel=2e-3)
    alpha = np.linspace(0.01, 0.99, 50)
    assert np.all(claim.f(alpha) <= np.asarray(exact.f(alpha)) + 1e-9)
    assert np.asarray(claim.f(alpha)) == pytest.approx(np.asarray(exact.f(alpha)), abs=1e-3)


METHODS: list[str | ta.RankWeighted] = [
    "exact",
    "order-statistics",
    "any-dependence",
    "fdp-recursion",
    "bits",
    ta.RankWeighted(strata=(20, 80, 100), weights=(5, 2, 1)),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize(
    ("claim", "exact"),
    [
        (ta.DpSgd(1.0, 0.5, 1), ta.SubsampledGaussian(1.0, 0.5)),
        (ta.DpSgd(0.5, 0.05, 1), ta.SubsampledGaussian(2.0, 0.05)),
        (ta.DpSgd(4.0, 1.0, 16), ta.Gaussian(1.0)),
    ],
    ids=str,
)
def test_p_values_of_every_method_err_upward_and_hardly(
    claim: ta.DpSgd, exact: ta.Claim, method: str | ta.RankWeighted
) -> None:
    """Where the composition has a closed form."""
    n, released = 200, 200 if method == "bits" else 50
    mean = ta.expected_errors(exact, n=n, released=released)
    for errors in {round(0.3 * mean), round(0.7 * mean), round(mean)}:
        evidence: ta.Evidence | ta.WeightedCount = ta.Evidence(n, released, errors)
        if isinstance(method, ta.RankWeighted):
            evidence = ta.WeightedCount(n, 3 * errors)
        ours, theirs = (ta.p_value(evidence, tested, method=method) for tested in (claim, exact))
        # Both p-values of the program are valid, and each is up to 0.6% above the smallest one.
        solved = 6e-3 if method == "any-dependence" else 1e-6
        assert theirs * (1 - solved) <= ours <= theirs * 1.02 + 1e-12


def test_families_grow_less_private() -> None:
    shares = np.geomspace(1e-4, 1, 40)
    for family, leaks in (
        (ta.DpSgd.family(q=0.1, steps=50), np.geomspace(0.05, 4, 12)),
        (ta.DpSgd.family(sigma=1.0, steps=20), np.geomspace(0.001, 0.9, 12)),
    ):
        masses = np.array([family.leaking(float(leak)).top_error_mass(shares) for leak in leaks])
        assert np.all(np.diff(masses, axis=0) <= 1e-9)


def test_without_sampling_it_is_gaussian() -> None:
    claim, exact = ta.DpSgd(4.0, 1.0, 16), ta.Gaussian(1.0)
    assert claim.epsilon(1e-5) == pytest.approx(exact.epsilon(1e-5), rel=1e-3)
    assert float(claim.top_error_mass(np.asarray(1.0))) == pytest.approx(ndtr(-0.5), rel=1e-3)


def test_both_directions_count() -> None:
    claim = ta.DpSgd(1.0, 0.3, 5)
    epsilon = 0.7
    pld = privacy_loss_distribution.from_gaussian_mechanism(1.0, sampling_prob=0.3).self_compose(5)
    assert claim.delta(epsilon) == pytest.approx(pld.get_delta_for_epsilon(epsilon), rel=2e-3)
    removed, added = (pmf.get_delta_for_epsilon(epsilon) for pmf in (pld._pmf_remove, pld._pmf_add))
    assert removed != pytest.approx(added, rel=0.01)
    assert claim.symmetric_delta(epsilon) == pytest.approx(0.5 * (removed + added), rel=2e-3)


def test_the_central_limit_is_not_the_claim() -> None:
    claim = ta.DpSgd(0.734, 0.02, 1000)
    approximate = claim.central_limit().epsilon(1e-5)
    assert approximate == pytest.approx(6.88, abs=0.01)
    assert claim.epsilon(1e-5) == pytest.approx(8.0, abs=0.01)


def test_after_very_many_steps_masses_still_sum_to_one() -> None:
    claim = ta.DpSgd(50.0, 0.01, 100_000)
    assert float(claim.top_error_mass(np.asarray(1.0))) == pytest.approx(
        ndtr(-0.01 * 316.2 * 0.02 / 2), rel=1e-3
    )
    assert claim.f(0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["dp-sgd(sigma=1.13,q=0.1,steps=200)"])
@pytest.mark.parametrize("method", ["exact", "rank-weighted"])
def test_true_claims_are_rejected_no_more_often_than_the_level(text: str, method: str) -> None:
    result = calibrate(
        text,
        Audits(n=200, released=200 if method == "exact" else "planned", methods=(method,), times=1000),
        levels=(0.05, 0.001),
        bounds=False,
        workers=1,
    )
    assert not any(row.exceeds for row in result.rejections)
    assert result.rejections[0].rejected > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sigma": 0.0, "q": 0.1, "steps": 10}, "sigma=0"),
        ({"sigma": 1e-4, "q": 0.1, "steps": 10}, "at least 0.001"),
        ({"sigma": 1.0, "q": 0.0, "steps": 10}, "q=0"),
        ({"sigma": 1.0, "q": 1.5, "steps": 10}, "q=1.5"),
        ({"sigma": 1.0, "q": 0.1, "steps": 0}, "steps=0"),
        ({"sigma": 1.0, "q": 0.1, "steps": 1.5}, "steps=1.5"),
    ],
)
def test_bad_parameters(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ta.InputError, match=message):
        ta.DpSgd(**arguments)  # type: ignore[arg-type]


def test_family_of_a_text() -> None:
    family = ta.as_family("dp-sgd(q=0.1,steps=200)")
    assert (family.parameter, family.protects, family.direction) == ("sigma", True, "down to")
    assert family.leaking(0.5).epsilon(1e-5) < family.leaking(1.0).epsilon(1e-5)
    with pytest.raises(ta.InputError, match="sigma or q may be free"):
        ta.as_family("dp-sgd(sigma=1,q=0.1)")


@pytest.mark.parametrize(("q", "steps"), [(1.0, 2000), (0.5, 5000), (0.1, 100_000), (1.0, 10**8)])
def test_families_of_many_steps_are_searched_where_they_have_an_epsilon(q: float, steps: int) -> None:
    """With this much noise a training is nearly a Gaussian mechanism, which has a closed form."""
    evidence = ta.Evidence(n=1000, released=200, errors=15)
    bound = ta.lower_bound(evidence, ta.DpSgd.family(q=q, steps=steps), delta=1e-5)
    gaussian = ta.lower_bound(evidence, "gaussian", delta=1e-5)
    assert bound.epsilon == pytest.approx(gaussian.epsilon, rel=3e-3)


def test_members_beyond_all_numbers_reveal_whoever_was_sampled() -> None:
    assert ta.DpSgd(1e-3, 1.0, 10**8).f(0.1) == 0
    claim = ta.DpSgd(1e-3, 0.01, 100)
    assert claim.delta(5.0) == pytest.approx(1 - 0.99**100)


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "expected"),
    [(1.0, 0.005, 50_000, 6.949), (2.0, 0.01, 100_000, 8.1323), (50.0, 0.01, 100_000, 0.20686)],
)
def test_many_steps_do_not_coarsen_the_grid(sigma: float, q: float, steps: int, expected: float) -> None:
    """Expected: the limit of dp-accounting's own values as its grid gets finer."""
    epsilon = ta.DpSgd(sigma, q, steps).epsilon(1e-5)
    assert expected * (1 - 1e-5) <= epsilon <= expected * 1.0005

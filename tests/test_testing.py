"""The assertion for test suites."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.simulate.mechanisms.base import as_mechanism
from tightaudit.testing import PrivacyViolationError, assert_private

ARGUMENTS: dict[str, Any] = {"claim": "gaussian(mu=1)", "n": 1000, "independent": True}


def gaussian(mu: float) -> Any:
    return lambda bits, rng: mu * bits + rng.standard_normal(bits.size)


@pytest.mark.parametrize("independent", [True, False])
def test_an_honest_mechanism_passes(independent: bool) -> None:
    for seed in range(20):
        assert_private(gaussian(1.0), ta.Gaussian(1.0), n=1000, independent=independent, seed=seed)


def test_a_leak_is_reported_so_that_it_can_be_repeated() -> None:
    with pytest.raises(PrivacyViolationError) as caught:
        assert_private(gaussian(2.0), "gaussian(mu=1)", independent=True)
    message = str(caught.value)
    for part in (
        "leaks more than gaussian(mu=1)",
        "if outcomes are independent, as stated",
        "exact",
        "1e-06",
    ):
        assert part in message
    seed = int(message.rsplit("seed=", 1)[1])
    with pytest.raises(PrivacyViolationError) as again:
        assert_private(gaussian(2.0), "gaussian(mu=1)", independent=True, seed=seed)
    assert str(again.value) == message


def test_dependent_leaks_are_not_blamed_on_an_independent_claim() -> None:
    """Shared score is 1-GDP; only a false statement of independence can accuse it."""
    honest = as_mechanism("shared-score(claim=gaussian(mu=1))")

    def run(bits: Any, rng: np.random.Generator) -> Any:
        return honest.scores(bits[None, :], rng)[0]

    accused = 0
    for seed in range(40):
        assert_private(run, honest.claim, n=1000, seed=seed)
        try:
            assert_private(run, honest.claim, n=1000, seed=seed, independent=True)
        except PrivacyViolationError:
            accused += 1
    assert accused > 0


def test_the_level_is_kept() -> None:
    """At a level that can be measured, false alarms stay below it."""
    rejected = 0
    for seed in range(200):
        try:
            assert_private(
                gaussian(1.0), "gaussian(mu=1)", n=200, false_alarm=0.05, independent=True, seed=seed
            )
        except PrivacyViolationError:
            rejected += 1
    assert 0 < rejected <= 0.05 * 200 + 3 * (0.05 * 0.95 * 200) ** 0.5


def test_claims_without_a_family() -> None:
    claim = ta.Tabulated.from_function(ta.Gaussian(1.0).f)
    assert_private(gaussian(1.0), claim, n=500, independent=True, seed=0)
    with pytest.raises(PrivacyViolationError, match="leaks more"):
        assert_private(gaussian(3.0), claim, n=500, independent=True, seed=0)


@pytest.mark.parametrize(
    ("audited", "change", "message"),
    [
        (gaussian(1.0), {"claim": "gaussian"}, "claim="),
        (gaussian(1.0), {"claim": 3}, "claim=3"),
        (gaussian(1.0), {"false_alarm": 0.0}, "false_alarm=0.0"),
        (gaussian(1.0), {"n": 0}, "n=0"),
        (gaussian(1.0), {"independent": "yes"}, "independent=yes"),
        (lambda bits, _: bits[:5] * 1.0, {}, "mechanism=5 scores"),
        (lambda bits, _: np.full(bits.size, np.nan), {}, "mechanism=nan"),
        (lambda *_: None, {}, "mechanism="),
    ],
)
def test_bad_input(audited: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        assert_private(audited, **({**ARGUMENTS, **change}))
    assert message in str(caught.value)


@pytest.mark.parametrize("independent", [True, False])
@pytest.mark.parametrize(
    "mechanism",
    [
        lambda bits, rng: -1.0 * bits,  # noqa: ARG005
        lambda bits, rng: -(bits + rng.laplace(size=bits.size)),
    ],
    ids=["leaky", "honest"],
)
def test_scores_the_wrong_way_round_do_not_pass(mechanism: Any, independent: bool) -> None:
    with pytest.raises(ta.InputError, match=r"guesses wrong: .* are they the wrong way round\?"):
        assert_private(mechanism, "laplace(mu=1)", independent=independent)


def test_equal_scores_do_not_pass() -> None:
    with pytest.raises(ta.InputError, match="10000 scores of 0: expected scores that differ"):
        assert_private(lambda bits, rng: 0.0 * bits, "laplace(mu=1)")  # noqa: ARG005


def test_a_pass_says_what_it_could_have_seen() -> None:
    strict = assert_private(gaussian(1.0), "gaussian(mu=1)", independent=True, seed=1)
    careful = assert_private(gaussian(1.0), "gaussian(mu=1)", seed=1)
    assert strict.epsilon is not None
    assert careful.epsilon is not None
    assert 4.377 < strict.epsilon < careful.epsilon
    assert str(strict).startswith(f"Could have detected: ε = {strict.epsilon:.3g} or more at δ = 1e-05")
    assert isinstance(strict.mechanism, ta.Gaussian)
    leaky = 1.15 * strict.mechanism.mu
    for seed in range(20):
        with pytest.raises(PrivacyViolationError):
            assert_private(gaussian(leaky), "gaussian(mu=1)", independent=True, seed=seed)


@pytest.mark.parametrize(
    "text",
    [
        "shared-score(claim=gaussian(mu=1))",
        "all-or-nothing(delta=0.01)",
        "gaussian(mu=1)",
    ],
)
def test_failures_of_honest_mechanisms_are_as_rare_as_said(text: str) -> None:
    """Any failure counts, the one about the direction of scores too."""
    honest = as_mechanism(text)

    def run(bits: Any, rng: np.random.Generator) -> Any:
        return honest.scores(bits[None, :], rng)[0]

    arguments: dict[str, Any] = {"n": 400, "independent": honest.independent}
    failed, audits, rate = 0, 100, 0.05
    for seed in range(audits):
        try:
            assert_private(run, honest.claim, false_alarm=rate, seed=seed, **arguments)
        except (PrivacyViolationError, ta.InputError):
            failed += 1
    assert failed / audits <= rate + 3 * (rate * (1 - rate) / audits) ** 0.5

"""Mechanisms do what they say: their bits, their noise, and how private they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom, norm

import tightaudit as ta
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism, as_mechanism
from tightaudit.support.checks import BoolArray, FloatArray

EVERY = [MECHANISMS[name].example for name in MECHANISMS]


@pytest.mark.parametrize("text", EVERY)
def test_text_form_claim_and_reason(text: str) -> None:
    chosen = as_mechanism(text)
    assert str(chosen) == text
    assert isinstance(chosen.claim, ta.Claim)
    assert chosen.why
    evidence = chosen.play(50, 10, np.random.default_rng(0), runs=3)
    assert [(e.n, e.released) for e in evidence] == [(50, 10)] * 3
    again = chosen.play(50, 10, np.random.default_rng(0), runs=3)
    assert [e.errors for e in again] == [e.errors for e in evidence]


@pytest.mark.parametrize("text", [text for text in EVERY if as_mechanism(text).independent])
def test_independent_mechanisms_err_as_often_as_their_channel(text: str) -> None:
    """All released: the rate of the paper's rule, A(0) at best and exactly for symmetric noise."""
    chosen = as_mechanism(text)
    runs, n = 400, 500
    rate = np.mean([e.errors for e in chosen.play(n, n, np.random.default_rng(1), runs)]) / n
    best = chosen.claim.error_mass(0.0)
    noise = 4.5 * math.sqrt(best / (runs * n))
    if not chosen.claim.symmetric:
        assert rate >= best - noise
    else:
        assert rate == pytest.approx(best, abs=noise)


def test_shared_score_moves_errors_together() -> None:
    """F = 1-GDP, n = r = 200: Pr[≤ 18 errors] is 0.045, where independent channels say 1e-13."""
    chosen = as_mechanism("shared-score(claim=gaussian(mu=1))")
    counts = np.array([e.errors for e in chosen.play(200, 200, np.random.default_rng(4), 20_000)])
    assert np.mean(counts <= 18) == pytest.approx(0.045, abs=0.005)
    assert ta.p_value(ta.Evidence(200, 200, 18), ta.Gaussian(1.0)) < 1e-12
    assert counts.mean() / 200 == pytest.approx(norm.cdf(-0.5), abs=0.005)


def test_shared_sampling_meets_its_claim_and_not_the_subsampled_gaussian() -> None:
    """Given the coin, which the other bits reveal, a bit is μ-GDP: so δ(ε) = q·δ_μ(ε)."""
    chosen = as_mechanism("shared-sampling(mu=2,q=0.1)")
    for epsilon in (0.0, 0.5, 2.0):
        assert chosen.claim.delta(epsilon) == pytest.approx(0.1 * ta.Gaussian(2.0).delta(epsilon))
        assert chosen.claim.delta(epsilon) > ta.SubsampledGaussian(2.0, 0.1).delta(epsilon) or epsilon == 0


def test_all_or_nothing_is_all_or_nothing() -> None:
    chosen = as_mechanism("all-or-nothing(delta=0.3)")
    counts = np.array([e.errors for e in chosen.play(100, 100, np.random.default_rng(5), 4000)])
    assert np.mean(counts == 0) == pytest.approx(0.3, abs=0.03)
    rest = counts[counts > 0]
    assert rest.mean() == pytest.approx(50, abs=0.5)


def test_xor_tells_the_parity_and_nothing_else() -> None:
    chosen = as_mechanism("xor(epsilon=2)")
    counts = np.array([e.errors for e in chosen.play(20, 20, np.random.default_rng(6), 20_000)])
    assert np.mean(counts % 2 == 0) == pytest.approx(1 / (1 + math.exp(-2)), abs=0.01)
    assert counts.mean() == pytest.approx(10, abs=0.1)
    even = binom.pmf(np.arange(0, 21, 2), 20, 0.5)
    assert np.mean(counts[counts % 2 == 0] <= 6) == pytest.approx(even[:4].sum() / even.sum(), abs=0.01)


def test_correlated_canaries_keep_the_sensitivity() -> None:
    """Flipping one bit moves the two coordinates it lives in by √ρ·μ and √(1-ρ)·μ: norm μ."""
    chosen = as_mechanism("correlated-gaussian(mu=3,rho=0.36)")
    quiet = np.random.default_rng(7)
    members = np.zeros((1, 5), dtype=np.bool_)
    base = chosen.scores(members, quiet)
    members[0, 2] = True
    moved = chosen.scores(members, np.random.default_rng(7)) - base
    # Inner products with the other canaries move by ρ·μ, with itself by μ.
    assert moved[0] == pytest.approx([0.36 * 3, 0.36 * 3, 3.0, 0.36 * 3, 0.36 * 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gaussian", "a value for mu too"),
        ("gaussian(sigma=1)", "a parameter of gaussian (mu) at column 10, found 'sigma'"),
        ("gaussian(mu=-1)", "mu=-1.0"),
        ("gaussian(mu=laplace(mu=1))", "mu="),
        ("gausian(mu=1)", "mechanism=gausian: expected one of"),
        ("shared-score(claim=1)", "claim=1.0: expected a claim"),
        ("shared-score(claim=gaussian)", "claim=gaussian: expected a claim with all its parameters"),
        ("shared-score(claim=subsampled-gaussian(mu=1,q=0.5))", "symmetric in P and Q"),
        ("shared-sampling(mu=1,q=2)", "q=2.0"),
        ("correlated-gaussian(mu=1,rho=2)", "rho=2.0"),
        ("all-or-nothing(delta=2)", "delta=2.0"),
        ("xor(epsilon=-1)", "epsilon=-1.0"),
    ],
)
def test_bad_mechanisms(text: str, message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        as_mechanism(text)
    assert message in str(caught.value)


def test_a_parameter_that_is_not_the_claims_stays_as_it_is() -> None:
    """Two answers with noise of scale 1 each: √2 times the μ of one."""

    @dataclass(frozen=True)
    class Twice(Mechanism):
        mu: float
        name, example, independent, why = "twice", "twice(mu=1)", True, "noise of its own"

        @property
        def claim(self) -> ta.Gaussian:
            return ta.Gaussian(self.mu * math.sqrt(2))

        def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
            return self.mu * members + rng.standard_normal(members.shape) / math.sqrt(2)

    assert Twice(1.0).mu == 1.0
    assert Twice(1.0).claim.mu == pytest.approx(math.sqrt(2))
    with pytest.raises(ta.InputError, match="mu="):
        Twice(-1.0)

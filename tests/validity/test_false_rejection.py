"""How often a true claim is rejected, on independent mechanisms drawn as they really are.

The mechanisms add real noise to real bits and the guesses are made from the scores; nothing here uses the
channel the methods compute with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.support.checks import BoolArray, FloatArray

RUNS = 4000
Draw = Callable[[BoolArray, np.random.Generator], FloatArray]


def gaussian(mu: float) -> Draw:
    return lambda bits, rng: mu * bits + rng.standard_normal(bits.shape)


def laplace(mu: float) -> Draw:
    return lambda bits, rng: mu * bits + rng.laplace(size=bits.shape)


def subsampled(mu: float, q: float) -> Draw:
    return lambda bits, rng: mu * (bits & (rng.random(bits.shape) < q)) + rng.standard_normal(bits.shape)


def randomized_response(epsilon: float, delta: float) -> Draw:
    def draw(bits: BoolArray, rng: np.random.Generator) -> FloatArray:
        revealed = rng.random(bits.shape) < delta
        flipped = ~revealed & (rng.random(bits.shape) < 1 / (1 + math.exp(epsilon)))
        return np.where(bits ^ flipped, 1.0, -1.0) * np.where(revealed, 2.0, 1.0)

    return draw


MECHANISMS = [
    (ta.Gaussian(1.0), gaussian(1.0)),
    (ta.Gaussian(4.0), gaussian(4.0)),
    (ta.Laplace(1.0), laplace(1.0)),
    (ta.SubsampledGaussian(1.5, 0.5), subsampled(1.5, 0.5)),
    (ta.ApproxDP(1.0, 0.05), randomized_response(1.0, 0.05)),
]


def critical_errors(claim: ta.Claim, n: int, released: int, level: float, method: str) -> int:
    """The largest count that is rejected, -1 if none is: p-values never fall as the errors grow."""
    low, high = -1, released
    while high - low > 1:
        middle = (low + high) // 2
        rejected = ta.p_value(ta.Evidence(n, released, middle), claim, method=method) <= level
        low, high = (middle, high) if rejected else (low, middle)
    return low


@pytest.mark.parametrize(("claim", "draw"), MECHANISMS, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize(("n", "shares"), [(100, (0.2, 1.0)), (500, (0.5,))])
def test_rejects_a_true_claim_no_more_often_than_it_says(
    claim: ta.Claim, draw: Draw, n: int, shares: tuple[float, ...]
) -> None:
    rng = np.random.default_rng(n)
    bits = rng.random((RUNS, n)) < 0.5
    scores = draw(bits, rng)
    threshold = claim.parameters["mu"] / 2 if claim.point is None else 0.0
    for rule, cut in (("two-sided", None), ("one-sided", None), ("threshold", threshold)):
        audits = [
            ta.release(s, b, released=n, guessing=ta.Guessing(rule, cut, seed))  # type: ignore[arg-type]
            for seed, (s, b) in enumerate(zip(scores, bits, strict=True))
        ]
        for released in (round(share * n) for share in shares):
            errors = np.array([evidence.top(released).errors for evidence in audits])
            for method in ("exact", "order-statistics", *(("bits",) if released == n else ())):
                level = 0.05
                rate = np.mean(errors <= critical_errors(claim, n, released, level, method))
                assert rate <= level + 4 * math.sqrt(level * (1 - level) / RUNS)


def test_exact_is_not_merely_safe_but_tight() -> None:
    """On the mechanism itself, with its best guesses, the rate is the level up to the count's steps."""
    n, released, level = 2000, 1000, 0.05
    claim = ta.Gaussian(1.0)
    rng = np.random.default_rng(1)
    critical = critical_errors(claim, n, released, level, "exact")
    nominal = ta.p_value(ta.Evidence(n, released, critical), claim)
    bits = rng.random((RUNS, n)) < 0.5
    loss = bits + rng.standard_normal(bits.shape) - 0.5
    order = np.argsort(-np.abs(loss), axis=1)[:, :released]
    errors = np.take_along_axis((loss > 0) != bits, order, axis=1).sum(axis=1)
    assert np.mean(errors <= critical) == pytest.approx(nominal, abs=4 * math.sqrt(nominal / RUNS))
    assert nominal > 0.04


def test_sum_of_bernoullis_is_too_narrow() -> None:
    """Why `order-statistics` leans on its slack: the exact law is wider than the sum of Bernoulli(v_k)."""
    claim, n = ta.Gaussian(4.0), 10_000
    mean = ta.expected_errors(claim, n=n, released=n)
    # All released: the true law is Binomial(n, A(0)); Bernoullis with the same mean but unequal rates
    # have the variance Σ v(1-v), which is smaller by the spread of the v_k.
    t = (np.arange(n) + 0.5) / n
    rates = claim.error_probability(t)
    assert np.sum(rates * (1 - rates)) < 0.9 * mean * (1 - mean / n)

"""Steinke's bound against its formula, term by term."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.stats import binom

import tightaudit as ta


def by_the_formula(n: int, r: int, errors: int, epsilon: float, delta: float) -> float:
    correct = r - errors
    law = binom(r, 1 / (1 + np.exp(-epsilon)))
    largest = max(
        (law.pmf(np.arange(correct - i, correct)).sum() / i for i in range(1, correct + 1)), default=0
    )
    return min(1.0, float(law.sf(correct - 1) + 2 * n * delta * largest))


@given(
    st.integers(1, 120),
    st.floats(0, 1),
    st.floats(0, 0.6),
    st.floats(0, 6),
    st.sampled_from([0, 1e-6, 1e-3, 0.1]),
)
@settings(max_examples=150, deadline=None)
def test_against_the_formula(n: int, share: float, wrong: float, epsilon: float, delta: float) -> None:
    released = max(1, round(share * n))
    errors = round(wrong * released)
    p = ta.p_value(ta.Evidence(n, released, errors), ta.ApproxDP(epsilon, delta), method="steinke")
    formula = by_the_formula(n, released, errors, epsilon, delta)
    # Above ½ the formula is given as 1, except without δ, where it is a binomial tail and holds everywhere.
    assume(abs(formula - 0.5) > 1e-9)
    expected = formula if formula < 0.5 or delta == 0 else 1.0
    assert p == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_everything_revealed_is_never_rejected() -> None:
    """Deep in the tail the binomial masses underflow, but δ = 1 still explains everything."""
    assert ta.p_value(ta.Evidence(10**6, 2 * 10**5, 26_228), ta.ApproxDP(0.0, 1.0), method="steinke") == 1


def test_another_claim_is_tested_at_its_best_point() -> None:
    claim, evidence = ta.Gaussian(0.5), ta.Evidence(1000, 100, 10)
    p = ta.p_value(evidence, claim, method="steinke")
    points = [by_the_formula(1000, 100, 10, e, claim.delta(e)) for e in np.linspace(0, 4, 81)]
    assert min(points) * 0.98 <= p <= min(points)

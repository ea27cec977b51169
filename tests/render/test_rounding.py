"""What is printed of a bound says no more than the bound."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, given, settings, strategies as st

import tightaudit as ta
from tightaudit.render.wording import last_rejected, rounded_down


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["gaussian", "laplace", "subsampled-gaussian(q=0.3)"]),
    st.integers(5, 70),
    st.sampled_from(["exact", "any-dependence"]),
)
def test_the_printed_parameter_is_rejected(family: str, errors: int, method: str) -> None:
    evidence = ta.Evidence(n=1000, released=200, errors=errors)
    bound = ta.lower_bound(evidence, family, delta=1e-5, method=method)
    assume(bound.rejected is not None)
    printed = float(last_rejected(bound).split(" = ")[1])
    assert printed == pytest.approx(bound.parameter, rel=1e-5)
    assert ta.p_value(evidence, bound.family.member(printed), method=method) <= 0.05


def test_of_noise_more_is_printed() -> None:
    evidence = ta.Evidence(n=1000, released=200, errors=25)
    bound = ta.lower_bound(evidence, "dp-sgd(q=0.1,steps=50)", delta=1e-5)
    assert bound.parameter is not None
    printed = float(last_rejected(bound).removeprefix("rejected down to sigma = "))
    assert bound.parameter <= printed <= bound.parameter * (1 + 1e-5)


@given(st.floats(0, 1000))
def test_a_printed_bound_is_never_larger(epsilon: float) -> None:
    printed = Decimal(rounded_down(epsilon))
    assert printed <= Decimal(epsilon) < printed + Decimal("0.001")

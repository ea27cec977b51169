"""Lower bounds: on the rejected side, converted rightly, and honest when there is none."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.conftest import SAMPLE_FAMILIES

import tightaudit as ta


@given(
    st.sampled_from(SAMPLE_FAMILIES),
    st.integers(1, 10**6),
    st.floats(0, 1),
    st.floats(0, 0.5),
    st.sampled_from([0.5, 0.95, 0.999999]),
    st.sampled_from(["exact", "order-statistics"]),
)
@settings(max_examples=60, deadline=None)
def test_the_returned_end_is_rejected_and_the_next_is_not(
    family: ta.Family, n: int, share: float, wrong: float, confidence: float, method: str
) -> None:
    released = max(1, round(share * n))
    evidence = ta.Evidence(n, released, round(wrong * released))
    delta = 1e-5 if family.delta is None else family.delta
    bound = ta.lower_bound(evidence, family, delta=delta, confidence=confidence, method=method)

    def p(claim: ta.Claim) -> float:
        return ta.p_value(evidence, claim, method=method)

    level = 1 - confidence
    if bound.status == "none-rejected":
        assert p(family.most_private) > level
        assert bound.epsilon == 0
        assert bound.parameter is None
    elif bound.status == "all-rejected":
        assert p(family.least_private) <= level
        assert bound.epsilon is None
        assert bound.parameter is None
    else:
        assert bound.parameter is not None
        assert bound.epsilon is not None
        member = family.member(bound.parameter) if bound.parameter > 0 else family.most_private
        assert p(member) <= level * (1 + 1e-9)
        assert bound.epsilon == pytest.approx(member.epsilon(delta))
        beyond = min(bound.parameter * (1 + 1e-6) + 1e-8, family.upper)
        assert p(family.member(beyond)) > level * (1 - 1e-9)


def test_none_rejected_says_so() -> None:
    bound = ta.lower_bound(ta.Evidence(100, 100, 50), ta.Gaussian.family(), delta=1e-5)
    assert (bound.status, bound.epsilon, bound.parameter) == ("none-rejected", 0.0, None)
    assert "no lower bound" in str(bound)


def test_all_rejected_says_so() -> None:
    """At rate q = 0.5 at least a quarter of all guesses is wrong however little noise there is."""
    bound = ta.lower_bound(ta.Evidence(1000, 1000, 0), ta.SubsampledGaussian.family(q=0.5), delta=1e-5)
    assert (bound.status, bound.epsilon, bound.parameter) == ("all-rejected", None, None)
    assert "does not describe this mechanism" in str(bound)


def test_no_errors_at_all_is_still_bounded() -> None:
    """U = 0 among r released under pure DP: (1-1/(1+e^ε))^r = 0.05 in closed form."""
    bound = ta.lower_bound(ta.Evidence(1000, 1000, 0), ta.ApproxDP.family(delta=0.0), delta=0.0)
    rate = -math.expm1(math.log(0.05) / 1000)
    assert bound.epsilon == pytest.approx(math.log((1 - rate) / rate), rel=1e-7)


def test_more_confidence_and_more_errors_lower_the_bound() -> None:
    family = ta.Gaussian.family()

    def epsilon(errors: int, confidence: float) -> float:
        bound = ta.lower_bound(ta.Evidence(2000, 400, errors), family, delta=1e-5, confidence=confidence)
        assert bound.epsilon is not None
        return bound.epsilon

    assert epsilon(30, 0.9) > epsilon(30, 0.95) > epsilon(30, 0.999)
    assert epsilon(20, 0.95) > epsilon(30, 0.95) > epsilon(40, 0.95)


def test_tighter_method_gives_the_larger_bound() -> None:
    evidence, family = ta.Evidence(1000, 200, 25), ta.Gaussian.family()
    bounds = [
        ta.lower_bound(evidence, family, delta=1e-5, method=method).epsilon
        for method in ("exact", "order-statistics", ta.OrderStatistics(tail="hoeffding"))
    ]
    assert None not in bounds
    assert bounds == sorted(bounds, reverse=True)  # type: ignore[type-var]


def test_printed_bounds_round_down_and_name_their_beliefs() -> None:
    gaussian = ta.lower_bound(ta.Evidence(1000, 200, 25), ta.Gaussian.family(), delta=1e-5)
    assert str(gaussian).startswith("ε ≥ 3.645 at δ=1e-05 with 95% confidence")
    assert "outcomes are independent" in str(gaussian)
    assert "in the family gaussian" in str(gaussian)
    shapeless = ta.lower_bound(ta.Evidence(1000, 200, 25), ta.ApproxDP.family(delta=1e-5), delta=1e-5)
    assert "family" not in str(shapeless)


GOOD: dict[str, Any] = {"evidence": ta.Evidence(100, 50, 5), "family": ta.Gaussian.family(), "delta": 1e-5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": -0.1}, "delta=-0.1: expected a number in [0, 1]"),
        ({"delta": 1.5}, "delta=1.5"),
        ({"delta": float("nan")}, "delta=nan"),
        ({"delta": 0.0}, "delta=0.0: expected a δ at which claims of the family gaussian have a finite ε"),
        ({"confidence": 0.0}, "confidence=0.0: expected a number strictly between 0 and 1"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"confidence": 95}, "confidence=95"),
        ({"family": ta.Gaussian(1.0)}, "family=gaussian(mu=1): expected a family"),
        ({"family": ta.ApproxDP.family(delta=0.01)}, "delta=1e-05: expected 0.01, the δ of the family"),
        ({"method": "magic"}, "method=magic"),
    ],
)
def test_bad_input_is_turned_away(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.lower_bound(**(GOOD | change))
    assert message in str(caught.value)

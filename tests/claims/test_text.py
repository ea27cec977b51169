"""The text form of claims, and errors that point at the place."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.conftest import SAMPLE_CLAIMS

import tightaudit as ta


@pytest.mark.parametrize("claim", [c for c in SAMPLE_CLAIMS if c.parameter_names], ids=str)
def test_text_form_is_read_back(claim: ta.Claim) -> None:
    assert ta.as_claim(str(claim)) == claim


def test_spaces_and_order_do_not_matter() -> None:
    assert ta.as_claim(" subsampled-gaussian ( q = .5 , mu = 1e0 ) ") == ta.SubsampledGaussian(1.0, 0.5)
    assert str(ta.as_family("gaussian()")) == "gaussian"


def test_delta_is_filled_in_for_approx_dp_only() -> None:
    assert ta.as_family("approx-dp", delta=0.01).delta == 0.01
    assert ta.as_claim("approx-dp(epsilon=2)", delta=0.01) == ta.ApproxDP(2.0, 0.01)
    assert ta.as_family("gaussian", delta=0.01).delta is None


@pytest.mark.parametrize("given", [3, None, ["gaussian(mu=1)"], ta.Gaussian.family()])
def test_what_is_no_claim(given: Any) -> None:
    with pytest.raises(ta.InputError, match="expected a claim with all its parameters"):
        ta.as_claim(given)


@pytest.mark.parametrize("given", [3, None, ta.Gaussian(1.0), "gaussian(mu=1)"])
def test_what_is_no_family(given: Any) -> None:
    with pytest.raises(ta.InputError, match="expected a family: a claim with one parameter left out"):
        ta.as_family(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a name such as gaussian at column 1, found the end"),
        ("gauss(mu=1)", "claim=gauss: expected one of"),
        ("gaussian(mu=x)", "a number for mu at column 13, found 'x'"),
        ("gaussian(mu=)", "a number for mu at column 13, found ')'"),
        ("gaussian(mu=1", "',' or ')' at column 14, found the end"),
        ("gaussian(mu 1)", "'=' after mu at column 13, found '1'"),
        ("gaussian(mu=1,)", "a parameter's name at column 15, found ')'"),
        ("gaussian(mu=1) x", "nothing more at column 16, found 'x'"),
        ("gaussian mu=1", "'(' or nothing more at column 10, found 'mu'"),
        ("gaussian(mu=1,mu=2)", "each parameter once at column 15, found 'mu'"),
        ("gaussian(sigma=1)", "a parameter of gaussian (mu) at column 10, found 'sigma'"),
        ("gaussian(mu=1e999)", "a finite number for mu at column 13, found '1e999'"),
        ("gaussian(mu=nan)", "a number for mu at column 13, found 'nan'"),
        ("gaussian(mu=$)", "a number for mu at column 13, found '$'"),
        ("gaussian(mu=0)", "mu=0.0: expected a number above 0"),
        ("gaussian(mu=-1)", "mu=-1.0: expected a number above 0"),
        ("gaussian(mu=1e7)", "mu=10000000.0: expected at most 1e+06"),
        ("laplace(mu=701)", "mu=701.0: expected at most 700"),
        ("laplace(mu=-1)", "mu=-1.0: expected a number above 0"),
        ("subsampled-gaussian(mu=1,q=0)", "q=0.0: expected a sampling rate in (0, 1]"),
        ("subsampled-gaussian(mu=1,q=1.5)", "q=1.5: expected a sampling rate in (0, 1]"),
        ("approx-dp(epsilon=-1,delta=0)", "epsilon=-1.0: expected a number of at least 0"),
        ("approx-dp(epsilon=1,delta=1.1)", "delta=1.1: expected a number in [0, 1]"),
        (
            "approx-dp(epsilon=1)",
            "claim=approx-dp(epsilon=1): expected a claim with all its parameters; missing: delta",
        ),
        ("approx-dp", "missing: epsilon and delta"),
        ("subsampled-gaussian", "missing: mu and q"),
    ],
)
def test_errors_point_at_the_place(text: str, message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.as_claim(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [10**400, 1j, "1", None, True, [1.0], float("nan")])
def test_parameters_that_are_not_numbers(value: Any) -> None:
    for make in (
        ta.Gaussian,
        ta.Laplace,
        partial(ta.ApproxDP, delta=0.1),
        partial(ta.SubsampledGaussian, 1.0),
    ):
        with pytest.raises(ta.InputError):
            make(value)
    with pytest.raises(ta.InputError):
        ta.SubsampledGaussian.family(q=value)


@pytest.mark.parametrize("claim", [ta.Gaussian(1e6), ta.Laplace(700.0), ta.ApproxDP(700.0, 0.1)], ids=str)
def test_extreme_parameters_stay_finite(claim: ta.Claim) -> None:
    assert claim.f(0.0) == pytest.approx(0.9 if isinstance(claim, ta.ApproxDP) else 1.0)
    assert 0 <= claim.delta(1e200) <= 0.1
    assert claim.epsilon(0.2) > 500
    assert ta.p_value(ta.Evidence(10, 9, 1), claim) == pytest.approx(1)

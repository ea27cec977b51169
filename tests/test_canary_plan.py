"""Plans against simulation: the bound to expect, its spread, and power."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.belief_rows import plan_rows
from tightaudit.canary_plan import Forecast
from tightaudit.cli import main
from tightaudit.mechanisms.base import mechanism
from tightaudit.outcomes import Outcomes
from tightaudit.releases import ReleaseRule


@pytest.mark.parametrize("method", [ta.Exact(), ta.RankWeighted((50, 150, 300), (5, 2, 1))], ids=str)
def test_counts_have_the_law_that_is_simulated(method: ta.Exact | ta.RankWeighted) -> None:
    outcomes = Outcomes(ta.Gaussian(1.0), method, n=500, released=100)
    rng = np.random.default_rng(1)
    played = mechanism("gaussian(mu=1)").play(500, 500, rng, runs=2000)
    if isinstance(method, ta.RankWeighted):
        counts = np.array([method.statistic(evidence) for evidence in played])
    else:
        counts = np.array([evidence.release(100).errors for evidence in played])
    mean, deviation = outcomes.moments
    assert mean == pytest.approx(counts.mean(), abs=4 * counts.std() / 2000**0.5)
    assert deviation == pytest.approx(counts.std(), rel=0.08)
    for chance in (0.1, 0.5, 0.9):
        found = outcomes.quantile(chance)
        count = found.statistic if isinstance(found, ta.WeightedCount) else found.errors
        assert np.mean(counts <= count) == pytest.approx(chance, abs=0.06)


SETTINGS = [
    ("gaussian(mu=1)", 1000, 0),
    ("gaussian(mu=1)", 1000, 1),
    ("gaussian(mu=1)", 500, 2),
    ("laplace(mu=1)", 1000, 0),
    ("subsampled-gaussian(mu=1,q=0.5)", 2000, 0),
]


@pytest.mark.parametrize(("text", "n", "place"), SETTINGS)
def test_forecast_means_are_those_of_simulated_audits(text: str, n: int, place: int) -> None:
    """A few of the settings that `benchmarks/plans.py` measures with a thousand audits each."""
    chosen = mechanism(text)
    row = plan_rows(
        n,
        claim=chosen.claim,
        null=None,
        delta=1e-5,
        confidence=0.95,
        release=ReleaseRule("auto"),
        guessing="threshold",
    )[place]
    forecast = Forecast(row, n, Outcomes(chosen.claim, row.method, n, row.counts[0]))
    played = chosen.play(n, n, np.random.default_rng(3), runs=40, guessing="threshold")
    bounds = [row.row(evidence).bound.epsilon or 0.0 for evidence in played]
    noise = np.std(bounds) / len(bounds) ** 0.5
    assert forecast.mean == pytest.approx(np.mean(bounds), abs=4 * noise + 0.03 * np.mean(bounds))


def test_a_plan_keeps_its_promise() -> None:
    plan = ta.plan(ta.Gaussian(2.0), delta=1e-5, certify=0.4)
    for row in plan.rows:
        assert row.reached
        assert row.forecast.mean >= 0.4 * plan.true_epsilon
        low, high = row.forecast.spread
        assert low <= row.forecast.mean <= high
    assert [row.independent for row in plan.rows] == [True, True, False, False]
    needed = [row.n or 0 for row in plan.rows]
    assert needed[0] < needed[1] <= needed[3]
    assert all(len(line) <= 80 for line in str(plan).splitlines())


def test_weaker_canaries_have_a_ceiling() -> None:
    strong, weak = (
        ta.plan(ta.Gaussian(1.0), delta=1e-5, canary_strength=strength, canaries=3000).rows[0].forecast.mean
        for strength in (1.0, 0.7)
    )
    assert weak < 0.75 * strong
    hopeless = ta.plan(ta.Gaussian(1.0), delta=1e-5, certify=0.8, canary_strength=0.7, canaries=10**7)
    assert not hopeless.rows[0].reached
    # With 0.7 times the μ no more than that mechanism's ε can be certified.
    ceiling = ta.Gaussian(0.7).epsilon(1e-5)
    assert hopeless.rows[0].forecast.mean == pytest.approx(ceiling, rel=0.01)
    assert ceiling < 0.8 * hopeless.true_epsilon


def test_without_both_beliefs_some_goals_are_out_of_reach() -> None:
    plan = ta.plan(ta.Gaussian(1.0), delta=1e-5, certify=0.95, canaries=10**8)
    assert [row.reached for row in plan.rows] == [True, False, False, False]
    assert plan.rows[3].n is None
    assert "✗" in str(plan)


def test_power_is_that_of_simulated_audits() -> None:
    plan = ta.plan(ta.Gaussian(0.5), delta=1e-5, catch=2.0, canaries=150)
    row = plan.rows[0]
    assert row.forecast.power is not None
    truth = mechanism(str(plan.truth))
    played = truth.play(150, 150, np.random.default_rng(5), runs=400)
    rejected = np.mean([row.forecast.row.row(evidence).rejected for evidence in played])
    assert row.forecast.power == pytest.approx(rejected, abs=4 * 0.5 / 400**0.5)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    arguments = ["plan", "--claim", "gaussian(mu=1)", "--delta", "1e-5", "--canaries", "1000"]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--json", "--plot", f"{tmp_path}/plan.png"])
    assert not stopped.value.code
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["method"] == "rank-weighted"
    assert sum(found["rows"][0]["strata"]) <= 1000
    assert found["rows"][1]["strata"] is None
    with open(f"{tmp_path}/plan.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--certify", "1.5", "--claim", "gaussian(mu=1)"], "certify=1.5"),
        (["--catch", "0.5", "--claim", "gaussian(mu=1)"], "catch=0.5"),
        (["--catch", "2", "--certify", "0.5", "--claim", "gaussian(mu=1)"], "either a share"),
        (["--catch", "2", "--null", "gaussian"], "a claim that is exceeded"),
        (["--canary-strength", "2", "--claim", "gaussian(mu=1)"], "canary_strength=2"),
        (["--power", "1", "--catch", "2", "--claim", "gaussian(mu=1)"], "power=1"),
        ([], "claim=None"),
        (["--claim", "gaussian"], "mu is missing"),
    ],
)
def test_bad_plans(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["plan", "--delta", "1e-5", *arguments])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err

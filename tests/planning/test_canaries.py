"""Plans against simulation: the bound to expect, its spread, and power."""

from __future__ import annotations

import json
from bisect import bisect_left

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

import tightaudit as ta
from tightaudit.cli.main import main
from tightaudit.methods.base import Method, Test
from tightaudit.planning import canaries
from tightaudit.planning.forecast import Law
from tightaudit.simulate.mechanisms.base import as_mechanism


@pytest.mark.parametrize("method", [ta.Exact(), ta.RankWeighted((50, 150, 300), (5, 2, 1))], ids=str)
def test_counts_have_the_law_that_is_simulated(method: Method) -> None:
    law = Law(ta.Gaussian(1.0), Test(method, n=500, released=100))
    played = as_mechanism("gaussian(mu=1)").play(500, 500, np.random.default_rng(1), runs=2000)
    counts = np.array([law.test.statistic(evidence.top(100)) for evidence in played])
    mean, deviation = law.moments
    assert mean == pytest.approx(counts.mean(), abs=4 * counts.std() / 2000**0.5)
    assert deviation == pytest.approx(counts.std(), rel=0.08)
    for chance in (0.1, 0.5, 0.9):
        assert np.mean(counts <= law.quantile(chance)) == pytest.approx(chance, abs=0.06)


@pytest.mark.parametrize(
    ("text", "n", "place"),
    [("gaussian(mu=1)", 1000, 0), ("gaussian(mu=1)", 1000, 1), ("laplace(mu=1)", 500, 2)],
)
def test_forecast_means_are_those_of_simulated_audits(text: str, n: int, place: int) -> None:
    """A few like those that `benchmarks/plans.py` measures."""
    chosen = as_mechanism(text)
    forecast = ta.plan(chosen.claim, delta=1e-5, canaries=n).rows[place].forecast
    row, test = forecast.row, forecast.test
    played = chosen.play(n, n, np.random.default_rng(3), runs=400, rule="threshold")
    counts = np.array([test.statistic(evidence.top(test.released)) for evidence in played])
    nodes = np.unique(np.rint(np.linspace(counts.min(), counts.max(), 9))).astype(int)
    bounds = [row.bound(test, test.evidence(int(c)), row.confidence).epsilon or 0.0 for c in nodes]
    simulated = float(np.mean(PchipInterpolator(nodes, bounds)(counts)))
    assert forecast.mean == pytest.approx(simulated, rel=0.03)


def test_a_plan_keeps_its_promise() -> None:
    plan = ta.plan(ta.Gaussian(2.0), delta=1e-5, goal=ta.Goal(certify=0.4))
    for row in plan.rows:
        assert row.reached
        assert row.forecast.mean >= 0.4 * plan.true_epsilon
        low, high = row.forecast.spread
        assert low <= row.forecast.mean <= high
    assert [row.beliefs.independent for row in plan.rows] == [True, True, False, False]
    needed = [row.n or 0 for row in plan.rows]
    assert needed[0] < needed[1] <= needed[3]
    assert all(len(line) <= 80 for line in str(plan).splitlines())


def test_weaker_canaries_have_a_ceiling() -> None:
    strong, weak = (
        ta.plan(ta.Gaussian(1.0), delta=1e-5, canary_strength=strength, canaries=3000).rows[0].forecast.mean
        for strength in (1.0, 0.7)
    )
    assert weak < 0.75 * strong
    hopeless = ta.plan(
        ta.Gaussian(1.0), delta=1e-5, goal=ta.Goal(certify=0.8), canary_strength=0.7, canaries=10**7
    )
    assert not hopeless.rows[0].reached
    # With 0.7 times the μ no more than that mechanism's ε can be certified.
    ceiling = ta.Gaussian(0.7).epsilon(1e-5)
    assert hopeless.rows[0].forecast.mean == pytest.approx(ceiling, rel=0.01)
    assert ceiling < 0.8 * hopeless.true_epsilon


def test_under_any_dependence_some_goals_are_out_of_reach() -> None:
    plan = ta.plan(ta.Gaussian(1.0), delta=1e-5, goal=ta.Goal(certify=0.95), canaries=10**8)
    assert [row.reached for row in plan.rows] == [True, True, False, False]
    assert plan.rows[3].n is None
    assert "✗" in str(plan)


def test_power_is_that_of_simulated_audits() -> None:
    plan = ta.plan(ta.Gaussian(0.5), delta=1e-5, goal=ta.Goal(catch=2.0), canaries=150)
    row = plan.rows[0]
    assert row.forecast.power is not None
    test, tested = row.forecast.test, row.forecast.row.claim
    assert test.method.name == "rank-weighted"
    assert tested is not None
    played = as_mechanism(str(plan.truth)).play(150, 150, np.random.default_rng(5), runs=2000)
    counts = np.sort([test.statistic(evidence) for evidence in played])

    def accepted(count: int) -> bool:
        return test.p_value(tested, count) > 0.05

    rejected = bisect_left(counts, True, key=accepted) / 2000
    assert row.forecast.power == pytest.approx(rejected, abs=4 * 0.5 / 2000**0.5)


def test_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canaries, "SIZES", (100, 1000))  # or the plot takes half a minute
    arguments = ["plan", "--claim", "gaussian(mu=1)", "--delta", "1e-5", "--canaries", "1000"]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--json", "--plot", f"{tmp_path}/plan.png"])
    assert not stopped.value.code
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["method"] == "rank-weighted"
    assert sum(found["rows"][0]["options"]["strata"]) <= 1000
    assert found["rows"][1]["options"] == {}
    with open(f"{tmp_path}/plan.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--certify", "1.5", "--claim", "gaussian(mu=1)"], "certify=1.5"),
        (["--catch", "0.5", "--claim", "gaussian(mu=1)"], "catch=0.5"),
        (["--catch", "2", "--certify", "0.5", "--claim", "gaussian(mu=1)"], "either a share"),
        (["--catch", "2", "--family", "gaussian"], "a claim to exceed"),
        (["--canary-strength", "2", "--claim", "gaussian(mu=1)"], "canary_strength=2"),
        (["--power", "1", "--catch", "2", "--claim", "gaussian(mu=1)"], "power=1"),
        ([], "give --claim"),
        (["--claim", "gaussian"], "missing: mu"),
    ],
)
def test_bad_plans(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["plan", "--delta", "1e-5", *arguments])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err

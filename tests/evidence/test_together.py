"""Several runs as one, whatever form they come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import tightaudit as ta
from tightaudit.cli.main import main
from tightaudit.evidence.checkup import Check, Checkup
from tightaudit.evidence.together import together

SIZES = (300, 200, 300)


def runs(**known: Any) -> list[ta.Run]:
    rng, found = np.random.default_rng(1), []
    for seed, size in enumerate(SIZES):
        coins = ta.draw_coins(size, seed=seed)
        scores = 2 * coins.members + rng.standard_normal(size)
        found.append(ta.Run(scores, coins.members, ids=np.arange(size), **known))
    return found


def small(*scores: float, **known: Any) -> ta.Run:
    """A run with these scores, all members."""
    return ta.Run(np.array(scores), np.ones(len(scores), bool), **known)


def test_every_form_gives_the_same_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    separate = runs()
    expected = ta.audit(separate, delta=1e-5)
    beliefs = [(row.beliefs.independent, row.beliefs.runs) for row in expected.rows]
    assert beliefs == [(True, 1)] * 2 + [(False, 3)] * 2 + [(False, 1)] * 2
    whole = together(separate)
    labels = np.repeat(["a", "b", "c"], SIZES)
    columns = {"id": np.concatenate([run.ids for run in separate if run.ids is not None])}
    columns |= {"score": whole.scores, "member": whole.members.astype(int), "seed": labels}
    frame = pandas.DataFrame(columns)
    frame.to_csv(tmp_path / "runs.csv", index=False)
    frame.to_parquet(tmp_path / "runs.parquet")
    frame.to_json(tmp_path / "runs.jsonl", orient="records", lines=True)
    named = ta.Run(whole.scores, whole.members, runs=labels)
    named.save(tmp_path / "runs.npz")
    names = ta.Columns(run="seed")
    order = np.random.default_rng(2).permutation(whole.n)
    forms: list[Any] = [named, tmp_path / "runs.npz"]
    found = [ta.audit(form, delta=1e-5) for form in forms]
    found += [
        ta.audit(form, delta=1e-5, columns=names)
        for form in (
            frame,
            polars.DataFrame(columns),
            tmp_path / "runs.csv",
            tmp_path / "runs.parquet",
            tmp_path / "runs.jsonl",
        )
    ]
    found.append(ta.audit(frame.rename(columns={"seed": "run"}).iloc[order], delta=1e-5))
    for report in found:
        assert [row.epsilon for row in report.rows[2:4]] == [row.epsilon for row in expected.rows[2:4]]
    with pytest.raises(SystemExit, match="0"):
        main(["audit", str(tmp_path / "runs.csv"), "--run-column", "seed", "--delta", "1e-5"])
    shown = capsys.readouterr().out
    assert "800 canaries in 3 runs" in shown
    assert "if the runs are independent of each other" in " ".join(shown.split())
    assert ta.read_run(tmp_path / "runs.npz").sizes == SIZES


def test_what_is_stated_is_what_the_headline_rests_on() -> None:
    apart = ta.audit(runs(claim="gaussian(mu=2)", family="gaussian"), delta=1e-5)
    assert apart.headline is not None
    assert (apart.headline.beliefs.runs, apart.headline.beliefs.independent) == (3, False)
    assert "The runs do not contradict the claim gaussian(mu=2)" in apart.verdict
    independent = ta.audit(runs(independent="a reason"), delta=1e-5)
    assert independent.headline is not None
    assert independent.headline.beliefs.independent
    assert independent.headline.evidence.n == sum(SIZES)
    assert ta.audit(runs()[:1], delta=1e-5).run.sizes == ()
    fixed = ta.audit(runs(), delta=1e-5, method="fdp-recursion", released=80)
    assert [row.method.name for row in fixed.rows] == ["between-runs"] * 2 + ["fdp-recursion"] * 2
    assert [row.evidence.released for row in fixed.rows] == [80] * 4


def test_claims_that_differ_in_their_parameter() -> None:
    """The least private of them is what all runs promise."""
    first, second, third = runs(claim="gaussian(mu=2)")
    other = ta.Run(third.scores, third.members, claim=ta.Gaussian(2.5))
    assert together([first, second, other]).claim == ta.Gaussian(2.5)
    noise = [small(1.0, claim=f"dp-sgd(sigma={sigma},q=0.1,steps=10)") for sigma in (1, 2)]
    assert str(together(noise).claim) == "dp-sgd(sigma=1,q=0.1,steps=10)"


def test_what_was_noticed_names_the_run() -> None:
    checkup = Checkup((Check("noise", "1", "0.5", 1e-9, "the noise is 0.5 of what was asked for"),))
    report = ta.audit([small(1.0, remarks=("Odd.",)), small(1.0, checkup=checkup)], delta=1e-5)
    assert report.run.remarks == ("Run 1: Odd.",)
    assert report.faulted
    assert report.checkup is not None
    assert [check.fault for check in report.checkup.faults] == [
        "run 2: the noise is 0.5 of what was asked for"
    ]


def test_runs_that_share_their_coins_are_refused() -> None:
    first, second, _ = runs()
    with pytest.raises(ta.InputError, match="the same coins in run 1 and run 3"):
        ta.audit([first, second, first], delta=1e-5)


def test_claims_without_parameters_are_compared_by_what_they_promise() -> None:
    weak = ta.Tabulated(np.array([0, 0.5, 1]), np.array([0.9, 0.1, 0]))
    strong = ta.Tabulated(np.array([0, 0.5, 1]), np.array([1, 0.4, 0]))
    assert together([small(1.0, claim=weak), small(1.0, claim=weak)]).claim is weak
    with pytest.raises(ta.InputError, match="runs: claim=tabulated"):
        together([small(1.0, claim=strong), small(1.0, claim=weak)])
    own = ta.audit([small(1.0, claim=strong), small(1.0)], delta=1e-5, claim="gaussian(mu=1)")
    assert own.question.claim == ta.Gaussian(1.0)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ([{"threshold": 0.0}, {}], "runs: threshold=0.0 and None: expected the same for all runs"),
        ([{"family": "gaussian"}, {"family": "laplace"}], "runs: family=gaussian and laplace"),
        ([{"claim": "gaussian(mu=1)"}, {}], r"runs: claim=None and gaussian\(mu=1\)"),
        (
            [{"claim": "dp-sgd(sigma=1,q=0.1,steps=10)"}, {"claim": "dp-sgd(sigma=1,q=0.2,steps=10)"}],
            "runs: claim=.*: expected claims of one family",
        ),
    ],
)
def test_what_cannot_be_pooled_is_refused(pair: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ta.InputError, match=message):
        ta.audit([small(1.0, 0.0, **known) for known in pair], delta=1e-5)


def test_bad_input() -> None:
    with pytest.raises(ta.InputError, match="data=float: expected a Run in each place"):
        ta.audit([small(1.0), 2.0], delta=1e-5)
    with pytest.raises(ta.InputError, match="members=given"):
        ta.audit([small(1.0)], [1], delta=1e-5)
    with pytest.raises(ta.InputError, match="data=no runs"):
        together([])
    with pytest.raises(ta.InputError, match="runs=2 values: expected one per score, 1"):
        small(1.0, runs=["a", "b"])
    with pytest.raises(ta.InputError, match="each id once"):
        small(1.0, 2.0, ids=["a", "a"], runs=[1, 1])
    with pytest.raises(ta.InputError, match="runs=3 values: expected one per score, 2"):
        ta.release([1.0, 2.0], [1, 0], released=1, runs=[1, 1, 2])

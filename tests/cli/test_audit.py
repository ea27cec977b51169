"""`tightaudit audit` as a person or a pipeline meets it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.cli.main import main


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    coins = ta.draw_coins(500, seed=4)
    values = 3 * coins.members + np.random.default_rng(4).standard_normal(500)
    path = tmp_path / "scores.csv"
    rows = [f"{s},{int(m)}" for s, m in zip(values, coins.members, strict=True)]
    path.write_text("score,member\n" + "\n".join(rows))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["audit", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    fields: dict[str, Any] = json.loads(out)
    return fields


def test_json(capsys: pytest.CaptureFixture[str], scores: Path) -> None:
    fields = run_json(capsys, scores, "--delta", "1e-5", "--claim", "gaussian(mu=1)", "--independent")
    run_ = ta.read_run(scores)
    report = ta.audit(run_, delta=1e-5, claim=ta.Gaussian(1.0), independent=True)
    assert fields["command"].startswith(f"tightaudit audit {scores} --delta 1e-5 --claim 'gaussian(mu=1)'")
    assert json.loads(json.dumps({**report.to_dict(), "command": fields["command"]})) == fields
    assert fields["run"]["source"] == "scores.csv"


def test_for_people_and_in_a_pipe(capsys: pytest.CaptureFixture[str], scores: Path) -> None:
    code, out, err = run(capsys, scores, "--delta", "1e-5")
    assert (code, err) == (0, "")
    assert out.startswith("ε ≥ ")
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_exit_codes(capsys: pytest.CaptureFixture[str], scores: Path) -> None:
    strict = ["--delta", "1e-5", "--fail-on-violation", "--claim-epsilon"]
    assert run(capsys, scores, *strict, 1)[0] == 1
    assert run(capsys, scores, *strict, 20)[0] == 0
    assert run(capsys, scores, "--delta", "1e-5", "--claim-epsilon", 1)[0] == 0
    code, out, err = run(capsys, scores, "--delta", "1e-5", "--fail-on-violation")
    assert (code, out) == (2, "")
    assert "a claim to test" in err
    undecided = run(capsys, scores, *strict, 0.1, "--method", "exact")
    assert undecided[0] == 2
    assert "a row that decides the claim" in undecided[2]


def test_claim_epsilon_is_the_approx_dp_claim(capsys: pytest.CaptureFixture[str], scores: Path) -> None:
    one = run_json(capsys, scores, "--delta", "1e-5", "--claim-epsilon", 2)
    other = run_json(capsys, scores, "--claim", "approx-dp(epsilon=2,delta=1e-5)")
    assert one["rows"] == other["rows"]
    assert [row["beliefs"]["family"] for row in one["rows"]] == ["gaussian", None] * 2
    third = run_json(capsys, scores, "--claim", "approx-dp(epsilon=2,delta=1e-5)", "--family", "approx-dp")
    assert third["rows"] == one["rows"][1::2]


def test_the_family_can_be_given(capsys: pytest.CaptureFixture[str], scores: Path) -> None:
    fields = run_json(capsys, scores, "--delta", "1e-5", "--family", "subsampled-gaussian(q=0.5)")
    assert fields["rows"][0]["family"] == "subsampled-gaussian(q=0.5)"
    fields = run_json(capsys, scores, "--delta", "1e-5", "--family", "approx-dp")
    assert len(fields["rows"]) == 2


def test_html_is_written(capsys: pytest.CaptureFixture[str], scores: Path, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    assert run(capsys, scores, "--delta", "1e-5", "--html", page)[0] == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    code, _, err = run(capsys, scores, "--delta", "1e-5", "--html", tmp_path / "no" / "audit.html")
    assert code == 3
    assert err.count("\n") == 1


def test_standard_input(
    capsys: pytest.CaptureFixture[str], scores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(scores.read_bytes())))
    assert run_json(capsys, "-", "--delta", "1e-5")["run"]["n"] == 500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "delta"),
        (["--delta", "2"], "delta=2.0"),
        (["--delta", "x"], "expected a number, not 'x'"),
        (["--delta", "1e-5", "--claim", "gaussian"], "missing: mu"),
        (["--delta", "1e-5", "--claim", "approx-dp(epsilon=1,delta=1e-6)"], "expected 1e-06"),
        (["--delta", "1e-5", "--claim", "gaussian(mu=1)", "--claim-epsilon", "1"], "claim_epsilon="),
        (["--claim-epsilon", "1"], "delta"),
        (["--delta", "1e-5", "--family", "gaussian(mu=1)"], "family="),
        (["--delta", "1e-5", "--guessing", "psychic"], "guessing=psychic"),
        (["--delta", "1e-5", "--released", "501"], "released=501"),
        (["--delta", "1e-5", "--method", "magic"], "method=magic"),
        (["--delta", "1e-5", "--format", "xls"], "format=xls"),
        (["--delta", "1e-5", "--members", "nowhere.csv"], "expected a column id"),
        (["--delta", "1e-5", "--score-column", "member"], "found column member for two things"),
        (["--delta", "1e-5", "--score-column", "<b>"], "expected a column <b>"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], scores: Path, arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, scores, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err

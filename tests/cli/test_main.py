"""The command line as a person or a script meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

import tightaudit
from tightaudit.cli.app import COMMANDS
from tightaudit.cli.main import main
from tightaudit.cli.option_groups import completing

COUNTS = ["--n", "1000", "--released", "200", "--errors", "15"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    result: dict[str, Any] = json.loads(out)
    return result


def test_pvalue_json(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "pvalue", *COUNTS, "--claim", "gaussian(mu=1)", "--method", "exact")
    assert result["p_value"] == pytest.approx(0.009152775668181944, rel=1e-9)
    assert result["expected_errors"] == pytest.approx(26.26742, rel=1e-6)
    assert result["claim"] == "gaussian(mu=1)"
    assert result["assumes"]["independent_outcomes"] is True
    assert (result["n"], result["released"], result["errors"]) == (1000, 200, 15)
    assert result["version"] == tightaudit.__version__


def test_pvalue_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "pvalue", *COUNTS, "--claim", "gaussian(mu=1)")
    assert (code, err) == (0, "")
    assert "p-value 0.009153 (exact; if outcomes are independent)" in out


def test_bound_json(capsys: pytest.CaptureFixture[str]) -> None:
    counts = ["--n", "10000", "--released", "2000", "--errors", "250"]
    result = run_json(capsys, "bound", *counts, "--family", "gaussian", "--delta", "1e-5")
    assert result["epsilon"] == pytest.approx(4.239365560741798, abs=1e-5)
    assert result["parameter"] == pytest.approx(0.9727215672544713, abs=1e-6)
    assert (result["status"], result["parameter_name"]) == ("bounded", "mu")
    assert result["assumes"]["family"] == "gaussian"


@pytest.mark.parametrize("text", ["approx-dp", "approx-dp(delta=0.01)"])
def test_delta_of_approx_dp_is_the_option(capsys: pytest.CaptureFixture[str], text: str) -> None:
    counts = ["--n", "10000", "--released", "2000", "--errors", "70"]
    result = run_json(capsys, "bound", *counts, "--family", text, "--delta", "0.01")
    assert result["epsilon"] == pytest.approx(3.0602725064097775, abs=1e-5)
    assert result["assumes"]["family"] is None


def test_status_of_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = run_json(
        capsys,
        "bound",
        "--n",
        "10",
        "--released",
        "10",
        "--errors",
        "5",
        "--family",
        "laplace",
        "--delta",
        "0",
    )
    assert (nothing["status"], nothing["epsilon"], nothing["parameter"]) == ("none-rejected", 0, None)
    everything = run_json(
        capsys, "bound", "--n", "1000", "--released", "1000", "--errors", "0",
        "--family", "subsampled-gaussian(q=0.5)", "--delta", "1e-5",
    )  # fmt: skip
    assert (everything["status"], everything["epsilon"]) == ("all-rejected", None)


def test_bound_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "bound", *COUNTS, "--family", "gaussian", "--delta", "1e-5")
    assert code == 0
    assert out.startswith("ε ≥ ")
    assert "rejected up to mu = " in out


def test_hoeffding_is_selectable(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["pvalue", *COUNTS, "--claim", "gaussian(mu=1)", "--method", "order-statistics"]
    chernoff, hoeffding = run_json(capsys, *base), run_json(capsys, *base, "--tail", "hoeffding")
    assert hoeffding["p_value"] > chernoff["p_value"]


BOUND = ["bound", "--family", "gaussian", "--delta", "1e-5"]


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (
            [*BOUND, "--n", "100", "--released", "200", "--errors", "1"],
            "released=200: expected at most n=100",
        ),
        (
            [*BOUND, "--n", "100", "--released", "20", "--errors", "21"],
            "errors=21: expected at most released=20",
        ),
        ([*BOUND, "--n", "0", "--released", "1", "--errors", "0"], "n=0"),
        ([*BOUND, "--n", "-3", "--released", "1", "--errors", "0"], "n=-3"),
        (
            [*BOUND, "--n", "10.5", "--released", "1", "--errors", "0"],
            "'--n': expected a whole number, not '10.5'",
        ),
        ([*BOUND, *COUNTS, "--confidence", "1"], "confidence=1.0"),
        ([*BOUND, *COUNTS, "--confidence", "95%"], "'--confidence': expected a number, not '95%'"),
        ([*BOUND, *COUNTS, "--delta", "-0.1"], "delta=-0.1"),
        ([*BOUND, *COUNTS, "--delta", "2"], "delta=2.0"),
        ([*BOUND, *COUNTS, "--delta", "0"], "delta=0.0: expected a δ at which claims"),
        ([*BOUND, *COUNTS, "--method", "magic"], "method=magic: expected one of"),
        ([*BOUND, *COUNTS, "--tail", "hoeffding"], "tail=hoeffding"),
        ([*BOUND, *COUNTS, "--method", "bits"], "released=200: expected all n=1000"),
        (
            ["bound", *COUNTS, "--delta", "0.1", "--family", "gaussian(mu=1)"],
            "a claim with one parameter left out",
        ),
        (
            ["bound", *COUNTS, "--delta", "0.1", "--family", "approx-dp(delta=0.2)"],
            "delta=0.1: expected 0.2, the δ of",
        ),
        (["bound", *COUNTS, "--delta", "0.1", "--family", "gaussian(mu"], "'=' after mu at column 12"),
        (
            ["pvalue", *COUNTS, "--claim", "gaussian"],
            "claim=gaussian: expected a claim with all its parameters; missing: mu",
        ),
        (["pvalue", *COUNTS, "--claim", "gaussian(mu=0)"], "mu=0.0: expected a number above 0"),
        (["pvalue", "--claim", "gaussian(mu=1)"], "--n"),
        (["pvalue", *COUNTS, "--claim", "gaussian(mu=1)", "--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
        (["demo", "--seed", "-1"], "seed=-1"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_input_is_one_line_and_exit_code_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], mentions: str, as_json: bool
) -> None:
    code, out, err = run(capsys, *arguments, *(["--json"] if as_json else []))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert mentions in err
    assert err.startswith("tightaudit: ")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--version")
    assert (code, out) == (0, f"tightaudit {tightaudit.__version__}\n")
    code, out, _ = run(capsys, "--version", "many-runs")
    assert (code, out) == (0, f"tightaudit {tightaudit.__version__}\n")
    code, out, _ = run(capsys)
    assert code == 0
    assert set(re.findall(r"^  ([a-z-]+) ", out, re.MULTILINE)) >= set(COMMANDS)
    code, out, _ = run(capsys, "bound", "--help")
    assert code == 0
    assert "Examples" in out


def test_installed_command_and_module_agree() -> None:
    arguments = ["pvalue", *COUNTS, "--claim", "laplace(mu=0.8)", "--json"]
    module = subprocess.run(
        [sys.executable, "-m", "tightaudit", *arguments], capture_output=True, text=True, check=True
    )
    assert json.loads(module.stdout)["p_value"] > 0


def test_shell_completion_knows_the_names() -> None:
    assert completing("methods")("ex") == ["exact"]
    assert set(completing("claims")("")) >= {"gaussian", "laplace", "approx-dp", "subsampled-gaussian"}

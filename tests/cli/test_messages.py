"""Messages that say what to do: what was left out, misspelled or meant for another option."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tightaudit.cli import output
from tightaudit.cli.main import main


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text("score,member\n" + "1.5,1\n-1,0\n" * 20)
    return path


def failing(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["audit", "FILE"], "give --delta: the δ at which ε is bounded, for example 1e-5"),
        (["plan", "--claim-epsilon", "3"], "give --delta: The δ at which ε is bounded, for example 1e-5."),
        (["audit", "FILE", "--claim-epsilon", "2"], "give --delta: the δ of the claimed ε, for example 1e-5"),
        (["plan", "--delta", "1e-5"], "give --claim: a claim, or a family to plan for"),
        (
            ["audit", "FILE", "--delta", "1e-5", "--claim", "eps=2"],
            "an ε alone goes to claim_epsilon",
        ),
        (["audit", "FILE", "--delta", "1e-5", "--claim", "Epsilon <= 2"], "--claim-epsilon"),
        (["audit", "FILE", "--delta", "1e-5", "--claim", "gausian(mu=1)"], "did you mean gaussian?"),
        (["audit", "FILE", "--delta", "1e-5", "--claim", "gaussian(mu=-1)"], "mu=-1.0: expected a number"),
        (["audit", "FILE", "--delta", "1e-5", "--claim-epsilon", "-1"], "claim_epsilon=-1.0: expected"),
        (["audit", "FILE", "--delta", "1e-5", "--method", "exakt"], "did you mean exact?"),
        (["audt", "FILE"], "did you mean audit?"),
    ],
)
def test_a_message_names_the_way_out(
    capsys: pytest.CaptureFixture[str], scores: Path, command: list[str], message: str
) -> None:
    assert message in failing(capsys, *(scores if part == "FILE" else part for part in command))


def test_a_pipeline_is_warned_of_a_check_that_cannot_fail(
    capsys: pytest.CaptureFixture[str], scores: Path
) -> None:
    strict = ["audit", str(scores), "--delta", "1e-5", "--fail-on-violation", "--claim-epsilon"]
    with pytest.raises(SystemExit) as stopped:
        main([*strict, "20"])
    assert stopped.value.code == 0
    assert "--fail-on-violation could not fail" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main([*strict, "0.1"])
    assert stopped.value.code == 1
    assert capsys.readouterr().err == ""


def test_what_was_written_is_said(capsys: pytest.CaptureFixture[str], scores: Path, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    with pytest.raises(SystemExit) as stopped:
        main(["audit", str(scores), "--delta", "1e-5", "--method", "exact", "--html", str(page)])
    assert stopped.value.code == 0
    assert capsys.readouterr().err == f"wrote {page}\n"


def test_a_bar_says_how_many_only_when_it_is_known() -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rich.console.Console", lambda **_: terminal)
        with output.progress_bar("rows") as progress:
            progress(1, 4)
    assert "/?" not in shown.getvalue()
    assert "1/4" in shown.getvalue()

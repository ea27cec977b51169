"""`tightaudit many-runs`."""

from __future__ import annotations

import json

import pytest

from tightaudit.cli.main import main


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "many-runs",
        "--fp",
        "50",
        "--negatives",
        "1000",
        "--fn",
        "100",
        "--positives",
        "1000",
        "--delta",
        "1e-5",
    ]
    with pytest.raises(SystemExit):
        main([*arguments, "--json"])
    assert json.loads(capsys.readouterr().out)["clopper_pearson"] == pytest.approx(2.599, abs=5e-4)
    with pytest.raises(SystemExit):
        main(arguments)
    assert "2.599" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main([*arguments[:-1], "0", "--json"])
    assert stopped.value.code == 0
    assert json.loads(capsys.readouterr().out)["gdp"] is None

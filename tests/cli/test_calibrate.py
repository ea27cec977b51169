"""`tightaudit calibrate`."""

from __future__ import annotations

import json

import pytest

from tightaudit.cli.main import main


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "calibrate", "--mechanism", "laplace(mu=1)", "--n", "50", "--released", "10", "--repetitions", "200",
        "--method", "exact", "--level", "0.05", "--level", "0.001", "--workers", "1",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert (stopped.value.code, err) == (0, "")
    result = json.loads(out)
    assert [row["level"] for row in result["rejections"]] == [0.05, 0.001]
    assert result["claim"] == "laplace(mu=1)"
    with pytest.raises(SystemExit):
        main(arguments)
    shown = capsys.readouterr().out
    assert "200 audits of laplace(mu=1)" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())

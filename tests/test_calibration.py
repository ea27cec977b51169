"""The instrument that measures false rejections."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tightaudit as ta
from tightaudit.calibration import Rejections, calibrate
from tightaudit.cli import main
from tightaudit.mechanisms.base import mechanism


def test_same_numbers_whatever_the_workers() -> None:
    results = [
        calibrate(
            mechanism("subsampled-gaussian(mu=1,q=0.5)"),
            n=60,
            release=20,
            methods=["exact", "steinke"],
            repetitions=3000,
            seed=5,
            workers=workers,
        )
        for workers in (1, 2)
    ]
    assert results[0] == results[1]
    assert [row.method for row in results[0].rejections] == ["exact", "steinke"]
    assert results[0].bounds[0].mean > results[0].bounds[1].mean >= 0


def test_a_false_claim_is_rejected() -> None:
    result = calibrate(
        mechanism("gaussian(mu=2)"),
        n=200,
        release=100,
        claim=ta.Gaussian(1.0),
        methods=["exact"],
        repetitions=200,
        bounds=False,
        workers=1,
    )
    assert result.rejections[0].rate > 0.9
    assert result.rejections[0].exceeds
    assert result.bounds == ()


def test_interval_contains_the_rate_and_its_edges_are_closed() -> None:
    for rejected in (0, 1, 50, 99, 100):
        row = Rejections("exact", 0.05, rejected, 100)
        low, high = row.interval
        assert 0 <= low <= row.rate <= high <= 1


def test_progress_reaches_its_end() -> None:
    seen: list[tuple[int, int]] = []
    calibrate(
        mechanism("xor(epsilon=1)"),
        n=20,
        release=20,
        repetitions=50,
        workers=1,
        methods=["bits"],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"release": 30}, "release=30"),
        ({"levels": [0.0]}, "level=0.0"),
        ({"repetitions": 0}, "repetitions=0"),
        ({"seed": -1}, "seed=-1"),
        ({"workers": 0}, "workers=0: expected an integer of at least 1"),
        ({"methods": ["magic"]}, "method=magic"),
        ({"methods": ["bits"], "release": 10}, "release=10: expected all"),
        ({"claim": "gaussian(mu=1)"}, "claim="),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"n": 20, "release": 20, "repetitions": 10, "workers": 1}
    with pytest.raises(ta.InputError) as caught:
        calibrate(mechanism("gaussian(mu=1)"), **(arguments | change))
    assert message in str(caught.value)


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


def test_many_runs_command(capsys: pytest.CaptureFixture[str]) -> None:
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

"""The instrument that measures false rejections."""

from __future__ import annotations

from typing import Any

import pytest

import tightaudit as ta
from tightaudit.simulate.calibration import Audits, Rejections, calibrate


def test_same_numbers_whatever_the_workers() -> None:
    results = [
        calibrate(
            "subsampled-gaussian(mu=1,q=0.5)",
            Audits(n=60, released=20, methods=("exact", "steinke"), times=3000, seed=5),
            workers=workers,
        )
        for workers in (1, 2)
    ]
    assert results[0].rejections == results[1].rejections
    assert results[0].bounds == results[1].bounds
    assert [row.method for row in results[0].rejections] == ["exact", "steinke"]
    assert results[0].bounds[0].mean > results[0].bounds[1].mean >= 0


def test_a_false_claim_is_rejected() -> None:
    result = calibrate(
        "gaussian(mu=2)",
        Audits(n=200, released=100, methods=("exact",), times=200),
        claim=ta.Gaussian(1.0),
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
        "xor(epsilon=1)",
        Audits(n=20, released=20, methods=("bits",), times=50),
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"released": 30}, "released=30"),
        ({"released": "some"}, "released=some"),
        ({"times": 0}, "times=0"),
        ({"seed": -1}, "seed=-1"),
        ({"methods": ["magic"]}, "method=magic"),
        ({"methods": ["bits"], "released": 10}, "released=10: expected all"),
        ({"methods": ["bits"], "table": True}, "methods="),
    ],
)
def test_bad_audits(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"n": 20, "released": 20, "times": 10}
    with pytest.raises(ta.InputError) as caught:
        calibrate("gaussian(mu=1)", Audits(**(arguments | change)), workers=1)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": [0.0]}, "level=0.0"),
        ({"levels": []}, "levels="),
        ({"workers": 0}, "workers=0: expected an integer of at least 1"),
        ({"claim": "gaussian"}, "claim=gaussian: expected a claim with all its parameters"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        calibrate("gaussian(mu=1)", Audits(n=20, released=20, times=10), **({"workers": 1} | change))
    assert message in str(caught.value)


@pytest.mark.parametrize(("mu", "n"), [(1, 300), (2, 500)])
def test_the_verdict_keeps_its_level_where_whichever_row_rejects_would_not(mu: float, n: int) -> None:
    audits = Audits(n=n, table=True, times=3000, seed=1)
    result = calibrate(f"laplace(mu={mu})", audits, bounds=False, workers=1)
    verdicts = [row for row in result.rejections if row.method.startswith("verdict")]
    assert [row.method for row in verdicts] == ["verdict, nothing stated", "verdict, independence stated"]
    assert not any(row.exceeds for row in verdicts)

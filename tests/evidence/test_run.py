"""A run keeps what its maker knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.support.writing import replacing


def test_everything_survives_the_file(tmp_path: Path) -> None:
    run = ta.Run(
        np.array([0.5, 1.5, -np.inf]),
        np.array([True, False, True]),
        ids=np.array([10, 11, 12]),
        independent="one <coordinate> each",
        claim=ta.SubsampledGaussian(1.0, 0.25),
        family=ta.SubsampledGaussian.family(q=0.25),
        threshold=0.5,
        seed=2**100,
    )
    path = tmp_path / "run.npz"
    run.save(path)
    back = ta.read_run(path)
    assert back.scores.tolist() == run.scores.tolist()
    assert back.members.tolist() == run.members.tolist()
    assert back.ids is not None
    assert back.ids.tolist() == [10, 11, 12]
    kept = (back.independent, back.claim, str(back.family), back.threshold, back.seed)
    assert kept == ("one <coordinate> each", run.claim, "subsampled-gaussian(q=0.25)", 0.5, 2**100)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_what_a_run_knows_reaches_the_report(tmp_path: Path) -> None:
    coins = ta.draw_coins(400, seed=2)
    scores = 3 * coins.members + np.random.default_rng(2).standard_normal(400)
    path = tmp_path / "run.npz"
    ta.Run(scores, coins.members, independent="own noise", claim=ta.Gaussian(1.0)).save(path)
    report = ta.audit(ta.read_run(path), delta=1e-5)
    question = report.question
    assert (question.independent, question.claim) == ("own noise", ta.Gaussian(1.0))
    assert report.violated
    assert ta.audit(ta.read_run(path), delta=1e-5, independent=False).question.independent is False


def test_a_claim_without_a_text_form_cannot_be_saved(tmp_path: Path) -> None:
    claim = ta.Tabulated([0.0, 1.0], [0.9, 0.0])
    with pytest.raises(ta.InputError, match="claim"):
        ta.Run(np.array([1.0]), np.array([True]), claim=claim).save(tmp_path / "run.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [1.0, float("nan")]}, "scores=nan"),
        ({"members": [1, 2]}, "members=2.0"),
        ({"members": [1]}, "members=1 values"),
        ({"ids": ["a", "a"]}, "ids=a: expected each id once"),
        ({"ids": ["a"]}, "ids=1 ids"),
        ({"ids": ["a", 1]}, "ids=1: expected texts only"),
        ({"ids": [1.5, 2.5]}, "ids=1.5"),
        ({"ids": ["a", "b" * 2000]}, "at most 1000 characters"),
        ({"ids": [2**70, 1]}, "at most 64 bits"),
        ({"independent": 1}, "independent=1: expected True or False"),
        ({"claim": "gaussian"}, "claim=gaussian: expected a claim with all its parameters"),
        ({"family": "gaussian(mu=1)"}, "family=gaussian(mu=1)"),
        ({"seed": -1}, "seed=-1"),
        ({"independent": ""}, "independent=: expected True, False or the reason"),
        ({"source": 3}, "source=3"),
        ({"ids": np.array(["a", "b" * 2000])}, "at most 1000 characters"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"scores": [1.0, 2.0], "members": [1, 0]}
    with pytest.raises(ta.InputError) as caught:
        ta.Run(**(arguments | change))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "header",
    [
        "not json",
        "[1]",
        '{"format": "tightaudit.run/99"}',
        '{"format": "tightaudit.run/1", "independent": 1}',
        '{"format": "tightaudit.run/1", "shape": "gaussian"}',
        '{"format": "tightaudit.run/1", "seed": -1}',
        '{"format": "tightaudit.run/1", "claim": "gaussian"}',
        '{"format": "tightaudit.run/1", "claim": 3}',
        '{"format": "tightaudit.run/1", "independent": ["x"]}',
        '{"format": "tightaudit.run/1", "seed": -4}',
    ],
)
def test_bad_headers(tmp_path: Path, header: str) -> None:
    path = tmp_path / "run.npz"
    np.savez(path, score=[1.0], member=[True], header=np.array(header))
    with pytest.raises(ta.InputError) as caught:
        ta.read_run(path)
    assert "\n" not in str(caught.value)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def stopped() -> None:
        with replacing(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert target.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_run_does_not_change_with_its_makers_arrays(tmp_path: Path) -> None:
    scores = np.array([1.0, 2.0])
    run = ta.Run(scores, np.array([True, False]), seed=np.int64(4))  # type: ignore[arg-type]
    scores[0] = 99.0
    assert run.scores.tolist() == [1.0, 2.0]
    run.save(tmp_path / "run.npz")
    assert ta.read_run(tmp_path / "run.npz").seed == 4


def test_links_and_pipes_are_written_through(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    assert pipe.is_fifo()
    os.close(reader)

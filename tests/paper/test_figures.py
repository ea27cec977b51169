"""The figures: cells that resume, engines that agree, data that say what the picture shows."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

import tightaudit as ta
from tightaudit.cli.main import main
from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.base_pairs import BasePairCell
from tightaudit.paper.figures.p_values import PValueCell
from tightaudit.paper.figures.parts.audits import AuditCell
from tightaudit.paper.figures.parts.engines import _computed, _parallel, compute
from tightaudit.paper.figures.parts.lines import Panel, VaryingCanaries
from tightaudit.paper.figures.parts.reproduction import reproduce
from tightaudit.paper.figures.parts.style import LOOKS
from tightaudit.support.errors import ComputationError

PAPER = [
    "base-pairs",
    "dp-sgd",
    "fixed-released",
    "gaussian-independent",
    "gaussian-two-sided",
    "laplace-independent",
    "p-values",
    "randomized-response",
    "subsampled-gaussian",
    "varying-released",
]


class Small(VaryingCanaries):
    """The Gaussian figure, in a second."""

    name = "small"
    title = "small"
    panels = (Panel("1-GDP", "gaussian(mu=1)", 1e-5, "two-sided"),)
    methods = ("order-statistics", "steinke", "exact")

    def sizes(self) -> Sequence[tuple[int, int, int]]:
        return [(n, n, n // 5) for n in (100, 1000)]


def test_every_figure_of_the_paper_is_there_and_states_its_setup() -> None:
    assert sorted(FIGURES) == PAPER
    for name in FIGURES:
        said = sys.modules[FIGURES[name].__module__].__doc__ or ""
        assert "From the paper" in said, name


def test_cells_of_figures_differ_where_their_setups_do() -> None:
    cells = [cell for name in FIGURES for cell in FIGURES[name]().cells()]
    setups = {json.dumps(cell.setup, sort_keys=True) for cell in cells}
    assert len({cell.key for cell in cells}) == len(setups)
    varying = FIGURES["gaussian-two-sided"]().cells()
    assert {cell.setup["n"] for cell in varying} >= {100, 10_000, 1_000_000}
    assert {cell.setup["repetition"] for cell in varying} == set(range(5))
    assert all(cell.setup["released"] == cell.setup["n"] // 5 for cell in varying)


def test_picture_and_data_are_written_and_a_second_run_computes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = reproduce([Small()], tmp_path, engine="serial")
    assert [path.name for path in written] == ["small.csv", "small.png", "small.pdf"]
    assert (tmp_path / "small.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "small.pdf").read_bytes()[:4] == b"%PDF"
    rows = list(csv.DictReader((tmp_path / "small.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 6
    assert all(float(row["mean"]) <= float(row["true_epsilon"]) * 1.1 for row in rows)
    monkeypatch.setattr(AuditCell, "compute", lambda _: pytest.fail("computed again"))
    before = (tmp_path / "small.csv").read_bytes()
    reproduce([Small()], tmp_path, engine="serial")
    assert (tmp_path / "small.csv").read_bytes() == before


def test_bounds_of_a_cell_are_those_of_the_library() -> None:
    cell = AuditCell("gaussian(mu=1)", 1000, 200, 1e-5, 3, ("exact", "steinke"), "two-sided")
    rng = np.random.default_rng([3, 1000])
    members = rng.random((1, 1000)) < 0.5
    scores = members[0] + rng.standard_normal((1, 1000))[0]
    evidence = ta.release(
        scores, members[0], released=200, guessing=ta.Guessing(seed=int(rng.integers(2**31, size=1)[0]))
    )
    found = cell.compute()
    assert found["accuracy"] == 1 - evidence.errors / 200
    for name, family in (("exact", ta.Gaussian.family()), ("steinke", ta.ApproxDP.family(delta=1e-5))):
        bound = ta.lower_bound(evidence, family, delta=1e-5, method=name)
        assert found["bounds"][name] == bound.epsilon


def test_fresh_computes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce([Small()], tmp_path, engine="serial")
    count = 0
    honest = AuditCell.compute

    def counted(cell: AuditCell) -> dict[str, object]:
        nonlocal count
        count += 1
        return honest(cell)

    monkeypatch.setattr(AuditCell, "compute", counted)
    reproduce([Small()], tmp_path, engine="serial", fresh=True)
    assert count == 10


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise StoppedError(total)

    with pytest.raises(StoppedError):
        reproduce([Small()], tmp_path, engine="serial", progress=stop)
    assert len(list((tmp_path / "cells").glob("*.json"))) == 4
    seen: list[int] = []
    reproduce([Small()], tmp_path, engine="serial", progress=lambda done, _: seen.append(done))
    assert seen[0] == 4
    assert seen[-1] == 10


def test_a_killed_command_leaves_whole_cells_only(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tightaudit", "reproduce", "fixed-released", "--engine", "serial"]
    started = subprocess.Popen([*command, "--out", str(tmp_path)], stdout=subprocess.DEVNULL)
    while len(list((tmp_path / "cells").glob("*.json"))) < 2:
        assert started.poll() is None, "ended before it was killed"
        time.sleep(0.05)
    started.send_signal(signal.SIGKILL)
    started.wait()
    kept = list((tmp_path / "cells").glob("*.json"))
    assert len(kept) >= 2
    for path in kept:
        assert set(json.loads(path.read_text(encoding="utf-8"))) == {"setup", "result", "sha256"}


@contextmanager
def dask_cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers as processes of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    python = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--port", str(port), *common], env=environment, **quiet
    )  # type: ignore[call-overload]
    workers = [
        subprocess.Popen(
            [*python, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", *common],
            env=environment,
            **quiet,
        )  # type: ignore[call-overload]
        for _ in range(2)
    ]
    try:
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def _wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    deadline = time.monotonic() + 60
    while True:
        try:
            with Client(address, timeout=5, set_as_default=False) as client:  # type: ignore[no-untyped-call]
                client.wait_for_workers(count, timeout=30)
                return
        except OSError:
            assert time.monotonic() < deadline, "the scheduler did not start"


@pytest.mark.filterwarnings("ignore")
def test_every_engine_gives_the_same_numbers_and_a_lost_worker_loses_nothing() -> None:
    cells = Small().cells()
    serial = {cell.key: result for cell, result in compute(cells, "serial")}
    local = {cell.key: result for cell, result in compute(cells, "local")}
    assert local == serial
    many = [
        AuditCell("gaussian(mu=1)", 20_000, 4000, 1e-5, k, ("exact", "rank-weighted"), "two-sided")
        for k in range(12)
    ]
    with dask_cluster() as (address, workers):
        _wait_for_workers(address, 2)
        found = {cell.key: result for cell, result in compute(cells, address)}
        assert found == serial
        spread = {}
        for cell, result in compute(many, address):
            spread[cell.key] = result
            if len(spread) == 4:
                workers[0].kill()
        assert workers[1].poll() is None
    assert spread == {cell.key: result for cell, result in compute(many, "serial")}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "--list"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == PAPER
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "base-pairs", "--out", str(tmp_path), "--engine", "serial"])
    assert not stopped.value.code
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.splitlines() == [
        str(tmp_path / f"base-pairs.{kind}") for kind in ("csv", "png", "pdf")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "figure=None: expected all, or some of"),
        (["figure-1"], "figure=figure-1"),
        (["p-values", "--engine", "cloud"], "engine=cloud"),
        (["p-values", "--without", "p-values"], "a figure left to draw"),
        (["p-values", "--without", "nothing"], "figure=nothing"),
    ],
)
def test_bad_commands(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", *arguments, "--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_a_method_looks_the_same_everywhere_and_like_no_other() -> None:
    assert set(LOOKS) == {
        "order-statistics",
        "bits",
        "steinke",
        "fdp-recursion",
        "exact",
        "rank-weighted",
        "any-dependence",
    }
    assert len({look.colour for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)


def test_p_values_of_the_figure_rise_with_the_errors() -> None:
    found = PValueCell("exact", 1.0, 0.01, 100).compute()
    assert np.all(np.diff(found["p_values"]) >= 0)
    assert found["expected"] == pytest.approx(100 * (1 - 0.01) / (1 + math.e), rel=1e-9)


class _Deadly(BasePairCell):
    def compute(self) -> dict[str, Any]:
        os._exit(1)


def test_a_dead_worker_is_said_in_one_line() -> None:
    cells = [_Deadly("gaussian(mu=1)", points=points) for points in (3, 4)]
    with (
        parallel_config(backend="loky", n_jobs=2),
        pytest.raises(ComputationError, match=r"^a worker process died, perhaps for want of memory; "),
    ):
        list(_parallel(cells, _computed))


def test_an_address_where_no_scheduler_answers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "base-pairs", "--engine", "tcp://127.0.0.1:1", "--out", str(tmp_path)])
    err = capsys.readouterr().err
    assert (stopped.value.code, err.count("\n")) == (2, 1)
    assert "a scheduler that answers" in err


def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        reproduce([Small()], tmp_path / folder, engine="serial")
    assert b"CreationDate" not in (tmp_path / "one" / "small.pdf").read_bytes()
    for name in ("small.png", "small.pdf", "small.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()

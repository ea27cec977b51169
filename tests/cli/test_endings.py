"""How a command ends: exit code 1 means one thing, and whatever goes wrong is one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tightaudit.cli import app
from tightaudit.cli.main import main


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """Scores that contradict gaussian(mu=1)."""
    rng = np.random.default_rng(1)
    members = rng.random(1000) < 0.5
    scores = 4 * members + rng.standard_normal(1000)
    path = tmp_path / "leaky.csv"
    rows = (f"{score},{int(member)}\n" for score, member in zip(scores, members, strict=True))
    path.write_text("score,member\n" + "".join(rows))
    return path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tightaudit", *arguments]


def audit(path: Path, mu: float) -> list[str]:
    return command(
        "audit", str(path), "--delta", "1e-5", "--claim", f"gaussian(mu={mu:g})", "--fail-on-violation"
    )


@pytest.mark.parametrize(("mu", "code"), [(0.5, 1), (4.5, 0)])
def test_a_closed_pipe_changes_neither_code_nor_says_anything(leaky: Path, mu: float, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(audit(leaky, mu), stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert ended.returncode == code
    assert "Broken" not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line_and_code_three(leaky: Path, unbuffered: str) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            audit(leaky, 0.5),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1)
    assert "could not be written" in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    ("arguments", "stdout_too", "code"),
    [
        (["audit", "nofile.csv", "--delta", "1e-5"], False, 2),
        (["many-runs", "--help"], True, 3),
        (["reproduce", "--list"], True, 3),
    ],
)
def test_the_code_is_the_same_where_nothing_can_be_said(
    arguments: list[str], stdout_too: bool, code: int
) -> None:
    with open("/dev/full", "wb") as full:
        out = full if stdout_too else subprocess.PIPE
        ended = subprocess.run(command(*arguments), stdout=out, stderr=full, check=False)
    assert ended.returncode == code


def test_with_standard_error_closed_errors_are_not_on_standard_output() -> None:
    line = " ".join([*command("audit", "nofile.csv", "--delta", "1e-5"), "2>&-"])
    ended = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")


def test_a_worker_that_dies_is_one_sentence() -> None:
    arguments = [
        "--mechanism",
        "gaussian(mu=1)",
        "--n",
        "2000",
        "--released",
        "200",
        "--repetitions",
        "200000",
    ]
    with subprocess.Popen(
        command("calibrate", *arguments, "--workers", "2"), stderr=subprocess.PIPE, text=True
    ) as running:
        worker = None
        while worker is None and running.poll() is None:
            time.sleep(0.2)
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if parent == running.pid and b"popen_loky" in (entry / "cmdline").read_bytes():
                        worker = int(entry.name)
                except OSError:  # it has ended since
                    continue
        assert worker is not None
        os.kill(worker, signal.SIGKILL)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 3
    assert err == "tightaudit: a worker process died, perhaps for want of memory\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("many-runs --fp -1 --negatives 9 --fn 1 --positives 9 --delta 0", "fp=-1"),
        ("calibrate --mechanism gaussian(mu=1) --n 9 --repetitions 0", "repetitions=0"),
        ("calibrate --mechanism dp-sgd(sigma=1,q=0.1,steps=9) --n 9 --look 0", "look=0"),
        ("plan --claim gaussian(mu=1) --delta 1e-5 --catch 1e300", "catch=1e+300: expected at most 160 here"),
        ("plan --claim gaussian(mu=1) --delta 1e-5 --runs 1000000", "runs=1000000: expected at most 1e+03"),
        ("dpsgd --epsilon 8 --canaries 1", "canaries=1: expected at least 2"),
        ("pvalue --n 9 --released 9 --errors 1 --claim dp-sgd(sigma=1,q=1e-300,steps=5)", "q=1e-300"),
        (
            f"pvalue --n 999 --statistic 1 --claim gaussian(mu=1) --method rank-weighted --strata "
            f"{','.join(['1x9'] * 200)}",
            "strata=200 of them: expected at most 100",
        ),
    ],
)
def test_what_cannot_be_used_is_named_as_it_was_given(
    capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(line.split(" "))
    err = capsys.readouterr().err
    assert (stopped.value.code, err.count("\n")) == (2, 1)
    assert said in err


def test_what_nobody_foresaw_is_one_line_and_code_three(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("\x1b[2Jno\nsuch thing")

    monkeypatch.setattr(app.Commands, "get_command", broken)
    for shown, lines in (("", 1), ("1", 5)):
        monkeypatch.setenv("TIGHTAUDIT_TRACEBACK", shown)
        with pytest.raises(SystemExit) as stopped:
            main(["bound"])
        err = capsys.readouterr().err
        assert stopped.value.code == 3
        assert err.count("\n") >= lines
        assert (err.count("\n") == 1) == (not shown)
        assert "\x1b" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_is_one_line_and_code_130(number: int) -> None:
    arguments = ["calibrate", "--mechanism", "gaussian(mu=1)", "--n", "1000", "--repetitions", "1000000"]
    # Says when it begins, so that a slow start of the interpreter is not what is interrupted.
    begin = f"from tightaudit.cli.main import main; print('begins', flush=True); main({arguments})"
    for wait in (0.05, 0.4, 1.0, 2.0):
        running = subprocess.Popen(
            [sys.executable, "-c", begin], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert running.stdout is not None
        assert running.stdout.readline() == "begins\n"
        time.sleep(wait)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
        assert (running.returncode, out, err) == (130, "", "tightaudit: interrupted\n"), wait


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_comes_too_late_when_all_is_done(number: int) -> None:
    late = f"import atexit, os; atexit.register(lambda: os.kill(os.getpid(), {number}))"
    run = f"{late}; from tightaudit.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", run, "--version"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("tightaudit ")


def test_values_and_names_reach_the_terminal_short_and_harmless(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hostile = tmp_path / "names.csv"
    hostile.write_text("sc\x1b[2Jore,member\n1,1\n")
    for arguments in (
        ["bound", "--n", "9" * 5000],
        ["audit", str(hostile), "--delta", "1e-5"],
        ["audit", str(hostile), "--score-column", "sc\x1b[2Jor", "--delta", "1e-5"],
        ["\x1b[2J" * 2000],
        ["pvalue", "--n", "9", "--released", "1", "--errors", "0", "--claim", "x" * 5000],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        err = capsys.readouterr().err
        assert (stopped.value.code, err.count("\n")) == (2, 1)
        assert "\x1b" not in err
        assert len(err) < 700

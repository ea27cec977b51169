"""The examples, run from beginning to end."""

from __future__ import annotations

import os
import random
import re
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import tightaudit as ta

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_pure_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "pure_numpy.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "inconsistent with the claim laplace(mu=1)" in printed
    assert "each query has one canary and noise of its own" in printed


@pytest.mark.filterwarnings("ignore")  # Opacus has some to give
def test_opacus_training(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "opacus_training.py"), run_name="__main__")
    printed = " ".join(capsys.readouterr().out.split())
    assert "does not contradict the claim dp-sgd(sigma=0.8,q=0.1,steps=30)" in printed
    assert "The claim allows ε = 6.579" in printed


@pytest.mark.filterwarnings("ignore")  # so have transformers and peft
def test_lora_finetuning(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "lora_finetuning.py"), run_name="__main__")
    printed = " ".join(capsys.readouterr().out.split())
    assert "No fault was found in what the accountant assumes" in printed
    bounds = [float(found) for found in re.findall(r"(?:bank|box): ε ≥ ([\d.]+); the accountant", printed)]
    assert 8 < bounds[0] < 13.16
    assert 0.2 < bounds[1] < bounds[0]


def _train_in_two_processes(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / "two_process_training.py"), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_two_process_training_goes_on_after_a_kill(tmp_path: Path) -> None:
    """SIGKILL to both processes at some moment after the first checkpoint: the same scores in the end."""
    straight = _train_in_two_processes(tmp_path / "straight")
    printed, said = straight.communicate(timeout=180)
    assert straight.returncode == 0, said
    assert "does not contradict the claim dp-sgd(sigma=1,q=0.2,steps=60)" in " ".join(printed.split())
    killed = tmp_path / "killed"
    first = _train_in_two_processes(killed)
    while not (killed / "last.json").exists():
        assert first.poll() is None, "the training ended before its first checkpoint"
        time.sleep(0.01)
    time.sleep(0.3 * random.random())
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert not (killed / "run.npz").exists(), "the training ended before it was killed"
    again = _train_in_two_processes(killed)
    _, said = again.communicate(timeout=180)
    assert again.returncode == 0, said
    one, other = (ta.read_run(folder / "run.npz") for folder in (tmp_path / "straight", killed))
    assert (one.members == other.members).all()
    assert (one.scores == other.scores).all()
    assert one.checkup == other.checkup


@pytest.mark.filterwarnings("ignore")  # what Jupyter says of its own parts
def test_walkthrough(tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / "walkthrough.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    steps = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in steps), "stored with outputs"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in steps for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 3
    printed = "".join(output.get("text", "") for output in outputs)
    assert "The run is inconsistent with the claim gaussian(mu=0.5)" in printed
    assert "above the truth" in printed

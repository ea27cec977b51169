"""The examples, run from beginning to end."""

from __future__ import annotations

import runpy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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

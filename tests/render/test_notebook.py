"""What an executed notebook shows: results as HTML, and a run without its secret bits."""

from __future__ import annotations

from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from playwright.sync_api import Browser

import tightaudit as ta
from tightaudit.render.notebook import as_html

CELLS = {
    "run": "run = ta.Run(coins.members + noise, coins.members)\nrun",
    "report": "ta.audit(run, delta=1e-5, claim='gaussian(mu=1)', independent=True)",
    "bound": "ta.lower_bound(ta.Evidence(1000, 200, 15), 'gaussian', delta=1e-5)",
    "plan": "ta.plan('gaussian(mu=1)', delta=1e-5, canaries=500)",
    "calibration": "ta.calibrate('gaussian(mu=1)', ta.Audits(50, 20, methods=['exact'], times=20))",
}
SETUP = """
import numpy as np, tightaudit as ta
coins = ta.draw_coins(500, seed=1)
noise = np.random.default_rng(1).standard_normal(500)
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """What each cell shows, by kind, in a notebook that was really executed."""
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, *CELLS.values())]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = (cell.outputs for cell in notebook.cells[1:])
    return {name: output[0].data for name, output in zip(CELLS, outputs, strict=True)}


@pytest.mark.parametrize("name", ["report", "bound", "plan", "calibration"])
def test_results_show_themselves(shown: dict[str, Any], name: str) -> None:
    html = shown[name]["text/html"]
    assert "ε" in html
    assert "<pre" not in html
    assert "<script" not in html
    assert ("<table" in html) == (name != "bound")


def test_a_run_shows_its_size_and_never_its_bits(shown: dict[str, Any]) -> None:
    assert shown["run"] == {"text/plain": "Run(n=500)"}
    bits = np.array([True, False])
    named = ta.Run(np.array([1.0, 2.0]), bits, claim=ta.Gaussian(1.0), source="a.csv")
    assert repr(named) == "Run(n=2, claim=gaussian(mu=1), source='a.csv')"
    assert repr(ta.draw_coins(100, seed=3)) == "Coins(n=100)"
    report = ta.audit(named, delta=1e-5)
    assert "members" not in repr(report)
    assert "array" not in repr(report)


def test_the_page_is_returned_where_no_path_is_given() -> None:
    page = ta.audit(np.arange(20.0), [0, 1] * 10, delta=1e-5).to_html()
    assert page.startswith("<!doctype html>")


def test_everything_is_escaped() -> None:
    assert as_html("<b>") == "<p>&lt;b&gt;</p>"


@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("width", [390, 1000])
def test_a_report_in_a_cell_keeps_to_itself(browser: Browser, shown: dict[str, Any], width: int) -> None:
    """Its styles do not reach the notebook around it, nor does it need more room than there is."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme="dark")
    page.set_content(f"<p id=other>text</p><div>{shown['report']['text/html']}</div>")
    assert page.evaluate("getComputedStyle(other).color") == "rgb(0, 0, 0)"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".tightaudit .bars .track").count() == 5
    page.close()

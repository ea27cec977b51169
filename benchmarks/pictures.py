"""Draws the pictures of the documentation again, from the data beside them.

    python benchmarks/pictures.py docs

Nothing is measured: only the forecasts of `plan.svg` are computed, which takes a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path

import few_runs
import jax_trainings
import peers
import plans
import tightness
import validity
from pages import rows_of

from tightaudit.paper.figures.base import FIGURES
from tightaudit.render.pictures import save_picture


def draw_paper(folder: Path) -> None:
    """The figures of the paper, as `tightaudit reproduce all` draws them."""
    for name in FIGURES:
        rows = [{key: _value(cell) for key, cell in row.items()} for row in rows_of(folder / f"{name}.csv")]
        save_picture(FIGURES[name]().draw(rows), folder / f"{name}.svg")


def _value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def main() -> None:
    folder = Path(sys.argv[1])
    draw_paper(folder / "paper")
    for drawn in (peers, tightness, validity, plans, jax_trainings, few_runs):
        drawn.draw(folder)


if __name__ == "__main__":
    main()

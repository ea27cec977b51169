"""From figures to files: compute what is missing, then write picture and data of each figure."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from tightaudit.paper.figures.base import PaperFigure, Row
from tightaudit.paper.figures.parts.engines import compute
from tightaudit.paper.figures.parts.store import CellStore
from tightaudit.support.progress import Progress
from tightaudit.support.writing import replacing

CELLS = "cells"
FORMATS: dict[str, dict[str, None]] = {"png": {}, "pdf": {"CreationDate": None}}
"""With what is left out of each, so that the same rows are the same bytes."""


def reproduce(
    figures: Sequence[PaperFigure],
    folder: Path,
    *,
    engine: str = "local",
    fresh: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Write each figure as PNG, PDF and CSV into the folder; the files written.

    Every finished cell is kept at once, so that a run that was stopped goes on where it was. With `fresh`
    everything is computed anew.
    """
    store = CellStore(folder / CELLS)
    cells = {cell.key: cell for figure in figures for cell in figure.cells()}
    results = {} if fresh else {key: found for key, cell in cells.items() if (found := store.get(cell))}
    missing = [cell for key, cell in cells.items() if key not in results]
    if progress is not None:
        progress(len(results), len(cells))
    for cell, result in compute(missing, engine) if missing else ():
        store.put(cell, result)
        results[cell.key] = result
        if progress is not None:
            progress(len(results), len(cells))
    return [path for figure in figures for path in _write(figure, figure.rows(results), folder)]


def _write(figure: PaperFigure, rows: Sequence[Row], folder: Path) -> list[Path]:
    data, text = folder / f"{figure.name}.csv", io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    with replacing(data) as file:
        file.write(text.getvalue().encode())
    written = [data]
    drawing = figure.draw(rows)
    for suffix, metadata in FORMATS.items():
        path = folder / f"{figure.name}.{suffix}"
        with replacing(path) as file:
            drawing.savefig(file, format=suffix, metadata=metadata)
        written.append(path)
    return written

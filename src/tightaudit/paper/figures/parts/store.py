"""Where finished cells are kept: a file each, which appears only when it is complete."""

from pathlib import Path
from typing import Any

from tightaudit.paper.figures.base import Cell
from tightaudit.paper.stored import keep_fields, kept_fields


class CellStore:
    """A folder with one JSON file per finished cell, named by the cell's key.

    >>> import tempfile
    >>> from tightaudit.paper.figures.base_pairs import BasePairCell
    >>> store, cell = CellStore(Path(tempfile.mkdtemp())), BasePairCell("gaussian(mu=1)", points=3)
    >>> store.get(cell) is None
    True
    >>> store.put(cell, {"atom": 0.0})
    >>> store.get(cell)
    {'atom': 0.0}
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, cell: Cell) -> Path:
        return self._folder / f"{cell.key}.json"

    def get(self, cell: Cell) -> dict[str, Any] | None:
        """What came out of a cell, if it is finished."""
        kept = kept_fields(self._path(cell))
        return None if kept is None else kept["result"]

    def put(self, cell: Cell, result: dict[str, Any]) -> None:
        """Keep a finished cell, with its setup beside the result."""
        keep_fields(self._path(cell), {"setup": cell.setup, "result": result})

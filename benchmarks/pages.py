"""What the pages of the documentation show of what was measured: tables, and the data of pictures."""

from __future__ import annotations

import csv
import re
from pathlib import Path


def rows_of(path: Path) -> list[dict[str, str]]:
    """What was measured, as it was written."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def put_table(path: Path, lines: list[str]) -> None:
    """Replace the table of the page that has the same first heading."""
    page, table = path.read_text(encoding="utf-8"), "\n".join(lines) + "\n"
    heading = lines[0].split("|")[1]
    pattern = rf"^\|{re.escape(heading)}\|.*?\n(?=\n|\Z)"
    found, replaced = re.subn(pattern, lambda _: table, page, flags=re.DOTALL | re.MULTILINE)
    if replaced != 1:
        raise SystemExit(f"{path} should have one table that starts with {heading}, not {replaced}")
    path.write_text(found, encoding="utf-8")

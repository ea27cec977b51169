"""Pictures have a light and a dark side, and both can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tightaudit.render import pictures
from tightaudit.render.pictures import DARK, LINES, PAPER, picture_style, save_picture

DOCS = Path(__file__).parents[2] / "docs"
LEAST_CONTRAST = 2.0
"""Of a thick line on its paper: what Okabe and Ito's lightest colours have on white."""


def drawn(path: Path) -> bytes:
    with picture_style():
        import matplotlib.pyplot as plt

        figure, axis = plt.subplots()
        axis.plot([1, 2], [3, 4], color=pictures.BLUE)
        axis.set_title("ε")
        save_picture(figure, path)
        plt.close(figure)
    return path.read_bytes()


def luminance(colour: str) -> float:
    """Of sRGB, by the definition in WCAG 2.1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    assert drawn(tmp_path / "one.svg") == drawn(tmp_path / "two.svg")


def test_other_formats_are_written_too(tmp_path: Path) -> None:
    assert drawn(tmp_path / "one.png")[:4] == b"\x89PNG"
    assert drawn(tmp_path / "one.pdf")[:4] == b"%PDF"


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.svg")), ids=lambda path: path.stem)
def test_pictures_of_the_documentation_have_both_sides(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    if path.name == "coins-to-bound.svg":  # drawn by hand, with colours of its own
        return
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})(?=[;\"])", text))
    assert {PAPER, pictures.INK} <= used
    for colour in used - {PAPER, LINES}:
        assert contrast(colour, PAPER) >= LEAST_CONTRAST, colour
        assert contrast(DARK.get(colour, colour), DARK[PAPER]) >= 2 * LEAST_CONTRAST, colour

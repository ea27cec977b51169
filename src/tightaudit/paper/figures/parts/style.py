"""How a method looks, the same in every figure.

The paper's own method and those it compares with have full lines, ours beyond the paper broken ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightaudit.paper.figures.base import Row
from tightaudit.render.pictures import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    picture_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Look:
    """Label, colour, marker and line of a method; a thick line shows under another that covers it."""

    label: str
    colour: str
    marker: str
    line: str
    thickness: float = 1.3


def draw_line(axis: Axes, method: str, x: str, rows: Sequence[Row], label: str | None = None) -> None:
    """Mean bounds of a method with their spread, against a column of the data."""
    look, line = LOOKS[method], [row for row in rows if row["method"] == method]
    axis.errorbar(
        [row[x] for row in line],
        [row["mean"] for row in line],
        yerr=[row["standard_deviation"] for row in line],
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        linewidth=look.thickness,
        label=label or look.label,
        zorder=2 if look.thickness > 2 else 3,
        capsize=2,
        elinewidth=0.8,
    )


LOOKS = {
    "order-statistics": Look("order-statistics (the paper)", VERMILION, "s", "-"),
    "bits": Look("bits (Xiang et al.)", PINK, "D", "-"),
    "steinke": Look("Steinke et al.", SKY, "X", "-", 3.0),
    "fdp-recursion": Look("fdp-recursion (Mahloujifar et al.)", ORANGE, "v", "-"),
    "exact": Look("exact", BLUE, "o", "--"),
    "rank-weighted": Look("rank-weighted", INK, "P", "--"),
    "any-dependence": Look("any-dependence (recursion if r > 400)", GREEN, "^", ":"),
}
TRUTH = GREY


@contextmanager
def plain_style() -> Iterator[None]:
    """Drawing without a window, in a plain legible style."""
    settings = {
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.grid": True,
        "grid.linewidth": 0.6,
        "lines.markersize": 4,
        "lines.linewidth": 1.3,
        "savefig.dpi": 180,
    }
    with picture_style(settings):
        yield

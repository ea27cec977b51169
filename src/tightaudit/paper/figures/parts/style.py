"""How a method looks, the same in every figure: Okabe and Ito's colours, safe for colour-blind readers.

The paper's own method and those it compares with have full lines, ours beyond the paper broken ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightaudit.paper.figures.base import Row
from tightaudit.support.extras import needs

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
    "order-statistics": Look("order-statistics (the paper)", "#D55E00", "s", "-"),
    "bits": Look("bits (Xiang et al.)", "#CC79A7", "D", "-"),
    "steinke": Look("Steinke et al.", "#56B4E9", "X", "-", 3.0),
    "fdp-recursion": Look("fdp-recursion (Mahloujifar et al.)", "#E69F00", "v", "-"),
    "exact": Look("exact", "#0072B2", "o", "--"),
    "rank-weighted": Look("rank-weighted", "#000000", "P", "--"),
    "any-dependence": Look("any-dependence (recursion if r > 400)", "#009E73", "^", ":"),
}
TRUTH = "#444444"


@contextmanager
def plain_style() -> Iterator[None]:
    """Drawing without a window, in a plain legible style."""
    with needs("plot", "a figure"):
        import matplotlib as mpl
    mpl.use("Agg")
    with mpl.rc_context(
        {
            "font.size": 9,
            "axes.titlesize": 9,
            "axes.grid": True,
            "grid.color": "#e6e6e6",
            "grid.linewidth": 0.6,
            "lines.markersize": 4,
            "lines.linewidth": 1.3,
            "legend.frameon": False,
            "savefig.dpi": 180,
        }
    ):
        yield

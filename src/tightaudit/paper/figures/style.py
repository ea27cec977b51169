"""How a method looks, the same in every figure: Okabe and Ito's colours, safe for colour-blind readers.

The paper's own method and those it compares with have full lines, ours beyond the paper broken ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tightaudit.support.extras import needs


@dataclass(frozen=True)
class Look:
    """Label, colour, marker and line of a method; a thick line shows under another that covers it."""

    label: str
    colour: str
    marker: str
    line: str
    thickness: float = 1.3


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

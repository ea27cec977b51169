"""How every picture drawn with matplotlib looks, on light pages and on dark ones.

An SVG carries both: its colours are those of a light page, and a rule in it says what becomes of each on a
dark one. Browsers follow it wherever the file is shown, also when the reader turns the page dark by hand.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs
from tightaudit.support.writing import replacing, require_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER, INK, GREY, LINES = "#ffffff", "#1f2328", "#6e7781", "#e6e6e6"
BLUE, SKY, GREEN, ORANGE, VERMILION, PINK = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7"
"""Okabe and Ito's colours, safe for colour-blind readers."""
PICTURES = (".pdf", ".png", ".svg")
"""Endings of the names that a picture can be written under."""
DARK = {
    PAPER: "#131416",
    INK: "#f0f3f6",
    GREY: "#9aa4af",
    LINES: "#30363d",
    BLUE: "#3f9be0",
    SKY: "#a5dcff",
    GREEN: "#1fb98c",
    VERMILION: "#f0783a",
}
"""What becomes of a colour on a dark page; the others are legible on both."""


@contextmanager
def picture_style(settings: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Drawing without a window, in the colours above."""
    with needs("plot", "a picture"):
        import matplotlib as mpl
    mpl.use("Agg")
    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color")
    look: dict[Any, Any] = {**dict.fromkeys(ink, INK), **(settings or {})}
    look |= {"figure.facecolor": PAPER, "axes.facecolor": PAPER, "grid.color": LINES, "legend.frameon": False}
    with mpl.rc_context(look):
        yield


def require_picture(argument: str, path: str | PathLike[str]) -> None:
    """Refuse, before the work is done, a name under which no picture could be written.

    >>> require_picture("plot", "plan.xyz")
    Traceback (most recent call last):
        ...
    tightaudit.InputError: plot=plan.xyz: expected a name that ends in .pdf, .png or .svg
    """
    with needs("plot", "a picture"):
        import matplotlib as mpl  # noqa: F401
    if Path(path).suffix not in PICTURES:
        raise InputError(
            argument, os.fspath(path), f"a name that ends in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}"
        )
    require_writable(path)


def save_picture(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a picture in the format its name ends in; the same picture gives the same file."""
    import matplotlib as mpl

    suffix = Path(path).suffix.removeprefix(".")
    written = io.BytesIO()
    if suffix == "svg":
        with mpl.rc_context({"svg.hashsalt": "tightaudit"}):
            figure.savefig(written, format=suffix, metadata={"Date": None, "Creator": None})
        text = with_dark_side(written.getvalue().decode())
        written = io.BytesIO(text.encode())
    else:
        figure.savefig(written, format=suffix)
    with replacing(Path(path)) as file:
        file.write(written.getvalue())


def with_dark_side(svg: str) -> str:
    """The SVG with rules for a dark page before its first definitions.

    >>> print(with_dark_side('<svg><defs/><path style="fill: #ffffff"/></svg>').splitlines()[1])
    [style*="fill: #ffffff"] { fill: #131416 !important }
    """
    rules = "\n".join(
        f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important }}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{\n{rules}\n}}</style>\n"
    before, defs, after = svg.partition("<defs")
    return before + style + defs + after

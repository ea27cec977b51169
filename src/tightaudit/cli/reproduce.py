"""`tightaudit reproduce`: the figures of the paper."""

from pathlib import Path
from typing import Annotated

import typer

from tightaudit.cli.output import progress_bar
from tightaudit.support.errors import InputError

ALL = "all"


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE...", help="Names of figures, or all.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Print the names of the figures and stop.")] = False,
    without: Annotated[
        list[str] | None, typer.Option(metavar="FIGURE", help="A figure to leave out; repeat it for several.")
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder for pictures, data and finished cells.")
    ] = "figures",
    engine: Annotated[
        str, typer.Option(help="local (all cores), serial, or the address of a Dask scheduler.")
    ] = "local",
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute everything again.")] = False,
) -> None:
    """Draw the figures of the paper, with the methods it compares and ours.

    A stopped run resumes where it was: repeat the same command.

    [bold]Examples[/bold]

    tightaudit reproduce --list

    tightaudit reproduce gaussian-two-sided p-values

    tightaudit reproduce all --engine tcp://scheduler:8786
    """
    from tightaudit.paper.figures.base import FIGURES
    from tightaudit.paper.figures.parts.reproduction import reproduce as draw

    if listed:
        width = max(map(len, FIGURES))
        for name in FIGURES:
            print(f"{name:{width}}  {FIGURES[name].title}")
        return
    if not figures:
        raise InputError("figure", None, f"all, or some of {', '.join(FIGURES)}")
    names = list(FIGURES) if ALL in figures else list(dict.fromkeys(figures))
    left_out = [FIGURES[name].name for name in without or []]
    chosen = [FIGURES[name]() for name in names if name not in left_out]
    if not chosen:
        raise InputError("without", ", ".join(left_out), "a figure left to draw")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    with progress_bar("cells") as progress:
        written = draw(chosen, folder, engine=engine, fresh=fresh, progress=progress)
    for path in written:
        print(path)

"""`tightaudit calibrate`: how often a method is wrong."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

import tightaudit
from tightaudit import calibration
from tightaudit.commands.options import (
    AsJson,
    Confidence,
    Guesses,
    count,
    mechanism_names,
    method_names,
    number,
)
from tightaudit.commands.output import print_json, progress_bar
from tightaudit.errors import InputError
from tightaudit.mechanisms.base import MECHANISMS
from tightaudit.mechanisms.base import mechanism as read_mechanism
from tightaudit.report.calibration import calibration_fields, calibration_view
from tightaudit.tradeoffs.base import Family
from tightaudit.tradeoffs.text import null as read_null


def calibrate(
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"What to audit, as in 'gaussian(mu=1)'. Known: {', '.join(MECHANISMS)}.",
            autocompletion=mechanism_names,
        ),
    ],
    n: Guesses,
    release: Annotated[
        str,
        typer.Option(
            "--release",
            "--released",
            metavar="RULE",
            help="Guesses to release: a count, a fraction such as 0.2, auto or best.",
        ),
    ] = "auto",
    table: Annotated[
        bool, typer.Option("--table", help="Calibrate the rows of an audit's table instead of methods.")
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method; repeat it for several. All by default.", autocompletion=method_names),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="The claim to test, by default the one the mechanism satisfies.")
    ] = None,
    level: Annotated[
        list[float] | None,
        typer.Option(parser=number, metavar="NUMBER", help="Nominal level; repeat it for several."),
    ] = None,
    repetitions: Annotated[int, typer.Option(parser=count, metavar="COUNT", help="Audits.")] = 10_000,
    delta: Annotated[
        float, typer.Option(parser=number, metavar="NUMBER", help="The δ of the mean bounds.")
    ] = 1e-5,
    confidence: Confidence = 0.95,
    bounds: Annotated[bool, typer.Option(help="Also mean bounds beside the true ε; takes longer.")] = True,
    seed: Annotated[int, typer.Option(parser=count, metavar="COUNT", help="Seed of everything.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = -1,
    as_json: AsJson = False,
) -> None:
    """How often does a method reject a claim that is true? Repeated audits of a known mechanism.

    [bold]Examples[/bold]

    tightaudit calibrate --mechanism 'gaussian(mu=1)' --n 1000 --release 200

    tightaudit calibrate --mechanism 'laplace(mu=1)' --n 1000 --release best --table --no-bounds

    tightaudit calibrate --mechanism 'shared-score(claim=gaussian(mu=1))' --n 200 --release 200 --no-bounds
    """
    tested = None if claim is None else read_null(claim)
    if isinstance(tested, Family):
        raise InputError("claim", claim, f"a claim with all its parameters; {tested.parameter} is missing")
    with progress_bar("auditing") as progress:
        result = calibration.calibrate(
            read_mechanism(mechanism),
            n=n,
            release=release,
            table=table,
            methods=method or None,
            claim=tested,
            levels=level or (0.05,),
            repetitions=repetitions,
            delta=delta,
            confidence=confidence,
            bounds=bounds,
            seed=seed,
            workers=workers,
            progress=progress,
        )
    if as_json:
        print_json(calibration_fields(result) | {"version": tightaudit.__version__})
        return
    console = Console(highlight=False)
    for part in calibration_view(result):
        console.print(part)

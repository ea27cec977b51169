"""`tightaudit plan`: how many canaries, before a run is spent."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from tightaudit import canary_plan
from tightaudit.commands.options import (
    AsJson,
    ClaimEpsilon,
    ClaimText,
    Confidence,
    Delta,
    ShapeText,
    claim_of,
    count,
    family_of,
    number,
)
from tightaudit.commands.output import print_json, progress_bar
from tightaudit.report.plan_text import plan_fields, plan_view


def plan(
    delta: Delta,
    claim: ClaimText = None,
    claim_epsilon: ClaimEpsilon = None,
    null: ShapeText = None,
    certify: Annotated[
        float | None,
        typer.Option(parser=number, metavar="SHARE", help="Share of the true ε to certify; 0.8 by default."),
    ] = None,
    catch: Annotated[
        float | None,
        typer.Option(parser=number, metavar="FACTOR", help="Catch a mechanism with so many times its ε."),
    ] = None,
    power: Annotated[
        float, typer.Option(parser=number, metavar="NUMBER", help="How surely to catch it.")
    ] = 0.9,
    canary_strength: Annotated[
        float,
        typer.Option(parser=number, metavar="NUMBER", help="Strength of the canaries; 1 is the strongest."),
    ] = 1.0,
    canaries: Annotated[
        int | None,
        typer.Option(parser=count, metavar="COUNT", help="Say what so many canaries promise instead."),
    ] = None,
    confidence: Confidence = 0.95,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the expected bound against canaries.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How many canaries does an audit need, and what can it promise? For each row of beliefs.

    [bold]Examples[/bold]

    tightaudit plan --claim 'gaussian(mu=1)' --delta 1e-5 --certify 0.9

    tightaudit plan --claim 'dp-sgd(sigma=1.1,q=0.1,steps=200)' --delta 1e-5 --catch 2 --power 0.9

    tightaudit plan --claim-epsilon 8 --delta 1e-5 --canary-strength 0.7 --plot plan.png
    """
    tested = claim_of(claim, claim_epsilon, delta)
    family = family_of(null, delta)
    with progress_bar("rows of the table") as progress:
        found = canary_plan.plan(
            tested,
            null=family,
            delta=delta,
            certify=certify,
            catch=catch,
            power=power,
            confidence=confidence,
            canary_strength=canary_strength,
            canaries=canaries,
            progress=progress,
        )
    if plot is not None:
        with progress_bar("points of the plot") as progress:
            found.to_plot(plot, progress=progress)
    if as_json:
        print_json(plan_fields(found))
    else:
        Console(highlight=False).print(plan_view(found))

"""`tightaudit demo`: a first audit to look at."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

import tightaudit
from tightaudit.commands.options import (
    AsJson,
    count,
)
from tightaudit.commands.output import print_json
from tightaudit.demo import CANARIES, run_demo
from tightaudit.report.fields import bound_fields
from tightaudit.report.terminal import bounds_table


def demo(
    seed: Annotated[
        int, typer.Option(parser=count, metavar="COUNT", help="Seed of the coins and the noise.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Audit the Gaussian mechanism once, and see the bounds beside the true ε."""
    result = run_demo(seed)
    if as_json:
        fields = {
            "true_epsilon": result.true_epsilon,
            "claim": str(result.claim),
            "delta": result.delta,
            "seed": result.seed,
            "bounds": [bound_fields(bound) for bound in result.bounds],
            "version": tightaudit.__version__,
        }
        print_json(fields)
        return
    console = Console(highlight=False)
    console.print(
        f"{CANARIES:,} canaries, each in or out by a fair secret coin, went once through the Gaussian "
        f"mechanism with μ = {result.claim.mu:g}. From its output every coin was guessed, and the guesses "
        "that looked surest were released and counted."
    )
    console.print()
    console.print(bounds_table(result.bounds, true_epsilon=result.true_epsilon))
    console.print(f"true ε = {result.true_epsilon:.3f} at δ = {result.delta:g}; seed {result.seed}")
    console.print(
        "Each row alone holds with 95% confidence, if the privacy curve is Gaussian. "
        "Picking the largest of them afterwards does not."
    )

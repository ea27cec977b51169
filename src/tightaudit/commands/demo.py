"""`tightaudit demo`: train a small network with DP-SGD, audit it, and see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tightaudit import auditing
from tightaudit.bounds import rounded_down
from tightaudit.commands.options import AsJson, count
from tightaudit.commands.output import print_json, progress_bar, torch_extra
from tightaudit.report.audit_json import audit_fields
from tightaudit.report.audit_text import audit_view

EPSILON, DELTA = 8.0, 1e-5
STEPS, CANARIES = 300, 10_000
TOO_LITTLE = 0.9


def demo(
    noise_bug: Annotated[
        bool, typer.Option("--noise-bug", help="Add ten percent less noise than the accountant is told.")
    ] = False,
    seed: Annotated[
        int, typer.Option(parser=count, metavar="COUNT", help="Seed of coins, coordinates and training.")
    ] = 0,
    html: Annotated[
        str, typer.Option(metavar="FILE", help="Where the report goes as a web page.")
    ] = "tightaudit-demo.html",
    as_json: AsJson = False,
) -> None:
    """Train a small network with Opacus, canaries inside, and see how much it leaked.

    [bold]Examples[/bold]

    tightaudit demo

    tightaudit demo --noise-bug
    """
    with torch_extra("demo"):
        from tightaudit.dpsgd.data import load
        from tightaudit.dpsgd.training import Recipe, train
    images = load("digits")
    recipe = Recipe(steps=STEPS, canaries=CANARIES, seed=seed)
    sigma = recipe.sigma(images, EPSILON, DELTA)
    console = Console(highlight=False)
    if not as_json:
        bug = f", but the noise is scaled by {TOO_LITTLE} where nobody looks" if noise_bug else ""
        console.print(
            f"Training a small convolutional network on {len(images.train):,} digits for {STEPS} steps with "
            f"DP-SGD (Opacus), noise {sigma:.3f}{bug}. {CANARIES:,} canaries ride along, each in or out by a "
            "secret coin.\n"
        )
    with progress_bar("steps") as progress:
        factor = TOO_LITTLE if noise_bug else 1.0
        trained = train(images, recipe, sigma, delta=DELTA, noise_factor=factor, progress=progress)
    assert trained.canaries is not None
    with progress_bar("rows of the table") as progress:
        report = auditing.audit(trained.canaries.run(), delta=DELTA, progress=progress)
    report.to_html(html)
    if as_json:
        print_json(
            {
                "accountant_epsilon": trained.accountant_epsilon,
                "accuracy": trained.accuracy,
                "noise_bug": noise_bug,
                "seconds": trained.seconds,
                "audit": audit_fields(report),
            }
        )
        return
    console.print(audit_view(report))
    headline = report.headline
    assert headline is not None
    bound = headline.bound.epsilon
    found = "none" if bound is None else f"ε ≥ {rounded_down(bound)}"
    console.print(
        f"\naccountant (Opacus): ε = {trained.accountant_epsilon:.3f} at δ = {DELTA:g}.   audit: {found}."
    )
    console.print(
        f"The network labels {100 * trained.accuracy:.0f}% of the test digits correctly; training took "
        f"{trained.seconds:.0f} s. The report is in {Path(html)}."
    )
    if not noise_bug:
        console.print("To see a mistake caught: tightaudit demo --noise-bug")

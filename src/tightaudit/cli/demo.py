"""`tightaudit demo`: train a small network with DP-SGD, and audit it."""

from pathlib import Path
from typing import Annotated

import typer

from tightaudit.cli.options import AsJson, Seed
from tightaudit.cli.output import print_json, print_view, progress_bar
from tightaudit.support.extras import needs

EPSILON, DELTA = 8.0, 1e-5
STEPS, CANARIES = 300, 10_000
TOO_LITTLE = 0.9


def demo(
    noise_bug: Annotated[
        bool, typer.Option("--noise-bug", help="Add ten percent less noise than the accountant is told.")
    ] = False,
    seed: Seed = 0,
    html: Annotated[
        str, typer.Option(metavar="FILE", help="File for the report as a web page.")
    ] = "tightaudit-demo.html",
    as_json: AsJson = False,
) -> None:
    """Train a small network with Opacus and canaries, and see how much it leaked.

    [bold]Examples[/bold]

    tightaudit demo

    tightaudit demo --noise-bug
    """
    with needs("torch", "the demo"):
        from tightaudit.paper.trainings.data import load
        from tightaudit.paper.trainings.training import Recipe, train
    from tightaudit.auditing.audit import audit
    from tightaudit.render.terminal.audit import audit_view
    from tightaudit.render.wording import rounded_down

    images = load("digits")
    recipe = Recipe(steps=STEPS, canaries=CANARIES, seed=seed)
    sigma = recipe.sigma(images, EPSILON, DELTA)
    if not as_json:
        bug = f", of which only {TOO_LITTLE:.0%} is really added" if noise_bug else ""
        print_view(
            f"Training a small convolutional network on {len(images.train):,} digits for {STEPS} steps with "
            f"DP-SGD (Opacus), noise {sigma:.3f}{bug}. {CANARIES:,} canaries are planted, each in or out by "
            "a secret coin.\n"
        )
    with progress_bar("steps") as progress:
        factor = TOO_LITTLE if noise_bug else 1.0
        trained = train(images, recipe, sigma, delta=DELTA, noise_factor=factor, progress=progress)
    assert trained.canaries is not None
    with progress_bar("rows of the table") as progress:
        report = audit(trained.canaries.run(), delta=DELTA, progress=progress)
    report.to_html(html)
    if as_json:
        print_json(
            {
                "accountant_epsilon": trained.accountant_epsilon,
                "accuracy": trained.accuracy,
                "noise_bug": noise_bug,
                "seconds": trained.seconds,
                "audit": report.to_dict(),
            }
        )
        return
    print_view(
        audit_view(report),
        f"\naccountant (Opacus): ε = {trained.accountant_epsilon:.3f} at δ = {DELTA:g}.   "
        f"audit: {'none' if report.epsilon is None else f'ε ≥ {rounded_down(report.epsilon)}'}.",
        f"The network labels {100 * trained.accuracy:.0f}% of the test digits correctly; training took "
        f"{trained.seconds:.0f} s. The report is in {Path(html)}.",
    )
    if not noise_bug:
        print_view("To see a mistake caught: tightaudit demo --noise-bug")

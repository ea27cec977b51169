"""`tightaudit demo`: train a small network with DP-SGD, and audit it."""

from dataclasses import replace
from typing import Annotated

import typer

from tightaudit.cli.options import AsJson, Seed
from tightaudit.cli.output import print_json, print_view, progress_bar
from tightaudit.support.extras import needs
from tightaudit.support.writing import require_writable

EPSILON, DELTA = 8.0, 1e-5
STEPS, CANARIES = 150, 2000
BUGS = "less-noise, same-noise, per-tensor, shuffled or unaccounted"


def demo(
    bug: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"A mistake to make in the training: {BUGS}.")
    ] = None,
    seed: Seed = 0,
    html: Annotated[
        str, typer.Option(metavar="FILE", help="File for the report as a web page.")
    ] = "tightaudit-demo.html",
    as_json: AsJson = False,
) -> None:
    """Train a small network with Opacus and canaries among its records, and see how much it leaked.

    [bold]Examples[/bold]

    tightaudit demo

    tightaudit demo --bug less-noise
    """
    with needs("torch", "the demo"):
        from tightaudit.paper.trainings.data import load
        from tightaudit.paper.trainings.mistakes import as_mistake
        from tightaudit.paper.trainings.training import Recipe, train
    from tightaudit.auditing.audit import audit
    from tightaudit.render.terminal.audit import audit_view
    from tightaudit.render.terminal.checkup import checks_view
    from tightaudit.render.wording import rounded_down

    require_writable(html)
    mistake = None if bug is None else as_mistake(bug)
    images = load("digits")
    recipe = Recipe(
        steps=STEPS,
        batch_size=500,
        optimizer="adam",
        learning_rate=0.01,
        canaries=CANARIES,
        planting="records",
        seed=seed,
    )
    without = replace(recipe, canaries=0)
    sigma = recipe.sigma(images, EPSILON, DELTA)
    if not as_json:
        wrong = "" if mistake is None else f" A mistake is made: {mistake.said}."
        print_view(
            f"Training a small convolutional network on {len(images.train):,} digits for {STEPS} steps with "
            f"DP-SGD (Opacus), noise {sigma:.3f}.{wrong} {CANARIES:,} canaries have a slot among the "
            "records, each in or out by a secret coin. Then the same without canaries.\n"
        )
    with progress_bar("steps") as progress:
        trained = train(images, recipe, sigma, delta=DELTA, mistake=mistake, progress=progress)
    with progress_bar("steps without canaries") as progress:
        plain = train(images, without, sigma, delta=DELTA, mistake=mistake, progress=progress)
    assert trained.canaries is not None
    with progress_bar("rows of the table") as progress:
        report = audit(trained.canaries.run(), delta=DELTA, progress=progress)
    report.to_html(html)
    if as_json:
        print_json(
            {
                "accountant_epsilon": trained.accountant_epsilon,
                "accuracy": trained.accuracy,
                "accuracy_without_canaries": plain.accuracy,
                "bug": bug,
                "seconds": trained.seconds,
                "seconds_without_canaries": plain.seconds,
                "audit": report.to_dict(),
            }
        )
        return
    assert report.checkup is not None
    print_view(
        audit_view(report),
        "\nThe check-up in full:\n",
        checks_view(report.checkup),
        f"\naccountant (Opacus): ε = {trained.accountant_epsilon:.3f} at δ = {DELTA:g}.   "
        f"audit: {'none' if report.epsilon is None else f'ε ≥ {rounded_down(report.epsilon)}'}.",
        f"The network labels {100 * trained.accuracy:.1f}% of the test digits correctly, "
        f"{100 * plain.accuracy:.1f}% when trained without canaries (one training differs from the next by "
        f"some two points). It took {trained.seconds:.0f} s, "
        f"{plain.seconds:.0f} s without. The report is in {html}.",
    )
    if bug is None:
        print_view(f"To see a mistake found: tightaudit demo --bug NAME, with {BUGS}.")

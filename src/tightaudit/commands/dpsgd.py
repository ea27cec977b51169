"""`tightaudit dpsgd`: the paper's DP-SGD experiment, at any size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tightaudit.bounds import rounded_down
from tightaudit.commands.options import AsJson, Confidence, Delta, count, number
from tightaudit.commands.output import print_json, progress_bar, torch_extra
from tightaudit.errors import InputError

if TYPE_CHECKING:
    from tightaudit.dpsgd.experiment import Experiment


def dpsgd(
    data: Annotated[str, typer.Option(help="digits, fashion-mnist or cifar10.")] = "digits",
    data_from: Annotated[
        str | None, typer.Option(metavar="PATH", help="File or folder with the data, unless it is digits.")
    ] = None,
    model: Annotated[str, typer.Option(help="small (two convolutions) or resnet14.")] = "small",
    epsilon: Annotated[str, typer.Option(metavar="NUMBERS", help="The ε to train at.")] = "1,2,4,8,16",
    delta: Delta = 1e-5,
    canaries: Annotated[int, typer.Option(parser=count, metavar="COUNT", help="White-box canaries.")] = 5000,
    released: Annotated[
        int | None,
        typer.Option(
            "--release", parser=count, metavar="COUNT", help="Guesses released; half of them if not given."
        ),
    ] = None,
    examples: Annotated[
        int | None, typer.Option(parser=count, metavar="COUNT", help="Training images; all if not given.")
    ] = None,
    steps: Annotated[int, typer.Option(parser=count, metavar="COUNT", help="Steps of training.")] = 200,
    batch_size: Annotated[
        int, typer.Option(parser=count, metavar="COUNT", help="Images in a step, on average.")
    ] = 150,
    optimizer: Annotated[str, typer.Option(help="adam or sgd.")] = "adam",
    learning_rate: Annotated[
        float, typer.Option(parser=number, metavar="NUMBER", help="Of the optimizer.")
    ] = 1e-3,
    confidence: Confidence = 0.95,
    seed: Annotated[
        int, typer.Option(parser=count, metavar="COUNT", help="Seed of coins, coordinates and training.")
    ] = 0,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where results and checkpoints are kept.")
    ] = "dpsgd-results",
    as_json: AsJson = False,
) -> None:
    """Train with DP-SGD at several ε, white-box canaries inside, and audit each training in every way.

    Each finished ε is kept, and a killed training goes on from its last checkpoint: give the same command.

    [bold]Examples[/bold]

    tightaudit dpsgd --epsilon 8

    tightaudit dpsgd --data cifar10 --data-from cifar-10-python.tar.gz --model resnet14 --release 2500
    """
    experiment = _experiment(
        data=data,
        data_from=data_from,
        examples=examples,
        released=released,
        delta=delta,
        confidence=confidence,
        model=model,
        batch_size=batch_size,
        steps=steps,
        optimizer=optimizer,
        learning_rate=learning_rate,
        canaries=canaries,
        seed=seed,
    )
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for target in _numbers(epsilon):
        with progress_bar(f"steps at ε = {target:g}") as progress:
            results.append(experiment.result(folder, target, progress))
    if as_json:
        print_json({"results": results})
        return
    console = Console(highlight=False)
    for result in results:
        _show(console, result)


def _experiment(
    *,
    data: str,
    data_from: str | None,
    examples: int | None,
    released: int | None,
    delta: float,
    confidence: float,
    canaries: int,
    optimizer: str,
    **recipe: Any,
) -> Experiment:
    with torch_extra("dpsgd"):
        from tightaudit.dpsgd.data import load
        from tightaudit.dpsgd.experiment import Experiment
        from tightaudit.dpsgd.training import Recipe
    images = load(data, data_from).first(examples)
    chosen = Recipe(canaries=canaries, optimizer=cast("Literal['sgd', 'adam']", optimizer), **recipe)
    if canaries < 1:
        raise InputError("canaries", canaries, "at least 1")
    return Experiment(images, chosen, delta, canaries // 2 if released is None else released, confidence)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError("epsilon", text, "numbers with commas between, as in 1,2,4") from None


def _show(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{result['data']}, {result['model']}: ε = {result['claim_epsilon']:.3f} at δ = {result['delta']:g} "
        f"by {result['claim']} ({result['accountant_epsilon']:.3f} by Opacus); accuracy "
        f"{100 * result['accuracy']:.0f}%, {result['seconds']:.0f} s"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("method", "curve", "score"):
        table.add_column(heading, no_wrap=True)
    for heading in ("released", "errors", "ε ≥", "of ε"):
        table.add_column(heading, justify="right")
    for bound in result["bounds"]:
        epsilon = bound["epsilon"]
        table.add_row(
            bound["method"],
            "any" if bound["assumes"]["family"] is None else bound["null"].split("(")[0],
            "likelihood" if bound["score"] == "log-likelihood-ratio" else bound["score"],
            f"{bound['released']:,}",
            f"{bound['errors']:,}",
            bound["status"] if epsilon is None else rounded_down(epsilon),
            "" if epsilon is None else f"{100 * epsilon / result['claim_epsilon']:.0f}%",
        )
    console.print(table)

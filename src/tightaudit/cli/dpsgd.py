"""`tightaudit dpsgd`: the paper's DP-SGD experiment, at any size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightaudit.cli.options import AsJson, Confidence, Delta, Seed, counting, measuring
from tightaudit.cli.output import print_json, print_view, progress_bar
from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs

if TYPE_CHECKING:
    from rich.table import Table

    from tightaudit.paper.trainings.data import Images
    from tightaudit.paper.trainings.training import Recipe


@dataclass(frozen=True)
class DataOptions:
    """What is trained on."""

    data: Annotated[str, typer.Option(help="digits, fashion-mnist or cifar10.")] = "digits"
    data_from: Annotated[
        str | None, typer.Option(metavar="PATH", help="File or folder with the data; not needed for digits.")
    ] = None
    examples: Annotated[int | None, counting("Training images; all if not given.")] = None

    def images(self) -> Images:
        """Read them."""
        from tightaudit.paper.trainings.data import load

        return load(self.data, self.data_from).first(self.examples)


@dataclass(frozen=True)
class RecipeOptions:
    """What is trained, and how."""

    model: Annotated[str, typer.Option(help="small (two convolutions) or resnet14.")] = "small"
    canaries: Annotated[int, counting("Number of white-box canaries.")] = 5000
    steps: Annotated[int, counting("Training steps.")] = 200
    batch_size: Annotated[int, counting("Average number of images per step.")] = 150
    optimizer: Annotated[str, typer.Option(help="adam or sgd.")] = "adam"
    learning_rate: Annotated[float, measuring("Learning rate of the optimizer.")] = 1e-3
    seed: Seed = 0

    def recipe(self) -> Recipe:
        """As one object."""
        from tightaudit.paper.trainings.training import Recipe

        if self.canaries < 2:
            raise InputError("canaries", self.canaries, "at least 2")
        return Recipe(**vars(self))


def dpsgd(
    data: DataOptions,
    trained: RecipeOptions,
    epsilon: Annotated[str, typer.Option(metavar="NUMBERS", help="The ε to train at.")] = "1,2,4,8,16",
    delta: Delta = 1e-5,
    released: Annotated[int | None, counting("Guesses released; half of them if not given.")] = None,
    confidence: Confidence = 0.95,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder for results and checkpoints.")
    ] = "dpsgd-results",
    as_json: AsJson = False,
) -> None:
    """Train with DP-SGD and white-box canaries at several ε, and audit each training run by every method.

    Each finished ε is kept, and a killed run resumes from its last checkpoint: repeat the same command.

    [bold]Examples[/bold]

    tightaudit dpsgd --epsilon 8

    tightaudit dpsgd --data cifar10 --data-from cifar-10-python.tar.gz --model resnet14 --released 2500
    """
    with needs("torch", "dpsgd"):
        from tightaudit.paper.trainings.experiment import Experiment
    targets = _targets(epsilon)
    recipe = trained.recipe()
    count = recipe.canaries // 2 if released is None else released
    experiment = Experiment(data.images(), recipe, delta, count, confidence)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for target in targets:
        with progress_bar(f"steps at ε = {target:g}") as progress:
            results.append(experiment.result(folder, target, progress))
    from tightaudit.render.wording import percent

    if as_json:
        print_json({"results": results})
        return
    for result in results:
        print_view(
            f"{result['data']}, {result['model']}: ε = {result['claim_epsilon']:.3f} at δ = "
            f"{result['delta']:g} by {result['claim']} ({result['accountant_epsilon']:.3f} by Opacus); "
            f"accuracy {100 * result['accuracy']:.0f}%",
        )
        for score, bounds in groupby(result["bounds"], key=itemgetter("score")):
            print_view(f"\nscore: {score}", _table(bounds, result["claim_epsilon"]))
    print_view(_READING.format(confidence=percent(confidence)))


_READING = (
    "Each row by itself is a lower bound with {confidence} confidence, if what it believes is true: of "
    "outcomes (independent, or any dependence) and of the privacy curve (in that family, or any). The "
    "largest of several rows is not a bound with that confidence: decide on a row before looking."
)


def _targets(text: str) -> list[float]:
    from tightaudit.support import checks

    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError("epsilon", text, "numbers separated by commas, as in 1,2,4") from None
    return [checks.positive("epsilon", number, maximum=checks.LARGEST_EPSILON) for number in numbers]


def _table(bounds: Iterable[dict[str, Any]], claimed: float) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from tightaudit.render.wording import ANY, INDEPENDENT, rounded_down

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("method", "outcomes", "curve"):
        table.add_column(heading, no_wrap=True)
    for heading in ("released", "errors", "ε ≥", "of ε"):
        table.add_column(heading, justify="right", no_wrap=True)
    for bound in bounds:
        epsilon = bound["epsilon"]
        table.add_row(
            bound["method"],
            INDEPENDENT if bound["assumes"]["independent_outcomes"] else ANY,
            ANY if bound["assumes"]["family"] is None else bound["family"].split("(")[0],
            f"{bound['released']:,}",
            f"{bound['errors']:,}",
            bound["status"] if epsilon is None else rounded_down(epsilon),
            "" if epsilon is None else f"{100 * epsilon / claimed:.0f}%",
        )
    return table

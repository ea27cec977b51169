"""Audits real DP-SGD trainings on digits: honest ones over many seeds, buggy ones, and the canaries' cost.

    python benchmarks/dpsgd.py docs

Writes `dpsgd.csv` and the tables in `dpsgd.md` into the folder: about a quarter of an hour on two cores.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from pages import put_table
from torch import nn
from torch.utils.data import DataLoader

import tightaudit as ta
from tightaudit.canaries.opacus import Insertion, WhiteBoxCanaries
from tightaudit.paper.trainings.data import Images, load
from tightaudit.paper.trainings.experiment import Experiment
from tightaudit.paper.trainings.networks import network
from tightaudit.paper.trainings.training import CLIPPING_NORM, Recipe, train
from tightaudit.render.wording import outcomes

EPSILON, DELTA = 8.0, 1e-5
SEEDS = range(20)
RECIPE = Recipe(steps=200, batch_size=150, canaries=5000)


def honest(seed: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    images = load("digits")
    recipe = Recipe(steps=RECIPE.steps, batch_size=RECIPE.batch_size, canaries=RECIPE.canaries, seed=seed)
    trained = train(images, recipe, recipe.sigma(images, EPSILON, DELTA), delta=DELTA)
    assert trained.canaries is not None
    report = ta.audit(trained.canaries.run(), delta=DELTA)
    found: dict[str, Any] = {"seed": seed, "accountant": trained.accountant_epsilon}
    for row in report.rows:
        beliefs = outcomes(row.beliefs) + ("" if row.beliefs.family is None else ", family")
        found[f"row: {beliefs}"] = row.bound.epsilon
    assert report.headline is not None
    found["headline"] = report.headline.bound.epsilon
    experiment = Experiment(images, recipe, DELTA, recipe.canaries // 2)
    for score in ("log-likelihood-ratio", "sum"):
        for bound in experiment.bounds(trained.canaries.run(score)):
            curve = str(bound.family).split("(")[0] if bound.family.assumes_shape else "any"
            found[f"{bound.method.name}, {curve}, {score}"] = bound.epsilon or 0.0
    return found


def noise_by_batch_size_twice(optimizer: Any) -> None:
    """The noise is divided by the batch size, and then the sum is again."""
    add_noise = optimizer.add_noise

    def scaled() -> None:
        said = optimizer.noise_multiplier
        optimizer.noise_multiplier = said / optimizer.expected_batch_size
        add_noise()
        optimizer.noise_multiplier = said

    optimizer.add_noise = scaled


def clipping_after_averaging(optimizer: Any) -> None:
    """The batch's mean gradient is clipped instead of each example's."""

    def clip() -> None:
        means = [
            sample.mean(dim=0) if len(sample) else sample.sum(dim=0) for sample in optimizer.grad_samples
        ]
        norm = torch.sqrt(sum(part.square().sum() for part in means))
        factor = (optimizer.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        for p, part in zip(optimizer.params, means, strict=True):
            # Scaled back to a sum, as the rest of the optimizer expects.
            summed = optimizer.expected_batch_size * factor * part
            p.summed_grad = summed if p.summed_grad is None else p.summed_grad + summed

    optimizer.clip_and_accumulate = clip


def one_layer_not_clipped(optimizer: Any) -> None:
    """The last linear layer but one is forgotten when gradients are clipped."""
    clip = optimizer.clip_and_accumulate
    forgotten = optimizer.params[4]

    def partly() -> None:
        raw = forgotten.grad_sample
        kept = None if forgotten.summed_grad is None else forgotten.summed_grad.clone()
        clip()
        whole = raw.sum(dim=0)
        forgotten.summed_grad = whole if kept is None else kept + whole

    optimizer.clip_and_accumulate = partly


def same_noise_every_step(optimizer: Any) -> None:
    """A generator with a fixed seed is made anew in every step."""
    add_noise = optimizer.add_noise

    def repeated() -> None:
        optimizer.generator = torch.Generator().manual_seed(1)
        add_noise()

    optimizer.add_noise = repeated


def nothing(optimizer: Any) -> None:
    del optimizer


BUGS: tuple[tuple[str, Callable[[Any], None], bool], ...] = (
    ("none", nothing, True),
    ("noise divided by the batch size twice", noise_by_batch_size_twice, True),
    ("clipping after averaging", clipping_after_averaging, True),
    ("one layer not clipped", one_layer_not_clipped, True),
    ("the same noise in every step", same_noise_every_step, True),
    ("shuffled batches, accounted for as Poisson", nothing, False),
)
WAYS: tuple[tuple[Insertion, str], ...] = (
    ("after-clipping", "log-likelihood-ratio"),
    ("before-clipping", "log-likelihood-ratio"),
    ("after-clipping", "spread"),
)
BUG_CANARIES = 3000


def buggy(place: int, insertion: Insertion, score: str) -> tuple[float | None, float | None]:
    """Bound and p-value of the claim for one training with a bug in it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    _, plant, poisson = BUGS[place]
    images, recipe = load("digits"), Recipe(steps=100, canaries=BUG_CANARIES, learning_rate=0.1, seed=7)
    sigma = recipe.sigma(images, EPSILON, DELTA)
    optimizer, canaries = _train_by_hand(images, recipe, sigma, plant, poisson, insertion)
    del optimizer
    report = ta.audit(canaries.run(score), delta=DELTA)
    assert report.headline is not None
    assert report.claim_row is not None
    return report.headline.bound.epsilon, report.claim_row.p_value


def _train_by_hand(
    images: Images,
    recipe: Recipe,
    sigma: float,
    plant: Callable[[Any], None],
    poisson: bool,
    insertion: Insertion,
) -> tuple[Any, WhiteBoxCanaries]:
    """A training loop as a user has it, with the mistake planted in the optimizer."""
    torch.manual_seed(recipe.seed)
    model: Any = network(recipe.model, images.shape, images.classes)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=recipe.learning_rate),
        data_loader=DataLoader(images.train, batch_size=recipe.batch_size, shuffle=True),
        noise_multiplier=sigma,
        max_grad_norm=CLIPPING_NORM,
        poisson_sampling=poisson,
    )
    plant(optimizer)
    canaries = WhiteBoxCanaries(
        optimizer, n=recipe.canaries, sample_rate=recipe.rate(images), seed=recipe.seed, insertion=insertion
    )
    criterion = nn.CrossEntropyLoss()
    while canaries.steps < recipe.steps:
        for inputs, labels in loader:
            if canaries.steps == recipe.steps:
                break
            optimizer.zero_grad()
            criterion(model(inputs), labels).backward()
            optimizer.step()
    return optimizer, canaries


def cost() -> float:
    """Seconds of training with canaries over those without, in turns; the median of several."""
    torch.set_num_threads(1)
    images = load("digits")
    bare = Recipe(steps=100, canaries=0)
    full = Recipe(steps=100, canaries=10_000)
    sigma = bare.sigma(images, EPSILON, DELTA)
    ratios = []
    for _ in range(9):
        seconds = [train(images, recipe, sigma, delta=DELTA).seconds for recipe in (bare, full)]
        ratios.append(seconds[1] / seconds[0])
    return float(np.median(ratios))


def write_honest(folder: Path, results: list[dict[str, Any]]) -> None:
    with (folder / "dpsgd.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(results[0]))
        writer.writeheader()
        writer.writerows(results)
    accountant = results[0]["accountant"]
    table = ["| honest run, 20 seeds | mean bound | of ε | spread | largest | above ε |", "| --- " * 6 + "|"]
    for key in results[0]:
        if key in ("seed", "accountant"):
            continue
        values = [result[key] for result in results]
        above = sum(value > accountant for value in values)
        shown = [f"{mean(values):.3f}", f"{100 * mean(values) / accountant:.0f}%", f"{stdev(values):.3f}"]
        table.append(f"| {key} | {' | '.join(shown)} | {max(values):.3f} | {above} of {len(values)} |")
    put_table(folder / "dpsgd.md", table)


def write_bugs(folder: Path, results: list[tuple[float | None, float | None]]) -> None:
    headings = [f"{insertion}, {score}" for insertion, score in WAYS]
    table = [f"| mistake | {' | '.join(headings)} |", "| --- " * (1 + len(WAYS)) + "|"]
    found = iter(results)
    for name, _, _ in BUGS:
        cells = []
        for _ in WAYS:
            epsilon, p = next(found)
            assert p is not None
            bound = "all of the family rejected" if epsilon is None else f"ε ≥ {epsilon:.2f}"
            cells.append(
                f"**caught**: {bound}, p = {p:.1g}" if p <= 0.05 else f"stands: {bound}, p = {p:.2g}"
            )
        table.append(f"| {name} | {' | '.join(cells)} |")
    put_table(folder / "dpsgd.md", table)


def main() -> None:
    folder, start = Path(sys.argv[1]), time.monotonic()
    ratio = cost()
    put_table(
        folder / "dpsgd.md",
        [
            "| cost of canaries | |",
            "| --- | --- |",
            f"| time with 10,000 canaries over without | {ratio:.3f} |",
        ],
    )
    print(f"cost {ratio:.3f}", flush=True)
    write_bugs(folder, [buggy(place, *way) for place in range(len(BUGS)) for way in WAYS])
    print("bugs done", flush=True)
    write_honest(folder, [honest(seed) for seed in SEEDS])
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()

"""Audits real DP-SGD trainings on digits: honest ones over many seeds, buggy ones, and the canaries' cost.

    python benchmarks/dpsgd.py docs

Writes `dpsgd.csv` and the tables in `dpsgd.md` into the folder: about a quarter of an hour on two cores.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from pages import put_table

import tightaudit as ta
from tightaudit.paper.trainings.data import load
from tightaudit.paper.trainings.experiment import Experiment
from tightaudit.paper.trainings.training import Recipe, train
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
    write_honest(folder, [honest(seed) for seed in SEEDS])
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()

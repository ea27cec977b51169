"""Canaries as records in real trainings on digits: how tight, how often wrong, how strong, what they cost.

    PYTHONPATH=. python benchmarks/records.py docs

Writes `records.csv` and the tables in `records.md` into the folder: about half an hour on two cores.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from opacus import PrivacyEngine
from pages import put_table
from tests.canaries.transcripts import transcript
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.accounted import History
from tightaudit.canaries.bank import Bank, Coin
from tightaudit.canaries.checkup import check_up
from tightaudit.canaries.opacus import RecordCanaries
from tightaudit.paper.trainings.data import load
from tightaudit.paper.trainings.training import Recipe, train

EPSILON, DELTA = 8.0, 1e-5
SLOTS, STEPS, EARLY, RATE = 5000, 200, 40, 0.1
SEEDS, HONEST, SIMULATED, PAIRS, ACCURACIES = 20, 600, 50, 9, 40


def first(bank: Bank, steps: int) -> Bank:
    """What the bank had seen after its first steps."""
    state = bank.state()
    return Bank.of(
        {
            name: value[:steps] if isinstance(value, np.ndarray) and value.ndim else value
            for name, value in state.items()
        }
    )


def certified(bank: Bank, history: History) -> tuple[float, bool]:
    """The headline's ε, and whether the true claim is rejected."""
    run = bank.run(history, score="log-likelihood-ratio", why="entries of their own", source="a benchmark")
    report = ta.audit(run, delta=DELTA)
    assert report.epsilon is not None
    return report.epsilon, bool(report.violated)


def honest(seed: int) -> dict[str, Any]:
    """Real trainings with one coin per canary and with one per participation."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    images = load("digits")
    found: dict[str, Any] = {"seed": seed}
    for coin in ("canary", "participation"):
        recipe = Recipe(steps=STEPS, canaries=SLOTS, planting="records", coin=coin, seed=seed)
        sigma = recipe.sigma(images, EPSILON, DELTA)
        trained = train(images, recipe, sigma, delta=DELTA)
        assert trained.canaries is not None
        history: History = ((sigma, recipe.rate(images), STEPS),)
        found["accountant"] = trained.canaries.claim.epsilon(DELTA)
        found[f"{coin}, {STEPS} steps"], found[f"{coin} rejected"] = certified(trained.canaries.bank, history)
        if coin == "participation":
            early = first(trained.canaries.bank, EARLY)
            found[f"{coin}, {EARLY} steps"], _ = certified(early, history)
        checkup = trained.canaries.checkup()
        found[f"{coin} faults"] = len(checkup.faults)
    return found


def p_value(bank: Bank, history: History) -> float:
    """Of the claim, as the deciding row of an audit has it."""
    run = bank.run(history, score="log-likelihood-ratio", why="simulated", source="a benchmark")
    assert run.claim is not None
    evidence = ta.release(run.scores, run.members, released=run.n, guessing=run.guessing)
    return ta.p_value(evidence, run.claim, method="rank-weighted")


def simulated(seed: int, sigma: float, factor: float, coin: Coin) -> tuple[float, bool]:
    """A transcript with this share of the noise: p-value of the claim, and whether the noise is faulted."""

    def scaled(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return sampled, factor * noise

    bank = transcript(seed, scaled, n=SLOTS, steps=STEPS, rate=RATE, sigma=sigma, coin=coin)
    history: History = ((sigma, RATE, STEPS),)
    faults = check_up(bank, history).faults
    named = any(check.name == "noise" for check in faults) if factor < 1 else bool(faults)
    return p_value(bank, history), named


def cost(per_step: int = 128, share: float = 0.1) -> list[float]:
    """CPU time of a training with canaries over that of one without, in turns, at n/N = 0.1."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    real = 1280
    images, labels = torch.randn(real, 3, 32, 32), torch.randint(10, (real,))

    def seconds(n: int) -> float:
        torch.manual_seed(0)
        model: nn.Module = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 10),
        )
        data: Any = TensorDataset(images, labels)
        canaries = RecordCanaries(n, seed=0) if n else None
        if canaries is not None:
            data, model = canaries.join(data), canaries.wrap(model)
        engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=round(per_step * (1 + n / real))),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        if canaries is not None:
            canaries.attach(engine, optimizer)
        started = time.process_time()
        for inputs, targets, *ids in loader:
            optimizer.zero_grad()
            outputs = private(inputs, ids=ids[0]) if ids else private(inputs)
            criterion(outputs, targets).backward()
            optimizer.step()
        return time.process_time() - started

    seconds(0)
    return [seconds(round(share * real)) / seconds(0) for _ in range(PAIRS)]


def accuracy(seed: int) -> tuple[float, float]:
    """Of the network with canaries among its records, and without."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    images = load("digits")
    recipe = Recipe(
        steps=150,
        batch_size=500,
        optimizer="adam",
        learning_rate=0.01,
        canaries=1500,
        planting="records",
        seed=seed,
    )
    sigma = recipe.sigma(images, EPSILON, DELTA)
    found = [
        train(images, each, sigma, delta=DELTA).accuracy for each in (recipe, replace(recipe, canaries=0))
    ]
    return found[0], found[1]


def write_honest(folder: Path, results: list[dict[str, Any]]) -> None:
    with (folder / "records.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(results[0]))
        writer.writeheader()
        writer.writerows(results)
    true = results[0]["accountant"]
    table = [f"| a coin per …, {SEEDS} seeds | mean bound | of ε | spread | above ε |", "| --- " * 5 + "|"]
    for key in (f"canary, {STEPS} steps", f"participation, {EARLY} steps", f"participation, {STEPS} steps"):
        values = [result[key] for result in results]
        shown = f"{mean(values):.3f} | {100 * mean(values) / true:.1f}% | {stdev(values):.3f}"
        table.append(f"| {key} | {shown} | {sum(value > true for value in values)} of {SEEDS} |")
    put_table(folder / "records.md", table)


def write_rates(folder: Path, each: Callable[..., list[tuple[float, bool]]]) -> None:
    sigma = Recipe(steps=STEPS, canaries=SLOTS, planting="records").sigma(load("digits"), EPSILON, DELTA)
    table = [
        "| simulated transcripts | number | coin per | claim rejected at 5% | check-up finds a fault |",
        "| --- " * 5 + "|",
    ]
    for name, factor, count in (
        ("honest", 1.0, HONEST),
        ("1% less noise", 0.99, SIMULATED),
        ("3% less noise", 0.97, SIMULATED),
    ):
        coins: tuple[Coin, ...] = ("canary", "participation")
        for coin in coins:
            found = each((seed, sigma, factor, coin) for seed in range(count))
            rejected, faulted = (
                mean(values) for values in ([p <= 0.05 for p, _ in found], [f for _, f in found])
            )
            table.append(f"| {name} | {count} | {coin} | {100 * rejected:.1f}% | {100 * faulted:.1f}% |")
            print(table[-1], flush=True)
    put_table(folder / "records.md", table)


def main() -> None:
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    parallel = Parallel(n_jobs=2)
    if not only or "cost" in only:
        ratios = cost()
        shown = f"{median(ratios):.3f} | {min(ratios):.3f} to {max(ratios):.3f}"
        put_table(
            folder / "records.md",
            [
                "| CPU time with n = N/10 over without | median | range |",
                "| --- " * 3 + "|",
                f"| hooks | {shown} |",
            ],
        )
        print(shown, flush=True)
    if not only or "accuracy" in only:
        pairs = parallel(delayed(accuracy)(seed) for seed in range(ACCURACIES))
        inside, outside = (100 * mean(values) for values in zip(*pairs, strict=True))
        spread = 100 * stdev(one - other for one, other in pairs) / ACCURACIES**0.5
        table = [
            f"| accuracy, mean of {ACCURACIES} seeds | with 1500 canaries | without | standard error |",
            "| --- " * 4 + "|",
            f"| digits, 150 steps, ε = 8 | {inside:.1f}% | {outside:.1f}% | {spread:.1f} of the difference |",
        ]
        put_table(folder / "records.md", table)
        print(table[-1], pairs, flush=True)
    if not only or "rates" in only:
        write_rates(folder, lambda calls: parallel(delayed(simulated)(*call) for call in calls))
    if not only or "honest" in only:
        write_honest(folder, parallel(delayed(honest)(seed) for seed in range(SEEDS)))


if __name__ == "__main__":
    main()

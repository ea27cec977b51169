"""Canaries in trainings with JAX-Privacy: how tight, how often wrong, what they cost; and its own example.

    PYTHONPATH=. python benchmarks/jax_trainings.py docs [honest factorized rates cost example]

Writes `jax.csv`, `correlated-noise.csv`, `correlated-noise.svg` and the tables in `jax.md` and
`correlated-noise.md` into the folder: about an hour on two cores. δ = 10⁻⁵, 95% confidence.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import dp_accounting
import jax
import jax_privacy
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax import numpy as jnp
from jax_privacy import batch_selection, noise_addition
from jax_privacy.experimental.accounting import dpsgd_event
from joblib import Parallel, delayed
from pages import put_table, rows_of
from tests.canaries.jax.trainings import Training, factorized, strategy_of
from tests.canaries.transcripts import correlated

import tightaudit as ta
from tightaudit.canaries.accounted import Accounted
from tightaudit.canaries.bank import Bank
from tightaudit.canaries.checkup import check_up
from tightaudit.canaries.jax import RecordCanaries
from tightaudit.render.pictures import BLUE, GREEN, INK, VERMILION, picture_style, save_picture

DELTA = 1e-5
SLOTS, STEPS, RATE, EPSILON, SEEDS = 5000, 200, 0.1, 8.0, 10
CANARIES, FACTORIZED_STEPS, EPOCHS = 10_000, 100, 10
TRUE = {1.0: 5, 2.0: 5, 4.0: 20, 8.0: 20}
"""ε, and the trainings for it."""
STRATEGIES = {
    "dense": (BLUE, "o"),
    "banded": (VERMILION, "s"),
    "buffered": (GREEN, "^"),
    "toeplitz": (INK, "d"),
}
SIMULATED, PAIRS = 2000, 15


def mu_of(epsilon: float) -> float:
    """The Gaussian mechanism with this ε."""
    low, high = 0.01, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if ta.Gaussian(middle).epsilon(DELTA) < epsilon else (low, middle)
    return low


def audited(training: Training) -> tuple[float, float, int]:
    """The headline's ε, the claim's p-value and the check-up's faults."""
    run = training.canaries.run(training.run())
    report = ta.audit(run, delta=DELTA)
    assert run.checkup is not None
    assert report.epsilon is not None
    assert report.claim_row is not None
    assert report.claim_row.p_value is not None
    return report.epsilon, report.claim_row.p_value, len(run.checkup.faults)


def honest(seed: int) -> dict[str, Any]:
    """DP-SGD with Poisson sampling."""
    warnings.simplefilter("ignore")
    sigma = dp_accounting.calibrate_dp_mechanism(
        dp_accounting.pld.PLDAccountant,
        lambda noise: dpsgd_event(noise, STEPS, sampling_prob=RATE),
        target_epsilon=EPSILON,
        target_delta=DELTA,
    )
    training = Training(
        seed=seed,
        n=SLOTS,
        real=1000,
        event=dpsgd_event(sigma, STEPS, sampling_prob=RATE),
        batches=batch_selection.CyclicPoissonSampling(sampling_prob=RATE, iterations=STEPS),
        stddev=sigma,
    )
    bound, p_value, faults = audited(training)
    return {"seed": seed, "sigma": sigma, "bound": bound, "p_value": p_value, "faults": faults}


def one_factorized(name: str, epsilon: float, seed: int) -> dict[str, Any]:
    """A training with correlated noise, records in turns."""
    warnings.simplefilter("ignore")
    matrix, noising = strategy_of(name, FACTORIZED_STEPS, EPOCHS)
    training = factorized(
        matrix, noising, mu=mu_of(epsilon), epochs=EPOCHS, steps=FACTORIZED_STEPS, seed=seed, n=CANARIES
    )
    bound, p_value, faults = audited(training)
    return {
        "strategy": name,
        "epsilon": epsilon,
        "seed": seed,
        "bound": bound,
        "p_value": p_value,
        "faults": faults,
    }


def simulated(name: str, seed: int) -> tuple[bool, bool]:
    """A simulated transcript: whether the true claim is rejected at 5%, and a fault found at 1%."""
    matrix, _ = strategy_of("banded" if name == "banded, sampled" else name, 40, 5)
    hidden = 0.4 if name == "banded, sampled" else None
    mu = 1.5
    bank, accounted = correlated(seed, matrix, apart=8, mu=mu, n=1000, hidden_rate=hidden)
    return p_value(bank, accounted) <= 0.05, bool(check_up(bank, accounted).faults)


def p_value(bank: Bank, accounted: Accounted) -> float:
    """Of the claim, as the deciding row of an audit has it."""
    run = bank.run(accounted, score="log-likelihood-ratio", why="simulated", source="a benchmark")
    assert run.claim is not None
    evidence = ta.release(run.scores, run.members, released=run.n, guessing=run.guessing)
    return ta.p_value(evidence, run.claim, method="rank-weighted")


def _network(params: Any, inputs: Any, targets: Any) -> Any:
    hidden = jax.nn.relu(inputs @ params["first"])
    hidden = jax.nn.relu(hidden @ params["second"])
    return optax.softmax_cross_entropy_with_integer_labels(hidden @ params["last"], targets).mean()


def _wait(result: Any) -> None:
    for leaf in jax.tree.leaves(result):
        leaf.block_until_ready()


def cost() -> Iterator[tuple[str, list[float]]]:
    """Time of a step with the watched privatizer over one without; and with canaries over none, n = N/10."""
    warnings.simplefilter("ignore")
    rng, real, batch = np.random.default_rng(1), 10 * CANARIES, 500
    data = rng.standard_normal((real, 64)).astype(np.float32), rng.integers(10, size=real)
    params = {
        name: jnp.asarray(rng.standard_normal(shape).astype(np.float32) / 10)
        for name, shape in (("first", (64, 128)), ("second", (128, 128)), ("last", (128, 10)))
    }
    canaries = RecordCanaries(CANARIES, seed=1)
    joined, ids = canaries.join(data)
    privatizer = noise_addition.gaussian_privatizer(stddev=1.0, prng_key=1)
    options: Any = {"l2_clip_norm": 1.0, "batch_argnums": (1, 2)}
    plain = jax_privacy.clipped_grad(_network, **options)
    own = jax_privacy.clipped_grad(canaries.loss(_network), **options)
    watched = canaries.watch(privatizer, gradients=own, event=dpsgd_event(1.0, STEPS, sampling_prob=0.005))

    def made(gradients: Any, noise: Any, start: Any, given: Any, *, with_ids: bool) -> Callable[[], float]:
        rows = rng.choice(len(given[0][0]), size=batch * len(given[0][0]) // real, replace=False)
        inputs = jax.tree.map(lambda leaf: jnp.asarray(leaf[rows]), given[0])
        named = {"ids": jnp.asarray(given[1][rows])} if with_ids else {}

        @jax.jit
        def step(params: Any, state: Any) -> Any:
            summed = gradients(params, *inputs, **named)
            noisy, state = noise.update(summed, state, **(named if noise is watched else {}))
            return jax.tree.map(lambda p, g: p - 0.01 * g, params, noisy), state

        state = noise.init(start)
        _wait(step(start, state))

        def seconds() -> float:
            began = time.perf_counter()
            _wait(step(start, state))
            return time.perf_counter() - began

        return seconds

    planted = canaries.plant(params)
    bare = made(plain, privatizer, params, (data, ids), with_ids=False)
    banked = made(own, privatizer, planted, (joined, ids), with_ids=True)
    kept = made(own, watched, planted, (joined, ids), with_ids=True)
    yield "the wrapper of the privatizer", [kept() / banked() for _ in range(PAIRS)]
    yield "canaries and wrapper, n = N/10", [kept() / bare() for _ in range(PAIRS)]


def example() -> str:
    """The settings of JAX-Privacy's jax_api_example.py, with canaries among the records."""
    warnings.simplefilter("ignore")
    real, n, size, epochs = 10_000, 2000, 256, 100
    count = epochs * real // size
    sigma = dp_accounting.calibrate_dp_mechanism(
        dp_accounting.pld.PLDAccountant,
        lambda noise: dpsgd_event(noise, count, sampling_prob=size / real),
        target_epsilon=1.0,
        target_delta=DELTA,
    )
    per_step = round(size * (real + n) / real)

    def shuffled(records: int) -> Iterator[Any]:
        rng = np.random.default_rng(1)
        for _ in range(epochs):
            order = rng.permutation(records)
            yield from (order[k : k + per_step] for k in range(0, records - per_step + 1, per_step))

    training = Training(
        seed=1,
        n=n,
        real=real,
        event=dpsgd_event(sigma, count, sampling_prob=size / real),
        stddev=2 * sigma,
        draw=shuffled,
        between=lambda gradients: jax.tree.map(lambda leaf: leaf / per_step, gradients),
    )
    training.batches = None
    run = training.canaries.run(training.run())
    return f"{ta.audit(run, delta=DELTA)}\n{run.checkup}"


def draw(folder: Path) -> None:
    """Mean bounds of each strategy against the truth, one standard deviation to either side."""
    rows = rows_of(folder / "correlated-noise.csv")
    with picture_style():
        figure, axis = plt.subplots(figsize=(7, 5), layout="constrained")
        largest = max(TRUE)
        axis.plot([0, largest], [0, largest], color=INK, linewidth=1, linestyle=":", label="the truth")
        for place, (name, (colour, marker)) in enumerate(STRATEGIES.items()):
            shift = 0.08 * (place - 1.5)
            found = {
                true: [
                    float(row["bound"])
                    for row in rows
                    if (row["strategy"], float(row["epsilon"])) == (name, true)
                ]
                for true in TRUE
            }
            axis.errorbar(
                [true + shift for true in found],
                [mean(values) for values in found.values()],
                [stdev(values) for values in found.values()],
                color=colour,
                marker=marker,
                linestyle="none",
                capsize=3,
                label=name,
            )
        axis.set_xlabel("ε that the accountant states")
        axis.set_ylabel("ε that is certified from one run")
        axis.grid(visible=True)
        axis.legend()
        save_picture(figure, folder / "correlated-noise.svg")
        plt.close(figure)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_honest(folder: Path, parallel: Parallel) -> None:
    rows = parallel(delayed(honest)(seed) for seed in range(SEEDS))
    write(folder / "jax.csv", rows)
    bounds = [row["bound"] for row in rows]
    shown = f"{mean(bounds):.3f} | {100 * mean(bounds) / EPSILON:.1f}% | {stdev(bounds):.3f}"
    rejected, faulted = sum(row["p_value"] <= 0.05 for row in rows), sum(row["faults"] > 0 for row in rows)
    table = [
        f"| honest DP-SGD, {SEEDS} seeds | mean bound | of ε | spread | claim rejected | faulted |",
        "| --- " * 6 + "|",
        f"| {SLOTS} slots, {STEPS} steps, q = {RATE}, ε = 8 | {shown} | {rejected} | {faulted} |",
    ]
    put_table(folder / "jax.md", table)
    print(table[-1], flush=True)


def write_factorized(folder: Path, parallel: Parallel) -> None:
    calls = [
        (name, true, seed) for true, seeds in TRUE.items() for name in STRATEGIES for seed in range(seeds)
    ]
    rows = parallel(delayed(one_factorized)(*call) for call in calls)
    write(folder / "correlated-noise.csv", rows)
    table = [
        "| strategy | ε | trainings | mean bound | of ε | spread | claim rejected | faulted |",
        "| --- " * 8 + "|",
    ]
    for name in STRATEGIES:
        for true in TRUE:
            here = [row for row in rows if (row["strategy"], row["epsilon"]) == (name, true)]
            bounds = [row["bound"] for row in here]
            rejected = sum(row["p_value"] <= 0.05 for row in here)
            faulted = sum(row["faults"] > 0 for row in here)
            shown = f"{mean(bounds):.3f} | {100 * mean(bounds) / true:.1f}% | {stdev(bounds):.3f}"
            table.append(f"| {name} | {true:g} | {len(here)} | {shown} | {rejected} | {faulted} |")
            print(table[-1], flush=True)
    put_table(folder / "correlated-noise.md", table)
    draw(folder)


def write_rates(folder: Path, parallel: Parallel) -> None:
    table = [
        f"| {SIMULATED} simulated transcripts | claim rejected at 5% | check-up finds a fault at 1% |",
        "| --- " * 3 + "|",
    ]
    for name in (*STRATEGIES, "banded, sampled"):
        found = parallel(delayed(simulated)(name, seed) for seed in range(SIMULATED))
        rejected, faulted = (100 * mean(values) for values in zip(*found, strict=True))
        table.append(f"| {name} | {rejected:.1f}% | {faulted:.2f}% |")
        print(table[-1], flush=True)
    put_table(folder / "correlated-noise.md", table)


def write_cost(folder: Path) -> None:
    table = ["| time of a step, with over without | median | range |", "| --- " * 3 + "|"]
    for name, ratios in cost():
        table.append(f"| {name} | {median(ratios):.3f} | {min(ratios):.3f} to {max(ratios):.3f} |")
        print(table[-1], flush=True)
    put_table(folder / "jax.md", table)


def main() -> None:
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    parallel = Parallel(n_jobs=2)
    parts: dict[str, Callable[[], object]] = {
        "cost": lambda: write_cost(folder),
        "honest": lambda: write_honest(folder, parallel),
        "factorized": lambda: write_factorized(folder, parallel),
        "rates": lambda: write_rates(folder, parallel),
        "example": lambda: print(example()),
    }
    for name, part in parts.items():
        if not only or name in only:
            part()


if __name__ == "__main__":
    main()

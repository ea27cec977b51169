"""A few runs instead of one, and looks before the end: how much is certified, how often a true claim falls.

    python benchmarks/few_runs.py docs [bounds rates looks speed]

Writes `few-runs.csv`, `few-runs.svg` and the tables in `few-runs.md` into the folder: about half an hour on
two cores. δ = 10⁻⁵, 95% confidence.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from cpu import seconds
from pages import put_table, rows_of

import tightaudit as ta
from tightaudit.render.pictures import BLUE, GREEN, INK, ORANGE, picture_style, save_picture

DELTA, CANARIES, TRUTH = 1e-5, 10_000, ta.Gaussian(1.0)
RUNS = (1, 2, 3, 5, 10, 20)
AUDITS, REPETITIONS, TRAININGS = 100, 10_000, 100_000
DEPENDENT = (
    "shared-score(claim=gaussian(mu=1))",
    "shared-sampling(mu=2,q=0.1)",
    "all-or-nothing(delta=0.01)",
)
LOOKS = ta.Looks((12, 24, 36, 48, 60))


def certified() -> list[dict[str, Any]]:
    """Mean bounds of audits of the Gaussian mechanism, for each row of the table that knows its family."""
    found = []
    for runs in RUNS:
        audits = ta.Audits(CANARIES, table=True, times=AUDITS, runs=runs)
        for row in ta.calibrate(TRUTH.name + "(mu=1)", audits, delta=DELTA).bounds:
            assert row.row is not None
            if row.row.family is None:
                continue
            kind = "independent" if row.row.independent else "runs" if row.row.runs > 1 else "any"
            found.append({"runs": runs, "outcomes": kind, "mean": row.mean, "spread": row.spread})
            print(found[-1], flush=True)
    return found


def draw(folder: Path) -> None:
    """The mean bound against the number of runs, a line for each kind of belief."""
    rows = rows_of(folder / "few-runs.csv")
    lines = {
        "independent": (BLUE, "o", "independent outcomes"),
        "runs": (GREEN, "^", "independent runs, any dependence inside"),
        "any": (ORANGE, "v", "any dependence"),
    }
    with picture_style():
        figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
        axis.axhline(TRUTH.epsilon(DELTA), color=INK, linewidth=1, linestyle=":", label="the truth")
        for kind, (colour, marker, label) in lines.items():
            # One run is no several: there the two kinds without independent outcomes are the same.
            here = [row for row in rows if row["outcomes"] == kind]
            if kind == "runs":
                here = [row for row in rows if row["outcomes"] == "any" and row["runs"] == "1"] + here
            axis.errorbar(
                [int(row["runs"]) for row in here],
                [float(row["mean"]) for row in here],
                [float(row["spread"]) for row in here],
                color=colour,
                marker=marker,
                capsize=3,
                label=label,
            )
        axis.set_xscale("log")
        axis.set_xticks(RUNS, [str(runs) for runs in RUNS])
        axis.minorticks_off()
        axis.set_ylim(0, 1.08 * TRUTH.epsilon(DELTA))
        axis.set_xlabel(f"runs, {CANARIES:,} canaries in each")
        axis.set_ylabel("mean lower bound on ε")
        axis.grid(visible=True)
        axis.legend(loc="lower right")
        save_picture(figure, folder / "few-runs.svg")
        plt.close(figure)


def write_bounds(folder: Path) -> None:
    found = certified()
    with (folder / "few-runs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    table = ["| runs | independent outcomes | independent runs | any dependence |", "| --- " * 4 + "|"]
    for runs in RUNS:
        cells = []
        for kind in ("independent", "runs", "any"):
            here = [row for row in found if (row["runs"], row["outcomes"]) == (runs, kind)]
            cells.append(f"{here[0]['mean']:.3f} ± {here[0]['spread']:.3f}" if here else "–")
        table.append(f"| {runs} | {' | '.join(cells)} |")
    put_table(folder / "few-runs.md", table)
    draw(folder)


def write_rates(folder: Path) -> None:
    table = [
        f"| {REPETITIONS:,} audits of | runs | recursion at 5% | program at 5% | recursion at 0.1% | "
        "program at 0.1% |",
        "| --- " * 6 + "|",
    ]
    for mechanism in DEPENDENT:
        for runs in (2, 5, 10):
            audits = ta.Audits(
                200, 0.1, methods=["fdp-recursion", "any-dependence"], times=REPETITIONS, runs=runs
            )
            rates = ta.calibrate(mechanism, audits, levels=(0.05, 0.001), bounds=False).rejections
            cells = [f"{100 * each.rate:.2f}%" for each in rates]
            table.append(f"| `{mechanism}` | {runs} | {' | '.join(cells)} |")
            print(table[-1], flush=True)
    put_table(folder / "few-runs.md", table)


def write_looks(folder: Path) -> None:
    audits = ta.Audits(400, times=TRAININGS, looks=LOOKS)
    found = ta.calibrate("dp-sgd(sigma=1,q=0.2,steps=60)", audits, levels=(0.05, 0.001)).rejections
    table = [f"| {TRAININGS:,} trainings, a look | its level | rejected |", "| --- " * 3 + "|"]
    table += [f"| {each.method} | {100 * each.level:.4g}% | {100 * each.rate:.3f}% |" for each in found]
    print("\n".join(table), flush=True)
    put_table(folder / "few-runs.md", table)


def write_speed(folder: Path) -> None:
    values = np.random.default_rng(1).random(10**6)
    sort = min(seconds(lambda: np.argsort(values, kind="stable")) for _ in range(5))
    evidence = ta.Evidence(n=5 * CANARIES, released=1000, errors=53, runs=5)
    table = ["| bound from five runs | stable sorts of 10⁶ numbers | limit |", "| --- " * 3 + "|"]
    for method in ("fdp-recursion", "any-dependence"):
        taken = seconds(partial(ta.lower_bound, evidence, "gaussian", delta=DELTA, method=method))
        table.append(f"| `{method}` inside | {taken / sort:.1f} | 60 |")
        print(table[-1], flush=True)
    put_table(folder / "few-runs.md", table)


def main() -> None:
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    parts: dict[str, Callable[[Path], None]] = {
        "speed": write_speed,
        "looks": write_looks,
        "rates": write_rates,
        "bounds": write_bounds,
    }
    for name, part in parts.items():
        if not only or name in only:
            part(folder)


if __name__ == "__main__":
    main()

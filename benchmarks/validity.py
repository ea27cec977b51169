"""Measures how often every method rejects a true claim on every mechanism, and draws the picture.

    python benchmarks/validity.py docs [repetitions]

Writes `validity.csv`, `validity-of-audits.csv`, `validity.svg` and the tables in `validity.md` into the
folder, in a few minutes.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pages import put_table, rows_of

from tightaudit.methods.base import METHODS
from tightaudit.render.pictures import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PAPER,
    PINK,
    SKY,
    VERMILION,
    picture_style,
    save_picture,
)
from tightaudit.render.wording import in_cells
from tightaudit.simulate.calibration import Audits, Calibration, Rejections, calibrate

LEVELS = (0.05, 0.001)
# (mechanism, n, released): the dependent ones where their dependence bites.
SETTINGS = (
    ("gaussian(mu=1)", 1000, 200),
    ("gaussian(mu=1)", 200, 200),
    ("gaussian(mu=3)", 100, 89),
    ("laplace(mu=1)", 1000, 200),
    ("laplace(mu=1)", 200, 200),
    ("randomized-response(epsilon=1,delta=0.01)", 1000, 200),
    ("randomized-response(epsilon=1,delta=0.01)", 200, 200),
    ("randomized-response(epsilon=0,delta=0.3)", 1000, 320),
    ("subsampled-gaussian(mu=2,q=0.5)", 1000, 200),
    ("subsampled-gaussian(mu=2,q=0.5)", 200, 200),
    ("dp-sgd(sigma=0.8,q=0.1,steps=20)", 1000, 200),
    ("dp-sgd(sigma=0.8,q=0.1,steps=20)", 200, 200),
    ("shared-score(claim=gaussian(mu=1))", 200, 200),
    ("shared-score(claim=laplace(mu=2))", 200, 200),
    ("shared-sampling(mu=2,q=0.1)", 1000, 200),
    ("shared-sampling(mu=2,q=0.1)", 200, 200),
    ("all-or-nothing(delta=0.04)", 200, 200),
    ("xor(epsilon=1)", 200, 200),
    ("correlated-gaussian(mu=1,rho=0.5)", 1000, 200),
    ("correlated-gaussian(mu=1,rho=0.5)", 200, 200),
)
# Whole audits, as `audit` makes them: its rows, its planned and its best numbers released.
AUDITED = (
    "gaussian(mu=1)",
    "gaussian(mu=3)",
    "laplace(mu=1)",
    "laplace(mu=2)",
    "randomized-response(epsilon=1,delta=0.01)",
    "subsampled-gaussian(mu=2,q=0.5)",
    "dp-sgd(sigma=0.8,q=0.1,steps=20)",
    "shared-score(claim=gaussian(mu=1))",
    "shared-score(claim=laplace(mu=2))",
    "shared-sampling(mu=2,q=0.1)",
    "all-or-nothing(delta=0.04)",
    "xor(epsilon=1)",
    "correlated-gaussian(mu=1,rho=0.5)",
)
AUDIT_SIZE = 1000
ORDER = (
    "exact",
    "rank-weighted",
    "order-statistics",
    "bits",
    "any-dependence",
    "fdp-recursion",
    "steinke",
)


def measure(repetitions: int) -> list[tuple[str, int, int, bool, list[Rejections]]]:
    rows = []
    for text, n, released in SETTINGS:
        audits = Audits(n=n, released=released, times=repetitions, seed=1)
        result = calibrate(text, audits, levels=LEVELS, bounds=False)
        rows.append((text, n, released, result.mechanism.independent, list(result.rejections)))
        print(text, [(r.method, r.level, r.rate) for r in result.rejections if r.exceeds], flush=True)
    return rows


def write_csv(path: Path, rows: list[tuple[str, int, int, bool, list[Rejections]]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["mechanism", "n", "released", "independent", "method", "level", "rate", "low", "high", "exceeds"]
        )
        for text, n, released, independent, found in rows:
            for r in found:
                low, high = r.interval
                writer.writerow(
                    [
                        text,
                        n,
                        released,
                        independent,
                        r.method,
                        r.level,
                        r.rate,
                        f"{low:.5f}",
                        f"{high:.5f}",
                        r.exceeds,
                    ]
                )


def replace_table(path: Path, rows: list[tuple[str, int, int, bool, list[Rejections]]]) -> None:
    lines = [
        "| mechanism | n, released | outcomes | level | " + " | ".join(f"`{name}`" for name in ORDER) + " |",
        "| --- | --- | --- | --- | " + " | ".join("---" for _ in ORDER) + " |",
    ]
    for text, n, released, independent, found in rows:
        for level in LEVELS:
            by_method = {r.method: r for r in found if r.level == level}
            cells = []
            for name in ORDER:
                r = by_method.get(name)
                shown = "–" if r is None else f"{100 * r.rate:.2f}%"
                cells.append(f"**{shown}**" if r is not None and r.exceeds else shown)
            kind = "independent" if independent else "dependent"
            lines.append(
                f"| `{text}` | {n}, {released} | {kind} | {100 * level:g}% | " + " | ".join(cells) + " |"
            )
    put_table(path, lines)


def measure_audits(repetitions: int) -> list[Calibration]:
    results = []
    for text in AUDITED:
        for released in ("planned", "best"):
            audits = Audits(n=AUDIT_SIZE, released=released, table=True, times=repetitions, seed=1)
            result = calibrate(text, audits, levels=LEVELS, bounds=False)
            results.append(result)
            print(text, released, [(_row(r), r.level, r.rate) for r in result.rejections], flush=True)
    return results


def write_audits_csv(path: Path, results: list[Calibration]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "mechanism",
                "n",
                "repetitions",
                "released",
                "independent",
                "row",
                "counts",
                "level",
                "rate",
                "exceeds",
            ]
        )
        for result in results:
            for r in _about_what_is_true(result):
                counts = " ".join(map(str, r.counts))
                audits = result.audits
                setting = [result.mechanism, audits.n, audits.times, audits.released]
                row = [result.mechanism.independent, _row(r), counts]
                writer.writerow([*setting, *row, r.level, r.rate, r.exceeds])


def _about_what_is_true(result: Calibration) -> list[Rejections]:
    """Without the rows that believe in a family where only (ε, δ) is known, and so no family."""
    if result.claim.point is None:
        return list(result.rejections)
    return [r for r in result.rejections if r.row is None or r.row.family is None]


def _row(rejections: Rejections) -> str:
    """The beliefs of a row, or that it is the verdict, which one of the rows decides."""
    return rejections.method if rejections.row is None else in_cells(rejections.row)


def _column(rejections: Rejections) -> str:
    beliefs = rejections.row
    if beliefs is None:
        return rejections.method
    words = ["independent"] if beliefs.independent else []
    words += [] if beliefs.family is None else ["family"]
    return ", ".join(words) or "nothing"


def replace_audits_table(path: Path, results: list[Calibration]) -> None:
    columns = ["independent, family", "independent", "family", "nothing"]
    columns += ["verdict, nothing stated", "verdict, independence stated"]
    headings = ["audited mechanism", "outcomes", "released", "level", *columns]
    lines = [f"| {' | '.join(headings)} |", "| --- " * len(headings) + "|"]
    for result in results:
        for level in LEVELS:
            found = {_column(r): r for r in _about_what_is_true(result) if r.level == level}
            cells = []
            for column in columns:
                r = found.get(column)
                shown = "–" if r is None else f"{100 * r.rate:.2f}%"
                cells.append(f"**{shown}**" if r is not None and r.exceeds else shown)
            kind = "independent" if result.mechanism.independent else "dependent"
            lines.append(
                f"| {result.mechanism} | {kind} | {result.audits.released} | {100 * level:g}% | "
                + " | ".join(cells)
                + " |"
            )
    put_table(path, lines)


def draw(folder: Path, repetitions: int = 10_000) -> None:
    """One line per mechanism, one mark per method, on a logarithmic axis with the level drawn in."""
    rows = rows_of(folder / "validity.csv")
    # Filled marks need independence.
    style = {
        "exact": (BLUE, "o"),
        "rank-weighted": (INK, "P"),
        "order-statistics": (VERMILION, "s"),
        "bits": (PINK, "D"),
        "any-dependence": (GREEN, "^"),
        "fdp-recursion": (ORANGE, "v"),
        "steinke": (SKY, "X"),
    }
    floor = 0.5 / repetitions
    settings = list(dict.fromkeys((row["mechanism"], row["n"], row["released"]) for row in rows))
    independent = {row["mechanism"] for row in rows if row["independent"] == "True"}
    with picture_style():
        figure, axes = plt.subplots(1, 2, figsize=(11, 9), sharey=True, layout="constrained")
        for axis, level in zip(axes, LEVELS, strict=True):
            for name, (colour, marker) in style.items():
                points = [
                    (
                        max(float(row["rate"]), floor),
                        settings.index((row["mechanism"], row["n"], row["released"])),
                    )
                    for row in rows
                    if row["method"] == name and float(row["level"]) == level
                ]
                x, y = np.array(points).T
                needs = METHODS[name].assumes.independent_outcomes
                shift = 0.1 * (3 - list(style).index(name))
                face = colour if needs else PAPER
                axis.scatter(
                    x, y + shift, color=colour, marker=marker, s=42, facecolor=face, label=name, zorder=3
                )
            axis.axvline(level, color=INK, linewidth=1)
            axis.set_xscale("log")
            axis.set_xlim(floor / 1.6, 1.3)
            axis.set_title(f"nominal level {100 * level:g}%")
            axis.set_xlabel("true claims rejected")
            ticks = [t for t in (1e-3, 1e-2, 1e-1, 1.0) if t > 4 * floor]
            axis.set_xticks([floor, *ticks], ["none", *(f"{100 * t:g}%" for t in ticks)])
            axis.minorticks_off()
            axis.grid(axis="y")
            split = sum(text in independent for text, *_ in settings) - 0.5
            axis.axhline(split, color=GREY, linestyle="--", linewidth=1)
        labels = [f"{text}\nn={n}, r={released}" for text, n, released in settings]
        axes[0].set_yticks(range(len(settings)), labels, fontsize=8)
        axes[0].invert_yaxis()
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=7)
        figure.suptitle(
            "False rejections: right of the line is too often. Above the dashed line outcomes are\n"
            "independent; filled marks need that, open ones do not."
        )
        save_picture(figure, folder / "validity.svg")
        plt.close(figure)


def main() -> None:
    folder = Path(sys.argv[1])
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    rows = measure(repetitions)
    write_csv(folder / "validity.csv", rows)
    replace_table(folder / "validity.md", rows)
    draw(folder, repetitions)
    audits = measure_audits(repetitions)
    write_audits_csv(folder / "validity-of-audits.csv", audits)
    replace_audits_table(folder / "validity.md", audits)


if __name__ == "__main__":
    main()

"""Measures how near each method's bound comes to the true ε as canaries are added, and draws the picture.

    python benchmarks/tightness.py docs [audits]

Simulates so many audits (400 unless told) of each mechanism at each n, all methods on the same errors, and
writes `tightness.csv`, `tightness.svg` and the tables in `tightness.md` into the folder: about half an hour
on two cores. δ = 10⁻⁵, 95% confidence.
"""

from __future__ import annotations

import csv
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from pages import put_table, rows_of
from scipy.interpolate import PchipInterpolator

import tightaudit as ta
from tightaudit.claims.parts.typical import typical_claim
from tightaudit.render.pictures import BLUE, GREY, INK, VERMILION, picture_style, save_picture
from tightaudit.simulate.mechanisms.base import as_mechanism
from tightaudit.support.checks import FloatArray

DELTA = 1e-5
SIZES = tuple(round(10 ** (half / 2)) for half in range(4, 13))
MECHANISMS = (
    ("gaussian(mu=0.5)", ta.Gaussian.family()),
    ("gaussian(mu=1)", ta.Gaussian.family()),
    ("gaussian(mu=2)", ta.Gaussian.family()),
    ("laplace(mu=0.8)", ta.Laplace.family()),
    ("subsampled-gaussian(mu=1,q=0.5)", ta.SubsampledGaussian.family(q=0.5)),
)
SHOWN = (
    ("order-statistics", 0.2, "order-statistics, n/5", VERMILION, "s", "-"),
    ("exact", 0.2, "exact, n/5", BLUE, "o", ":"),
    ("exact", 0.5, "exact, n/2", BLUE, "v", "--"),
    ("exact", 1.0, "exact, n", BLUE, "^", "-"),
    ("rank-weighted", 1.0, "rank-weighted", INK, "P", "-"),
)
"""Method, share released, name, and how it is drawn."""
ALSO_COMPARED = (("exact", 0.1), ("exact", 0.3), ("exact", 0.7), ("exact", 0.85))
"""Further numbers released, for the comparison of `rank-weighted` with every one of them."""
FROM = 10_000
MOST_COUNTS, NODES = 40, 25
TARGET = 0.95


@dataclass(frozen=True)
class Cell:
    mechanism: str
    true: float
    n: int
    method: str
    share: float
    bounds: FloatArray

    @property
    def mean(self) -> float:
        return float(self.bounds.mean())

    @property
    def spread(self) -> float:
        return float(self.bounds.std(ddof=1))


def compared(n: int) -> list[tuple[str, float]]:
    """Methods and shares released."""
    shown = [(method, share) for method, share, *_ in SHOWN]
    return shown + list(ALSO_COMPARED) if n >= FROM else shown


def counts_of_one_audit(text: str, family: ta.Family, n: int, seed: int) -> list[int]:
    played = as_mechanism(text).play(n, n, np.random.default_rng([seed, n]), runs=1)[0]
    assert played.errors_by_rank is not None
    errors = np.cumsum(played.errors_by_rank)
    return [
        weighting(n, family).statistic(played)
        if method == "rank-weighted"
        else int(errors[round(share * n) - 1])
        for method, share in compared(n)
    ]


def weighting(n: int, family: ta.Family) -> ta.RankWeighted:
    """The weights that a search for a bound plans by itself, knowing no claim."""
    return ta.RankWeighted().fixed(n, typical_claim(None, family, DELTA))


def bound(family: ta.Family, n: int, method: str, share: float, count: int) -> float:
    if method == "rank-weighted":
        weighted = ta.WeightedCount(n, count)
        found = ta.lower_bound(weighted, family, delta=DELTA, method=weighting(n, family))
    else:
        evidence = ta.Evidence(n, round(share * n), count)
        found = ta.lower_bound(evidence, family, delta=DELTA, method=method)
    return found.epsilon or 0.0


def bounds(
    parallel: Parallel, family: ta.Family, n: int, method: str, share: float, counts: FloatArray
) -> FloatArray:
    """The bound of each count: of every one that occurs if they are few, else smoothly through some."""
    nodes = np.unique(counts)
    if nodes.size > MOST_COUNTS:
        nodes = np.unique(np.rint(np.linspace(nodes[0], nodes[-1], NODES)))
    found = parallel(delayed(bound)(family, n, method, share, int(count)) for count in nodes)
    return np.array(found)[0] + 0 * counts if nodes.size == 1 else PchipInterpolator(nodes, found)(counts)


def measure(audits: int) -> list[Cell]:
    cells = []
    with Parallel(n_jobs=-1) as parallel:
        for text, family in MECHANISMS:
            true = as_mechanism(text).claim.epsilon(DELTA)
            for n in SIZES:
                counts = np.array(
                    parallel(delayed(counts_of_one_audit)(text, family, n, seed) for seed in range(audits)),
                    dtype=np.float64,
                )
                for (method, share), column in zip(compared(n), counts.T, strict=True):
                    found = bounds(parallel, family, n, method, share, column)
                    cells.append(Cell(text, true, n, method, share, found))
                    print(f"{text} n={n} {method} {share:g}: {found.mean():.3f}", flush=True)
    return cells


def write_csv(path: Path, cells: list[Cell]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        header = ["mechanism", "true_epsilon", "n", "method", "share_released", "audits"]
        writer.writerow([*header, "mean_bound", "standard_deviation", "above_true"])
        for cell in cells:
            above = float(np.mean(cell.bounds > cell.true))
            setting = [cell.mechanism, f"{cell.true:.4f}", cell.n, cell.method, cell.share, cell.bounds.size]
            writer.writerow([*setting, f"{cell.mean:.4f}", f"{cell.spread:.4f}", f"{above:.4f}"])


def line(cells: list[Cell], text: str, method: str, share: float) -> list[Cell]:
    return [c for c in cells if (c.mechanism, c.method, c.share) == (text, method, share)]


def needed(cells: list[Cell]) -> str:
    """Canaries at which the mean bound is the target share of ε; between two n the gap falls as a power."""
    shares = [1 - c.mean / c.true for c in cells]
    for (before, early), (after, late) in zip(
        zip(cells, shares, strict=True), zip(cells[1:], shares[1:], strict=False), strict=False
    ):
        if late <= 1 - TARGET < early:
            part = math.log(early / (1 - TARGET)) / math.log(early / max(late, 1e-9))
            found = before.n * (after.n / before.n) ** part
            digits = 2 - math.ceil(math.log10(found))
            return f"{int(round(found, digits)):,}"
    return f"fewer than {cells[0].n}" if shares[0] <= 1 - TARGET else f"more than {cells[-1].n:,}"


def write_tables(path: Path, cells: list[Cell]) -> None:
    names = [name for _, _, name, *_ in SHOWN]
    rule = "| --- " * (len(names) + 2) + "|"
    table = [f"| canaries for 95% of ε | true ε | {' | '.join(names)} |", rule]
    for text, _ in MECHANISMS:
        lines = [line(cells, text, method, share) for method, share, *_ in SHOWN]
        table.append(f"| `{text}` | {lines[0][0].true:.3f} | {' | '.join(map(needed, lines))} |")
    put_table(path, table)
    table = [f"| mean bound | n | {' | '.join(names)} |", rule]
    for text, _ in MECHANISMS:
        for n in SIZES[::2]:
            found = [
                next(c for c in line(cells, text, method, share) if c.n == n) for method, share, *_ in SHOWN
            ]
            shown = [f"{c.mean:.3f} ± {c.spread:.3f}" for c in found]
            table.append(f"| `{text}` | {n:,} | {' | '.join(shown)} |")
    put_table(path, table)
    table = [
        "| rank-weighted less the best exact | n | best r | difference / ε |",
        "| --- | --- | --- | --- |",
    ]
    for text, _ in MECHANISMS:
        for n in (n for n in SIZES if n >= FROM):
            here = [c for c in cells if (c.mechanism, c.n) == (text, n)]
            best = max((c for c in here if c.method == "exact"), key=lambda c: c.mean)
            ours = next(c for c in here if c.method == "rank-weighted")
            difference = (ours.mean - best.mean) / ours.true
            table.append(f"| `{text}` | {n:,} | {best.share:g}·n | {100 * difference:+.2f}% |")
    put_table(path, table)


def draw(folder: Path) -> None:
    """A panel per mechanism: bounds as a share of the true ε, bands one standard deviation to either side."""
    rows = rows_of(folder / "tightness.csv")
    with picture_style():
        figure, axes = plt.subplots(2, 3, figsize=(12, 7), sharex=True, sharey=True, layout="constrained")
        panels = axes.ravel()
        for axis, (text, _) in zip(panels, MECHANISMS, strict=False):
            for method, share, name, colour, marker, style in SHOWN:
                here = (text, method, share)
                found = [r for r in rows if (r["mechanism"], r["method"], float(r["share_released"])) == here]
                n, true = [int(row["n"]) for row in found], float(found[0]["true_epsilon"])
                mean = np.array([float(row["mean_bound"]) / true for row in found])
                axis.plot(n, mean, color=colour, marker=marker, linestyle=style, markersize=5, label=name)
                if method != "exact":
                    spread = np.array([float(row["standard_deviation"]) / true for row in found])
                    axis.fill_between(n, mean - spread, mean + spread, color=colour, alpha=0.13, linewidth=0)
            axis.axhline(1, color=INK, linewidth=1)
            axis.axhline(TARGET, color=GREY, linewidth=1, linestyle=(0, (2, 2)))
            axis.set_xscale("log")
            axis.set_ylim(0, 1.08)
            axis.set_title(f"{text}, ε = {true:.3g}", fontsize=10)
            axis.grid(visible=True)
        for axis in (axes[1, 0], axes[1, 1], axes[0, 2]):
            axis.set_xlabel("canaries n")
            axis.tick_params(labelbottom=True)
        for axis in axes[:, 0]:
            axis.set_ylabel("mean bound / true ε")
        panels[-1].axis("off")
        handles, labels = panels[0].get_legend_handles_labels()
        panels[-1].legend(handles, labels, loc="center", fontsize=11)
        figure.suptitle(
            f"Mean of {rows[0]['audits']} audits at δ = 10⁻⁵ and 95% confidence; bands are one standard "
            "deviation. Dotted: 95% of ε."
        )
        save_picture(figure, folder / "tightness.svg")
        plt.close(figure)


def main() -> None:
    folder, audits = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 400
    cells = measure(audits)
    write_csv(folder / "tightness.csv", cells)
    write_tables(folder / "tightness.md", cells)
    draw(folder)


if __name__ == "__main__":
    main()

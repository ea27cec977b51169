"""Measures tightaudit against what one would use instead, on the same scores, and draws the picture.

    python benchmarks/peers.py docs

Scores of a 1-GDP mechanism with 10³ to 10⁷ canaries, a fifth of the guesses released, δ = 10⁻⁵ and 95%
confidence. Each contender is timed from scores to ε beside a stable sort of the same scores, so that a noisy
machine slows both, and in CPU time, because on a shared one the clock on the wall favours what is done before
its turn is over. All of them use one thread. Writes `speed.csv`, `speed.svg` and the tables in `speed.md`
into the folder: under ten minutes on two cores. Part of `make bench`.
"""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import matplotlib.pyplot as plt
import numpy as np
from core import peak_megabytes
from jax_privacy.auditing import Explicit
from pages import put_table, rows_of
from peer_bounds import (
    DELTA,
    LEVEL,
    Bound,
    Canaries,
    jax_privacy_auditor,
    jax_privacy_fdp,
    jax_privacy_fdp_default,
    jax_privacy_one_run,
    jax_privacy_one_run_default,
    quadrature_by_rank,
    quadrature_exact,
    textbook_recursion,
    textbook_steinke,
)

import tightaudit as ta
from tightaudit.evidence.counts import Rule
from tightaudit.render.pictures import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    VERMILION,
    picture_style,
    save_picture,
)
from tightaudit.render.wording import in_cells

TRUTH, SEED = ta.Gaussian(1.0), 0
POWERS = {10**3: "10³", 10**4: "10⁴", 10**5: "10⁵", 10**6: "10⁶", 10**7: "10⁷"}
SIZES = tuple(POWERS)
TRIES, ENOUGH = 25, 3.0
"""Tries per figure, fewer once so many seconds are spent on them."""
FLOOR_TRIES = 5
WARM = 1.0
"""A first try that took less than so many seconds only warmed up."""
TOO_SLOW, HOPELESS = 20.0, 45.0
"""Seconds that end a series, and seconds that are not even tried where the series so far foretells them."""
LONGEST_TRACED = 15.0
FALSE_ALARM_SIZES, FALSE_ALARM_RUNS, FALSE_ALARM_DELTA = (1_000, 10_000), 3_000, 1e-9
FASTER_FROM, TIMES_FASTER, MOST_SORTS = 10**4, 50, 15
SORT, AUDIT = "stable sort", "whole audit"
STEINKE, RECURSION, EXACT, BY_RANK = "steinke", "fdp-recursion", "exact", "order-statistics"
JAX_STEINKE, JAX_FDP = "JAX-Privacy one-run, same threshold", "JAX-Privacy f-DP, same threshold"
QUADRATURE = "quadrature, 20,001 nodes"


@dataclass(frozen=True)
class Contender:
    name: str
    rival: str
    """The method of tightaudit it is compared with; one of tightaudit's own is compared with itself."""
    count: Callable[[Canaries], Bound]
    colour: str
    marker: str


@dataclass(frozen=True)
class Cell:
    """One contender at one n."""

    name: str
    n: int
    tries: int
    seconds: float
    bound_seconds: float
    sorts: float
    bound_sorts: float
    epsilon: float | None
    megabytes: float | None


Cells = dict[tuple[str, int], Cell]


def ours(method: str, family: ta.Family, guessing: Rule) -> Callable[[Canaries], Bound]:
    def count(canaries: Canaries) -> Bound:
        evidence = ta.release(
            canaries.scores, canaries.members, released=canaries.released, guessing=guessing
        )
        return lambda: ta.lower_bound(evidence, family, delta=DELTA, method=method).epsilon or 0.0

    return count


def whole_audit(canaries: Canaries) -> Bound:
    return lambda: ta.audit(canaries.scores, canaries.members, delta=DELTA).rows[0].bound.epsilon or 0.0


GAUSSIAN, APPROXIMATE = ta.Gaussian.family(), ta.ApproxDP.family(delta=DELTA)
CONTENDERS = (
    Contender(STEINKE, STEINKE, ours(STEINKE, APPROXIMATE, "one-sided"), BLUE, "o"),
    Contender(JAX_STEINKE, STEINKE, jax_privacy_one_run, VERMILION, "s"),
    Contender("JAX-Privacy one-run, its default", STEINKE, jax_privacy_one_run_default, ORANGE, "D"),
    Contender("textbook loop, Steinke et al.", STEINKE, textbook_steinke, GREEN, "^"),
    Contender(RECURSION, RECURSION, ours(RECURSION, GAUSSIAN, "one-sided"), BLUE, "o"),
    Contender(JAX_FDP, RECURSION, jax_privacy_fdp, VERMILION, "s"),
    Contender("JAX-Privacy f-DP, its default", RECURSION, jax_privacy_fdp_default, ORANGE, "D"),
    Contender("textbook loop, Mahloujifar et al.", RECURSION, textbook_recursion, GREEN, "^"),
    Contender(EXACT, EXACT, ours(EXACT, GAUSSIAN, "two-sided"), BLUE, "o"),
    Contender(QUADRATURE, EXACT, quadrature_exact, VERMILION, "s"),
    Contender(BY_RANK, BY_RANK, ours(BY_RANK, GAUSSIAN, "two-sided"), PINK, "v"),
    Contender("quadrature, 20,001 nodes a rank", BY_RANK, quadrature_by_rank, ORANGE, "D"),
    Contender(AUDIT, AUDIT, whole_audit, INK, "P"),
)
PANELS = (
    ("Steinke et al., any dependence, (ε, δ)-DP", (STEINKE,)),
    ("Mahloujifar et al., any dependence, Gaussian", (RECURSION,)),
    ("independent outcomes, Gaussian", (EXACT, BY_RANK, AUDIT)),
)


def simulate(n: int) -> Canaries:
    coins = ta.draw_coins(n, seed=SEED)
    return Canaries(TRUTH.mu * coins.members + np.random.default_rng(SEED).standard_normal(n), coins.members)


def sort(canaries: Canaries) -> Callable[[], object]:
    return lambda: np.argsort(canaries.scores, kind="stable")


def measure_all() -> tuple[Cells, dict[int, ta.Report]]:
    cells: Cells = {}
    reports = {}
    for n in SIZES:
        canaries = simulate(n)
        cells[SORT, n] = measure_sort(canaries)
        for contender in CONTENDERS:
            series = [cells[contender.name, size] for size in SIZES if (contender.name, size) in cells]
            # A series that was once broken off has no cell at the size before this one.
            if (series and series[-1].n * 10 != n) or foretold(series) > HOPELESS:
                continue
            if series and series[-1].seconds > TOO_SLOW:
                continue
            cell = cells[contender.name, n] = measure(contender, canaries)
            print(f"n={n} {cell.name}: {cell.seconds:.4f} s, {cell.sorts:.2f} sorts, ε ≥ {cell.epsilon:.4f}")
        reports[n] = ta.audit(canaries.scores, canaries.members, delta=DELTA)
    return cells, reports


def foretold(series: list[Cell]) -> float:
    """Seconds to expect at ten times the canaries: growth as in the last step, or in proportion."""
    if not series:
        return 0.0
    growth = series[-1].seconds / series[-2].seconds if len(series) > 1 else 10.0
    return series[-1].seconds * max(1.0, growth)


def seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def measure_sort(canaries: Canaries) -> Cell:
    work = sort(canaries)
    work()
    tries = [seconds(work) for _ in range(FLOOR_TRIES)]
    took = median(tries)
    return Cell(SORT, canaries.n, len(tries), took, took, 1.0, 1.0, None, peak_megabytes(work))


def measure(contender: Contender, canaries: Canaries) -> Cell:
    def attempt() -> tuple[float, float, float, float]:
        start = process_time()
        bound = contender.count(canaries)
        counted = process_time()
        epsilon = bound()
        done = process_time()
        return done - start, done - counted, seconds(sort(canaries)), epsilon

    begin, tries = perf_counter(), [attempt()]
    if tries[0][0] < WARM:
        tries.clear()
    while not tries or (len(tries) < TRIES and perf_counter() - begin < ENOUGH):
        tries.append(attempt())
    took = median(whole for whole, *_ in tries)
    return Cell(
        contender.name,
        canaries.n,
        len(tries),
        took,
        median(bound for _, bound, *_ in tries),
        median(whole / sorting for whole, _, sorting, _ in tries),
        median(bound / sorting for _, bound, sorting, _ in tries),
        tries[0][3],
        peak_megabytes(lambda: contender.count(canaries)()) if took < LONGEST_TRACED else None,
    )


def growth(cells: Cells, name: str, value: Callable[[Cell], float]) -> float | None:
    """The exponent of n that fits the times best; None for a series of one."""
    run = [cells[name, n] for n in SIZES if (name, n) in cells]
    if len(run) < 2:
        return None
    sizes, times = [cell.n for cell in run], [value(cell) for cell in run]
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def times_ours(cells: Cells, contender: Contender, n: int) -> tuple[float, float]:
    """How many times as long as the method of ours: from scores, and from counts alone."""
    cell, own = cells[contender.name, n], cells[contender.rival, n]
    return cell.sorts / own.sorts, cell.bound_sorts / own.bound_sorts


def figure(value: float) -> str:
    """Two digits, or whole numbers."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def write_csv(path: Path, cells: Cells) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        header = ["contender", "compared_with", "n", "tries", "seconds", "seconds_bound", "sorts"]
        writer.writerow([*header, "times_ours", "times_ours_bound", "peak_megabytes", "epsilon"])
        for n in SIZES:
            floor = cells[SORT, n]
            writer.writerow(
                [
                    SORT,
                    "",
                    n,
                    floor.tries,
                    f"{floor.seconds:.4g}",
                    "",
                    1,
                    "",
                    "",
                    f"{floor.megabytes:.4g}",
                    "",
                ]
            )
            for contender in (c for c in CONTENDERS if (c.name, n) in cells):
                cell = cells[contender.name, n]
                row: list[object] = [contender.name, contender.rival, n, cell.tries]
                row += [f"{value:.4g}" for value in (cell.seconds, cell.bound_seconds, cell.sorts)]
                row += [f"{ratio:.4g}" for ratio in times_ours(cells, contender, n)]
                row += ["" if cell.megabytes is None else f"{cell.megabytes:.4g}", f"{cell.epsilon:.6f}"]
                writer.writerow(row)


def write_tables(path: Path, cells: Cells, reports: dict[int, ta.Report]) -> None:
    sizes = [f"n = {power}" for power in POWERS.values()]
    put_table(path, table(["from scores to ε, in sorts", *sizes, "growth"], whole_rows(cells)))
    put_table(path, table(["from counts to ε, in ms", *sizes, "growth"], bound_rows(cells)))
    put_table(path, table(["peak MB", *sizes], memory_rows(cells)))
    put_table(path, table(["ε at least", *sizes], epsilon_rows(cells, reports)))
    put_table(path, table(["target", "measured", "reached"], target_rows(cells)))


def table(headings: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---"] * len(headings)
    return [f"| {' | '.join(row)} |" for row in (headings, rule, *rows)]


def named(contender: Contender) -> str:
    """In bold what is tightaudit's own."""
    return f"**{contender.name}**" if contender.name == contender.rival else contender.name


def across(cells: Cells, name: str, shown: Callable[[Cell], str]) -> list[str]:
    """A figure per size; where a series was broken off, the seconds that would have been next."""
    row = [shown(cells[name, n]) for n in SIZES if (name, n) in cells]
    if len(row) < len(SIZES):
        foreseen = foretold([cells[name, n] for n in SIZES if (name, n) in cells])
        row.append(f"not run (≈ {figure(foreseen)} s)")
    return row + ["–"] * (len(SIZES) - len(row))


def grown(exponent: float | None) -> str:
    return "–" if exponent is None else f"n^{exponent:.2f}"


def whole_rows(cells: Cells) -> list[list[str]]:
    floor = growth(cells, SORT, lambda cell: cell.seconds)
    rows = [[SORT, *across(cells, SORT, lambda _: "1"), grown(floor)]]
    for contender in CONTENDERS:

        def shown(cell: Cell, contender: Contender = contender) -> str:
            ratio = times_ours(cells, contender, cell.n)[0]
            return figure(cell.sorts) + (f" ({figure(ratio)}×)" if contender.name != contender.rival else "")

        exponent = growth(cells, contender.name, lambda cell: cell.seconds)
        rows.append([named(contender), *across(cells, contender.name, shown), grown(exponent)])
    return rows


def bound_rows(cells: Cells) -> list[list[str]]:
    rows = []
    for contender in CONTENDERS:
        if contender.name == AUDIT:
            continue

        def shown(cell: Cell, contender: Contender = contender) -> str:
            ratio = times_ours(cells, contender, cell.n)[1]
            took = figure(1000 * cell.bound_seconds)
            return took + (f" ({figure(ratio)}×)" if contender.name != contender.rival else "")

        exponent = growth(cells, contender.name, lambda cell: cell.bound_seconds)
        rows.append([named(contender), *across(cells, contender.name, shown), grown(exponent)])
    return rows


def memory_rows(cells: Cells) -> list[list[str]]:
    def shown(cell: Cell) -> str:
        return "not measured" if cell.megabytes is None else figure(cell.megabytes)

    rows = [[SORT, *across(cells, SORT, shown)]]
    return rows + [[named(c), *across(cells, c.name, shown)] for c in CONTENDERS]


def epsilon_rows(cells: Cells, reports: dict[int, ta.Report]) -> list[list[str]]:
    rows = [
        [named(c), *across(cells, c.name, lambda cell: f"{cell.epsilon:.4f}")]
        for c in CONTENDERS
        if c.name != AUDIT
    ]
    for index, row in enumerate(reports[SIZES[0]].rows):
        name = f"**{AUDIT}**: {row.method.name}, {in_cells(row.beliefs)}"
        rows.append([name, *(f"{reports[n].rows[index].bound.epsilon or 0.0:.4f}" for n in SIZES)])
    rows.append(["true ε", *[f"{TRUTH.epsilon(DELTA):.4f}"] * len(SIZES)])
    return rows


def target_rows(cells: Cells) -> list[list[str]]:
    rows = []
    for name, method in ((JAX_STEINKE, STEINKE), (JAX_FDP, RECURSION)):
        contender = next(c for c in CONTENDERS if c.name == name)
        run = [n for n in SIZES if n >= FASTER_FROM and (name, n) in cells]
        ratios = [times_ours(cells, contender, n) for n in run]
        whole, bound = min(ratio for ratio, _ in ratios), min(ratio for _, ratio in ratios)
        rows.append(
            [
                f"`{method}` faster than JAX-Privacy at the same bound, from n = {POWERS[FASTER_FROM]} up",
                f"{figure(whole)} times at least from scores, {figure(bound)} times from counts",
                "yes" if whole > 1 else "**no**",
            ]
        )
    contender = next(c for c in CONTENDERS if c.name == QUADRATURE)
    for start, part in (("counts", 1), ("scores", 0)):
        found = {n: times_ours(cells, contender, n)[part] for n in SIZES if (QUADRATURE, n) in cells}
        measured = ", ".join(f"{figure(ratio)} at {POWERS[n]}" for n, ratio in found.items())
        reached = "yes" if min(found.values()) >= TIMES_FASTER else "**no**"
        rows.append(
            [f"`{EXACT}` {TIMES_FASTER} times faster than the quadrature, from {start}", measured, reached]
        )
    audit = cells[AUDIT, 10**6].sorts
    reached = "yes" if audit <= MOST_SORTS else "**no**"
    rows.append(
        [f"whole audit of {POWERS[10**6]} scores in {MOST_SORTS} sorts", f"{audit:.1f} sorts", reached]
    )
    return rows


def false_alarm_rows() -> list[list[str]]:
    """How often JAX-Privacy finds a leak in scores that know nothing, with thresholds chosen in two ways."""
    rows = []
    for n in FALSE_ALARM_SIZES:
        rng = np.random.default_rng([SEED, n])
        alarms = np.zeros(2)
        for _ in range(FALSE_ALARM_RUNS):
            canaries = Canaries(rng.standard_normal(n), rng.random(n) < 0.5)
            auditor, fixed = jax_privacy_auditor(canaries), Explicit(canaries.threshold)
            alarms[0] += auditor.epsilon_one_run(LEVEL, FALSE_ALARM_DELTA) > 0
            alarms[1] += auditor.epsilon_one_run(LEVEL, FALSE_ALARM_DELTA, threshold_strategy=fixed) > 0
        rates = alarms / FALSE_ALARM_RUNS
        errors = np.sqrt(rates * (1 - rates) / FALSE_ALARM_RUNS)
        shown = [f"{100 * rate:.1f}% ± {100 * error:.1f}%" for rate, error in zip(rates, errors, strict=True)]
        rows.append([f"n = {POWERS[n]}", f"{FALSE_ALARM_RUNS:,}", *shown])
    return rows


def machine() -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    packages = ("numpy", "scipy", "jax", "jax_privacy")
    versions = [platform.python_version(), *(version(name) for name in packages), ta.__version__]
    return [f"{model}, {os.cpu_count()} cores, shared", platform.system(), *versions]


def draw(folder: Path) -> None:
    """A panel per kind of bound: seconds from scores to ε."""
    seconds = {(r["contender"], int(r["n"])): float(r["seconds"]) for r in rows_of(folder / "speed.csv")}
    with picture_style():
        figure_, axes = plt.subplots(1, 3, figsize=(13, 6), sharex=True, sharey=True, layout="constrained")
        for axis, (title, rivals) in zip(axes, PANELS, strict=True):
            floor = [seconds[SORT, n] for n in SIZES]
            axis.plot(SIZES, floor, color=GREY, linestyle=":", linewidth=2, label=SORT)
            for contender in (c for c in CONTENDERS if c.rival in rivals):
                run = [n for n in SIZES if (contender.name, n) in seconds]
                own = contender.name == contender.rival
                axis.plot(
                    run,
                    [seconds[contender.name, n] for n in run],
                    color=contender.colour,
                    marker=contender.marker,
                    linestyle="-" if own else "--",
                    linewidth=2 if own else 1.3,
                    label=f"{contender.name} (tightaudit)" if own else contender.name,
                )
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_title(title, fontsize=10)
            axis.set_xlabel("canaries n")
            axis.grid(visible=True)
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize=9)
        axes[0].set_ylabel("CPU seconds from scores to ε")
        figure_.suptitle("Time for one bound; a line ends where the next point was too slow to run")
        save_picture(figure_, folder / "speed.svg")
        plt.close(figure_)


def main() -> None:
    folder = Path(sys.argv[1])
    described = machine()
    headings = ["measured on", "system", "Python", "NumPy", "SciPy", "JAX", "JAX-Privacy", "tightaudit"]
    print(", ".join(f"{name} {value}" for name, value in zip(headings, described, strict=True)), flush=True)
    page = folder / "speed.md"
    cells, reports = measure_all()
    put_table(page, table(headings, [described]))
    write_csv(folder / "speed.csv", cells)
    write_tables(page, cells, reports)
    draw(folder)
    alarm_headings = ["scores that know nothing", "runs", "its default", "threshold fixed"]
    put_table(page, table(alarm_headings, false_alarm_rows()))
    for row in target_rows(cells):
        print(": ".join(row))


if __name__ == "__main__":
    main()

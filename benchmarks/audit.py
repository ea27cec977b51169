"""What an audit costs, in stable sorts of its own scores, and how much memory ten million scores take.

Part of `make bench`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

import tightaudit as ta

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("as planned", {}, "15"),
    ("claim gaussian(mu=1)", {"claim": ta.Gaussian(1.0)}, "15"),
    ("claim gaussian(mu=3)", {"claim": ta.Gaussian(3.0)}, "15"),
    ("release 0.1", {"release": 0.1}, "15"),
    ("release best", {"release": "best"}, "15"),
    ("release 1000, linear program", {"release": 1000}, "200"),
    ("linear program, r=2000", {"release": 2000, "method": "any-dependence"}, "200"),
]


def write_scores(path: Path, n: int) -> None:
    coins = ta.draw_coins(n, seed=1)
    scores = coins.members + np.random.default_rng(1).standard_normal(n)
    ids = pyarrow.array([f"canary-{i}" for i in range(n)])
    parquet.write_table(pyarrow.table({"id": ids, "score": scores, "member": coins.members}), path)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_speed(path: Path) -> None:
    run = ta.read_run(path)

    def sort() -> object:
        return np.argsort(run.scores, kind="stable")

    sort()
    reading = median(seconds(lambda: ta.read_run(path)) / seconds(sort) for _ in range(3))
    print(f"\naudit of {run.n:,} scores\n{'':32} {'sorts':>7} {'limit':>6}  any-dependence rows")
    print(f"{'reading the Parquet file':32} {reading:7.1f}")
    for label, options, limit in CASES:
        ratios = []
        for _ in range(3):
            start = time.perf_counter()
            report = ta.audit(run, delta=1e-5, **options)
            ratios.append((time.perf_counter() - start) / seconds(sort))
        solved = [str(row.bound.test.remark) for row in report.rows if not row.beliefs.independent]
        how = ["program" if text.startswith("solved") else "recursion" for text in solved]
        print(f"{label:32} {median(ratios):7.1f} {limit:>6}  {', '.join(how)}", flush=True)


def measure_memory(path: Path) -> None:
    code = f"import tightaudit as ta; ta.audit(ta.read_run({str(path)!r}), delta=1e-5)"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    subprocess.run([sys.executable, "-c", code], check=True)
    peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1e6
    print(f"peak memory of a process that audits 10,000,000 scores with text ids: {peak:.2f} GB (limit 3)")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for n, measure in ((1_000_000, measure_speed), (10_000_000, measure_memory)):
            path = Path(folder) / f"{n}.parquet"
            write_scores(path, n)
            measure(path)


if __name__ == "__main__":
    main()

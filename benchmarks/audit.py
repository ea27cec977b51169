"""What an audit costs, in stable sorts of 10⁶ doubles, and how much memory ten million scores take.

Part of `make bench`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow
from cpu import TRIES, against, command_seconds, in_sorts
from pyarrow import parquet

import tightaudit as ta

CASES: list[tuple[str, dict[str, Any], float]] = [
    ("as planned", {}, 6),
    ("claim gaussian(mu=1)", {"claim": ta.Gaussian(1.0)}, 15),
    ("claim gaussian(mu=3)", {"claim": ta.Gaussian(3.0)}, 15),
    ("released 0.1", {"released": 0.1}, 15),
    ("released best", {"released": "best"}, 15),
    ("released 2000, linear program", {"released": 2000}, 15),
]
FEW = 2000


def write_scores(path: Path, n: int) -> None:
    coins = ta.draw_coins(n, seed=1)
    scores = coins.members + np.random.default_rng(1).standard_normal(n)
    ids = pyarrow.array([f"canary-{i}" for i in range(n)])
    parquet.write_table(pyarrow.table({"id": ids, "score": scores, "member": coins.members}), path)


def measure_speed(path: Path) -> None:
    run = ta.read_run(path)
    print(f"\naudit of {run.n:,} scores\n{'':32} {'sorts':>7} {'limit':>6}  any-dependence rows")
    print(f"{'reading the Parquet file':32} {in_sorts(lambda: ta.read_run(path)):7.1f}")
    for label, options, limit in CASES:
        reports: list[ta.Report] = []
        sorts = in_sorts(lambda: reports.append(ta.audit(run, delta=1e-5, **options)))  # noqa: B023
        remarks = [str(row.bound.test.remark) for row in reports[0].rows if not row.beliefs.independent]
        how = ["program" if text.startswith("solved") else "recursion" for text in remarks]
        print(f"{label:32} {sorts:7.1f} {against(limit):>6}  {', '.join(how)}", flush=True)


def measure_few(folder: Path) -> None:
    """An audit of few scores, in this process and from the command line."""
    coins = ta.draw_coins(FEW, seed=1)
    scores = coins.members + np.random.default_rng(1).standard_normal(FEW)
    claim = "gaussian(mu=1)"
    sorts = in_sorts(lambda: ta.audit(scores, coins.members, delta=1e-5, claim=claim, independent=True))
    print(f"\naudit of {FEW} scores, all four rows: {sorts:.1f} sorts (limit 5)")
    path = folder / "few.csv"
    lines = [f"{score!r},{int(member)}" for score, member in zip(scores.tolist(), coins.members, strict=True)]
    path.write_text("\n".join(["score,member", *lines]))
    audit = [sys.executable, "-m", "tightaudit", "audit", str(path)]
    audit += ["--delta", "1e-5", "--claim", claim, "--independent"]
    stats = [sys.executable, "-c", "import scipy.stats"]
    ratio = median(command_seconds(audit) / command_seconds(stats) for _ in range(TRIES))
    print(f"the same from the command line: {ratio:.2f} of importing scipy.stats (limit 1.5)")


def measure_memory(path: Path) -> None:
    code = f"import tightaudit as ta; ta.audit(ta.read_run({str(path)!r}), delta=1e-5)"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    subprocess.run([sys.executable, "-c", code], check=True)
    peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1e6
    print(f"peak memory of a process that audits 10,000,000 scores with text ids: {peak:.2f} GB (limit 3)")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measure_few(Path(folder))
        for n, measure in ((1_000_000, measure_speed), (10_000_000, measure_memory)):
            path = Path(folder) / f"{n}.parquet"
            write_scores(path, n)
            measure(path)


if __name__ == "__main__":
    main()

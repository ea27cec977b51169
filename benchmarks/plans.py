"""Plans against a thousand simulated audits each: mean bound and power.

    python benchmarks/plans.py docs

Writes the table in `plan.md` and the picture `plan.png` into the folder, in some ten minutes on two cores.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from pages import put_table
from scipy.interpolate import PchipInterpolator

import tightaudit as ta
from tightaudit.belief_rows import RowPlan
from tightaudit.canary_plan import Forecast, PlannedRow
from tightaudit.checks import FloatArray
from tightaudit.mechanisms.base import mechanism
from tightaudit.pvalues.rank_weighted import RankWeighted

DELTA, AUDITS = 1e-5, 1000
MOST_COUNTS, NODES = 40, 25
# (claim, place of the row of beliefs, canaries, leak): power where there is a leak, else the mean bound.
SETTINGS = (
    ("gaussian(mu=1)", 0, 500, None),
    ("gaussian(mu=1)", 0, 10_000, None),
    ("gaussian(mu=1)", 1, 10_000, None),
    ("gaussian(mu=1)", 2, 3000, None),
    ("gaussian(mu=2)", 3, 3000, None),
    ("laplace(mu=0.8)", 0, 2000, None),
    ("laplace(mu=0.8)", 2, 10_000, None),
    ("subsampled-gaussian(mu=1,q=0.5)", 0, 5000, None),
    ("dp-sgd(sigma=0.8,q=0.1,steps=20)", 0, 1000, None),
    ("gaussian(mu=0.5)", 0, 120, 2.0),
    ("gaussian(mu=1)", 2, 700, 2.0),
    ("laplace(mu=0.5)", 0, 150, 2.0),
)


def counts(row: RowPlan, truth: str, n: int) -> FloatArray:
    """What the row's method counts in simulated audits."""
    found = []
    rng = np.random.default_rng([n, AUDITS])
    for start in range(0, AUDITS, 50):
        for evidence in mechanism(truth).play(n, n, rng, runs=min(50, AUDITS - start), guessing="threshold"):
            if isinstance(row.method, RankWeighted):
                found.append(row.method.statistic(evidence))
            else:
                found.append(evidence.release(row.counts[0]).errors)
    return np.array(found, dtype=np.float64)


def bound(forecast: Forecast, count: float) -> float:
    evidence = forecast.outcomes.evidence(int(count))
    return forecast.row.bound(evidence, forecast.row.confidence).epsilon or 0.0


def measure(text: str, place: int, n: int, leak: float | None) -> str:
    claim = mechanism(text).claim
    certify = 0.8 if leak is None else None
    plan = ta.plan(claim, delta=DELTA, certify=certify, catch=leak, canaries=n)
    forecast = plan.rows[place].forecast
    counted = counts(forecast.row, str(plan.truth), n)
    setting = f"| `{text}` | {_beliefs(plan.rows[place])} | {n:,} | "
    if leak is not None:
        rejected = forecast.row.tested
        assert rejected is not None
        level = 1 - forecast.row.confidence
        limit = max((c for c in np.unique(counted) if _excess(forecast, int(c), level) <= 0), default=-1.0)
        simulated = float(np.mean(counted <= limit))
        assert forecast.power is not None
        gap = 100 * (forecast.power - simulated)
        return setting + f"power at {leak:g}·ε | {forecast.power:.3f} | {simulated:.3f} | {gap:+.1f} points |"
    nodes = np.unique(counted)
    if nodes.size > MOST_COUNTS:
        nodes = np.unique(np.rint(np.linspace(nodes[0], nodes[-1], NODES)))
    values = [bound(forecast, count) for count in nodes]
    bounds = PchipInterpolator(nodes, values)(counted) if nodes.size > 1 else np.full(AUDITS, values[0])
    simulated = float(np.mean(bounds))
    gap = 100 * (forecast.mean / simulated - 1)
    return setting + f"mean bound | {forecast.mean:.3f} | {simulated:.3f} | {gap:+.1f}% |"


def _excess(forecast: Forecast, count: int, level: float) -> float:
    tested, evidence = forecast.row.tested, forecast.outcomes.evidence(count)
    assert tested is not None
    return forecast.method.excess(tested, evidence, level)  # type: ignore[arg-type]


def _beliefs(row: PlannedRow) -> str:
    believed = ["independent"] if row.independent else []
    believed += [] if row.shape is None else ["shape"]
    return ", ".join(believed) or "nothing"


def main() -> None:
    folder = Path(sys.argv[1])
    lines = [
        "| setting | beliefs | canaries | forecast of | planned | simulated | difference |",
        "| --- " * 7 + "|",
    ]
    lines += Parallel(n_jobs=-1)(delayed(measure)(*setting) for setting in SETTINGS)
    put_table(folder / "plan.md", lines)
    print("\n".join(lines))
    ta.plan(ta.Gaussian(1.0), delta=DELTA, certify=0.8).to_plot(folder / "plan.png")


if __name__ == "__main__":
    main()

"""Plans against a thousand simulated audits each: mean bound and power.

    python benchmarks/plans.py docs

Writes the table in `plan.md` and the picture `plan.svg` into the folder, in some ten minutes on two cores.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from pages import put_table
from scipy.interpolate import PchipInterpolator

import tightaudit as ta
from tightaudit.methods.base import Test
from tightaudit.planning.canaries import PlannedRow
from tightaudit.planning.forecast import Forecast
from tightaudit.simulate.mechanisms.base import as_mechanism
from tightaudit.support.checks import FloatArray

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


def counts(test: Test, truth: str, n: int) -> FloatArray:
    """What the test counts in simulated audits."""
    counted = []
    rng = np.random.default_rng([n, AUDITS])
    for start in range(0, AUDITS, 50):
        played = as_mechanism(truth).play(n, n, rng, runs=min(50, AUDITS - start), rule="threshold")
        counted += [test.statistic(evidence.top(test.released)) for evidence in played]
    return np.array(counted, dtype=np.float64)


def bound(forecast: Forecast, count: float) -> float:
    test = forecast.test
    return forecast.row.bound(test, test.evidence(int(count)), forecast.row.confidence).epsilon or 0.0


def measure(text: str, place: int, n: int, leak: float | None) -> str:
    claim = as_mechanism(text).claim
    goal = ta.Goal(certify=0.8) if leak is None else ta.Goal(catch=leak)
    plan = ta.plan(claim, delta=DELTA, goal=goal, canaries=n)
    forecast = plan.rows[place].forecast
    counted = counts(forecast.test, str(plan.truth), n)
    setting = f"| `{text}` | {_beliefs(plan.rows[place])} | {n:,} | "
    if leak is not None:
        tested = forecast.row.claim
        assert tested is not None
        level = 1 - forecast.row.confidence
        limit = max(
            (c for c in np.unique(counted) if forecast.test.excess(tested, int(c), level) <= 0), default=-1.0
        )
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


def _beliefs(row: PlannedRow) -> str:
    believed = ["independent"] if row.beliefs.independent else []
    believed += [] if row.beliefs.family is None else ["family"]
    return ", ".join(believed) or "nothing"


def draw(folder: Path) -> None:
    """The plan that the page shows; nothing is simulated for it."""
    ta.plan(ta.Gaussian(1.0), delta=DELTA, goal=ta.Goal(certify=0.8)).to_plot(folder / "plan.svg")


def main() -> None:
    folder = Path(sys.argv[1])
    lines = [
        "| setting | beliefs | canaries | forecast of | planned | simulated | difference |",
        "| --- " * 7 + "|",
    ]
    lines += Parallel(n_jobs=-1)(delayed(measure)(*setting) for setting in SETTINGS)
    put_table(folder / "plan.md", lines)
    print("\n".join(lines))
    draw(folder)


if __name__ == "__main__":
    main()

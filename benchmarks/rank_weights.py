"""How much information the planned strata and weights keep, of that of the best possible rank test.

    python benchmarks/rank_weights.py docs

Writes the table in `rank-weighted.md` into the folder, in seconds. Information is the squared signal-to-noise
ratio of the statistic per guess, for n large: keeping 95% of it means needing 1/0.95 as many canaries.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pages import put_table

import tightaudit as ta
from tightaudit.methods.parts.strata import Cells, best_strata, cells
from tightaudit.support.checks import FloatArray

N = 1_000_000
TRUTHS = (
    *(ta.Gaussian(mu) for mu in (0.25, 0.5, 1.0, 2.0, 4.0)),
    *(ta.Laplace(mu) for mu in (0.4, 0.8, 1.6, 3.2)),
    *(ta.SubsampledGaussian(mu, 0.5) for mu in (0.5, 1.0, 2.0)),
    *(ta.SubsampledGaussian(mu, 0.1) for mu in (0.5, 1.0, 2.0)),
    *(ta.SubsampledGaussian(mu, 0.01) for mu in (1.0, 2.0)),
    *(ta.ApproxDP(epsilon, 1e-5) for epsilon in (0.5, 1.0, 4.0)),
    ta.ApproxDP(1.0, 0.05),
)


def grid(claim: ta.Claim) -> Cells:
    """Ranks cut finely everywhere, and more finely towards the top."""
    edges: list[FloatArray] = [
        np.zeros(1),
        np.geomspace(1e-6, 0.05, 120),
        np.linspace(0.05, 1, 200),
        claim.top_kinks,
    ]
    return cells(claim, np.unique(np.concatenate(edges)))


def best_possible(found: Cells) -> float:
    """The information of the best weights without any restriction."""
    return float(found.slope @ np.linalg.solve(found.covariance, found.slope))


def of_count(found: Cells, share: float) -> float:
    """The information of the plain count of errors among the top share."""
    return found.information((found.edges[1:] <= share * (1 + 1e-9)).astype(np.float64))


def of_plan(found: Cells, planned_for: ta.Claim) -> float:
    strata, weights = best_strata(N, planned_for)
    middle = 0.5 * (found.edges[1:] + found.edges[:-1])
    place = np.searchsorted(np.cumsum(strata) / N, middle)
    spread: FloatArray = np.append(weights, 0)[np.minimum(place, len(weights))].astype(np.float64)
    return found.information(spread)


def main() -> None:
    headings = ["information kept by", "best non-increasing weights", "plan", "plan for half the parameter"]
    headings += ["plan for twice", "count at n/5", "count at n/2", "count at n"]
    table = [f"| {' | '.join(headings)} |", "| --- " * len(headings) + "|"]
    for claim in TRUTHS:
        found = grid(claim)
        best, family = best_possible(found), claim.own_family()
        value = claim.parameters[family.parameter]
        kept = [found.information(found.best_weights())]
        kept += [of_plan(found, family.member(value * factor)) for factor in (1.0, 0.5, 2.0)]
        kept += [of_count(found, share) for share in (0.2, 0.5, 1.0)]
        table.append(f"| `{claim}` | {' | '.join(f'{100 * share / best:.1f}%' for share in kept)} |")
    print("\n".join(table))
    put_table(Path(sys.argv[1]) / "rank-weighted.md", table)


if __name__ == "__main__":
    main()

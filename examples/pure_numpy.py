"""An audit in plain NumPy, from coins to the table of beliefs: `python examples/pure_numpy.py`.

The mechanism answers a thousand counting queries with Laplace noise, and says that it is 1-DP. Each canary is
one record that exactly one query counts. There is a mistake: the noise was scaled for a sensitivity of 1, but
a record is counted twice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tightaudit as ta

QUERIES = 1000


def noisy_counts(counts: NDArray[np.int64], epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The mechanism under audit."""
    return counts + rng.laplace(scale=1 / epsilon, size=counts.size)


def main() -> None:
    coins = ta.draw_coins(QUERIES, seed=1)
    rng = np.random.default_rng(2)
    records = rng.poisson(50, size=QUERIES)
    counts = records + 2 * coins.members  # twice: the mistake
    answers = noisy_counts(counts, 1.0, rng)
    # The auditor knows the records, and what they add to every answer; only the coins are secret.
    scores = answers - records
    run = ta.Run(scores, coins.members, independent="each query has one canary and noise of its own")
    print(ta.audit(run, delta=1e-5, claim=ta.Laplace(1.0)))


if __name__ == "__main__":
    main()

"""Every guess counts, weighted by its rank: an error at the very top says more than one in the middle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightaudit import checks
from tightaudit.errors import InputError
from tightaudit.game import Evidence, WeightedCount
from tightaudit.pvalues.base import METHODS, Assumptions, Method, in_normal_quantiles
from tightaudit.pvalues.rank_plan import planned_strata
from tightaudit.pvalues.weighted_errors import WeightedErrors
from tightaudit.tradeoffs.base import TradeOff


@METHODS.register("rank-weighted")
@dataclass(frozen=True)
class RankWeighted(Method):
    """The exact law of Σ weight·errors over strata of ranks, best first, for independent channels.

    Strata and weights have to be fixed in advance; left out, they are planned from n and the claim, or, in a
    search for a bound, from n and a typical member of the family (docs/rank-weighted.md).

    >>> import tightaudit as ta
    >>> method = ta.RankWeighted(strata=(50, 100, 150, 200, 250, 250), weights=(20, 15, 11, 8, 4, 1))
    >>> evidence = ta.WeightedCount(n=1000, statistic=1364)
    >>> round(ta.p_value(evidence, ta.Gaussian(1.0), method=method), 4)
    0.0498
    """

    strata: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    name = "rank-weighted"
    assumes = Assumptions(
        independent_outcomes=True,
        claims="every trade-off function",
        evidence="errors in rank order, or their weighted number",
    )
    reference = "Exact law over the chain of thresholds between strata; docs/rank-weighted.md"
    resolution = 1e-5
    takes = (Evidence, WeightedCount)
    releases_all = True
    plans = True

    def __post_init__(self) -> None:
        for name, minimum in (("strata", 1), ("weights", 0)):
            values = tuple(checks.count(name, value, minimum=minimum) for value in getattr(self, name))
            object.__setattr__(self, name, values)
        if len(self.strata) != len(self.weights):
            raise InputError("weights", self.weights, f"one per stratum, {len(self.strata)}")
        if any(later > earlier for earlier, later in pairwise(self.weights)):
            raise InputError("weights", self.weights, "weights that never increase with rank")
        if self.weights and self.weights[0] == 0:
            raise InputError("weights", self.weights, "a weight above 0 for the first stratum")

    @classmethod
    def plan(cls, n: int, claim: TradeOff) -> RankWeighted:
        """Strata and weights that serve a mechanism like the claim well.

        >>> import tightaudit as ta
        >>> sum(ta.RankWeighted.plan(1000, ta.Gaussian(1.0)).strata)
        1000
        """
        return cls(*planned_strata(checks.count("n", n, minimum=1), claim))

    def planned(self, n: int, typical: TradeOff) -> RankWeighted:
        return self if self.strata else self.plan(n, typical)

    def statistic(self, evidence: Evidence) -> int:
        """Σ weight·errors of evidence that keeps its errors by rank."""
        if evidence.errors_by_rank is None:
            raise InputError(
                "evidence", "counts", "evidence that keeps its errors by rank, or their weighted number"
            )
        ends = self._ends(evidence.n)
        total = np.append(0, np.cumsum(evidence.errors_by_rank, dtype=np.int64))[ends]
        return int(np.diff(total) @ np.array(self.weights))

    def reduced(self, evidence: Evidence) -> WeightedCount:
        return WeightedCount(evidence.n, self.statistic(evidence))

    def p_value(self, claim: TradeOff, evidence: Evidence | WeightedCount) -> float:
        return self._tail(claim, evidence, relevant=0.0)

    def excess(self, claim: TradeOff, evidence: Evidence | WeightedCount, level: float) -> float:
        """As for every method; a p-value far below the level is not found to its last digit."""
        return in_normal_quantiles(self._tail(claim, evidence, relevant=level), level)

    def _tail(self, claim: TradeOff, evidence: Evidence | WeightedCount, *, relevant: float) -> float:
        if not self.strata:
            return self.plan(evidence.n, claim)._tail(claim, evidence, relevant=relevant)
        ends = self._ends(evidence.n)
        statistic = evidence.statistic if isinstance(evidence, WeightedCount) else self.statistic(evidence)
        largest = int(np.diff(ends) @ np.array(self.weights))
        if statistic > largest:
            raise InputError("statistic", statistic, f"at most {largest}, every guess being wrong")
        # Strata of weight 0 add nothing to the count; a common divisor only stretches it.
        counted = sum(weight > 0 for weight in self.weights)
        weights = np.array(self.weights[:counted])
        divisor = int(np.gcd.reduce(weights))
        scaled = tuple((weights // divisor).tolist())
        law = WeightedErrors(claim, evidence.n, self.strata[:counted], scaled)
        return law.tail(statistic // divisor, relevant=relevant)

    def _ends(self, n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        ends = np.append(0, np.cumsum(self.strata, dtype=np.int64))
        if ends[-1] > n:
            raise InputError("strata", self.strata, f"sizes that add up to at most n={n}")
        return ends

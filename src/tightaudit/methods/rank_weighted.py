"""Every guess counts, weighted by its rank: an error at the very top says more than one in the middle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence, WeightedCount
from tightaudit.methods.base import (
    METHODS,
    USUAL_LEVEL,
    AnyEvidence,
    Assumptions,
    Method,
    in_normal_quantiles,
)
from tightaudit.methods.exact import Exact
from tightaudit.methods.parts.strata import best_single_stratum, best_strata
from tightaudit.methods.parts.weighted_errors import WeightedErrors
from tightaudit.support import checks
from tightaudit.support.errors import InputError

_MOST_STRATA = 100
"""More of them tell nothing more: ten reach 99% of the information in ranks."""


@METHODS.register
@dataclass(frozen=True)
class RankWeighted(Method):
    """The exact law of Σ weight·errors over strata of ranks, best first, for independent channels.

    Strata and weights must be fixed in advance. If left out, they are chosen from n and the claim, or, in a
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
        evidence="errors in rank order, or their weighted number",
    )
    reference = "Exact law over the chain of thresholds between strata; docs/rank-weighted.md"
    resolution = 1e-5
    releases_all = True
    weighted = True

    def __post_init__(self) -> None:
        for name, minimum in (("strata", 1), ("weights", 0)):
            if not isinstance(getattr(self, name), tuple | list):
                raise InputError(name, getattr(self, name), "a tuple of integers")
            values = tuple(checks.count(name, value, minimum=minimum) for value in getattr(self, name))
            object.__setattr__(self, name, values)
        if len(self.strata) > _MOST_STRATA:
            raise InputError("strata", f"{len(self.strata)} of them", f"at most {_MOST_STRATA}")
        if len(self.strata) != len(self.weights):
            raise InputError("weights", self.weights, f"one per stratum, {len(self.strata)}")
        if any(later > earlier for earlier, later in pairwise(self.weights)):
            raise InputError("weights", self.weights, "weights that never increase with rank")
        if self.weights and self.weights[0] == 0:
            raise InputError("weights", self.weights, "a weight above 0 for the first stratum")

    def fixed(self, n: int, typical: Claim, level: float = USUAL_LEVEL) -> RankWeighted:
        """The method with strata and weights suited to a mechanism like the claim, unless they are given.

        Weights suit large numbers. With few guesses worth a weight, to be right about all of them may be no
        surprise: a plain count that can reject the claim at the level is better then.

        >>> import tightaudit as ta
        >>> sum(ta.RankWeighted().fixed(1000, ta.Gaussian(1.0)).strata)
        1000
        >>> ta.RankWeighted().fixed(1000, ta.SubsampledGaussian(3.0, 0.1))
        RankWeighted(strata=(70,), weights=(1,))
        """
        if self.strata:
            return self
        strata, weights = best_strata(checks.count("n", n, minimum=1), typical)
        if Exact().p_value(typical, Evidence(n, sum(strata), 0)) > level:
            size = best_single_stratum(n, typical, level)
            if size is not None:
                strata, weights = (size,), (1,)
        return RankWeighted(strata, weights)

    @property
    def open(self) -> bool:  # type: ignore[override]
        return not self.strata

    def statistic(self, evidence: AnyEvidence) -> int:
        """Σ weight·errors of evidence that keeps its errors by rank, or of which it is known."""
        ends = self._ends(evidence.n)
        if isinstance(evidence, WeightedCount):
            return evidence.statistic
        if evidence.errors_by_rank is None:
            raise InputError(
                "evidence", "counts", "evidence that keeps its errors by rank, or their weighted number"
            )
        total = np.append(0, np.cumsum(evidence.errors_by_rank, dtype=np.int64))[ends]
        return int(np.diff(total) @ np.array(self.weights))

    def evidence(self, n: int, released: int, statistic: int) -> WeightedCount:  # noqa: ARG002
        return WeightedCount(n, statistic)

    def weighted_strata(self, released: int) -> tuple[tuple[int, ...], tuple[int, ...]]:  # noqa: ARG002
        return self.strata, self.weights

    @property
    def law(self) -> RankWeighted:
        return self

    def mean_if_independent(self, truth: Claim, n: int, released: int) -> float:  # noqa: ARG002
        edges = self._ends(n) / n
        return n * float(np.array(self.weights) @ np.diff(truth.top_error_mass(edges)))

    def p_value(self, claim: Claim, evidence: AnyEvidence) -> float:
        return self._tail(claim, evidence, relevant=0.0)

    def excess(self, claim: Claim, evidence: AnyEvidence, level: float) -> float:
        """As for every method; a p-value far below the level is not found to its last digit."""
        return in_normal_quantiles(self._tail(claim, evidence, relevant=level), level)

    def _tail(self, claim: Claim, evidence: AnyEvidence, *, relevant: float) -> float:
        if not self.strata:
            return self.fixed(evidence.n, claim)._tail(claim, evidence, relevant=relevant)
        statistic = self.statistic(evidence)
        largest = sum(size * weight for size, weight in zip(self.strata, self.weights, strict=True))
        if statistic > largest:
            raise InputError("statistic", statistic, f"at most {largest}: every guess wrong")
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

"""What count an audit can expect, if the mechanism is known: computed, not simulated.

The errors of independent channels have an exact law, whichever method the count is then given to. A method
that does not believe in independence still meets a mechanism that has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from tightaudit.game import Evidence, WeightedCount
from tightaudit.pvalues.base import Method
from tightaudit.pvalues.exact import Exact, expected_errors
from tightaudit.pvalues.rank_plan import cells
from tightaudit.pvalues.rank_weighted import RankWeighted
from tightaudit.tradeoffs.base import TradeOff

_FEW = 400.0
"""Variance of a count up to which its quantiles are looked up in its law; above, they are a normal's."""


@dataclass(frozen=True)
class Outcomes:
    """The law of what a method counts among n guesses, `released` of them, about a mechanism.

    >>> import tightaudit as ta
    >>> outcomes = Outcomes(ta.Gaussian(1.0), ta.Exact(), n=1000, released=200)
    >>> outcomes.quantile(0.5).errors
    26
    >>> round(outcomes.probability_up_to(26), 3)
    0.53
    """

    truth: TradeOff
    method: Method
    n: int
    released: int

    def evidence(self, count: int) -> Evidence | WeightedCount:
        """The evidence that a count makes."""
        return (
            WeightedCount(self.n, count)
            if isinstance(self.method, RankWeighted)
            else Evidence(self.n, self.released, count)
        )

    def probability_up_to(self, count: int) -> float:
        """How likely the count is at most this."""
        if count < 0:
            return 0.0
        guide: Method = self.method if isinstance(self.method, RankWeighted) else Exact()
        return guide.p_value(self.truth, self.evidence(min(count, self.largest)))  # type: ignore[arg-type]

    def quantile(self, probability: float) -> Evidence:
        """The evidence with the smallest count that is not exceeded with at least this probability."""
        mean, deviation = self.moments
        guess = mean + float(ndtri(probability)) * deviation
        count = min(max(round(guess), 0), self.largest)
        if deviation**2 <= _FEW:
            count = self._looked_up(count, probability)
        return self.evidence(count)  # type: ignore[return-value]

    def _looked_up(self, count: int, probability: float) -> int:
        while count > 0 and self.probability_up_to(count - 1) >= probability:
            count -= 1
        while count < self.largest and self.probability_up_to(count) < probability:
            count += 1
        return count

    @property
    def largest(self) -> int:
        """The count if every guess is wrong."""
        if isinstance(self.method, RankWeighted):
            return int(np.dot(self.method.strata, self.method.weights))
        return self.released

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the count, to first order in 1/n."""
        strata: tuple[int, ...] = (self.released,)
        weights: tuple[int, ...] = (1,)
        if isinstance(self.method, RankWeighted):
            strata, weights = self.method.strata, self.method.weights
        ends = np.append(0, np.cumsum(strata)) / self.n
        edges = ends if ends[-1] == 1 else np.append(ends, 1.0)
        found = cells(self.truth, edges)
        used = np.append(weights, np.zeros(edges.size - 1 - len(weights)))
        variance = self.n * float(used @ found.covariance @ used)
        if isinstance(self.method, RankWeighted):
            mean = self.n * float(used @ (np.diff(edges) * found.error))
        else:
            mean = expected_errors(self.truth, n=self.n, released=self.released)
        return mean, math.sqrt(variance)

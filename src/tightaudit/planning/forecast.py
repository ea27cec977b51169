"""What a row of the table can expect from n canaries, if the mechanism is known: computed, not simulated.

The errors of independent channels have an exact law, whichever method the count is then given to. A method
that does not believe in independence still meets a mechanism that has it. The bound falls with the count,
so its spread is that of the count, and power is the probability of a count at most the critical one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from tightaudit.auditing.rows import RowTest
from tightaudit.claims.base import Claim
from tightaudit.methods.base import Method, Test
from tightaudit.methods.parts.strata import cells

_FEW = 400.0
"""Variance of a count up to which its quantiles are looked up in its law; above, they are a normal's."""
_LOW, _HIGH = 0.1, 0.9
_NEAR = 0.03
"""How far below the level a critical statistic may stay, in normal quantiles."""


@dataclass(frozen=True)
class Law:
    """The law of a test's statistic about a mechanism with independent outcomes.

    >>> import tightaudit as ta
    >>> law = Law(ta.Gaussian(1.0), Test(ta.Exact(), n=1000, released=200))
    >>> law.quantile(0.5), round(law.probability_up_to(26), 3)
    (26, 0.53)
    """

    truth: Claim
    test: Test

    def probability_up_to(self, statistic: int) -> float:
        """How likely the statistic is at most this."""
        if statistic < 0:
            return 0.0
        return self.test.probability_if_independent(self.truth, min(statistic, self.test.largest))

    def quantile(self, probability: float) -> int:
        """The smallest statistic that is not exceeded with at least this probability."""
        mean, deviation = self.moments
        guess = mean + float(ndtri(probability)) * deviation
        statistic = min(max(round(guess), 0), self.test.largest)
        if deviation**2 > _FEW:
            return statistic
        while statistic > 0 and self.probability_up_to(statistic - 1) >= probability:
            statistic -= 1
        while statistic < self.test.largest and self.probability_up_to(statistic) < probability:
            statistic += 1
        return statistic

    def critical(self, level: float) -> int:
        """About the largest statistic at which the test rejects the claim of this law, never a larger one.

        -1 if it never does. Found by secants: the excess is nearly linear in the statistic.
        """

        def excess(statistic: int) -> float:
            return self.test.excess(self.truth, statistic, level)

        mean, deviation = self.moments
        low, high = -1, self.test.largest
        guess, near = mean + float(ndtri(level)) * deviation, False
        while high - low > 1 and not near:
            middle = min(max(round(guess), low + 1), high - 1)
            found = excess(middle)
            low, high = (middle, high) if found <= 0 else (low, middle)
            near = -_NEAR < found <= 0
            guess = middle - (found + _NEAR / 2) * max(deviation, 0.5)
            if not low < guess < high:
                guess = (low + high) / 2
        return low

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation, to first order in 1/n."""
        strata, weights = self.test.strata
        ends = np.append(0, np.cumsum(strata)) / self.test.n
        edges = ends if ends[-1] == 1 else np.append(ends, 1.0)
        used = np.append(weights, np.zeros(edges.size - 1 - len(weights)))
        variance = self.test.n * float(used @ cells(self.truth, edges).covariance @ used)
        return self.test.mean_if_independent(self.truth), math.sqrt(variance)


@dataclass(frozen=True)
class Forecast:
    """What one row of the table can expect."""

    row: RowTest
    truth: Claim
    """The mechanism, as the canaries show it."""

    @property
    def test(self) -> Test:
        """The row's test: a row is planned for one number of released guesses."""
        return self.row.tests[0]

    @property
    def method(self) -> Method:
        """The method, its options fixed."""
        return self.test.method

    @cached_property
    def law(self) -> Law:
        """What the test will count."""
        return Law(self.truth, self.test)

    def bound_at(self, probability: float) -> float:
        """The bound that a count at this quantile gives; a low quantile is a lucky, large bound."""
        evidence = self.test.evidence(self.law.quantile(probability))
        epsilon = self.row.bound(self.test, evidence, self.row.confidence).epsilon
        # Every member rejected: the family has nothing larger to offer.
        return self.row.family.least_private.epsilon(self.row.delta) if epsilon is None else epsilon

    @cached_property
    def quickly(self) -> Forecast:
        """The same without linear programs, with bounds that are too low if anything."""
        if self.method.quick is self.method:
            return self
        quick = replace(self.test, method=self.method.quick)
        return replace(self, row=replace(self.row, tests=(quick,)))

    @cached_property
    def nearly_mean(self) -> float:
        """About the mean, from one bound by the method itself: how it lies to the median is found quickly."""
        return self.median + self.quickly.mean - self.quickly.median

    @cached_property
    def median(self) -> float:
        """The bound that half of all audits exceed."""
        return self.bound_at(0.5)

    @cached_property
    def mean(self) -> float:
        """The bound to expect: by a parabola in the normal score through the median and the spread."""
        low, high = self.spread
        curvature = (low + high - 2 * self.median) / (2 * float(ndtri(_HIGH)) ** 2)
        return max(0.0, self.median + curvature)

    @cached_property
    def spread(self) -> tuple[float, float]:
        """The bounds that one audit in ten stays below, and one in ten exceeds."""
        return self.bound_at(_HIGH), self.bound_at(_LOW)

    @cached_property
    def power(self) -> float | None:
        """How likely the claim is rejected; None without a claim."""
        if self.row.claim is None:
            return None
        critical = Law(self.row.claim, self.test).critical(1 - self.row.confidence)
        return self.law.probability_up_to(critical)

"""Mahloujifar, Melis and Chaudhuri's recursion: valid for any trade-off function under any dependence."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method
from tightaudit.support.checks import FloatArray

_PRECISION, _ROUGH = 1e-7, 1e-6
"""Of the logarithm of a p-value, alone and among many."""
_NEARBY = 0.2
"""How far the next p-value may be from its guess, as a share of the step."""
_SMALLEST_LOG = -690.0
_NEGLIGIBLE = 1e-12


@METHODS.register
@dataclass(frozen=True)
class FdpRecursion(Method):
    """The smallest level τ at which the recursion over the number of correct guesses runs past r/n.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=15)
    >>> round(ta.p_value(evidence, ta.Gaussian(1.0), method="fdp-recursion"), 6)
    0.285158
    """

    name = "fdp-recursion"
    assumes = Assumptions(independent_outcomes=False)
    holds_as_law = True
    reference = "Mahloujifar, Melis, Chaudhuri: Auditing f-Differential Privacy in One Run, 2024"

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        curve = _curve(claim)

        def rejected(log_level: float) -> bool:
            return _rejected(curve, evidence, math.exp(log_level))

        if not rejected(0.0):
            return 1.0
        low, high, step = 0.0, 0.0, 1.0
        while low > _SMALLEST_LOG and rejected(low):
            high, low, step = low, max(low - step, _SMALLEST_LOG), 2 * step
        return math.exp(_last_rejected(rejected, low, high, _PRECISION))

    def distribution(self, claim: Claim, n: int, released: int, up_to: int) -> FloatArray:
        """The p-values of 0, 1, … errors, at most `up_to`: a distribution function of the errors.

        Each search starts where the last one ended, a step further.

        >>> import tightaudit as ta
        >>> FdpRecursion().distribution(ta.Gaussian(1.0), 1000, 200, 2).round(4)
        array([0.0005, 0.0019, 0.0045])
        """
        curve = _curve(claim)
        found = np.ones(min(up_to, released) + 1)
        last, step = math.log(self.p_value(claim, Evidence(n, released, 0))), 1.0
        found[0] = math.exp(last)
        for errors in range(1, found.size):
            evidence = Evidence(n, released, errors)

            def rejected(log_level: float, evidence: Evidence = evidence) -> bool:
                return _rejected(curve, evidence, math.exp(log_level))

            if not rejected(0.0):
                break
            low, high = last, 0.0
            for guess in (last + (1 - _NEARBY) * step, last + (1 + _NEARBY) * step):
                if low < guess < high:
                    low, high = (low, guess) if rejected(guess) else (guess, high)
            level = _last_rejected(rejected, low, high, _ROUGH)
            last, step = level, level - last
            found[errors] = math.exp(level)
        return found

    def between_runs(self, runs: tuple[int, ...]) -> Method:
        from tightaudit.methods.between_runs import BetweenRuns

        return BetweenRuns(self, runs)

    def excess(self, claim: Claim, evidence: Evidence, level: float) -> float:
        """Positive if not rejected at the level: one run of the recursion instead of a search for τ."""
        return -1.0 if _rejected(_curve(claim), evidence, level) else 1.0


@lru_cache(maxsize=8)
def _curve(claim: Claim) -> Callable[[float], float]:
    """A search asks about one claim at several levels and counts, and some curves take long to draw."""
    return claim.detection_curve()


def _last_rejected(rejected: Callable[[float], bool], low: float, high: float, precision: float) -> float:
    """The smallest level that is rejected, where `low` is not and `high` is."""
    while high - low > precision:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return high


def _rejected(curve: Callable[[float], float], evidence: Evidence, level: float) -> bool:
    n, r, correct = evidence.n, evidence.released, evidence.released - evidence.errors
    hits, alarms, limit = level * correct / n, level * evidence.errors / n, r / n
    last_step = math.inf
    for remaining in range(correct - 1, -1, -1):
        target = curve(hits)
        if target <= alarms:
            break
        step = remaining / (r - remaining) * (target - alarms)
        hits, alarms = hits + step, target
        if hits + alarms > limit:
            return True
        # Steps that shrink go on shrinking: each is the last one times a slope that moves only with
        # `hits`, times remaining/(r-remaining), which falls.
        if step < _NEGLIGIBLE * hits and step < last_step:
            break
        last_step = step
    return hits + alarms > limit

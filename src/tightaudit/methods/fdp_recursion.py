"""Mahloujifar, Melis and Chaudhuri's recursion: valid for any trade-off function under any dependence."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method

_PRECISION = 1e-7
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
        while high - low > _PRECISION:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if rejected(middle) else (middle, high)
        return math.exp(high)

    def excess(self, claim: Claim, evidence: Evidence, level: float) -> float:
        """Positive if not rejected at the level: one run of the recursion instead of a search for τ."""
        return -1.0 if _rejected(_curve(claim), evidence, level) else 1.0


@lru_cache(maxsize=8)
def _curve(claim: Claim) -> Callable[[float], float]:
    """A search asks about one claim at several levels and counts, and some curves take long to draw."""
    return claim.detection_curve()


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

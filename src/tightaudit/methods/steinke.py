"""Steinke, Nasr and Jagielski's bound: valid for (ε, δ)-DP under any dependence between canaries."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaincc, expit

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method

_GRID = 40
_HOLDS_UP_TO = 0.5
"""Mechanisms that do better than the formula says are known near 1, and none below 0.89."""


@METHODS.register
@dataclass(frozen=True)
class Steinke(Method):
    """Pr[B ≥ c] + 2nδ·max over i of Pr[c-i ≤ B < c]/i, B ~ Binomial(r, e^ε/(1+e^ε)), c guesses correct.

    A claim that is not (ε, δ)-DP itself implies it at every point of its privacy curve. Each point bounds
    the same probability, so the smallest bound is one too. Near 1 the formula is none (docs/validity.md), so
    what is above ½ is given as 1.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=100, released=100, errors=15)
    >>> round(ta.p_value(evidence, ta.ApproxDP(1.0, 0.01), method="steinke"), 6)
    0.109343
    """

    name = "steinke"
    assumes = Assumptions(
        independent_outcomes=False,
        claims="(ε, δ)-DP; every other trade-off function through its privacy curve",
    )
    reference = "Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run, 2023"

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        n, r, correct = evidence.n, evidence.released, evidence.released - evidence.errors
        if claim.point is not None:
            return _bound(n, r, correct, *claim.point)

        def at(epsilon: float) -> float:
            return _bound(n, r, correct, epsilon, claim.symmetric_delta(epsilon))

        # Past this ε most runs would do as well as this one, and the first term alone is no use.
        last = max(math.log((correct + 1) / (evidence.errors + 1)), 0.0) + 1.0
        grid = np.union1d(np.linspace(0, last, _GRID), claim.curve_kinks[claim.curve_kinks < last])
        values = [at(float(epsilon)) for epsilon in grid]
        best = int(np.argmin(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
        polished = minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
        return min(values[best], float(polished.fun))


def _bound(n: int, r: int, correct: int, epsilon: float, delta: float) -> float:
    if correct == 0:
        return 1.0
    rate = float(expit(epsilon))
    tail = _at_least(correct, r, rate)
    if delta == 0:
        return tail
    formula = tail + 2 * n * delta * _largest_mean_mass(correct, r, rate)
    return formula if formula <= _HOLDS_UP_TO else 1.0


def _at_least(successes: int, trials: int, rate: float) -> float:
    return 1.0 if successes <= 0 else float(betainc(successes, trials - successes + 1, rate))


def _largest_mean_mass(correct: int, trials: int, rate: float) -> float:
    """The largest of Pr[c-i ≤ B < c]/i over 1 ≤ i ≤ c: the mean of the binomial masses just below c.

    Masses rise towards the mode and fall beyond it, so the mean rises with i as long as the next mass is
    above it and falls for good afterwards: bisection finds the turn. (Where masses underflow both means are
    0, and the turn is further on.)
    """
    upper_side = correct - 1 >= trials * rate

    def mean(width: int) -> float:
        # Difference of the smaller tails, so that little is lost to cancellation.
        if upper_side:
            mass = _at_least(correct - width, trials, rate) - _at_least(correct, trials, rate)
        else:
            mass = _below(correct, trials, rate) - _below(correct - width, trials, rate)
        return mass / width

    low, high = 1, correct
    while low < high:
        middle = (low + high) // 2
        if mean(middle + 1) >= mean(middle):
            low = middle + 1
        else:
            high = middle
    return mean(low)


def _below(successes: int, trials: int, rate: float) -> float:
    return 0.0 if successes <= 0 else float(betaincc(successes, trials - successes + 1, rate))

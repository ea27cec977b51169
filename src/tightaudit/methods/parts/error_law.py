"""The linear program over the law of the error count, and its dual solutions: each serves every claim.

Let q_k be the probability of k errors among the released. Averaging a mechanism over relabelled bits and
permuted canaries changes neither its privacy nor q, and the claim then says, for every ε ≥ 0 with z = e^ε,

    Σ_k [ (r-k)·q_k - z·(k+1)·q_{k+1} ]₊ ≤ n·δ(ε).

What is maximised under these constraints is the probability of few errors, or the mean of e^(-λk). All that
is left out below (values of ε, terms of the sums, counts k far away) only loosens the program.
"""

from dataclasses import dataclass

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.parts.chain_program import solve_chain
from tightaudit.support.checks import FloatArray

COARSE, FINE = 24, 48
"""Values of ε in a grid."""
_ROUGHLY, _CLOSELY = 3e-2, 1e-4
"""How far above its optimum the value of a program may be, relative to it."""
_EVEN = 0.05
"""How many values of ε are wanted where none matters, compared with where they matter most."""
_MANY_PIECES = 40
_IRRELEVANT = 1e-3
_LAST = 250.0
"""The largest ε whose e^ε can be computed with; constraints beyond are left out."""
_NO_BUDGET = 1e-9
"""What stands for a δ of 0, compared with one: an interior-point method needs an interior."""


@dataclass(frozen=True)
class Dual:
    """A solution of the dual program, whose feasible set does not contain the claim.

    `rest` + n·Σ weight·δ(ε) is an upper bound on the p-value of *every* claim, and the program's
    own for the claim it was found for.
    """

    epsilons: FloatArray
    weights: FloatArray
    rest: float

    def p_value(self, claim: Claim, n: float) -> float:
        return self.rest + n * float(self.weights @ np.asarray(claim.symmetric_delta(self.epsilons)))


def solved(claim: Claim, evidence: Evidence, at_most: float) -> Dual:
    """The dual that is best for a claim whose p-value is known to be at most this.

    First on a coarse grid of ε, roughly, for the prices; then on one that is fine where prices are.
    """
    n, r, u = evidence.n, evidence.released, evidence.errors
    program = Program(n, r, u)
    coarse = grid_of(claim, n, (r - u) * at_most, COARSE)
    if few_pieces(claim):
        return program.solve(claim, coarse)[0]
    rough = program.solve(claim, coarse, _ROUGHLY)[0]
    fine = program.solve(claim, _denser(rough, claim, FINE))[0]
    return min(rough, fine, key=lambda found: found.p_value(claim, n))


def laplace_dual(claim: Claim, n: int, released: int, rate: float, points: int) -> Dual:
    """The dual that is best for the mean of e^(-rate·errors), as its `p_value`."""
    program = Program(n, released, released // 2, rate)
    return program.solve(claim, grid_of(claim, n, released, points))[0]


def grid_of(claim: Claim, n: float, scale: float, points: int) -> FloatArray:
    """Values of ε from 0 to where n·δ(ε) no longer matters beside `scale`, kinks of the curve among them.

    The sums are convex in z = e^ε, so where δ is linear in z its ends are enough.
    """
    if few_pieces(claim):
        return np.append(0.0, claim.curve_kinks)
    last = 0.01
    while n * claim.symmetric_delta(last) > _IRRELEVANT * scale and last < _LAST:
        last *= 1.25
    kinks = claim.curve_kinks
    if kinks.size and kinks[-1] < last:
        last = float(kinks[-1])
    grid = np.linspace(0, last, points)
    return _with_kinks(grid, claim)


def _denser(dual: Dual, claim: Claim, points: int) -> FloatArray:
    """The same stretch of ε with more values where the dual's prices times δ are.

    What a grid costs between two of its values grows with that product and the square of their distance, so
    the best distances go with its cube root.
    """
    epsilons = dual.epsilons
    wanted = np.cbrt(dual.weights * np.asarray(claim.symmetric_delta(epsilons)))
    wanted = np.maximum(wanted, _EVEN * wanted.max())
    gone = np.append(0.0, np.cumsum(0.5 * (wanted[1:] + wanted[:-1]) * np.diff(epsilons)))
    return _with_kinks(np.interp(np.linspace(0, gone[-1], points), gone, epsilons), claim)


def _with_kinks(grid: FloatArray, claim: Claim) -> FloatArray:
    kinks = claim.curve_kinks
    return grid if kinks.size > _MANY_PIECES else np.union1d(grid, kinks[kinks < grid[-1]])


def few_pieces(claim: Claim) -> bool:
    """Whether the curve's kinks alone make the program exact, at a price worth paying."""
    return claim.piecewise_linear and claim.curve_kinks.size <= _MANY_PIECES


class Program:
    """The linear program on counts k from `low` to `high`, with everything below `low` in one variable.

    Terms from `high` on are left out. Those below `low` are replaced by their sum, which is no larger than
    the sum of their positive parts, with every k there taken as low-1.
    """

    def __init__(self, n: float, r: int, u: int, rate: float | None = None) -> None:
        """To maximise the probability of at most u errors, or with a rate λ the mean of e^(-λk)."""
        self.n, self.r = n, r
        # Past r/2 errors guesses are worse than coins, and u errors come from not far below u. Prices of
        # counts above u fall so fast that those left out changed no p-value by a hundredth of a percent.
        spread = np.sqrt(u + 1)
        self.low = max(0, int(u - 8 * spread) - 4) if rate is None else 0
        self.high = min(r, int(max(r / 2, u) + 4 * np.sqrt(r)) + 4, int(u + 20 * spread) + 20)
        counts = np.arange(self.low, self.high + 1)
        # What lies beyond `high` is worth no more than that.
        self.worth = (counts <= u).astype(float) if rate is None else np.exp(-rate * counts)

    def solve(
        self, claim: Claim, epsilons: FloatArray, close_enough: float = _CLOSELY
    ) -> tuple[Dual, FloatArray]:
        """A dual whose value is so close to the optimum, and the law q_low … q_high it belongs to."""
        r, low = self.r, self.low
        epsilons = epsilons[epsilons <= _LAST]
        # Rows are divided by e^ε, so that none is much larger than another.
        shrink = np.exp(-epsilons)
        k = np.arange(low, self.high, dtype=np.float64)
        up, down, worth = shrink * (r - k)[:, None], k + 1.0, self.worth
        if low > 0:
            up = np.vstack([shrink * (r - low + 1) - (low - 1), up])
            down, worth = np.append(float(low), down), np.append(1.0, worth)
        delta = np.asarray(claim.symmetric_delta(epsilons))
        budget = self.n * shrink * np.maximum(delta, _NO_BUDGET)
        found = solve_chain(up, down, worth, budget, close_enough)
        law = found.law[1:] if low > 0 else found.law
        return Dual(epsilons, found.prices * shrink, found.rest), law

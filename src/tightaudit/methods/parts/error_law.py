"""The linear program over the law of the error count, and its dual solutions: each serves every claim.

Let q_k be the probability of k errors among the released. Averaging a mechanism over relabelled bits and
permuted canaries changes neither its privacy nor q, and the claim then says, for every ε ≥ 0 with z = e^ε,

    Σ_k [ (r-k)·q_k - z·(k+1)·q_{k+1} ]₊ ≤ n·δ(ε).

What is maximised under these constraints is the probability of few errors, or the mean of e^(-λk). All that
is left out below (values of ε, terms of the sums, counts k far away) only loosens the program.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import coo_array

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence
from tightaudit.support.checks import FloatArray

COARSE, FINE = 16, 48
"""Values of ε in a grid."""
_GUESSED = 160
"""Released guesses of the small program that guesses the losses."""
_SMALL = 0.01
"""P-values below which they have to be known better."""
_BAND = 1.5
_MANY_PIECES = 40
_TOLERANCE = 1e-10
_IRRELEVANT = 1e-3


@dataclass(frozen=True)
class Dual:
    """A solution of the dual program, whose feasible set does not contain the claim.

    `rest` + n·Σ weight·δ(ε) is an upper bound on the p-value of *every* claim, and the optimal one for the
    claim it was found for.
    """

    epsilons: FloatArray
    weights: FloatArray
    rest: float

    def p_value(self, claim: Claim, n: float) -> float:
        return self.rest + n * float(self.weights @ np.asarray(claim.symmetric_delta(self.epsilons)))


def solved(claim: Claim, evidence: Evidence, at_most: float, guessed: int = _GUESSED) -> Dual:
    """The dual that is best for a claim whose p-value is known to be at most this.

    First on a coarse grid of ε, for the losses of the optimal law; those are about the same functions of k/r
    whatever r is, unless the p-value is small, so that a program of `guessed` released guesses will do. Then
    on a finer grid, where a term needs its positive part only near its own loss: further down it is its
    linear self, further up it is 0. Wherever the losses were guessed wrongly the program is only looser.
    """
    n, r, u = evidence.n, evidence.released, evidence.errors
    program = Program(n, r, u)
    if few_pieces(claim):
        return program.solve(claim, grid_of(claim, n, 1.0, COARSE))[0]
    scale = min(1.0, guessed / r)
    small = program if scale == 1 else Program(scale * n, guessed, min(round(scale * u), guessed - 1))
    coarse = grid_of(claim, small.n, (small.r - small.u) * at_most, COARSE)
    dual, law = small.solve(claim, coarse)
    losses = small.smoothed_losses(law)
    if losses is not None:
        losses = np.interp((program.k + 0.5) / r, (small.k + 0.5) / small.r, losses)
        most = at_most if scale < 1 else dual.p_value(claim, n)
        finer = grid_of(claim, n, (r - u) * most, FINE)
        fine = program.solve(claim, finer, losses, _BAND * (coarse[1] - coarse[0]))[0]
        if scale == 1:
            return min(dual, fine, key=lambda found: found.p_value(claim, n))
        if fine.p_value(claim, n) > _SMALL:
            return fine
    return dual if scale == 1 else solved(claim, evidence, at_most, guessed=r)


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
    while n * claim.symmetric_delta(last) > _IRRELEVANT * scale and last < 600:
        last *= 1.25
    kinks = claim.curve_kinks
    if kinks.size and kinks[-1] < last:
        last = float(kinks[-1])
    grid = np.linspace(0, last, points)
    return grid if kinks.size > _MANY_PIECES else np.union1d(grid, kinks[kinks < last])


def few_pieces(claim: Claim) -> bool:
    """Whether the curve's kinks alone make the program exact, at a price worth paying."""
    return claim.piecewise_linear and claim.curve_kinks.size <= _MANY_PIECES


class Program:
    """The linear program on counts k from `low` to `high`, with everything below `low` in one variable.

    Variables: the mass below `low`, q_low … q_high, then one slack per term that needs its positive part.
    Terms from `high` on are left out. Those below `low` are replaced by their sum, which is no larger than
    the sum of their positive parts, with every k there taken as low-1.
    """

    def __init__(self, n: float, r: int, u: int, rate: float | None = None) -> None:
        """To maximise the probability of at most u errors, or with a rate λ the mean of e^(-λk)."""
        self.n, self.r, self.u = n, r, u
        # Past r/2 errors guesses are worse than coins, and u errors come from not far below u. Prices of
        # counts above u fall so fast that those left out changed no p-value by a hundredth of a percent.
        spread = np.sqrt(u + 1)
        self.low = max(0, int(u - 8 * spread) - 4) if rate is None else 0
        self.high = min(r, int(max(r / 2, u) + 4 * np.sqrt(r)) + 4, int(u + 20 * spread) + 20)
        self.k = np.arange(self.low, self.high)
        worth = np.arange(self.low, self.high + 1) <= u
        if rate is not None:
            worth = np.exp(-rate * np.arange(self.high + 1))
        self.worth = np.append(1.0, worth)
        """Of the mass below `low`, then of each count; what lies beyond `high` is worth no more than that."""

    def smoothed_losses(self, law: FloatArray) -> FloatArray | None:
        """The losses ln((r-k)·q_k / ((k+1)·q_{k+1})) of a solution, made to rise up to u and fall after it.

        So they do at the optimum; a vertex of a coarse program jumps around it, and says nothing where it
        puts no mass. None if it puts next to none anywhere that matters.
        """
        ahead, behind = (self.r - self.k) * law[:-1], (self.k + 1) * law[1:]
        weight = ahead + behind
        known = (ahead > 0) & (behind > 0) & (weight > 1e-7 * weight.max())
        if not known.any():
            return None
        losses = np.log(ahead[known]) - np.log(behind[known])
        losses = np.interp(self.k, self.k[known], losses)
        weight = np.where(known, weight, 1e-12 * weight.max())
        peak = self.u - self.low + 1
        rising = isotonic_regression(losses[:peak], weights=weight[:peak]).x
        if peak >= losses.size:
            return rising
        falling = isotonic_regression(losses[peak:], weights=weight[peak:], increasing=False).x
        return np.concatenate([rising, falling])

    def solve(
        self, claim: Claim, epsilons: FloatArray, losses: FloatArray | None = None, band: float = 0.0
    ) -> tuple[Dual, FloatArray]:
        """The optimal dual, and the law q_low … q_high that attains its value.

        Terms have their positive parts everywhere, or only where ε is within the band around their losses.
        """
        slack = np.ones((epsilons.size, self.k.size), dtype=np.bool_)
        linear = ~slack
        if losses is not None:
            slack, linear = np.abs(epsilons[:, None] - losses) <= band, epsilons[:, None] < losses - band
        n, r, low = self.n, self.r, self.low
        counts = self.high - low + 2
        row_of, term = np.nonzero(slack)
        slacks = row_of.size
        shrink = np.exp(-epsilons)
        k = self.k[term]
        # One row per slack: e^-ε·(r-k)·q_k - (k+1)·q_{k+1} - slack ≤ 0.
        index = np.arange(slacks)
        rows = [index, index, index]
        columns = [term + 1, term + 2, counts + index]
        values = [shrink[row_of] * (r - k), -(k + 1.0), -np.ones(slacks)]
        # One row per ε: slacks and linear terms sum to at most n·δ(ε)·e^-ε.
        linear_row, linear_term = np.nonzero(linear)
        k = self.k[linear_term]
        rows += [slacks + row_of, slacks + linear_row, slacks + linear_row]
        columns += [counts + index, linear_term + 1, linear_term + 2]
        values += [np.ones(slacks), shrink[linear_row] * (r - k), -(k + 1.0)]
        budget = n * np.asarray(claim.symmetric_delta(epsilons)) * shrink
        width = counts + slacks
        if low > 0:
            # The mass below `low`, its own slack per ε.
            index = np.arange(epsilons.size)
            below_row = slacks + epsilons.size + index
            rows += [below_row, below_row, below_row, slacks + index]
            columns += [0 * index, 0 * index + 1, width + index, width + index]
            values += [
                shrink * (r - low + 1) - (low - 1),
                np.full(epsilons.size, -float(low)),
                -np.ones(epsilons.size),
                np.ones(epsilons.size),
            ]
            width += epsilons.size
        bounds_above = np.concatenate([np.zeros(slacks), budget, np.zeros(epsilons.size if low > 0 else 0)])
        matrix = coo_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(bounds_above.size, width),
        )
        objective = np.zeros(width)
        objective[:counts] = -self.worth
        upper = np.full(width, np.inf)
        upper[0] = 1.0 if low > 0 else 0.0
        total = np.zeros(width)
        total[:counts] = 1.0
        for presolve in (False, True):  # without, it takes half the time, and fails now and then
            result = linprog(  # type: ignore[call-overload]  # the stubs do not know sparse matrices
                objective,
                A_ub=matrix.tocsr(),
                b_ub=bounds_above,
                A_eq=coo_array(total[None, :]).tocsr(),
                b_eq=[1.0],
                bounds=np.column_stack([np.zeros(width), upper]),
                method="highs",
                options={
                    "presolve": presolve,
                    "primal_feasibility_tolerance": _TOLERANCE,
                    "dual_feasibility_tolerance": _TOLERANCE,
                },
            )
            if result.status == 0:
                break
        if result.status != 0:
            raise ArithmeticError(f"the linear program of any-dependence was not solved: {result.message}")
        prices = -result.ineqlin.marginals[slacks : slacks + epsilons.size] * shrink
        dual = Dual(epsilons, prices, -float(result.eqlin.marginals[0]))
        # By weak duality the dual value bounds the optimum from above, the primal one from below; a
        # solver's tolerance may put either on the wrong side.
        short = max(0.0, float(-result.fun) - dual.p_value(claim, n))
        rounded = replace(dual, rest=dual.rest + short + 10 * _TOLERANCE)
        return rounded, np.asarray(result.x[1:counts])

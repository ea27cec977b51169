"""The best p-value there is when nothing is assumed about how canaries depend on each other.

Let q_k be the probability of k errors among the released. Averaging a mechanism over relabelled bits and
permuted canaries changes neither its privacy nor q, and the claim then says, for every ε ≥ 0 with z = e^ε,

    Σ_k [ (r-k)·q_k - z·(k+1)·q_{k+1} ]₊ ≤ n·δ(ε).

The largest Σ_{k≤u} q_k under these constraints is the p-value: a linear program (docs/any-dependence.md).
Everything left out of the program below (values of ε, terms of the sums, counts k far away) only loosens it,
so that the p-value can only rise.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import coo_array

from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method, in_normal_quantiles
from tightaudit.methods.exact import Exact
from tightaudit.methods.fdp_recursion import FdpRecursion
from tightaudit.methods.steinke import Steinke
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray

LARGEST_PROGRAM = 4000
"""Released guesses above which the program would take more than a few seconds."""
QUICK_PROGRAM = 400
"""The same where several programs share the time of one."""
_COARSE, _FINE = 16, 48
_GUESSED = 160
"""Released guesses of the small program that guesses the losses."""
_SMALL = 0.01
"""P-values below which they have to be known better."""
_MOST_PROGRAMS, _AHEAD, _NEAR = 6, 0.01, 0.02
"""Programs in a search, how finely its start is found, and how near a program has to be to its crossing."""
_BAND = 1.5
_MANY_PIECES = 40
_TOLERANCE = 1e-10
_IRRELEVANT = 1e-3


@METHODS.register
@dataclass(frozen=True)
class AnyDependence(Method):
    """The largest probability of so few errors that any mechanism with the claimed privacy can have.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=100, released=100, errors=15)
    >>> round(ta.p_value(evidence, ta.ApproxDP(1.0, 1e-3), method="any-dependence"), 5)
    0.00561
    """

    largest_program: int = LARGEST_PROGRAM
    """With more guesses released than this, the simpler methods answer instead."""
    name = "any-dependence"
    assumes = Assumptions(independent_outcomes=False)
    resolution = 1e-4
    reference = "Linear program over the law of the error count; docs/any-dependence.md"

    def __post_init__(self) -> None:
        checks.count("largest_program", self.largest_program)

    @property
    def quick(self) -> FdpRecursion:
        return FdpRecursion()

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        recursion, independent = FdpRecursion().p_value(claim, evidence), Exact().p_value(claim, evidence)
        return self._between(independent, recursion, claim, evidence)

    def excess(self, claim: Claim, evidence: Evidence, level: float) -> float:
        """Positive if not rejected; the program is solved only where simpler bounds leave it open.

        It lies below the recursion, and above the exact law of independent outcomes, which are one way
        of depending.
        """
        recursion = FdpRecursion().p_value(claim, evidence)
        if recursion <= level:
            return in_normal_quantiles(recursion, level)
        independent = Exact().p_value(claim, evidence)
        if independent > level:
            return in_normal_quantiles(independent, level)
        return in_normal_quantiles(self._between(independent, recursion, claim, evidence), level)

    def remark(self, released: int) -> str | None:
        if released <= self.largest_program:
            return "solved as a linear program"
        return (
            f"more than {self.largest_program} released, where the linear program gets too slow: the smaller "
            "of fdp-recursion and steinke was taken, both valid under any dependence"
        )

    def last_rejected(self, family: Family, evidence: Evidence, level: float) -> float:
        """The largest leak that is rejected, from one or two programs.

        A program's dual solution bounds the p-value of every claim. So where it crosses the level is a valid
        bound, and off by the square of how far the program was from there.
        """
        recursion = FdpRecursion()

        def rough(claim: Claim) -> float:
            return recursion.excess(claim, evidence, level)

        if not self._solvable(evidence) or rough(family.most_private) > 0:
            return super().last_rejected(family, evidence, level)
        leak = family.last_rejected(rough, _AHEAD)
        if family.leaking(leak).curve_kinks.size:
            # A dual stands on the kinks of its claim, and says little about one with kinks elsewhere.
            return family.last_rejected(
                lambda claim: self.excess(claim, evidence, level), self.resolution, rejected=leak
            )
        duals: list[_Dual] = []

        def excess(claim: Claim) -> float:
            p = min(dual.p_value(claim, evidence.n) for dual in duals)
            return in_normal_quantiles(min(max(p, 0.0), 1.0), level)

        place = min((1 + 2 * _AHEAD) * leak, 0.5 * (leak + family.upper))
        for _ in range(_MOST_PROGRAMS):
            claim = family.leaking(place)
            duals.append(_solved(claim, evidence, recursion.p_value(claim, evidence)))
            if excess(family.leaking(leak)) > 0:
                return family.last_rejected(rough, self.resolution, rejected=leak)
            leak = family.last_rejected(excess, self.resolution / 2, rejected=leak)
            if abs(leak - place) <= _NEAR * place:
                break
            place = leak
        return leak

    def _solvable(self, evidence: Evidence) -> bool:
        """Whether the program is small enough, and has anything to say."""
        return evidence.released <= self.largest_program and evidence.errors < evidence.released

    def _between(self, independent: float, recursion: float, claim: Claim, evidence: Evidence) -> float:
        """The program's value between the p-values of `exact` and of the other valid methods."""
        others = min(recursion, Steinke().p_value(claim, evidence))
        if others == 0 or not self._solvable(evidence):
            return others
        value = _solved(claim, evidence, others).p_value(claim, evidence.n)
        # The solver works to a tolerance; the exact law of independent outcomes is a floor without.
        return min(others, max(independent, value))


@dataclass(frozen=True)
class _Dual:
    """A solution of the dual program, whose feasible set does not contain the claim.

    `rest` + n·Σ weight·δ(ε) is an upper bound on the p-value of *every* claim, and the optimal one for the
    claim it was found for.
    """

    epsilons: FloatArray
    weights: FloatArray
    rest: float

    def p_value(self, claim: Claim, n: float) -> float:
        return self.rest + n * float(self.weights @ np.asarray(claim.symmetric_delta(self.epsilons)))


def _solved(claim: Claim, evidence: Evidence, at_most: float, guessed: int = _GUESSED) -> _Dual:
    """The dual that is best for a claim whose p-value is known to be at most this.

    First on a coarse grid of ε, for the losses of the optimal law; those are about the same functions of k/r
    whatever r is, unless the p-value is small, so that a program of `guessed` released guesses will do. Then
    on a finer grid, where a term needs its positive part only near its own loss: further down it is its
    linear self, further up it is 0. Wherever the losses were guessed wrongly the program is only looser.
    """
    n, r, u = evidence.n, evidence.released, evidence.errors
    program = _Program(n, r, u)
    if _few_pieces(claim):
        return program.solve(claim, _grid(claim, n, 1.0, _COARSE))[0]
    scale = min(1.0, guessed / r)
    small = program if scale == 1 else _Program(scale * n, guessed, min(round(scale * u), guessed - 1))
    coarse = _grid(claim, small.n, (small.r - small.u) * at_most, _COARSE)
    dual, law = small.solve(claim, coarse)
    losses = small.smoothed_losses(law)
    if losses is not None:
        losses = np.interp((program.k + 0.5) / r, (small.k + 0.5) / small.r, losses)
        most = at_most if scale < 1 else dual.p_value(claim, n)
        finer = _grid(claim, n, (r - u) * most, _FINE)
        fine = program.solve(claim, finer, losses, _BAND * (coarse[1] - coarse[0]))[0]
        if scale == 1:
            return min(dual, fine, key=lambda found: found.p_value(claim, n))
        if fine.p_value(claim, n) > _SMALL:
            return fine
    return dual if scale == 1 else _solved(claim, evidence, at_most, guessed=r)


def _grid(claim: Claim, n: float, scale: float, points: int) -> FloatArray:
    """Values of ε from 0 to where n·δ(ε) no longer matters beside `scale`, kinks of the curve among them.

    The sums are convex in z = e^ε, so where δ is linear in z its ends are enough.
    """
    if _few_pieces(claim):
        return np.append(0.0, claim.curve_kinks)
    last = 0.01
    while n * claim.symmetric_delta(last) > _IRRELEVANT * scale and last < 600:
        last *= 1.25
    kinks = claim.curve_kinks
    if kinks.size and kinks[-1] < last:
        last = float(kinks[-1])
    grid = np.linspace(0, last, points)
    return grid if kinks.size > _MANY_PIECES else np.union1d(grid, kinks[kinks < last])


def _few_pieces(claim: Claim) -> bool:
    """Whether the curve's kinks alone make the program exact, at a price worth paying."""
    return claim.piecewise_linear and claim.curve_kinks.size <= _MANY_PIECES


class _Program:
    """The linear program on counts k from `low` to `high`, with everything below `low` in one variable.

    Variables: the mass below `low`, q_low … q_high, then one slack per term that needs its positive part.
    Terms from `high` on are left out. Those below `low` are replaced by their sum, which is no larger than
    the sum of their positive parts, with every k there taken as low-1.
    """

    def __init__(self, n: float, r: int, u: int) -> None:
        self.n, self.r, self.u = n, r, u
        # Past r/2 errors guesses are worse than coins, and u errors come from not far below u. Prices of
        # counts above u fall so fast that those left out changed no p-value by a hundredth of a percent.
        spread = np.sqrt(u + 1)
        self.low = max(0, int(u - 8 * spread) - 4)
        self.high = min(r, int(max(r / 2, u) + 4 * np.sqrt(r)) + 4, int(u + 20 * spread) + 20)
        self.k = np.arange(self.low, self.high)

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
    ) -> tuple[_Dual, FloatArray]:
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
        objective[: self.u - low + 2] = -1.0
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
        dual = _Dual(epsilons, prices, -float(result.eqlin.marginals[0]))
        # By weak duality the dual value bounds the optimum from above, the primal one from below; a
        # solver's tolerance may put either on the wrong side.
        short = max(0.0, float(-result.fun) - dual.p_value(claim, n))
        rounded = replace(dual, rest=dual.rest + short + 10 * _TOLERANCE)
        return rounded, np.asarray(result.x[1:counts])

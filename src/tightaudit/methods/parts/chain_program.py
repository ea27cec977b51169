"""The linear program over laws on a chain of states, by an interior-point method made for it.

Maximise Σ worth·q over laws q such that for every column e

    Σ_k [ up_ke·q_k - down_k·q_{k+1} ]₊ ≤ budget_e.

Written as a linear program every term has a slack of its own. But a term touches two neighbours only, so a
step of Newton's method comes down to a tridiagonal system with one dense row per column: it costs
states·columns², where a solver of any program sees states·columns unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cho_solve_banded, cholesky_banded

from tightaudit.support.checks import FloatArray

_MOST_STEPS = 200
_ALMOST = 0.99
"""How much of the way to where a variable would be 0 a step goes."""

_Side = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""The primal or the dual variables, partners at the same place: all are positive, and the products of
partners go to 0. Primal: the law, the slacks above and below 0 of each term, what is left of each budget.
Dual: what each state is overpriced by, how far a term's price is below its column's, and above 0, the prices
of columns."""


@dataclass(frozen=True)
class Solution:
    """Prices that satisfy the dual program exactly, and a law that nearly satisfies the primal one.

    Σ budget·prices + rest is an upper bound on the optimum, for these and for any other budgets.
    """

    prices: FloatArray
    rest: float
    law: FloatArray

    def value(self, budget: FloatArray) -> float:
        return self.rest + float(budget @ self.prices)


def solve_chain(
    up: FloatArray, down: FloatArray, worth: FloatArray, budget: FloatArray, close_enough: float
) -> Solution:
    """Prices whose value is above the optimum by at most this much of it, or the best that were found.

    If the arithmetic breaks down, or steps become too many, the prices are worse, and hold all the same.
    """
    # Without prices the total alone has to pay for the state that is worth most.
    best = Solution(np.zeros_like(budget), float(worth.max()), np.full(worth.size, 1 / worth.size))
    with np.errstate(divide="raise", invalid="raise", over="raise", under="ignore"):
        try:
            point = _Point.start(_Chain(up, down, worth, budget))
            for _ in range(_MOST_STEPS):
                point = point.next()
                found = point.repaired()
                best = min(best, found, key=lambda solution: solution.value(budget))
                added = found.rest - point.rest
                if point.gap + added <= close_enough * best.value(budget):
                    break
        except (LinAlgError, FloatingPointError):
            pass
    return best


class _Chain:
    """The program, and the linear maps in it."""

    def __init__(self, up: FloatArray, down: FloatArray, worth: FloatArray, budget: FloatArray) -> None:
        self.up, self.down = up, np.broadcast_to(down[:, None], up.shape)
        self.worth, self.budget = worth, budget
        self.products = 2 * up.size + worth.size + budget.size

    def terms(self, law: FloatArray) -> FloatArray:
        return self.up * law[:-1, None] - self.down * law[1:, None]

    def priced(self, prices: FloatArray) -> FloatArray:
        """What terms of these prices add up to, state by state: the transpose of `terms`."""
        total = np.zeros(self.worth.size)
        total[:-1] += np.einsum("ke,ke->k", self.up, prices)
        total[1:] -= np.einsum("ke,ke->k", self.down, prices)
        return total

    def priced_sizes(self, prices: FloatArray) -> FloatArray:
        """The same with all parts taken as positive: what rounding is relative to."""
        total = np.zeros(self.worth.size)
        total[:-1] += np.einsum("ke,ke->k", np.abs(self.up), prices)
        total[1:] += np.einsum("ke,ke->k", self.down, prices)
        return total


class _Point:
    """A point inside, with the residuals of the equations that it does not satisfy yet."""

    def __init__(self, chain: _Chain, primal: _Side, dual: _Side, rest: float) -> None:
        self.chain, self.primal, self.dual, self.rest = chain, primal, dual, rest
        law, above, below, left = primal
        over, under_column, price, column = dual
        self.off_terms = above - below - chain.terms(law)
        self.off_prices = column - price - under_column
        self.off_states = over + chain.worth - rest - chain.priced(price)
        self.off_budgets = chain.budget - above.sum(0) - left
        self.off_total = 1.0 - float(law.sum())
        self.gap = sum(float(np.vdot(one, other)) for one, other in zip(primal, dual, strict=True))

    @classmethod
    def start(cls, chain: _Chain) -> _Point:
        """Inside all constraints, or nearly, with products that do not differ too much."""
        rows = chain.up.shape[0]
        spare = chain.budget / (2 * rows)
        # Each state so much rarer than the next that no term is positive, down to where it does not matter.
        steepest = np.max(chain.up, axis=1)
        falls = np.log(np.maximum(steepest, 1e-300)) - np.log(chain.down[:, 0])
        heights = -np.append(np.cumsum(np.maximum(falls, 0.0)[::-1])[::-1], 0.0)
        floor = np.min(spare / np.max(np.abs(chain.up), axis=0)) / 2
        law = np.maximum(np.exp(heights), floor)
        law /= law.sum()
        terms = chain.terms(law)
        above = np.maximum(terms, 0.0) + spare
        below = above - terms
        left = np.maximum(chain.budget - above.sum(0), chain.budget / 4)
        product = 1 / chain.products
        column = 2 * product / spare
        price = column * above / (above + below)
        under_column = column * below / (above + below)
        priced = chain.priced(price)
        rest = max(1.0, 1.1 * float(np.max(chain.worth - priced)))
        over = np.maximum(rest + priced - chain.worth, product / law)
        return cls(chain, (law, above, below, left), (over, under_column, price, column), rest)

    def repaired(self) -> Solution:
        """Prices that hold for certain: what any state is underpriced by, or may be, is added to all."""
        chain, (_, _, price, column) = self.chain, self.dual
        price = np.minimum(price, column)
        sizes = chain.priced_sizes(price)
        rounding = 2 * np.finfo(float).eps * column.size * (1 + abs(self.rest) + sizes)
        short = float(np.max(chain.worth - self.rest - chain.priced(price) + rounding))
        return Solution(column, self.rest + max(0.0, short), self.primal[0])

    def next(self) -> _Point:
        """One step of Mehrotra's method, which looks straight ahead first to see how far it can aim."""
        newton = _Newton(self)
        products = [one * other for one, other in zip(self.primal, self.dual, strict=True)]
        ahead = newton.direction([-product for product in products])
        reached = self._moved(*ahead, 1.0).gap
        target = self.gap / self.chain.products * (reached / self.gap) ** 3
        d_primal, d_dual, _ = ahead
        wanted = [target - v - dp * dd for v, dp, dd in zip(products, d_primal, d_dual, strict=True)]
        return self._moved(*newton.direction(wanted), _ALMOST)

    def _moved(self, d_primal: _Side, d_dual: _Side, d_rest: float, share: float) -> _Point:
        """The point after this share of as much of a step as leaves every variable positive."""
        primal, dual = share * _longest(self.primal, d_primal), share * _longest(self.dual, d_dual)
        return _Point(
            self.chain,
            _added(self.primal, primal, d_primal),
            _added(self.dual, dual, d_dual),
            self.rest + dual * d_rest,
        )


class _Newton:
    """The equations of a step from a point, factorised: a tridiagonal system bordered by the columns."""

    def __init__(self, point: _Point) -> None:
        self.point = point
        chain = point.chain
        law, above, below, left = point.primal
        over, under_column, price, column = point.dual
        self.by_above, self.by_below = above / under_column, below / price
        self.weight = 1 / (self.by_above + self.by_below)
        self.share = self.by_above * self.weight
        rows, columns = chain.up.shape
        banded = np.zeros((2, rows + 1))
        banded[1] = over / law
        banded[1, :-1] += np.einsum("ke,ke,ke->k", chain.up, chain.up, self.weight)
        banded[1, 1:] += np.einsum("ke,ke,ke->k", chain.down, chain.down, self.weight)
        banded[0, 1:] = -np.einsum("ke,ke,ke->k", chain.up, chain.down, self.weight)
        self.states = cholesky_banded(banded)
        border = np.zeros((rows + 1, columns + 1))
        border[:-1, :-1] += chain.up * self.share
        border[1:, :-1] -= chain.down * self.share
        border[:, -1] = 1.0
        self.border, self.solved = border, cho_solve_banded((self.states, False), border)
        dense = border.T @ self.solved
        places = np.arange(columns)
        dense[places, places] += (self.share * self.by_below).sum(0) + left / column
        self.dense = cho_factor(dense)

    def direction(self, wanted: list[FloatArray]) -> tuple[_Side, _Side, float]:
        """The step after which, to first order, products have changed by this much and equations hold."""
        point, chain = self.point, self.point.chain
        law, _, _, left = point.primal
        over, under_column, price, column = point.dual
        at_states, at_above, at_below, at_columns = wanted
        at_above, at_below = at_above / under_column, at_below / price
        constant = self.by_above * point.off_prices - at_above
        d_price = (constant + at_below - point.off_terms) * self.weight
        known = point.off_states + at_states / law - chain.priced(d_price)
        known_columns = point.off_budgets + constant.sum(0) - (self.by_above * d_price).sum(0)
        known_columns -= at_columns / column
        reduced = cho_solve_banded((self.states, False), known)
        border = cho_solve(self.dense, self.border.T @ reduced - np.append(known_columns, point.off_total))
        d_law = reduced - self.solved @ border
        d_column, d_rest = border[:-1], float(border[-1])
        d_price += chain.terms(d_law) * self.weight + self.share * d_column
        d_under = d_column - d_price + point.off_prices
        d_primal = (
            d_law,
            at_above - self.by_above * d_under,
            at_below - self.by_below * d_price,
            (at_columns - left * d_column) / column,
        )
        return d_primal, ((at_states - over * d_law) / law, d_under, d_price, d_column), d_rest


def _longest(side: _Side, step: _Side) -> float:
    """How much of a step, at most all, keeps every variable positive."""
    steepest = max(float(np.max(-change / value)) for value, change in zip(side, step, strict=True))
    return 1.0 if steepest <= 1 else 1 / steepest


def _added(side: _Side, share: float, step: _Side) -> _Side:
    one, two, three, four = (value + share * change for value, change in zip(side, step, strict=True))
    return one, two, three, four

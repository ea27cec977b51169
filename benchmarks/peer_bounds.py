"""Bounds as others compute them, from the same scores: what `peers.py` measures tightaudit against.

JAX-Privacy is called the way its users call it. The textbook loops follow the formulas of Steinke, Nasr and
Jagielski and of Mahloujifar, Melis and Chaudhuri term by term, one call of `scipy.stats` per term, as in the
listing of the first. The quadratures stand in for research code: everything tabulated finely enough that
nobody has to think about where the nodes should lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jax_privacy.auditing import CanaryScoreAuditor, Explicit
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import expit, ndtr

import tightaudit as ta
from tightaudit.support.checks import BoolArray, FloatArray

DELTA, LEVEL = 1e-5, 0.05
HALVINGS = 30
CHANNEL_POINTS, NODES = 400_000, 20_001
OUTSIDE = 1e-15
"""The part of a Beta law that the stand-in leaves out at either end."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """Scores and coins of one run, a fifth of them to be released."""

    scores: FloatArray
    members: BoolArray
    n: int = field(init=False)
    released: int = field(init=False)
    threshold: float = field(init=False)
    """The lowest of the `released` highest scores: releasing by it is releasing that many."""

    def __post_init__(self) -> None:
        n = self.scores.size
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "released", n // 5)
        lowest = np.partition(self.scores, n - self.released)[n - self.released]
        object.__setattr__(self, "threshold", float(lowest))


Bound = Callable[[], float]
"""The second half of the work, from counts to ε; the first half is to make one of these from the canaries."""


def jax_privacy_auditor(canaries: Canaries) -> CanaryScoreAuditor:
    return CanaryScoreAuditor(canaries.scores[canaries.members], canaries.scores[~canaries.members])


def jax_privacy_one_run(canaries: Canaries) -> Bound:
    auditor, fixed = jax_privacy_auditor(canaries), Explicit(canaries.threshold)
    return lambda: float(auditor.epsilon_one_run(LEVEL, DELTA, threshold_strategy=fixed))


def jax_privacy_one_run_default(canaries: Canaries) -> Bound:
    auditor = jax_privacy_auditor(canaries)
    return lambda: float(auditor.epsilon_one_run(LEVEL, DELTA))


def jax_privacy_fdp(canaries: Canaries) -> Bound:
    auditor, fixed = jax_privacy_auditor(canaries), Explicit(canaries.threshold)
    return lambda: float(auditor.epsilon_one_run_fdp(LEVEL, DELTA, threshold_strategy=fixed))


def jax_privacy_fdp_default(canaries: Canaries) -> Bound:
    auditor = jax_privacy_auditor(canaries)
    return lambda: float(auditor.epsilon_one_run_fdp(LEVEL, DELTA))


def textbook_steinke(canaries: Canaries) -> Bound:
    n, r, correct = canaries.n, canaries.released, highest_correct(canaries)
    return lambda: largest_rejected(lambda epsilon: steinke_p_value(n, r, correct, epsilon, DELTA) <= LEVEL)


def textbook_recursion(canaries: Canaries) -> Bound:
    n, r, correct = canaries.n, canaries.released, highest_correct(canaries)
    return lambda: gaussian_epsilon(largest_rejected(lambda mu: recursion_rejects(n, r, correct, mu, LEVEL)))


def quadrature_exact(canaries: Canaries) -> Bound:
    n, r, errors = canaries.n, canaries.released, errors_at_both_ends(canaries)
    return lambda: gaussian_epsilon(largest_rejected(lambda mu: tabulated_p_value(n, r, errors, mu) <= LEVEL))


def quadrature_by_rank(canaries: Canaries) -> Bound:
    n, r, errors = canaries.n, canaries.released, errors_at_both_ends(canaries)

    def bound() -> float:
        ranks = [beta_nodes(rank, n - rank + 1) for rank in range(n - r + 1, n + 1)]
        return gaussian_epsilon(largest_rejected(lambda mu: chernoff_p_value(ranks, errors, mu) <= LEVEL))

    return bound


def highest_correct(canaries: Canaries) -> int:
    """How many of the highest scores belong to members."""
    order = np.argsort(canaries.scores)
    return int(canaries.members[order[-canaries.released :]].sum())


def errors_at_both_ends(canaries: Canaries) -> int:
    """Wrong guesses when half of the released are the highest scores and half the lowest."""
    order, side = np.argsort(canaries.scores), canaries.released // 2
    low, high = canaries.members[order[:side]], canaries.members[order[-side:]]
    return int(low.sum() + (~high).sum())


def largest_rejected(rejected: Callable[[float], bool]) -> float:
    """The rejected end of a plain bisection."""
    low, high = 0.0, 1.0
    while rejected(high):
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def gaussian_epsilon(mu: float) -> float:
    return ta.Gaussian(mu).epsilon(DELTA) if mu > 0 else 0.0


def steinke_p_value(n: int, r: int, correct: int, epsilon: float, delta: float) -> float:
    rate = 1 / (1 + math.exp(-epsilon))
    mass_below, largest_mean = 0.0, 0.0
    for i in range(1, correct + 1):
        mass_below += stats.binom.pmf(correct - i, r, rate)
        largest_mean = max(largest_mean, mass_below / i)
    return min(1.0, float(stats.binom.sf(correct - 1, r, rate)) + 2 * n * delta * largest_mean)


def recursion_rejects(n: int, r: int, correct: int, mu: float, level: float) -> bool:
    hits, alarms = level * correct / n, level * (r - correct) / n
    for i in range(correct - 1, -1, -1):
        raised = max(alarms, float(stats.norm.cdf(stats.norm.ppf(hits) - mu)))
        hits = min(1.0, hits + i / (r - i) * (raised - alarms))
        alarms = raised
    return hits + alarms > r / n


def tabulated_channel(mu: float) -> tuple[FloatArray, FloatArray]:
    """Quantiles of the score |L| of the Gaussian channel, and the error probability at each."""
    scores = np.linspace(0, mu / 2 + 10, CHANNEL_POINTS)
    below = 1 - ndtr(mu / 2 - scores) - ndtr(-mu / 2 - scores)
    quantiles = (np.arange(CHANNEL_POINTS) + 0.5) / CHANNEL_POINTS
    return quantiles, expit(-mu * np.interp(quantiles, below, scores))


def beta_nodes(a: float, b: float) -> tuple[FloatArray, FloatArray]:
    """Evenly spaced nodes over a Beta law and weights that sum to 1."""
    law = stats.beta(a, b)
    nodes = np.linspace(law.ppf(OUTSIDE), law.isf(OUTSIDE), NODES)
    density = law.pdf(nodes)
    return nodes, density / density.sum()


def tabulated_p_value(n: int, r: int, errors: int, mu: float) -> float:
    """The exact law of the error count, mixed over the quantile of the best score that was not released."""
    quantiles, error = tabulated_channel(mu)
    mass_above = np.cumsum(error[::-1])[::-1] / CHANNEL_POINTS
    cut, weights = beta_nodes(n - r, r + 1)
    lower_edges = quantiles - 0.5 / CHANNEL_POINTS
    mean_error = np.interp(cut, lower_edges, mass_above) / (1 - cut)
    return float(weights @ stats.binom.cdf(errors, r, mean_error))


def chernoff_p_value(ranks: list[tuple[FloatArray, FloatArray]], errors: int, mu: float) -> float:
    """The paper's: an error probability per rank, each an integral of its own, and a Chernoff bound."""
    quantiles, error = tabulated_channel(mu)
    rates = np.array([weights @ np.interp(nodes, quantiles, error) for nodes, weights in ranks])
    if errors >= rates.sum():
        return 1.0
    best = minimize_scalar(
        lambda tilt: -tilt * errors + np.log1p(rates * math.expm1(tilt)).sum(),
        bounds=(-50.0, 0.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return math.exp(best.fun)

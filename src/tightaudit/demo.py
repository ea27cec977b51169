"""A first audit to look at: the 1-GDP Gaussian mechanism, once, with ten thousand canaries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightaudit.bounds import Bound, lower_bound
from tightaudit.game import draw_coins, release
from tightaudit.tradeoffs.gaussian import Gaussian

CANARIES, MU, DELTA = 10_000, 1.0, 1e-5


@dataclass(frozen=True)
class Demo:
    """The bounds of one audited run beside the ε that is known to be true."""

    claim: Gaussian
    delta: float
    true_epsilon: float
    bounds: tuple[Bound, ...]
    seed: int


def run_demo(seed: int) -> Demo:
    """Draw the coins, add Gaussian noise to them once, and bound ε from the outcome.

    >>> demo = run_demo(seed=0)
    >>> [bound.method.name for bound in demo.bounds]
    ['order-statistics', 'exact', 'exact', 'bits']
    """
    claim = Gaussian(MU)
    coins = draw_coins(CANARIES, seed=seed)
    noise = np.random.default_rng(seed).standard_normal(CANARIES)
    scores = MU * coins.members + noise
    guesses = release(scores, coins.members, released=CANARIES, seed=seed)
    plan = (
        ("order-statistics", CANARIES // 5),
        ("exact", CANARIES // 5),
        ("exact", CANARIES // 2),
        ("bits", CANARIES),
    )
    bounds = tuple(
        lower_bound(guesses.release(released), Gaussian.family(), delta=DELTA, method=method)
        for method, released in plan
    )
    return Demo(claim, DELTA, claim.epsilon(DELTA), bounds, seed)

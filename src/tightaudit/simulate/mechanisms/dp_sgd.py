"""The canary game of DP-SGD without a network: only what each canary's own coordinate releases."""

from dataclasses import dataclass

import numpy as np

from tightaudit.canaries.scores import log_likelihood_ratio
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class DpSgdMechanism(Mechanism):
    """Σ over the steps of b·coin + N(0, σ²), scored by its privacy loss; guessed 1 where that is positive."""

    sigma: float
    q: float
    steps: int
    name = "dp-sgd"
    example = "dp-sgd(sigma=1,q=0.3,steps=10)"
    independent = True
    why = "one coordinate per canary, with its own sampling coins and its own noise"
    rule = "threshold"

    @property
    def claim(self) -> DpSgd:
        return DpSgd(self.sigma, self.q, self.steps)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        total = np.zeros(members.shape)
        for _ in range(self.steps):
            kept = members & (rng.random(members.shape) < self.q)
            noisy = kept + self.sigma * rng.standard_normal(members.shape)
            total += log_likelihood_ratio((noisy - 0.5) / self.sigma**2, self.q)
        return total

"""The canary game of DP-SGD without a network: only what each canary's own coordinate releases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightaudit.checks import BoolArray, FloatArray
from tightaudit.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.tradeoffs.dpsgd import DpSgd


@MECHANISMS.register("dp-sgd")
@dataclass(frozen=True)
class DpSgdMechanism(Mechanism):
    """Σ over the steps of b·coin + N(0, σ²), scored by its privacy loss; guessed 1 where that is positive."""

    sigma: float
    q: float
    steps: int
    name = "dp-sgd"
    parameter_names = ("sigma", "q", "steps")
    independent = True
    why = "one coordinate per canary, with its own sampling coins and its own noise"
    guessing = "threshold"

    def __post_init__(self) -> None:
        checked = self.claim
        for name in self.parameter_names:
            object.__setattr__(self, name, getattr(checked, name))

    @property
    def claim(self) -> DpSgd:
        return DpSgd(self.sigma, self.q, self.steps)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        total = np.zeros(members.shape)
        unsampled = np.log1p(-self.q) if self.q < 1 else -np.inf
        for _ in range(self.steps):
            kept = members & (rng.random(members.shape) < self.q)
            noisy = kept + self.sigma * rng.standard_normal(members.shape)
            total += np.logaddexp(unsampled, np.log(self.q) + (noisy - 0.5) / self.sigma**2)
        return total

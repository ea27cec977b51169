"""The canary game of DP-SGD without a network: only what each canary's own coordinate releases."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightaudit.canaries.scores import log_likelihood_ratio
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError


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

    def after(self, step: int) -> "DpSgdMechanism":
        if step > self.steps:
            raise InputError("looks", step, f"at most {self.steps}, the steps of the mechanism")
        return replace(self, steps=step)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        (total,) = self.scores_after((self.steps,), members, rng)
        return total

    def scores_after(
        self, steps: tuple[int, ...], members: BoolArray, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        total = np.zeros(members.shape)
        for step in range(1, steps[-1] + 1):
            kept = members & (rng.random(members.shape) < self.q)
            noisy = kept + self.sigma * rng.standard_normal(members.shape)
            total += log_likelihood_ratio((noisy - 0.5) / self.sigma**2, self.q)
            if step in steps:
                yield total.copy()

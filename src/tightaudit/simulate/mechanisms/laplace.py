"""Every bit with Laplace noise of its own."""

from dataclasses import dataclass

import numpy as np

from tightaudit.claims.laplace import Laplace
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class LaplaceMechanism(Mechanism):
    """μ·b + Lap(1) in every coordinate; guessed 1 above μ/2, as in the paper."""

    mu: float
    name = "laplace"
    example = "laplace(mu=1)"
    independent = True
    why = "one coordinate and one noise draw per canary"
    rule = "threshold"

    @property
    def threshold(self) -> float:
        return self.mu / 2

    @property
    def claim(self) -> Laplace:
        return Laplace(self.mu)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        return self.mu * members + rng.laplace(size=members.shape)

"""Every bit with Gaussian noise of its own."""

from dataclasses import dataclass

import numpy as np

from tightaudit.claims.gaussian import Gaussian
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class GaussianMechanism(Mechanism):
    """μ·b + N(0, 1) in every coordinate; guessed 1 above μ/2, as in the paper."""

    mu: float
    name = "gaussian"
    example = "gaussian(mu=1)"
    independent = True
    why = "one coordinate and one noise draw per canary"
    rule = "threshold"

    @property
    def threshold(self) -> float:
        return self.mu / 2

    @property
    def claim(self) -> Gaussian:
        return Gaussian(self.mu)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        return self.mu * members + rng.standard_normal(members.shape)

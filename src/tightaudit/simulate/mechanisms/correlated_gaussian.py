"""The Gaussian mechanism with canaries that are not orthogonal to each other."""

import math
from dataclasses import dataclass

import numpy as np

from tightaudit.claims.gaussian import Gaussian
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class CorrelatedGaussian(Mechanism):
    """Unit canaries √ρ·c + √(1-ρ)·e_i on top of N(0, 1) noise scaled to μ; scores are inner products.

    Adding one canary moves the sum by a vector of norm μ, so it is μ-GDP whatever ρ is. The common direction
    c carries every other bit, and one noise draw for all.
    """

    mu: float
    rho: float
    name = "correlated-gaussian"
    example = "correlated-gaussian(mu=1,rho=0.5)"
    independent = False
    why = "all canaries share a direction and its noise"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", checks.probability("rho", self.rho))

    @property
    def claim(self) -> Gaussian:
        return Gaussian(self.mu)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        along, apart = math.sqrt(self.rho), math.sqrt(1 - self.rho)
        total = members.sum(axis=1, keepdims=True)
        common = self.mu * along * total + rng.standard_normal((members.shape[0], 1))
        private = self.mu * apart * members + rng.standard_normal(members.shape)
        return along * common + apart * private

"""Every bit with Laplace noise of its own."""

import numpy as np

from tightaudit.claims.laplace import Laplace
from tightaudit.simulate.mechanisms.base import MECHANISMS
from tightaudit.simulate.mechanisms.parts.additive import AdditiveNoise
from tightaudit.support.checks import FloatArray


@MECHANISMS.register
class LaplaceMechanism(AdditiveNoise):
    """μ·b + Lap(1) in every coordinate."""

    name = "laplace"
    example = "laplace(mu=1)"

    @property
    def claim(self) -> Laplace:
        return Laplace(self.mu)

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.laplace(size=shape)

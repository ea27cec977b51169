"""Every bit with Gaussian noise of its own."""

import numpy as np

from tightaudit.claims.gaussian import Gaussian
from tightaudit.simulate.mechanisms.base import MECHANISMS
from tightaudit.simulate.mechanisms.parts.additive import AdditiveNoise
from tightaudit.support.checks import FloatArray


@MECHANISMS.register
class GaussianMechanism(AdditiveNoise):
    """μ·b + N(0, 1) in every coordinate."""

    name = "gaussian"
    example = "gaussian(mu=1)"

    @property
    def claim(self) -> Gaussian:
        return Gaussian(self.mu)

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.standard_normal(shape)

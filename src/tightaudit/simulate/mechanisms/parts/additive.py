"""Every bit with noise of its own."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from tightaudit.simulate.mechanisms.base import Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@dataclass(frozen=True)
class AdditiveNoise(Mechanism):
    """μ·b plus noise in every coordinate; guessed 1 above μ/2, as in the paper."""

    mu: float
    independent = True
    why = "one coordinate and one noise draw per canary"
    rule = "threshold"

    @property
    def threshold(self) -> float:
        return self.mu / 2

    @abstractmethod
    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Noise of scale 1."""

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        return self.mu * members + self.noise(rng, members.shape)

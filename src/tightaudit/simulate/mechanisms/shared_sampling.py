"""One sampling coin for everybody, then Gaussian noise per coordinate."""

from dataclasses import dataclass

import numpy as np

from tightaudit.claims.published_sampling import PublishedSampling
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class SharedSampling(Mechanism):
    """μ·b·coin + N(0, 1) with one coin of rate q for all bits, which the other bits give away."""

    mu: float
    q: float
    name = "shared-sampling"
    example = "shared-sampling(mu=2,q=0.1)"
    independent = False
    why = "all canaries share one sampling coin"

    @property
    def claim(self) -> PublishedSampling:
        return PublishedSampling(self.mu, self.q)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        coin = rng.random((members.shape[0], 1)) < self.q
        return self.mu * (members & coin) + rng.standard_normal(members.shape)

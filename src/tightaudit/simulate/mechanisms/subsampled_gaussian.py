"""Every bit kept with probability q by a coin of its own, then Gaussian noise: one step of DP-SGD."""

from dataclasses import dataclass

import numpy as np

from tightaudit.canaries.scores import log_likelihood_ratio
from tightaudit.claims.subsampled_gaussian import SubsampledGaussian
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class SubsampledMechanism(Mechanism):
    """μ·b·coin + N(0, 1) in every coordinate, scored by its privacy loss; guessed 1 where that is positive.

    That is above μ/2, as in the paper, but ordered by confidence: losses are large on the upper side only.
    """

    mu: float
    q: float
    name = "subsampled-gaussian"
    example = "subsampled-gaussian(mu=2,q=0.5)"
    independent = True
    why = "one coordinate, one sampling coin and one noise draw per canary"
    rule = "threshold"

    @property
    def claim(self) -> SubsampledGaussian:
        return SubsampledGaussian(self.mu, self.q)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        kept = members & (rng.random(members.shape) < self.q)
        outcome = self.mu * kept + rng.standard_normal(members.shape)
        return log_likelihood_ratio(self.mu * outcome - self.mu**2 / 2, self.q)

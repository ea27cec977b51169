"""Every bit kept with probability q by a coin of its own, then Gaussian noise: one step of DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightaudit import checks
from tightaudit.checks import BoolArray, FloatArray
from tightaudit.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.tradeoffs.subsampled import SubsampledGaussian


@MECHANISMS.register("subsampled-gaussian")
@dataclass(frozen=True)
class SubsampledMechanism(Mechanism):
    """μ·b·coin + N(0, 1) in every coordinate, scored by its privacy loss; guessed 1 where that is positive.

    That is above μ/2, as in the paper, but ordered by confidence: losses are large on the upper side only.
    """

    mu: float
    q: float
    name = "subsampled-gaussian"
    parameter_names = ("mu", "q")
    independent = True
    why = "one coordinate, one sampling coin and one noise draw per canary"
    guessing = "threshold"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.positive("mu", self.mu, maximum=checks.LARGEST_MU))
        object.__setattr__(self, "q", checks.rate("q", self.q))

    @property
    def claim(self) -> SubsampledGaussian:
        return SubsampledGaussian(self.mu, self.q)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        kept = members & (rng.random(members.shape) < self.q)
        outcome = self.mu * kept + rng.standard_normal(members.shape)
        exponent = self.mu * outcome - self.mu**2 / 2
        if self.q == 1:
            return exponent
        # ln(1-q+q·e^exponent) without overflow.
        return np.logaddexp(np.log1p(-self.q), np.log(self.q) + exponent)

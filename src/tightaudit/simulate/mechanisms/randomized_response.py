"""Every bit through randomized response that reveals it outright with probability δ."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """The bit for certain with probability δ, else the bit or its flip with odds e^ε : 1.

    A certain answer scores ±2 and an uncertain one ±1, so that certain ones are released first.
    """

    epsilon: float
    delta: float
    name = "randomized-response"
    example = "randomized-response(epsilon=1,delta=0.05)"
    independent = True
    why = "every bit is answered by coins of its own"
    rule = "threshold"

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        certain = rng.random(members.shape) < self.delta
        flipped = ~certain & (rng.random(members.shape) < expit(-self.epsilon))
        return np.where(members ^ flipped, 1.0, -1.0) * np.where(certain, 2.0, 1.0)

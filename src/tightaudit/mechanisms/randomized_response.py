"""Every bit through randomized response that reveals it outright with probability δ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tightaudit import checks
from tightaudit.checks import BoolArray, FloatArray
from tightaudit.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.tradeoffs.approximate import ApproxDP


@MECHANISMS.register("randomized-response")
@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """The bit for certain with probability δ, else the bit or its flip with odds e^ε : 1.

    A certain answer scores ±2 and an uncertain one ±1, so that certain ones are released first.
    """

    epsilon: float
    delta: float
    name = "randomized-response"
    parameter_names = ("epsilon", "delta")
    independent = True
    why = "every bit is answered by coins of its own"
    guessing = "threshold"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.privacy_loss("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.probability("delta", self.delta))

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        certain = rng.random(members.shape) < self.delta
        flipped = ~certain & (rng.random(members.shape) < expit(-self.epsilon))
        return np.where(members ^ flipped, 1.0, -1.0) * np.where(certain, 2.0, 1.0)

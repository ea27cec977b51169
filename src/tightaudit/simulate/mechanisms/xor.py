"""Publishes only the parity of all bits, through randomized response."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class Xor(Mechanism):
    """The XOR of all bits, flipped with odds 1 : e^ε. Guesses are random bits of the published parity.

    No bit is known better than a coin, yet the number of errors is even with odds e^ε : 1: all the leakage
    is in the dependence.
    """

    epsilon: float
    name = "xor"
    example = "xor(epsilon=1)"
    independent = False
    why = "the output depends on all bits jointly and on none alone"
    rule = "threshold"

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, 0.0)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        flipped = rng.random(members.shape[0]) < expit(-self.epsilon)
        parity = np.bitwise_xor.reduce(members, axis=1) ^ flipped
        guesses = rng.random(members.shape) < 0.5
        guesses[:, -1] ^= np.bitwise_xor.reduce(guesses, axis=1) ^ parity
        return np.where(guesses, 1.0, -1.0)

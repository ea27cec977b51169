"""Reveals everything with probability δ, and nothing otherwise."""

from dataclasses import dataclass

import numpy as np

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray


@MECHANISMS.register
@dataclass(frozen=True)
class AllOrNothing(Mechanism):
    """(0, δ)-DP: with probability δ every guess is right at once."""

    delta: float
    name = "all-or-nothing"
    example = "all-or-nothing(delta=0.03)"
    independent = False
    why = "all canaries are revealed together or not at all"
    rule = "threshold"

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(0.0, self.delta)

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        revealed = rng.random((members.shape[0], 1)) < self.delta
        answers = np.where(revealed, members, rng.random(members.shape) < 0.5)
        return np.where(answers, 1.0, -1.0)

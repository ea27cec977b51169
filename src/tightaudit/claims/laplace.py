"""The Laplace mechanism: Lap(0, 1) against Lap(μ, 1)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from tightaudit.claims.approx_dp import from_perfect_privacy
from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.family import Family
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray


@CLAIMS.register
@dataclass(frozen=True, repr=False)
class Laplace(Claim):
    """Laplace noise of scale 1 against a shift of μ, that is μ = sensitivity over scale: pure μ-DP.

    >>> Laplace(0.8).epsilon(0.0)
    0.8
    """

    mu: float
    name = "laplace"
    example = "laplace(mu=1)"
    parameter_names = ("mu",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.positive("mu", self.mu, maximum=checks.LARGEST_EPSILON))

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        return from_perfect_privacy(cls, free, fixed)

    @property
    def _atom(self) -> float:
        """Share of guesses whose confidence is the largest there is, μ."""
        return 0.5 * (1 + math.exp(-self.mu))

    @property
    def top_kinks(self) -> FloatArray:
        return np.array([self._atom])

    def top_error_mass(self, top: FloatArray) -> FloatArray:
        # Below the atom S(s) = 1 - e^(-μ/2)·sinh(s/2) and E(s) = e^(-(μ+s)/2)/2; eliminating s
        # gives this quotient, in which nothing overflows.
        below = 1 - top
        spread = 0.5 * math.exp(-self.mu) / (below + np.hypot(math.exp(-self.mu / 2), below))
        return np.where(top <= self._atom, top * expit(-self.mu), spread)

    def top_error_probability(self, top: FloatArray) -> FloatArray:
        score = 2 * np.arcsinh((1 - top) * math.exp(self.mu / 2))
        return expit(-np.minimum(score, self.mu))

    @property
    def curve_kinks(self) -> FloatArray:
        return np.array([self.mu])

    def detection_curve(self) -> Callable[[float], float]:
        shrink = math.exp(-self.mu)

        def curve(rate: float) -> float:
            if rate <= 0.5:
                return shrink * rate
            if 1 - rate >= shrink / 2:
                return shrink / (4 * (1 - rate))
            return 1 - (1 - rate) / shrink

        return curve

    def slope(self, alpha: FloatArray) -> FloatArray:
        steep = alpha < math.exp(-self.mu) / 2
        middle = alpha <= 0.5
        with np.errstate(divide="ignore", over="ignore"):
            curved = -math.exp(-self.mu) / (4 * alpha**2)
            return np.select([steep, middle], [-np.exp(self.mu), curved], -math.exp(-self.mu))

    def _f(self, alpha: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            steep = np.where(alpha == 0, 1.0, 1 - np.exp(self.mu) * alpha)
            curved = math.exp(-self.mu) / (4 * alpha)
        flat = math.exp(-self.mu) * (1 - alpha)
        return np.select([alpha < math.exp(-self.mu) / 2, alpha <= 0.5], [steep, curved], flat)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return -np.expm1(np.minimum(epsilon - self.mu, 0) / 2)

    def _epsilon(self, delta: float) -> float:
        return 0.0 if delta == 1 else max(0.0, self.mu + 2 * math.log1p(-delta))

"""The Gaussian mechanism: N(0, 1) against N(μ, 1)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, expit, ndtr, ndtri
from scipy.special.cython_special import ndtri as scalar_ndtri

from tightaudit.claims.approx_dp import from_perfect_privacy
from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.family import Family
from tightaudit.numerics.inversion import solve_decreasing
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray

_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_SQRT_2PI = math.sqrt(2 * math.pi)
_SQRT_2 = math.sqrt(2)
_FAR = 1e9


@CLAIMS.register
@dataclass(frozen=True, repr=False)
class Gaussian(Claim):
    """μ-GDP, with f(α) = Φ(Φ⁻¹(1-α) - μ); μ is sensitivity over noise (Dong, Roth and Su).

    >>> round(Gaussian(1.0).epsilon(1e-5), 6)
    4.377178
    """

    mu: float
    name = "gaussian"
    example = "gaussian(mu=1)"
    parameter_names = ("mu",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.positive("mu", self.mu, maximum=checks.LARGEST_MU))

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        return from_perfect_privacy(cls, free, fixed)

    def top_error_mass(self, top: FloatArray) -> FloatArray:
        return self.top_errors(top)[0]

    def top_error_probability(self, top: FloatArray) -> FloatArray:
        return self.top_errors(top)[1]

    def top_errors(self, top: FloatArray) -> tuple[FloatArray, FloatArray]:
        score = self._score(top)
        return ndtr(-score - self.mu / 2), expit(-self.mu * score)

    def _score(self, top: FloatArray) -> FloatArray:
        """The u = |L|/μ that a share `top` of guesses exceeds: the tail of |N(μ/2, 1)| inverted."""
        half = self.mu / 2
        top = np.asarray(top)
        score = np.where(top > 0, 0.0, np.inf)
        inner = (top > 0) & (top < 1)
        upper = inner & (top <= 0.5)
        lower = inner & (top > 0.5)

        def tail(u: FloatArray) -> tuple[FloatArray, FloatArray]:
            above = ndtr(half - u) + ndtr(-half - u)
            return np.log(above) - log_share, -_folded_density(u, half) / above

        def head(u: FloatArray) -> tuple[FloatArray, FloatArray]:
            below = ndtr(u - half) - ndtr(-u - half)
            with np.errstate(divide="ignore"):
                return log_share - np.log(below), -_folded_density(u, half) / below

        # |N(μ/2, 1)| is stochastically larger than |N(0, 1)| and than N(μ/2, 1), and its tail is at
        # most twice that of N(μ/2, 1): these bracket the root.
        for part, residual in ((upper, tail), (lower, head)):
            if part.any():
                share = top[part]
                log_share = np.log(share if residual is tail else 1 - share)
                low = np.maximum(half - ndtri(share), -ndtri(share / 2))
                score[part] = solve_decreasing(residual, low, half - ndtri(share / 2), low)
        return score

    def detection_curve(self) -> Callable[[float], float]:
        mu = self.mu
        # Called many times on single numbers, where array functions spend their time on overhead.
        return lambda rate: 0.5 * math.erfc((mu - scalar_ndtri(rate)) / _SQRT_2)

    def slope(self, alpha: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return -np.exp(-self.mu * ndtri(alpha) - self.mu**2 / 2)

    def _f(self, alpha: FloatArray) -> FloatArray:
        return ndtr(-ndtri(alpha) - self.mu)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        # Φ(-a) - e^ε·Φ(-b) with e^ε·φ(b) = φ(a): written with Mills' ratio nothing overflows, and
        # for a > 0 the difference is taken between two numbers of ordinary size.
        a = np.minimum(epsilon / self.mu, _FAR) - self.mu / 2
        b = np.minimum(epsilon / self.mu, _FAR) + self.mu / 2
        density = np.exp(-0.5 * a * a) / _SQRT_2PI
        inside = np.maximum(ndtr(-a) - density * _mills(b), 0)
        tail = density * (_mills(np.maximum(a, 0)) - _mills(b))
        return np.where(a < 0, inside, tail)

    def _epsilon(self, delta: float) -> float:
        if delta == 0:
            return math.inf
        if delta >= self._delta(np.asarray(0.0)):
            return 0.0
        # δ(ε) ≤ Φ(μ/2 - ε/μ), so the root lies at or below this ε.
        high = self.mu**2 / 2 - self.mu * float(ndtri(delta))
        if self._log_delta(high) >= math.log(delta):  # by rounding, for a huge μ
            return high
        return float(
            brentq(lambda e: self._log_delta(e) - math.log(delta), 0.0, high, xtol=1e-14, rtol=1e-14)
        )

    def _log_delta(self, epsilon: float) -> float:
        """Ln δ(ε), where δ(ε) itself may underflow."""
        a = epsilon / self.mu - self.mu / 2
        b = epsilon / self.mu + self.mu / 2
        if a < 0:
            return float(np.log(self._delta(np.asarray(epsilon))))
        return (
            -0.5 * a * a
            - math.log(_SQRT_2PI)
            + math.log(float(_mills(np.asarray(a)) - _mills(np.asarray(b))))
        )


def _mills(x: FloatArray) -> FloatArray:
    """Φ(-x)/φ(x)."""
    return _SQRT_HALF_PI * erfcx(x / math.sqrt(2))


def _folded_density(u: FloatArray, half: float) -> FloatArray:
    return (np.exp(-0.5 * (u - half) ** 2) + np.exp(-0.5 * (u + half) ** 2)) / _SQRT_2PI

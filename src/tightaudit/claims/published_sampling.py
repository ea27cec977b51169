"""A Gaussian mechanism that runs with probability q for everyone at once, and says whether it did."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.parts.sampled import SampledGaussian
from tightaudit.support.checks import FloatArray


@CLAIMS.register
@dataclass(frozen=True, repr=False)
class PublishedSampling(SampledGaussian):
    """δ(ε) = q·δ_μ(ε): with probability q the μ-GDP mechanism runs, otherwise nothing is revealed.

    What one sampling coin for all canaries amounts to: the other bits give the coin away, so it protects
    no one. With the coin heads the loss is Gaussian, with tails it is 0.

    >>> claim = PublishedSampling(mu=1.0, q=0.1)
    >>> round(claim.delta(1.0), 6), round(0.1 * Gaussian(1.0).delta(1.0), 6)
    (0.012694, 0.012694)
    """

    name = "published-sampling"
    example = "published-sampling(mu=1,q=0.2)"

    @classmethod
    def _without_noise(cls, q: float) -> Claim:
        return ApproxDP(0.0, q)

    @property
    def _gaussian(self) -> Gaussian:
        return Gaussian(self.mu)

    @property
    def top_kinks(self) -> FloatArray:
        return np.array([self.q] if self.q < 1 else [])

    def top_error_mass(self, top: FloatArray) -> FloatArray:
        seen = self.q * self._gaussian.top_error_mass(np.minimum(top / self.q, 1.0))
        return seen + 0.5 * np.maximum(top - self.q, 0.0)

    def top_error_probability(self, top: FloatArray) -> FloatArray:
        seen = self._gaussian.top_error_probability(np.minimum(top / self.q, 1.0))
        return np.where(top > self.q, 0.5, seen)

    def _parts(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
        """Where α lies: the Gaussian's α on the steep and on the flat side, and which piece applies.

        Tests spend α on the Gaussian until its slope is -1, then on coins, then on the Gaussian again.
        """
        turn = self._gaussian.error_mass(0.0)
        steep = np.minimum(alpha / self.q, 1.0)
        flat = np.clip((alpha - (1 - self.q)) / self.q, 0.0, 1.0)
        piece = np.where(steep <= turn, 0, np.where(flat >= turn, 2, 1))
        return steep, flat, piece.astype(np.intp)

    def detection_curve(self) -> Callable[[float], float]:
        gaussian, q = self._gaussian.detection_curve(), self.q
        turn = q * self._gaussian.error_mass(0.0)

        def curve(rate: float) -> float:
            if rate <= q - turn:
                return q * gaussian(rate / q)
            if rate <= 1 - turn:
                return turn + rate - (q - turn)
            return 1 - q + q * gaussian(min(1.0, (rate - (1 - q)) / q))

        return curve

    def slope(self, alpha: FloatArray) -> FloatArray:
        steep, flat, piece = self._parts(alpha)
        return np.choose(piece, [self._gaussian.slope(steep), -1.0, self._gaussian.slope(flat)])

    def _f(self, alpha: FloatArray) -> FloatArray:
        steep, flat, piece = self._parts(alpha)
        turn = self._gaussian.error_mass(0.0)
        first = (1 - self.q) + self.q * np.asarray(self._gaussian.f(steep))
        middle = (1 - self.q) + 2 * self.q * turn - alpha
        return np.choose(piece, [first, middle, self.q * np.asarray(self._gaussian.f(flat))])

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return self.q * np.asarray(self._gaussian.delta(epsilon))

    def _epsilon(self, delta: float) -> float:
        return 0.0 if delta >= self.q else self._gaussian.epsilon(delta / self.q)

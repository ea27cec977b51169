"""(ε, δ)-DP, the claim that assumes no shape, and randomized response, the mechanism that attains it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.family import Family
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray
from tightaudit.support.notation import text_form


@CLAIMS.register
@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(Claim):
    """(ε, δ)-differential privacy; also the channel of randomized response that reveals a bit at rate δ.

    The privacy loss is ±ε with mass 1-δ and ±∞ with mass δ, so f is the largest of 0, 1-δ-e^ε·α and
    e^-ε·(1-δ-α).

    >>> ApproxDP(epsilon=1.0, delta=0.01).epsilon(0.01)
    1.0
    """

    claimed_epsilon: float
    claimed_delta: float
    name = "approx-dp"
    parameter_names = ("epsilon", "delta")
    example = "approx-dp(epsilon=1,delta=0.01)"

    def __init__(self, epsilon: float, delta: float) -> None:
        # `epsilon` and `delta` are already the names of the privacy curve's two readings.
        object.__setattr__(self, "claimed_epsilon", checks.privacy_loss("epsilon", epsilon))
        object.__setattr__(self, "claimed_delta", checks.probability("delta", delta))

    @classmethod
    def implied_by(cls, claim: Claim, delta: float) -> Claim:
        """All that a claim says at one δ, whatever the rest of its curve.

        >>> ApproxDP.implied_by(ApproxDP(1.0, 0.1), 0.1)
        ApproxDP(epsilon=1.0, delta=0.1)
        """
        if claim.point is not None:
            return claim
        epsilon = claim.epsilon(delta)
        # A claim that allows more than can be tested cannot be rejected; revealing everything never is.
        return cls(epsilon, delta) if epsilon <= checks.LARGEST_EPSILON else cls(0.0, 1.0)

    @property
    def point(self) -> tuple[float, float]:
        return self.claimed_epsilon, self.claimed_delta

    @property
    def parameters(self) -> dict[str, Any]:
        return {"epsilon": self.claimed_epsilon, "delta": self.claimed_delta}

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        if free != "epsilon":
            return super()._family(free, fixed)
        delta = checks.probability("delta", fixed["delta"])
        return Family(
            text=text_form(cls.name, {"delta": delta}),
            parameter=free,
            member=lambda epsilon: cls(epsilon, delta),
            most_private=cls(0.0, delta),
            least_private=cls(0.0, 1.0),
            delta=delta,
        )

    @property
    def top_kinks(self) -> FloatArray:
        return np.array([self.claimed_delta] if 0 < self.claimed_delta < 1 else [])

    def top_error_mass(self, top: FloatArray) -> FloatArray:
        return np.maximum(top - self.claimed_delta, 0) * expit(-self.claimed_epsilon)

    def top_error_probability(self, top: FloatArray) -> FloatArray:
        return np.where(top > self.claimed_delta, expit(-self.claimed_epsilon), 0.0)

    @property
    def curve_kinks(self) -> FloatArray:
        return np.array([self.claimed_epsilon] if self.claimed_epsilon > 0 else [])

    @property
    def piecewise_linear(self) -> bool:
        return True

    def detection_curve(self) -> Callable[[float], float]:
        shrink, delta = math.exp(-self.claimed_epsilon), self.claimed_delta
        return lambda rate: max(0.0, shrink * (rate - delta), 1 - delta - (1 - rate) / shrink)

    def slope(self, alpha: FloatArray) -> FloatArray:
        steep = alpha < (1 - self.claimed_delta) * expit(-self.claimed_epsilon)
        flat = alpha < 1 - self.claimed_delta
        return np.select([steep, flat], [-np.exp(self.claimed_epsilon), -np.exp(-self.claimed_epsilon)], 0.0)

    def _f(self, alpha: FloatArray) -> FloatArray:
        near_zero = 1 - self.claimed_delta - np.exp(self.claimed_epsilon) * alpha
        near_one = np.exp(-self.claimed_epsilon) * (1 - self.claimed_delta - alpha)
        return np.maximum(0.0, np.maximum(near_zero, near_one))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        excess = -np.expm1(np.minimum(epsilon - self.claimed_epsilon, 0)) * expit(self.claimed_epsilon)
        return self.claimed_delta + (1 - self.claimed_delta) * excess

    def _epsilon(self, delta: float) -> float:
        if delta < self.claimed_delta:
            return math.inf
        if delta >= self._delta(np.asarray(0.0)):
            return 0.0
        excess = (delta - self.claimed_delta) / (1 - self.claimed_delta)
        return max(0.0, self.claimed_epsilon + math.log1p(-excess / expit(self.claimed_epsilon)))


def from_perfect_privacy(
    claim: type[Claim],
    free: str,
    fixed: dict[str, Any],
    *,
    least_private: Claim | None = None,
    lower: float = 1e-9,
    upper: float = math.inf,
    protects: bool = False,
    besides: str | None = None,
) -> Family:
    """The family of a claim over a parameter that starts at perfect privacy, and ends at none if not said.

    >>> from tightaudit.claims.laplace import Laplace
    >>> from_perfect_privacy(Laplace, "mu", {}).least_private
    ApproxDP(epsilon=0.0, delta=1.0)
    """
    return Family(
        text=text_form(claim.name, fixed),
        parameter=free,
        member=lambda value: claim(**{free: value}, **fixed),
        most_private=ApproxDP(0.0, 0.0),
        least_private=ApproxDP(0.0, 1.0) if least_private is None else least_private,
        lower=lower,
        upper=upper,
        protects=protects,
        besides=besides,
    )

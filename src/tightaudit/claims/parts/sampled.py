"""What claims about a Gaussian mechanism that runs at a sampling rate have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from tightaudit.claims.approx_dp import from_perfect_privacy
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.support import checks


@dataclass(frozen=True, repr=False)
class SampledGaussian(Claim):
    """A claim with the Gaussian's μ and a sampling rate q, and the families over either."""

    mu: float
    q: float
    parameter_names = ("mu", "q")

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.positive("mu", self.mu, maximum=checks.LARGEST_MU))
        object.__setattr__(self, "q", checks.rate("q", self.q))

    @classmethod
    @abstractmethod
    def _without_noise(cls, q: float) -> Claim:
        """The limit as μ grows: being sampled shows for certain."""

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        if free == "q":
            return from_perfect_privacy(cls, free, fixed, least_private=Gaussian(fixed["mu"]), upper=1.0)
        rate = checks.rate("q", fixed["q"])
        return from_perfect_privacy(cls, free, fixed, least_private=cls._without_noise(rate))

"""What claims about a Gaussian mechanism that runs at a sampling rate have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.support import checks
from tightaudit.support.notation import text_form


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
    def _family(cls, free: str, fixed: dict[str, float]) -> Family:
        if free == "q":
            always = Gaussian(fixed["mu"])
            return Family(
                text=text_form(cls.name, fixed),
                parameter=free,
                member=lambda q: cls(always.mu, q),
                most_private=ApproxDP(0.0, 0.0),
                least_private=always,
                upper=1.0,
            )
        rate = checks.rate("q", fixed["q"])
        return Family(
            text=text_form(cls.name, fixed),
            parameter=free,
            member=lambda mu: cls(mu, rate),
            most_private=ApproxDP(0.0, 0.0),
            least_private=cls._without_noise(rate),
        )

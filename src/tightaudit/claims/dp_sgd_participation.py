"""One participation in a training by DP-SGD, and what it says about the whole training."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from tightaudit.claims.approx_dp import from_perfect_privacy
from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.dp_sgd_schedule import LISTS, DpSgdSchedule, stretches_of
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.parts.composed import LARGEST_SIGMA
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

BESIDES = "the steps are alike and their noise is independent"


@CLAIMS.register
class DpSgdParticipation(Claim):
    """A record that was sampled flips a coin whether to contribute: the Gaussian mechanism, once.

    The channel is N(0, 1) against N(μ, 1), μ = 1/(factor·seen), where `seen` is the noise multiplier of the
    audited steps. ε(δ) is that of the whole training, whose stretches have noise multipliers factor·sigma: it
    follows if the steps are alike and their noise is independent.

    >>> claim = DpSgdParticipation(factor=1.0, seen=1.13, sigma=1.13, q=0.1, steps=200)
    >>> str(claim)
    'dp-sgd-participation(factor=1,seen=1.13,sigma=1.13,q=0.1,steps=200)'
    >>> round(claim.epsilon(1e-5), 2), round(claim.f(0.05), 4) == round(Gaussian(1 / 1.13).f(0.05), 4)
    (8.0, True)
    """

    name = "dp-sgd-participation"
    example = "dp-sgd-participation(factor=1,seen=1,sigma=1,q=0.1,steps=50)"
    parameter_names = ("factor", "seen", *LISTS)
    list_names = LISTS
    grain = DpSgdSchedule.grain

    def __init__(
        self,
        factor: float,
        seen: float,
        sigma: float | Sequence[float],
        q: float | Sequence[float],
        steps: int | Sequence[int],
    ) -> None:
        self.factor = checks.positive("factor", factor, maximum=LARGEST_SIGMA)
        self.seen = checks.positive("seen", seen, maximum=LARGEST_SIGMA)
        self.sigma, self.q, self.steps = (
            tuple(values) for values in zip(*stretches_of(sigma, q, steps), strict=True)
        )
        self.once = Gaussian(1 / (self.factor * self.seen))

    @cached_property
    def whole(self) -> DpSgdSchedule:
        """The whole training."""
        return DpSgdSchedule(self.factor, self.sigma, self.q, self.steps)

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        if free != "factor":
            raise InputError("family", free, "the factor to be free")
        return from_perfect_privacy(cls, free, fixed, lower=1 / LARGEST_SIGMA, protects=True, besides=BESIDES)

    def top_error_mass(self, top: FloatArray) -> FloatArray:
        return self.once.top_error_mass(top)

    def top_error_probability(self, top: FloatArray) -> FloatArray:
        return self.once.top_error_probability(top)

    def top_errors(self, top: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.once.top_errors(top)

    def detection_curve(self) -> Callable[[float], float]:
        return self.once.detection_curve()

    def slope(self, alpha: FloatArray) -> FloatArray:
        return self.once.slope(alpha)

    def _f(self, alpha: FloatArray) -> FloatArray:
        return self.once._f(alpha)

    def _symmetric_delta(self, epsilon: FloatArray) -> FloatArray:
        return self.once._symmetric_delta(epsilon)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return self.whole._delta(epsilon)

    def _epsilon(self, delta: float) -> float:
        return self.whole._epsilon(delta)

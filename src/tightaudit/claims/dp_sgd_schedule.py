"""A training by DP-SGD whose noise or sampling rate changes: stretches of steps that are alike."""

from collections.abc import Sequence
from typing import Any

from tightaudit.claims.approx_dp import from_perfect_privacy
from tightaudit.claims.base import CLAIMS
from tightaudit.claims.family import Family
from tightaudit.claims.parts.accounting import Stretch
from tightaudit.claims.parts.composed import LARGEST_SIGMA, ComposedGaussian, noiseless, stretch
from tightaudit.support import checks
from tightaudit.support.errors import InputError

LISTS = ("sigma", "q", "steps")


@CLAIMS.register
class DpSgdSchedule(ComposedGaussian):
    """Stretches of steps, each as in `dp-sgd`, the noise of all of them times one factor.

    The family leaves the factor free: the schedule is as it was said to be, and only the size of its noise
    is in question.

    >>> claim = DpSgdSchedule(factor=1.0, sigma=(1.3, 1.0), q=(0.1, 0.1), steps=(100, 100))
    >>> str(claim)
    'dp-sgd-schedule(factor=1,sigma=[1.3,1],q=[0.1,0.1],steps=[100,100])'
    >>> round(claim.epsilon(1e-5), 2)
    8.39
    """

    name = "dp-sgd-schedule"
    example = "dp-sgd-schedule(factor=1,sigma=[1,0.9],q=[0.1,0.1],steps=[20,30])"
    parameter_names = ("factor", *LISTS)
    list_names = LISTS

    def __init__(
        self,
        factor: float,
        sigma: float | Sequence[float],
        q: float | Sequence[float],
        steps: int | Sequence[int],
    ) -> None:
        self.factor = checks.positive("factor", factor, maximum=LARGEST_SIGMA)
        if self.factor < 1 / LARGEST_SIGMA:
            raise InputError("factor", factor, f"at least {1 / LARGEST_SIGMA:g}")
        said = stretches_of(sigma, q, steps)
        self.sigma, self.q, self.steps = (tuple(values) for values in zip(*said, strict=True))
        super().__init__(scaled(said, self.factor))

    @classmethod
    def _family(cls, free: str, fixed: dict[str, Any]) -> Family:
        if free != "factor":
            raise InputError("family", free, "the factor to be free")
        without = noiseless(stretches_of(**fixed))
        return from_perfect_privacy(
            cls, free, fixed, least_private=without, lower=1 / LARGEST_SIGMA, protects=True
        )


def stretches_of(
    sigma: float | Sequence[float], q: float | Sequence[float], steps: float | Sequence[float]
) -> list[Stretch]:
    """The stretches that three lists of the same length describe.

    >>> stretches_of((1.0, 0.9), (0.1, 0.1), (20, 30))
    [(1.0, 0.1, 20), (0.9, 0.1, 30)]
    """
    lists = [tuple(values) if isinstance(values, Sequence) else (values,) for values in (sigma, q, steps)]
    if len({len(values) for values in lists}) > 1:
        found = " and ".join(str(len(values)) for values in lists)
        raise InputError("stretches", f"{found} values", "as many of sigma as of q and of steps")
    return [stretch(*values) for values in zip(*lists, strict=True)]


def scaled(stretches: Sequence[Stretch], factor: float) -> list[Stretch]:
    """The same stretches with noise times a factor."""
    return [(factor * sigma, q, steps) for sigma, q, steps in stretches]

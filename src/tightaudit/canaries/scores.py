"""How a canary is scored from what was released at its coordinate, step by step: one class per score.

Every score keeps totals over the steps, so that a training of any length needs no more memory than one step.
A new score is one more class here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError
from tightaudit.support.registry import Registry

_LEAST_NOISE = 1e-3
"""Of the noise that is said to be added: less is taken for none."""


@dataclass(frozen=True)
class Step:
    """What one step released at the canaries' coordinates, in units of the clipping norm."""

    released: FloatArray
    share: FloatArray
    """The part of it that is the real batch's own."""
    rate: float
    """How often an included canary is sampled."""
    noise: float
    """The noise as it shows in the transcript so far."""

    @property
    def own(self) -> FloatArray:
        """What is left without the batch's share: the canary, if it was sampled, and noise."""
        return self.released - self.share


class Score(ABC):
    """Totals over the steps, and the scores that follow from them."""

    name: ClassVar[str]
    totals: ClassVar[tuple[str, ...]]
    """Names of the arrays that are added up, one entry per canary."""
    threshold: ClassVar[float | None] = None
    """The score above which a canary is guessed to be in, where one is known in advance."""

    @staticmethod
    @abstractmethod
    def add(totals: dict[str, FloatArray], step: Step) -> None:
        """Count one more step."""

    @staticmethod
    @abstractmethod
    def scores(totals: dict[str, FloatArray], steps: int) -> FloatArray:
        """The scores after so many steps."""


SCORES: Registry[type[Score]] = Registry("score")


@SCORES.register
class LogLikelihoodRatio(Score):
    """Σ ln(1-q+q·e^((x-1/2)/σ²)) over the steps, σ the noise seen in the x so far: the best there is."""

    name = "log-likelihood-ratio"
    totals = ("likelihood",)
    threshold = 0.0

    @staticmethod
    def add(totals: dict[str, FloatArray], step: Step) -> None:
        totals["likelihood"] += log_likelihood_ratio((step.own - 0.5) / step.noise**2, step.rate)

    @staticmethod
    def scores(totals: dict[str, FloatArray], steps: int) -> FloatArray:  # noqa: ARG004
        return totals["likelihood"]


@SCORES.register
class Sum(Score):
    """The plain sum of what was released, the batch's share included: the paper's."""

    name = "sum"
    totals = ("sums",)

    @staticmethod
    def add(totals: dict[str, FloatArray], step: Step) -> None:
        totals["sums"] += step.released

    @staticmethod
    def scores(totals: dict[str, FloatArray], steps: int) -> FloatArray:  # noqa: ARG004
        return totals["sums"]


@SCORES.register
class Spread(Score):
    """The standard deviation over the steps: poor on an honest run, but it sees noise that repeats."""

    name = "spread"
    totals = ("own", "squares")

    @staticmethod
    def add(totals: dict[str, FloatArray], step: Step) -> None:
        totals["own"] += step.own
        totals["squares"] += step.own**2

    @staticmethod
    def scores(totals: dict[str, FloatArray], steps: int) -> FloatArray:
        return np.sqrt(np.maximum(totals["squares"] / steps - (totals["own"] / steps) ** 2, 0))


def as_score(name: str) -> type[Score]:
    """A score by name.

    >>> as_score("sum").totals
    ('sums',)
    """
    if not isinstance(name, str):
        raise InputError("score", name, f"one of {', '.join(SCORES)}")
    return SCORES[name]


def log_likelihood_ratio(log_ratio: FloatArray, rate: float) -> FloatArray:
    """ln(1-q+q·e^log_ratio): the privacy loss of one step at sampling rate q, without overflow.

    >>> log_likelihood_ratio(np.array([0.0, 2000.0]), 1.0)
    array([   0., 2000.])
    """
    unsampled = np.log1p(-rate) if rate < 1 else -np.inf
    return np.asarray(np.logaddexp(unsampled, np.log(rate) + log_ratio))


def noise_seen(own: FloatArray, rate: float, said: float) -> float:
    """The σ at which |x| has the median it has, if canaries are in and sampled as often as expected.

    The noise as it is, not as it is said to be: with another σ the scores of all canaries would drift to one
    side. It is read off the transcript, so any use of it is fair.
    """
    share, middle = rate / 2, float(np.median(np.abs(own)))

    def excess(sigma: float) -> float:
        out = 2 * ndtr(middle / sigma) - 1
        sampled = ndtr((middle - 1) / sigma) - ndtr((-middle - 1) / sigma)
        return float((1 - share) * out + share * sampled - 0.5)

    smallest, largest = _LEAST_NOISE * said, said / _LEAST_NOISE
    if excess(smallest) <= 0:
        return smallest
    return largest if excess(largest) >= 0 else float(brentq(excess, smallest, largest, rtol=1e-10))

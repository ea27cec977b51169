"""How a canary is scored from what was released at its coordinate, step by step.

Every score keeps totals over the steps, so that a training of any length needs no more memory than one step.
A new score is one more entry of SCORES.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

_LEAST_NOISE = 1e-3
"""As a share of the stated noise: less counts as none."""


@dataclass(frozen=True)
class Step:
    """What one step released at the canaries' coordinates, in units of the clipping norm."""

    released: FloatArray
    share: FloatArray
    """The part of it that is the real batch's own."""
    rate: float
    """How often an included canary is sampled."""
    noise: float
    """The noise measured in the transcript so far."""

    @property
    def own(self) -> FloatArray:
        """What is left without the batch's share: the canary, if it was sampled, and noise."""
        return self.released - self.share


@dataclass(frozen=True)
class Score:
    """What is added up over the steps, and the score that follows from the totals."""

    name: str
    totals: dict[str, Callable[[Step], FloatArray]]
    """What each step adds to the totals of these names, an entry per canary."""
    value: Callable[[dict[str, FloatArray], int], FloatArray]
    """The scores, from the totals and the number of steps."""
    threshold: float | None = None
    """The score above which a canary is guessed to be in, where one is known in advance."""


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


SCORES = {
    score.name: score
    for score in (
        # The best there is: Σ ln(1-q+q·e^((x-1/2)/σ²)), σ the noise seen in the x so far.
        Score(
            "log-likelihood-ratio",
            {"likelihood": lambda s: log_likelihood_ratio((s.own - 0.5) / s.noise**2, s.rate)},
            lambda totals, _: totals["likelihood"],
            threshold=0.0,
        ),
        # The paper's: the plain sum of what was released, the batch's share included.
        Score("sum", {"sums": lambda s: s.released}, lambda totals, _: totals["sums"]),
        # The standard deviation over the steps: poor on an honest run, but it sees noise that repeats.
        Score(
            "spread",
            {"own": lambda s: s.own, "squares": lambda s: s.own**2},
            lambda totals, n: np.sqrt(np.maximum(totals["squares"] / n - (totals["own"] / n) ** 2, 0)),
        ),
    )
}


def as_score(name: str) -> Score:
    """A score by name.

    >>> list(as_score("sum").totals)
    ['sums']
    """
    if not isinstance(name, str) or name not in SCORES:
        raise InputError("score", name, f"one of {', '.join(SCORES)}")
    return SCORES[name]

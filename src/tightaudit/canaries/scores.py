"""How a canary is scored from what was released for it, step by step.

Every score keeps totals over the steps, so that a training of any length needs no more memory than one step.
A new score is one more entry of SCORES.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError


@dataclass(frozen=True)
class Seen:
    """What one step released for each canary, in units of what a canary contributes."""

    own: FloatArray
    """What a contribution leaves, if there was one, and noise."""
    share: FloatArray
    """The part of what was released that is the real batch's, where canaries share its coordinates."""
    rate: FloatArray | float
    """How often an included canary is sampled."""
    noise: float
    """The noise of the step, as its controls show it."""
    left: FloatArray | float = 1.0
    """What contributions leave of each canary; with correlated noise, those of earlier steps do too."""


@dataclass(frozen=True)
class Score:
    """What is added up over the steps, and the score that follows from the totals."""

    name: str
    totals: dict[str, Callable[[Seen], FloatArray]]
    """What each step adds to the totals of these names, an entry per canary."""
    value: Callable[[dict[str, FloatArray], int], FloatArray]
    """The scores, from the totals and the number of steps."""
    threshold: float | None = None
    """The score above which a canary is guessed to be in, where one is known in advance."""


def log_ratio(own: FloatArray, noise: float, left: FloatArray | float = 1.0) -> FloatArray:
    """The privacy loss of what was released for a canary that is known to be sampled: (x-e/2)·e/σ².

    >>> log_ratio(np.array([1.5]), 2.0)
    array([0.25])
    """
    return np.asarray((own - left / 2) * left / noise**2)


def log_likelihood_ratio(log_ratio: FloatArray, rate: FloatArray | float) -> FloatArray:
    """ln(1-q+q·e^log_ratio): the privacy loss of one step at sampling rate q, without overflow.

    >>> log_likelihood_ratio(np.array([0.0, 2000.0, 3.0]), np.array([1.0, 1.0, 0.0]))
    array([   0., 2000.,    0.])
    """
    with np.errstate(divide="ignore"):  # ln 0 is what it should be
        return np.asarray(np.logaddexp(np.log1p(-np.asarray(rate)), np.log(rate) + log_ratio))


SCORES = {
    score.name: score
    for score in (
        # The best there is: Σ ln(1-q+q·e^((x-1/2)/σ²)), σ the noise of each step by itself.
        Score(
            "log-likelihood-ratio",
            {"likelihood": lambda s: log_likelihood_ratio(log_ratio(s.own, s.noise, s.left), s.rate)},
            lambda totals, _: totals["likelihood"],
            threshold=0.0,
        ),
        # The paper's: the plain sum of what was released, the batch's share included.
        Score("sum", {"sums": lambda s: s.own + s.share}, lambda totals, _: totals["sums"]),
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

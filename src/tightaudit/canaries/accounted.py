"""What the accountant has written down, as a claim: stretches of steps alike, or all steps at once."""

from collections.abc import Iterable
from dataclasses import dataclass

from tightaudit.claims.base import Claim
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.claims.dp_sgd_participation import DpSgdParticipation
from tightaudit.claims.dp_sgd_schedule import DpSgdSchedule
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.parts.accounting import Stretch
from tightaudit.support.errors import InputError

History = tuple[Stretch, ...]


@dataclass(frozen=True)
class Together:
    """All steps as one Gaussian mechanism, as accountants see noise that is correlated between steps."""

    sigma: float
    """The noise over the sensitivity of all steps together."""
    steps: int
    each: tuple[float, ...] = ()
    """The noise of each step, where steps count together by composition alone."""

    def first(self, steps: int) -> float:
        """The noise over the sensitivity of the first steps; of all, where noise is correlated."""
        if not self.each:
            return self.sigma
        return sum(sigma**-2.0 for sigma in self.each[:steps]) ** -0.5


Accounted = History | Together


def as_history(stretches: Iterable[tuple[float, float, int]]) -> History:
    """Stretches as an accountant keeps them, neighbours that are alike joined.

    >>> as_history([(1.0, 0.1, 20), (1.0, 0.1, 5), (0.9, 0.1, 5)])
    ((1.0, 0.1, 25), (0.9, 0.1, 5))
    """
    joined: list[Stretch] = []
    for sigma, rate, steps in stretches:
        if joined and joined[-1][:2] == (sigma, rate):
            steps += joined.pop()[2]
        joined.append((float(sigma), float(rate), int(steps)))
    return tuple(joined)


def total(accounted: Accounted) -> int:
    """The number of steps."""
    if isinstance(accounted, Together):
        return accounted.steps
    return sum(steps for _, _, steps in accounted)


def first(history: History, steps: int) -> History:
    """The first steps of a history.

    >>> first(((1.0, 0.1, 25), (0.9, 0.1, 5)), 26)
    ((1.0, 0.1, 25), (0.9, 0.1, 1))
    """
    kept, left = [], steps
    for sigma, rate, length in history:
        if left > 0:
            kept.append((sigma, rate, min(left, length)))
        left -= length
    return as_history(kept)


def claim_of(accounted: Accounted, steps: int) -> Claim:
    """What a record is promised in the first steps; where noise is correlated, in all of them.

    >>> str(claim_of(((1.0, 0.1, 25), (0.9, 0.1, 5)), 30))
    'dp-sgd-schedule(factor=1,sigma=[1,0.9],q=[0.1,0.1],steps=[25,5])'
    >>> claim_of(Together(2.0, 30), 30)
    Gaussian(mu=0.5)
    """
    if isinstance(accounted, Together):
        return Gaussian(1 / accounted.first(steps))
    history = first(accounted, steps)
    if not history:
        raise InputError("steps", 0, "at least one step of training, written down by the accountant")
    if len(history) == 1:
        return DpSgd(*history[0])
    return DpSgdSchedule(1.0, *zip(*history, strict=True))


def claim_of_participation(history: History, seen: float) -> DpSgdParticipation:
    """What one participation is promised, in steps whose noise a canary sees as `seen`."""
    claim_of(history, total(history))
    return DpSgdParticipation(1.0, seen, *zip(*history, strict=True))

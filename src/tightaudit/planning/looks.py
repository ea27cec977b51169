"""When to look at a run before its end, and which share of the level each look gets."""

from dataclasses import dataclass
from itertools import pairwise

from tightaudit.support import checks
from tightaudit.support.errors import InputError

EARLY = 0.2
"""The share of the level that all looks before the last have together."""


@dataclass(frozen=True)
class Looks:
    """The steps after which a training is audited, fixed before the first of them.

    Every look is a chance to reject a true claim, so they share the level: all but the last have `early` of
    it together, the same each, and the last has the rest. Then the chance that any of them rejects a true
    claim is at most the level, however they depend on each other.

    >>> looks = Looks(at=(50, 100, 200))
    >>> [round(looks.share(place), 2) for place in range(3)]
    [0.1, 0.1, 0.8]
    """

    at: tuple[int, ...]
    early: float = EARLY

    def __post_init__(self) -> None:
        if not isinstance(self.at, tuple | list) or not self.at:
            raise InputError("at", self.at, "the steps to look after, such as (50, 100, 200)")
        at = tuple(checks.count("at", step, minimum=1) for step in self.at)
        if any(after <= before for before, after in pairwise(at)):
            raise InputError("at", at, "steps in ascending order, each once")
        checks.between("early", self.early, "a share of the level between 0 and 1")
        object.__setattr__(self, "at", at)

    @classmethod
    def every(cls, steps: int, *, until: int, early: float = EARLY) -> "Looks":
        """A look every so many steps, and the last one at the end.

        >>> Looks.every(80, until=200).at
        (80, 160, 200)
        """
        steps, until = checks.count("every", steps, minimum=1), checks.count("until", until, minimum=1)
        return cls((*range(steps, until, steps), until), early)

    def share(self, place: int) -> float:
        """The share of the level that a look has."""
        if len(self.at) == 1:
            return 1.0
        return 1 - self.early if place == len(self.at) - 1 else self.early / (len(self.at) - 1)

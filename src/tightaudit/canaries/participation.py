"""In which steps a record may take part, as the accountant assumes."""

import json
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from tightaudit.support import checks


@dataclass(frozen=True)
class Sampled:
    """Records are sampled, and who was is a secret: that makes the claim stronger.

    A record's turn comes every `cycle` steps; it is then sampled at the rate of the step.
    """

    cycle: int = 1
    fixed_size: bool = False
    """Whether all batches have the same number of records."""

    def __post_init__(self) -> None:
        checks.count("cycle", self.cycle, minimum=1)


@dataclass(frozen=True)
class Pattern:
    """Records take part in steps that everyone may know, within limits.

    >>> Pattern(min_sep=4, max_participations=3)
    Pattern(min_sep=4, max_participations=3)
    """

    min_sep: int = 1
    """Steps from one participation of a record to its next, at least."""
    max_participations: int | None = None
    """Participations of a record, at most; None for as many as there is room for."""

    def __post_init__(self) -> None:
        checks.count("min_sep", self.min_sep, minimum=1)
        if self.max_participations is not None:
            checks.count("max_participations", self.max_participations, minimum=1)

    def most(self, steps: int) -> int:
        """Participations of a record in so many steps, at most.

        >>> Pattern(min_sep=4).most(10), Pattern(min_sep=4, max_participations=2).most(10)
        (3, 2)
        """
        room = -(-steps // self.min_sep)
        return room if self.max_participations is None else min(room, self.max_participations)


Participation = Sampled | Pattern
_KINDS: dict[str, type[Sampled] | type[Pattern]] = {"sampled": Sampled, "pattern": Pattern}


def as_text(participation: Participation) -> str:
    """For a file.

    >>> of_text(as_text(Sampled(cycle=4)))
    Sampled(cycle=4, fixed_size=False)
    """
    name = next(name for name, kind in _KINDS.items() if isinstance(participation, kind))
    return json.dumps([name, asdict(participation)])


def of_text(text: str) -> Participation:
    """What `as_text` gave."""
    name, given = json.loads(text)
    return _KINDS[name](**given)


def turns(sampled: NDArray[np.bool_], cycle: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """For each record, which of the `cycle` steps of a round is its turn.

    For one that never took part that is drawn by chance: nothing of it was released in any step, so that
    its score has the law that it would have with its own turn, and that it never took part stays unused.

    >>> turns(np.array([[0, 0], [0, 1], [0, 0], [0, 1]], bool), 2, np.random.default_rng(0))[1]
    np.int64(1)
    """
    found = sampled.argmax(axis=0) % cycle
    never = ~sampled.any(axis=0)
    found[never] = rng.integers(cycle, size=int(never.sum()))
    return found

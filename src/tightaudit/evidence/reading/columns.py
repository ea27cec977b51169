"""Which columns of a file hold the scores, the bits and the ids, and what was found in them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from tightaudit.support.errors import InputError, Place, did_you_mean

USUAL_NAMES = {
    "score": ("score", "scores"),
    "member": ("member", "members"),
    "id": ("id", "ids"),
    "run": ("run", "runs"),
}
NAMES_OF_THINGS = ("id", "run")
"""Roles whose values are text or whole numbers."""
_LISTED_NAMES = 12


@dataclass(frozen=True)
class Columns:
    """Names of the columns that hold scores, secret bits, ids and runs; None stands for their usual names.

    A column of runs says which of several runs, independent of each other, a canary was in.

    >>> Columns(score="loss").member is None
    True
    """

    score: str | None = None
    member: str | None = None
    id: str | None = None
    run: str | None = None


@dataclass(frozen=True)
class Selection:
    """The columns to take from a file: by the names given, else by their usual names."""

    names: Columns = Columns()
    needed: tuple[str, ...] = ("score", "member")
    wanted: tuple[str, ...] = NAMES_OF_THINGS
    """Taken if they are there."""

    def among(self, names: Sequence[str], source: str) -> dict[str, str]:
        """The column of each role, of those that a file has.

        >>> Selection(Columns(score="loss")).among(["id", "loss", "member"], "a.csv")
        {'score': 'loss', 'member': 'member', 'id': 'id'}
        """
        roles = {}
        for role in (*self.needed, *self.wanted):
            given = getattr(self.names, role)
            present = [name for name in ((given,) if given else USUAL_NAMES[role]) if name in names]
            if len(present) > 1 or (present and list(names).count(present[0]) > 1):
                raise InputError(Place(source), _listed(names), f"one column for the {role}s; name it")
            if present:
                roles[role] = present[0]
            elif role in self.needed or given:
                looked_for = given or " or ".join(USUAL_NAMES[role])
                way_out = (
                    f"; name yours with --{role}-column, in Python Columns({role}=…)"
                    f"{did_you_mean(given or role, names)}"
                )
                raise InputError(Place(source), _listed(names), f"a column {looked_for}{way_out}")
        if len(set(roles.values())) < len(roles):
            used = next(name for name in roles.values() if list(roles.values()).count(name) > 1)
            raise InputError(Place(source), f"column {used} for two things", "a column for each")
        return roles


@dataclass(frozen=True)
class Contents:
    """What a file holds for each role, and what it says of itself."""

    source: str
    values: dict[str, NDArray[Any]]
    known: dict[str, Any] = field(default_factory=dict)
    """Further arguments of a Run: whether outcomes are independent, the claim, and so on."""


def bit_of_word(word: str, source: str, line: int) -> bool:
    """A bit from text: 0 or 1 as a number, or false or true in any case.

    >>> bit_of_word("1", "a.csv", 2), bit_of_word("False", "a.csv", 3)
    (True, False)
    """
    bit = _BITS.get(word)
    if bit is None:
        raise InputError(Place(f"{source}, line {line}"), word or "nothing", "0 or 1 for the member")
    return bit


_BITS = {"0": False, "1": True, "0.0": False, "1.0": True} | {
    spelled: word == "true" for word in ("true", "false") for spelled in (word, word.title(), word.upper())
}


def _listed(names: Sequence[str]) -> str:
    # A space before or after a name is seen only between quotes.
    shown = ", ".join(name if name == name.strip() else repr(name) for name in names[:_LISTED_NAMES])
    return f"columns {shown}{', …' if len(names) > _LISTED_NAMES else ''}" if names else "no columns"

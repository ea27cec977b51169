"""A check-up: what the accountant assumes against what was seen, and which fault that points to.

Data only; `canaries/checkup.py` computes it. Holm's correction keeps the chance that an honest training is
faulted by any of the checks below the level. They say where to look; they are no statement about ε.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from tightaudit.support.errors import InputError, Place

LEVEL = 0.01


@dataclass(frozen=True)
class Check:
    """One assumption of the accountant, and what was seen of it."""

    name: str
    assumed: str
    seen: str
    p_value: float
    fault: str
    """What is wrong if the p-value is small."""
    interval: str = ""
    """Where it lies with 99% confidence, this check by itself; empty where it is known exactly."""
    harmful: bool = True
    """Whether that costs privacy; too much noise does not."""
    explained_by: str = ""
    """Another check that fails and takes the meaning from this one; empty if there is none."""


@dataclass(frozen=True)
class Checkup:
    """All checks of one training, in the order in which a record travels.

    >>> checkup = Checkup((Check("noise", "1", "0.5", 1e-9, "the noise is 0.5 of what was asked for"),))
    >>> [check.fault for check in checkup.faults]
    ['the noise is 0.5 of what was asked for']
    """

    checks: tuple[Check, ...]
    level: float = LEVEL

    @cached_property
    def corrected(self) -> tuple[float, ...]:
        """The p-values corrected for the number of checks (Holm)."""
        order = sorted(range(len(self.checks)), key=lambda place: self.checks[place].p_value)
        corrected, largest = [0.0] * len(self.checks), 0.0
        for rank, place in enumerate(order):
            largest = max(largest, min(1.0, (len(self.checks) - rank) * self.checks[place].p_value))
            corrected[place] = largest
        return tuple(corrected)

    @property
    def faults(self) -> tuple[Check, ...]:
        """What is wrong, and costs privacy."""
        return tuple(check for check in self._failed if check.harmful)

    @property
    def notes(self) -> tuple[Check, ...]:
        """What is not as assumed, and costs no privacy."""
        return tuple(check for check in self._failed if not check.harmful)

    @property
    def _failed(self) -> list[Check]:
        return [check for check, p in zip(self.checks, self.corrected, strict=True) if p <= self.level]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "level": self.level,
            "faults": [check.fault for check in self.faults],
            "notes": [check.fault for check in self.notes],
            "checks": [
                {**asdict(check), "corrected_p_value": corrected}
                for check, corrected in zip(self.checks, self.corrected, strict=True)
            ],
        }

    @classmethod
    def of_dict(cls, given: Any, place: Place) -> Checkup:
        """The check-up that `to_dict` gave, found at a place of a file."""
        expected = "a check-up as tightaudit saves it"
        if not isinstance(given, Mapping) or not isinstance(given.get("checks"), list):
            raise InputError(place, given, expected)
        kinds: dict[str, Any] = {"str": str, "float": int | float, "bool": bool}
        checks = []
        for check in given["checks"]:
            for each in fields(Check):
                if not isinstance(check, Mapping) or not isinstance(
                    check.get(each.name), kinds[str(each.type)]
                ):
                    raise InputError(place, check, expected)
            checks.append(Check(**{each.name: check[each.name] for each in fields(Check)}))
        if not isinstance(given.get("level"), int | float):
            raise InputError(place, given.get("level"), expected)
        return cls(tuple(checks), float(given["level"]))

    def __str__(self) -> str:
        from tightaudit.render.terminal.checkup import checkup_view
        from tightaudit.render.terminal.tables import without_colours

        return without_colours(checkup_view(self))

    def _repr_html_(self) -> str:
        from tightaudit.render.notebook import as_html
        from tightaudit.render.terminal.checkup import checkup_view

        return as_html(checkup_view(self))

"""What has to be believed for a bound to hold."""

from __future__ import annotations

from dataclasses import dataclass

from tightaudit.claims.family import Family
from tightaudit.methods.base import Method


@dataclass(frozen=True)
class Beliefs:
    """What a bound may rest on: something about outcomes, and something about the privacy curve."""

    independent: bool
    """That outcomes are independent."""
    family: Family | None
    """That the privacy curve is in this family; None for any curve."""
    runs: int = 1
    """That so many runs are independent of each other; 1 if nothing is believed of runs."""

    @classmethod
    def of(cls, method: Method, family: Family) -> Beliefs:
        """Those of a method's bound in a family."""
        shape = family if family.assumes_shape else None
        return cls(method.assumes.independent_outcomes, shape, method.independent_runs)

    def __str__(self) -> str:
        """In words.

        >>> import tightaudit as ta
        >>> report = ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5)
        >>> [str(row.beliefs) for row in report.rows][1:]
        ['outcomes are independent', 'the privacy curve is in the family gaussian', 'nothing']
        """
        from tightaudit.render.wording import beliefs_in_words

        return beliefs_in_words(self) or "nothing"

"""Which rows count: the one that is the headline, the one that decides the claim, the one that could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tightaudit.auditing.question import Question
from tightaudit.bounds.beliefs import Beliefs


class Believing(Protocol):
    """What a row, tested or not, rests on."""

    @property
    def beliefs(self) -> Beliefs: ...
    @property
    def tests_claim_itself(self) -> bool: ...


@dataclass(frozen=True)
class Verdict:
    """Places in the table, None where every row assumes more than was stated.

    Rejecting a claim itself needs no belief in a family: the claim is what is disproved. So the row that
    decides may believe in the claim's family where the headline may not. Every row is a test with a level of
    its own, and two tests are two chances to be wrong. So one row alone decides.
    """

    headline: int | None
    """The row whose bound uses all that was stated, and assumes nothing else."""
    deciding: int | None
    """The row whose p-value decides the claim."""
    could_decide: int | None = None
    """The row that would decide the claim if more were stated: the one that believes most."""

    @classmethod
    def of(cls, question: Question, rows: Sequence[Believing]) -> Verdict:
        """For each, the first row that may be relied on; rows are in order of strength."""

        def stated(row: Believing, *, unless: bool = False) -> bool:
            known = question.family_known or row.beliefs.family is None or unless
            # Who names several runs states that they are independent of each other.
            return known and (bool(question.independent) or not row.beliefs.independent)

        headline = next((at for at, row in enumerate(rows) if stated(row)), None)
        if question.claim is None:
            return cls(headline, None)
        deciding = next(
            (at for at, row in enumerate(rows) if stated(row, unless=row.tests_claim_itself)), None
        )
        return cls(headline, deciding, 0 if rows and deciding != 0 else None)

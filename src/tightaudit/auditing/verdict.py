"""Which rows count: the one that is the headline, and the one that decides about the claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightaudit.auditing.question import Question
from tightaudit.auditing.rows import Row


@dataclass(frozen=True)
class Verdict:
    """Places in the table, None where every row assumes more than was stated.

    Rejecting a claim itself needs no belief in a family: the claim is what is disproved. So the row that
    decides may believe in the claim's family where the headline may not.
    """

    headline: int | None
    """The row whose bound uses all that was stated, and assumes nothing else."""
    deciding: int | None
    """The row whose p-value decides the claim."""

    @classmethod
    def of(cls, question: Question, rows: Sequence[Row]) -> Verdict:
        """For each, the first row that may be relied on; rows are in order of strength."""

        def stated(row: Row, *, unless: bool = False) -> bool:
            known = question.family_known or row.beliefs.family is None or unless
            # Who names several runs states that they are independent of each other.
            return known and (bool(question.independent) or not row.beliefs.independent)

        headline = (at for at, row in enumerate(rows) if stated(row))
        deciding = (
            at
            for at, row in enumerate(rows)
            if row.p_value is not None and stated(row, unless=row.tests_claim_itself)
        )
        return cls(next(headline, None), next(deciding, None))

"""What an audit found: the question, the rows, what decides, and the data of every picture."""

import math
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, overload

from tightaudit.auditing.plot_data import PlotData
from tightaudit.auditing.power import Visible
from tightaudit.auditing.question import Question
from tightaudit.auditing.rows import Row
from tightaudit.auditing.verdict import Verdict
from tightaudit.claims.parts.typical import family_through
from tightaudit.evidence.checkup import Checkup
from tightaudit.evidence.counts import Evidence
from tightaudit.evidence.run import Run
from tightaudit.methods.base import Test
from tightaudit.planning.looks import Looks
from tightaudit.planning.release import Release


@dataclass(frozen=True)
class Look:
    """What one look at a training came to."""

    step: int
    """The step after which it was taken."""
    confidence: float
    """By its share of the level."""
    epsilon: float | None
    """The headline's bound for the steps so far."""
    claimed: float | None
    """What is claimed for them."""
    p_value: float | None
    """Of the claim."""
    rejected: bool


@dataclass(frozen=True)
class Looked:
    """Looks that were planned, and what those that were taken came to."""

    looks: Looks
    confidence: float
    """Of all looks together."""
    taken: tuple[Look, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The table of beliefs of one audited run, strongest belief first, and everything to repeat it."""

    run: Run
    question: Question
    evidence: Evidence
    release: Release
    rows: tuple[Row, ...]
    decides: Verdict
    warnings: tuple[str, ...]
    command: str | None = None
    """The command line that made the report, if one did."""
    looked: Looked | None = None
    """The looks at the training that this report is the last of; None if it was not looked at before."""

    @property
    def headline(self) -> Row | None:
        """The row that uses all that was stated, and assumes nothing else; None if there is none."""
        return None if self.decides.headline is None else self.rows[self.decides.headline]

    @property
    def claim_row(self) -> Row | None:
        """The row whose p-value decides the claim; None without a claim or such a row."""
        return None if self.decides.deciding is None else self.rows[self.decides.deciding]

    @property
    def epsilon(self) -> float | None:
        """The headline's lower bound on ε; None without a headline, or if its whole family is rejected.

        Beside a claim that stands it is at most the claim's ε: another row decides the claim, and whichever
        of two tests speaks against it would do so too often.
        """
        if self.headline is None:
            return None
        if self.held_back:
            return self.question.claimed_epsilon
        return self.headline.epsilon

    @property
    def held_back(self) -> bool:
        """Whether the headline's own bound is above the ε of a claim that stands."""
        claimed = self.question.claimed_epsilon
        if self.violated is not False or claimed is None or self.headline is None:
            return False
        return self.headline.bound.size > claimed

    @property
    def violated(self) -> bool | None:
        """Whether the claim is rejected, assuming only what was stated; None if nothing decides it.

        Of several looks one is enough: each has its share of the level.
        """
        if self.claim_row is None:
            return None
        return self.claim_row.rejected or self.rejected_before is not None

    @property
    def rejected_before(self) -> Look | None:
        """The first look before this one at which the claim was rejected."""
        earlier = () if self.looked is None else self.looked.taken[:-1]
        return next((look for look in earlier if look.rejected), None)

    @property
    def checkup(self) -> Checkup | None:
        """What the accountant assumes against what the canaries saw; None if the run has no check-up."""
        return self.run.checkup

    @property
    def faulted(self) -> bool:
        """Whether the check-up found a fault; it has no say in the verdict."""
        return self.checkup is not None and bool(self.checkup.faults)

    @property
    def verdict(self) -> str:
        """What was found, in one sentence, with the beliefs it rests on.

        >>> import numpy as np, tightaudit as ta
        >>> coins = ta.draw_coins(1000, seed=1)
        >>> scores = 3 * coins.members + np.random.default_rng(1).standard_normal(1000)
        >>> report = ta.audit(scores, coins.members, delta=1e-5, claim_epsilon=2.0)
        >>> print(report.verdict)  # doctest: +NORMALIZE_WHITESPACE
        The run is inconsistent with ε ≤ 2 at δ = 1e-05, at 95% confidence,
        whatever the dependence between canaries and the shape of the curve.
        """
        from tightaudit.render.wording import verdict_sentence

        return verdict_sentence(self)

    @cached_property
    def visible(self) -> Visible:
        """The smallest leak that the deciding row, or without a claim the headline, could have detected.

        With a claim, that is a leak that contradicts it; without one, any leak at all.

        >>> import tightaudit as ta
        >>> report = ta.audit([2.0, 1.0, -1.0], [1, 1, 0], delta=1e-5, claim="gaussian(mu=1)")
        >>> print(report.visible.epsilon)
        None
        """
        row = self.claim_row or self.headline or self.rows[0]
        question = self.question
        each = (
            Visible.by(
                Test(row.method, self.run.n, count),
                row.bound.family.most_private if row.tested is None else row.tested,
                family_through(question.typical, question.delta),
                level=question.level / len(row.counts),
                delta=question.delta,
                claimed=question.claim is not None,
            )
            for count in row.counts
        )
        return min(each, key=lambda found: math.inf if found.epsilon is None else found.epsilon)

    @cached_property
    def plot_data(self) -> PlotData:
        """The data of every picture, computed on first use."""
        return PlotData.of(self.run, self.question, self.rows, self.decides)

    def __str__(self) -> str:
        """The table as plain text."""
        from tightaudit.render.terminal.audit import plain_text

        return plain_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, as `to_json` writes it."""
        from tightaudit.render.json.audit import audit_fields

        return audit_fields(self)

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write everything as JSON; docs/audit-json.md says what each field is."""
        from tightaudit.render.json.audit import write_json

        write_json(self, path)

    @overload
    def to_html(self) -> str: ...
    @overload
    def to_html(self, path: str | PathLike[str]) -> None: ...
    def to_html(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write one self-contained page with the table, the plots and what is needed to repeat the audit.

        Without a path the page is returned.
        """
        from tightaudit.render.page.page import html_page, write_html

        if path is None:
            return html_page(self)
        write_html(self, path)
        return None

    def __repr__(self) -> str:
        return f"Report(n={self.run.n}, epsilon={self.epsilon}, violated={self.violated})"

    def _repr_html_(self) -> str:
        from tightaudit.render.page.page import notebook_html

        return notebook_html(self)

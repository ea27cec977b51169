"""From scores to a verdict: a lower bound for each combination of beliefs, side by side.

What is believed is for the caller to say; the headline rests on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightaudit import checks
from tightaudit.belief_rows import UNCONDITIONAL, Row, plan_rows
from tightaudit.errors import InputError
from tightaudit.game import Evidence, Guessing, release
from tightaudit.progress import Progress
from tightaudit.pvalues.base import Method
from tightaudit.pvalues.bits import binomial_tail
from tightaudit.reading.files import run_of_frame
from tightaudit.reading.frames import is_frame
from tightaudit.releases import ReleaseRule
from tightaudit.run import Run
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import Family, TradeOff, shortest

IMPLAUSIBLE_COIN = 1e-3
"""How rarely fair coins may fall as unevenly as the members did before a warning is due."""


@dataclass(frozen=True, eq=False)
class Report:
    """The table of beliefs of one audited run, strongest belief first, and everything to repeat it."""

    run: Run
    evidence: Evidence
    rows: tuple[Row, ...]
    delta: float
    confidence: float
    claim: TradeOff | None
    independent: bool
    """Whether outcomes were stated to be independent."""
    why: str | None
    """Who stated it, or the reason."""
    shape_known: bool
    """Whether the shape was stated to be known."""
    release: ReleaseRule
    warnings: tuple[str, ...]
    command: str | None = None
    """The command line that made the report, if one did."""

    @property
    def headline(self) -> Row | None:
        """The row that rests on all that was stated, and on nothing else; None if there is none."""
        stated = (row for row in self.rows if self._holds(row) and (self.shape_known or row.shape is None))
        return next(stated, None)

    @property
    def claim_row(self) -> Row | None:
        """The row whose p-value decides about the claim.

        Rejecting a claim itself needs no belief in its shape: the claim is what is disproved.
        """
        for row in self.rows:
            itself = row.tested is self.claim or row.shape is None or self.shape_known
            if row.p_value is not None and self._holds(row) and itself:
                return row
        return None

    @property
    def violated(self) -> bool | None:
        """Whether the claim is rejected on what was stated; None if there is nothing to decide."""
        return None if self.claim_row is None else self.claim_row.rejected

    @property
    def verdict(self) -> str:
        """What was found, in one sentence, with the beliefs it rests on.

        >>> import numpy as np, tightaudit as ta
        >>> coins = ta.draw_coins(1000, seed=1)
        >>> scores = 3 * coins.members + np.random.default_rng(1).standard_normal(1000)
        >>> report = ta.audit(scores, coins.members, delta=1e-5, claim=ta.ApproxDP(2.0, 1e-5))
        >>> print(report.verdict)  # doctest: +NORMALIZE_WHITESPACE
        The run is inconsistent with ε ≤ 2 at δ = 1e-05, at 95% confidence,
        whatever the dependence between canaries and the shape of the curve.
        """
        row = self.claim_row
        if self.claim is None:
            if self.headline is None:
                return "No row of the table rests only on what was stated; --independent states independence."
            return self.headline.finding
        if row is None:
            return "The claim was not decided: no row rests only on what was stated."
        condition = row.condition
        if row.tested is self.claim:
            condition = "if outcomes are independent" if row.independent else UNCONDITIONAL
        sure = f"{100 * self.confidence:.10g}% confidence"
        if row.rejected:
            return f"The run is inconsistent with {self.claimed}, at {sure}, {condition}."
        if self.headline is not None and self.headline.rejected:
            return (
                f"The test of {self.claimed} itself does not reject it, at {sure}, {condition} (p = "
                f"{row.p_value:.3g}), but the bound is above its ε: the curve is not of the claimed shape."
            )
        return (
            f"The run does not contradict {self.claimed}, at {sure}, {condition} (p = {row.p_value:.3g}). "
            "That is no proof of privacy."
        )

    @property
    def claimed(self) -> str:
        """The claim as it is spoken of."""
        if self.claim is None:
            return "no claim"
        if isinstance(self.claim, ApproxDP):
            return f"ε ≤ {shortest(self.claim.claimed_epsilon)} at δ = {shortest(self.delta)}"
        return f"the claim {self.claim}"

    def _holds(self, row: Row) -> bool:
        return self.independent or not row.independent

    def __str__(self) -> str:
        """The table as plain text."""
        from tightaudit.report.audit_text import plain_text

        return plain_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, as `to_json` writes it."""
        from tightaudit.report.audit_json import audit_fields

        return audit_fields(self)

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write everything as JSON; docs/audit-json.md says what each field is."""
        from tightaudit.report.audit_json import write_json

        write_json(self, path)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write one self-contained page with the table, the plots and what is needed to repeat the audit."""
        from tightaudit.report.audit_html import write_html

        write_html(self, path)


def audit(
    data: ArrayLike | Run | Any,
    members: ArrayLike | None = None,
    *,
    delta: float | None = None,
    claim: TradeOff | None = None,
    null: Family | None = None,
    independent: bool | None = None,
    shape_known: bool | None = None,
    release: int | float | str = "auto",
    method: str | Method | None = None,
    confidence: float = 0.95,
    guessing: Guessing | None = None,
    threshold: float | None = None,
    seed: int = 0,
    score_column: str | None = None,
    member_column: str | None = None,
    id_column: str | None = None,
    progress: Progress | None = None,
    command: str | None = None,
) -> Report:
    """Lower bounds on ε from one run, one for each combination of beliefs.

    `data` are scores, with the secret coins in `members`; or a `Run`; or a pandas or polars frame.
    State what is known: `independent` if each canary's outcome depends on its own bit and its own noise
    alone, `shape_known` if the privacy curve is of the family `null` (the claim's own by default, else
    Gaussian). The headline rests on that alone. What a `Run` knows need not be stated again. `release` is
    a count, a fraction, `auto` or `best`; `method` replaces the methods of the table by one. Guesses are
    two-sided, unless the run has a threshold.

    >>> import numpy as np, tightaudit as ta
    >>> coins = ta.draw_coins(10_000, seed=7)
    >>> scores = coins.members + np.random.default_rng(7).standard_normal(10_000)
    >>> report = ta.audit(scores, coins.members, delta=1e-5, claim=ta.Gaussian(0.5), independent=True)
    >>> print(report.verdict)  # doctest: +NORMALIZE_WHITESPACE
    The run is inconsistent with the claim gaussian(mu=0.5), at 95% confidence,
    if outcomes are independent.
    """
    run = _run(data, members, score_column, member_column, id_column)
    claim = run.claim if claim is None else claim
    if claim is not None and not isinstance(claim, TradeOff):
        raise InputError("claim", claim, "a claim with all its parameters, such as Gaussian(1.0)")
    if null is not None and not isinstance(null, Family):
        raise InputError("null", null, "a family, such as Gaussian.family()")
    if shape_known is None:
        shape_known = run.shape is not None and (null is None or str(null) == str(run.shape))
    null = run.shape if null is None else null
    delta = _delta(delta, claim, null)
    confidence = checks.confidence(confidence)
    stated = run.independent if independent is None else checks.flag("independent", independent)
    rule = ReleaseRule(release)
    evidence = _evidence(run, guessing, threshold, seed)
    plans = plan_rows(
        run.n,
        claim=claim,
        null=null,
        delta=delta,
        confidence=confidence,
        release=rule,
        method=method,
        guessing=evidence.guessing,
    )
    rows = []
    for plan in plans:
        rows.append(plan.row(evidence))
        if progress is not None:
            progress(len(rows), len(plans))
    return Report(
        run=run,
        evidence=evidence,
        rows=tuple(rows),
        delta=delta,
        confidence=confidence,
        claim=claim,
        independent=stated,
        why=_reason(run, independent) if stated else None,
        shape_known=checks.flag("shape_known", shape_known),
        release=rule,
        warnings=tuple(_warnings(run, 1 - confidence)),
        command=command,
    )


def _run(data: Any, members: ArrayLike | None, score: str | None, member: str | None, ids: str | None) -> Run:
    if isinstance(data, Run) or is_frame(data):
        if members is not None:
            raise InputError("members", "given", "none: they are part of the run or the frame")
        if not isinstance(data, Run):
            return run_of_frame(data, score_column=score, member_column=member, id_column=ids)
        named = [name for name in (score, member, ids) if name is not None]
        if named:
            raise InputError("column", named[0], "no column names with a Run")
        return data
    if isinstance(data, str | PathLike):
        raise InputError("scores", data, "numbers, a Run or a frame; read a file with read_run first")
    if members is None:
        raise InputError("members", None, "the secret coins, one per score")
    return Run(checks.vector("scores", data), checks.bits("members", members))


def _delta(delta: float | None, claim: TradeOff | None, null: Family | None) -> float:
    fixed = [claim.claimed_delta] if isinstance(claim, ApproxDP) else []
    fixed += [null.delta] if null is not None and null.delta is not None else []
    if delta is None:
        if not fixed:
            raise InputError("delta", None, "the δ at which ε is bounded")
        delta = fixed[0]
    delta = checks.probability("delta", delta)
    for other in fixed:
        if other != delta:
            raise InputError("delta", delta, f"{other:g}, the δ of the claim or family")
    return delta


def _evidence(run: Run, guessing: Guessing | None, threshold: float | None, seed: int) -> Evidence:
    if guessing is None:
        guessing = "two-sided" if run.threshold is None else "threshold"
    if guessing == "threshold" and threshold is None:
        threshold = run.threshold
    return release(run.scores, run.members, released=run.n, guessing=guessing, threshold=threshold, seed=seed)


def _reason(run: Run, independent: bool | None) -> str:
    stated = "stated by whoever asked for the audit" if independent else "recorded with the run"
    return run.why or stated


def coin_p_value(run: Run) -> float:
    """How likely fair coins fall at least as unevenly as the members did.

    >>> coin_p_value(Run([1.0, 2.0, 3.0], [1, 1, 1]))
    0.25
    """
    inside = int(np.count_nonzero(run.members))
    return min(1.0, 2 * binomial_tail(min(inside, run.n - inside), run.n, 0.5))


def _warnings(run: Run, level: float) -> Iterator[str]:
    inside, coin = int(np.count_nonzero(run.members)), coin_p_value(run)
    if inside in (0, run.n):
        yield f"{'Every' if inside else 'No'} canary is a member: there is nothing to tell apart."
    if coin < IMPLAUSIBLE_COIN:
        yield (
            f"{inside:,} of {run.n:,} canaries are members; fair coins fall so unevenly with probability "
            f"{coin:.2g}. If the coins were not fair and independent, no bound here holds."
        )
    if run.n > 1 and bool(np.all(run.scores == run.scores[0])):
        yield "All scores are equal: the guesses are made by chance."
    infinite = int(np.count_nonzero(np.isinf(run.scores)))
    if infinite:
        yield f"{infinite:,} scores are infinite; they sort, and are left out of the histogram."
    if 0.5**run.n > level:
        yield f"n = {run.n} is too small: not even a faultless run of guesses would reject anything."

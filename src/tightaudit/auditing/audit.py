"""From scores to a report: a lower bound for each combination of beliefs, side by side.

The caller says what is believed; the headline rests on nothing else.
"""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightaudit.auditing.question import Question
from tightaudit.auditing.report import Report
from tightaudit.auditing.rows import Row, table_of_beliefs
from tightaudit.auditing.verdict import Verdict
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.text import as_family
from tightaudit.evidence.coins import Coins
from tightaudit.evidence.counts import Guessing, Rule, as_guessing
from tightaudit.evidence.guessing import release
from tightaudit.evidence.reading.columns import Columns
from tightaudit.evidence.reading.files import read_run, run_of_frame
from tightaudit.evidence.reading.frames import is_frame
from tightaudit.evidence.run import Run
from tightaudit.evidence.together import together
from tightaudit.methods.base import Method
from tightaudit.methods.bits import binomial_tail
from tightaudit.planning.release import Release, as_release
from tightaudit.support import checks
from tightaudit.support.errors import InputError
from tightaudit.support.progress import Progress

IMPLAUSIBLE_COIN = 1e-3
"""Below this probability under fair coins, for the members or for the guesses, there is a warning."""
_SAME_EPSILON = 0.01


def audit(
    data: ArrayLike | Run | Sequence[Run] | Any,
    members: ArrayLike | Coins | None = None,
    *,
    delta: float | None = None,
    claim: Claim | str | None = None,
    claim_epsilon: float | None = None,
    family: Family | str | None = None,
    independent: bool | str | None = None,
    family_known: bool | None = None,
    confidence: float = 0.95,
    released: int | float | str | Release = "planned",
    method: str | Method | None = None,
    guessing: Guessing | Rule | None = None,
    columns: Columns | None = None,
    progress: Progress | None = None,
) -> Report:
    """Lower bounds on ε from one run or a few, one for each combination of beliefs.

    `data` holds scores, with the secret coins in `members`; or it is a `Run`, a list of them, a pandas or
    polars frame, or the path of a file that `read_run` reads; `columns` names the columns of a frame or file.
    Several runs, or those that a column names, are taken to be independent of each other. What is asked: ε
    at `delta`, and a `claim` to test, or `claim_epsilon` for (ε, δ)-DP. What is known: `independent` if each
    canary's outcome depends only on its own bit and its own noise (True, or the reason), `family_known` if
    the privacy curve is in `family` (the claim's own by default, else Gaussian). The headline assumes nothing
    else. What a `Run` knows need not be stated again; a claim that differs from the run's own gives a
    warning. `released` is a count, a share, 'planned' or 'best'; `method` replaces the methods of the table
    by one. Guesses are two-sided, unless the run has a threshold.

    >>> import numpy as np, tightaudit as ta
    >>> coins = ta.draw_coins(10_000, seed=7)
    >>> scores = coins.members + np.random.default_rng(7).standard_normal(10_000)
    >>> report = ta.audit(scores, coins.members, delta=1e-5, claim="gaussian(mu=0.5)", independent=True)
    >>> print(report.verdict)  # doctest: +NORMALIZE_WHITESPACE
    The run is inconsistent with the claim gaussian(mu=0.5), at 95% confidence,
    if outcomes are independent.
    """
    run = _run(data, members, columns, claim)
    if claim is None and claim_epsilon is None:
        claim = run.claim
    _require_own_family(run, family)
    if family_known is None:
        known = None if run.family is None else str(run.family)
        family_known = known is not None and (family is None or str(as_family(family, delta=delta)) == known)
    question = Question.of(
        claim=claim,
        claim_epsilon=claim_epsilon,
        family=run.family if family is None else family,
        delta=delta,
        confidence=confidence,
        independent=_independent(run, independent),
        family_known=family_known,
        runs=run.sizes,
    )
    question.require_bounds()
    rule, guesses = as_release(released), _guessing(run, guessing)
    evidence = apart = release(run.scores, run.members, released=run.n, guessing=guesses)
    if run.sizes:
        apart = release(run.scores, run.members, released=run.n, guessing=guesses, runs=run.runs)
    assert evidence.guessing is not None
    tests = table_of_beliefs(question, run.n, rule, method=method, rule=evidence.guessing.rule)
    rows = []
    for test in tests:
        rows.append(test.row(apart if test.method.independent_runs > 1 else evidence))
        if progress is not None:
            progress(len(rows), len(tests))
    return Report(
        run=run,
        question=question,
        evidence=evidence,
        release=rule,
        rows=tuple(rows),
        decides=Verdict.of(question, rows),
        warnings=(*run.remarks, *_warnings(run), *_mismatch(run, question), *_wrong_way_round(rows)),
    )


def _run(
    data: Any, members: ArrayLike | Coins | None, columns: Columns | None, claim: Claim | str | None
) -> Run:
    if isinstance(data, Run | str | PathLike) or is_frame(data):
        if members is not None:
            raise InputError("members", "given", "none: they are part of the run, the frame or the file")
        if isinstance(data, str | PathLike):
            return read_run(data, columns=columns)
        if not isinstance(data, Run):
            return run_of_frame(data, columns)
        if columns is not None:
            raise InputError("columns", columns, "no column names with a Run")
        return data
    if isinstance(data, list | tuple) and data and isinstance(data[0], Run):
        if members is not None or columns is not None:
            raise InputError(
                "members" if columns is None else "columns", "given", "none: they are in the runs"
            )
        return together(data, claim)
    if members is None:
        raise InputError("members", None, "the secret coins, one per score")
    if columns is not None:
        raise InputError("columns", columns, "column names for a frame or a file only")
    coins = members.members if isinstance(members, Coins) else checks.bits("members", members)
    return Run(checks.scores("scores", data), coins)


def _require_own_family(run: Run, family: Family | str | None) -> None:
    """Refuse another family where the run's own is what turns the channel that was seen into ε."""
    if run.family is None or run.family.besides is None or family is None:
        return
    if str(as_family(family)) != str(run.family):
        expected = f"{run.family}, the run's own: its canaries flipped a coin at each participation"
        raise InputError("family", str(family), expected)


def _independent(run: Run, stated: bool | str | None) -> bool | str:
    """What is known of independence: as stated, with the run's reason where none is given."""
    if stated is None:
        return run.independent
    if stated is True and isinstance(run.independent, str):
        return run.independent
    return stated


def _guessing(run: Run, given: Guessing | Rule | None) -> Guessing:
    if given is None:
        return run.guessing
    if given == "threshold":
        return Guessing("threshold", run.threshold)
    return as_guessing(given)


def coin_p_value(run: Run) -> float:
    """The probability that fair coins split at least as unevenly as the members did.

    >>> coin_p_value(Run([1.0, 2.0, 3.0], [1, 1, 1]))
    0.25
    """
    inside = int(np.count_nonzero(run.members))
    return min(1.0, 2 * binomial_tail(min(inside, run.n - inside), run.n, 0.5))


def _warnings(run: Run) -> Iterator[str]:
    inside, coin = int(np.count_nonzero(run.members)), coin_p_value(run)
    if inside in (0, run.n):
        yield f"{'Every' if inside else 'No'} canary is a member: there is nothing to tell apart."
    if coin < IMPLAUSIBLE_COIN:
        yield (
            f"{inside:,} of {run.n:,} canaries are members; fair coins split at least this unevenly with "
            f"probability {coin:.2g}. If the coins were not fair and independent, no bound here holds."
        )
    if run.n > 1 and bool(np.all(run.scores == run.scores[0])):
        yield "All scores are equal: the guesses are random."
    infinite = int(np.count_nonzero(np.isinf(run.scores)))
    if infinite:
        yield f"{infinite:,} scores are infinite; they are ranked, but left out of the histogram."


def _mismatch(run: Run, question: Question) -> Iterator[str]:
    """Where the claim to test is not the one that the run was set up for."""
    claimed = question.claimed_epsilon
    if run.claim is None or claimed is None or str(run.claim) == str(question.claim):
        return
    set_up = run.claim.epsilon(question.delta)
    if abs(set_up - claimed) <= _SAME_EPSILON * claimed:
        return
    more = "more" if set_up > claimed else "less"
    yield (
        f"The run was set up for {run.claim}, which is ε = {set_up:.4g} at δ = {question.delta:g}; the claim "
        f"tested, {question.claim}, is ε = {claimed:.4g}. By its own settings the mechanism leaks {more} "
        "than claimed: was one of them set by mistake?"
    )


def wrong_way_round(errors: int, released: int) -> float:
    """The probability that random guesses are wrong at least this often.

    >>> wrong_way_round(9, 10) < 0.02 < wrong_way_round(5, 10)
    True
    """
    return binomial_tail(released - errors, released, 0.5)


def _wrong_way_round(rows: Sequence[Row]) -> Iterator[str]:
    """Scores that seem to be the wrong way round. A warning changes no number, so no bound pays for it."""
    seen = [(row.evidence.errors, row.evidence.released) for row in rows]
    errors, released = min(seen, key=lambda pair: wrong_way_round(*pair))
    if wrong_way_round(errors, released) < IMPLAUSIBLE_COIN:
        yield (
            f"{errors:,} of {released:,} guesses are wrong; are the scores the wrong way round? "
            "They must be higher for members; negate a loss."
        )

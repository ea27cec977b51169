"""Several runs as one: their canaries side by side, each with the run it was in."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.claims.text import as_claim
from tightaudit.evidence.checkup import Checkup
from tightaudit.evidence.run import Run
from tightaudit.support.errors import InputError

_TELLING = 30
"""Coins from which equal ones are no accident."""


def together(runs: Sequence[Run], claim: Claim | str | None = None) -> Run:
    """Runs that are independent of each other, as one; with a claim for all of them, or by their own.

    They may differ in size, and in the parameter of their claims: the least private of those is what all of
    them promise.

    >>> import tightaudit as ta
    >>> both = together([ta.Run([2.0, 1.0], [1, 0]), ta.Run([0.5], [1])])
    >>> both.n, both.sizes
    (3, (2, 1))
    """
    for run in runs:
        if not isinstance(run, Run):
            raise InputError("data", type(run).__name__, "a Run in each place, or scores and their coins")
    if not runs:
        raise InputError("data", "no runs", "at least one run")
    if len(runs) == 1:
        return runs[0]
    for name in ("threshold", "family"):
        values = {str(getattr(run, name)) for run in runs}
        if len(values) > 1:
            reason = "their scores and bounds cannot be compared; audit them one by one"
            raise InputError(
                f"runs: {name}", " and ".join(sorted(values)), f"the same for all runs: {reason}"
            )
    _require_own_coins(runs)
    reasons = [run.independent for run in runs]
    labels = [
        [f"{place}/{label}" for label in ([""] * run.n if run.runs is None else run.runs.tolist())]
        for place, run in enumerate(runs, start=1)
    ]
    return Run(
        scores=np.concatenate([run.scores for run in runs]),
        members=np.concatenate([run.members for run in runs]),
        independent=reasons[0] if all(reasons) else False,
        claim=_least_private(runs) if claim is None else as_claim(claim),
        family=runs[0].family,
        threshold=runs[0].threshold,
        source=", ".join(dict.fromkeys(run.source for run in runs if run.source)) or None,
        remarks=tuple(
            f"Run {place}: {remark}" for place, run in enumerate(runs, start=1) for remark in run.remarks
        ),
        checkup=_checkup(runs),
        runs=np.array(list(chain.from_iterable(labels))),
    )


def _require_own_coins(runs: Sequence[Run]) -> None:
    """Refuse runs that share their coins: what is special about a canary would then repeat in all of them."""
    seen: dict[bytes, int] = {}
    for place, run in enumerate(runs, start=1):
        coins = np.packbits(run.members).tobytes()
        if run.n >= _TELLING and coins in seen:
            found = f"the same coins in run {seen[coins]} and run {place}"
            raise InputError("runs", found, "runs with coins of their own: draw them with different seeds")
        seen[coins] = place


def _least_private(runs: Sequence[Run]) -> Claim | None:
    first, claims = runs[0].claim, [run.claim for run in runs]
    if all(claim is first or (claim is not None and _same(claim, first)) for claim in claims):
        return first
    known = [claim for claim in claims if claim is not None]
    expected = "claims of one family, which differ in its parameter only; or a claim of your own for all"
    if len(known) < len(claims) or not all(claim.parameter_names for claim in known):
        raise InputError("runs: claim", " and ".join(sorted({str(claim) for claim in claims})), expected)
    family = known[0].own_family()
    for claim in known:
        if str(claim.own_family()) != str(family):
            raise InputError("runs: claim", f"{known[0]} and {claim}", expected)
    return max(known, key=family.leak)


def _same(one: Claim, other: Claim | None) -> bool:
    """Whether two claims promise the same; those without parameters have no text that tells them apart."""
    if other is None or str(one) != str(other):
        return False
    alpha = np.linspace(0, 1, 101)
    return bool(np.array_equal(one.f(alpha), other.f(alpha)))


def _checkup(runs: Sequence[Run]) -> Checkup | None:
    """The check-ups of all runs as one, which corrects for their number."""
    found = [
        replace(check, name=f"run {place}, {check.name}", fault=f"run {place}: {check.fault}")
        for place, run in enumerate(runs, start=1)
        for check in (() if run.checkup is None else run.checkup.checks)
    ]
    return Checkup(tuple(found)) if found else None

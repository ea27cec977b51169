"""Several runs as one: their canaries side by side, each with the run it was in."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.evidence.run import Run
from tightaudit.support.errors import InputError


def together(runs: Sequence[Run]) -> Run:
    """Runs that are independent of each other, as one.

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
    reasons = [run.independent for run in runs]
    labels = [
        [f"{place}/{label}" for label in ([""] * run.n if run.runs is None else run.runs.tolist())]
        for place, run in enumerate(runs, start=1)
    ]
    return Run(
        scores=np.concatenate([run.scores for run in runs]),
        members=np.concatenate([run.members for run in runs]),
        independent=reasons[0] if all(reasons) else False,
        claim=_least_private(runs),
        family=runs[0].family,
        threshold=runs[0].threshold,
        source=", ".join(dict.fromkeys(run.source for run in runs if run.source)) or None,
        remarks=tuple(chain.from_iterable(_remarks(run, place) for place, run in enumerate(runs, start=1))),
        runs=np.array(list(chain.from_iterable(labels))),
    )


def _least_private(runs: Sequence[Run]) -> Claim | None:
    claims = [run.claim for run in runs]
    known = [claim for claim in claims if claim is not None]
    if len({str(claim) for claim in claims}) == 1:
        return claims[0]
    expected = "claims of one family, which differ in its parameter only; or a claim of your own for all"
    if len(known) < len(claims) or not all(claim.parameter_names for claim in known):
        raise InputError("runs: claim", " and ".join(sorted({str(claim) for claim in claims})), expected)
    family = known[0].own_family()
    for claim in known:
        if str(claim.own_family()) != str(family):
            raise InputError("runs: claim", f"{known[0]} and {claim}", expected)
    return max(known, key=family.leak)


def _remarks(run: Run, place: int) -> list[str]:
    faults = [] if run.checkup is None else [f"{check.fault}." for check in run.checkup.faults]
    return [f"Run {place}: {remark}" for remark in (*run.remarks, *faults)]

"""`tightaudit bound`: a lower bound from counts."""

from __future__ import annotations

from tightaudit.bounds import lower_bound
from tightaudit.commands.options import (
    AsJson,
    Confidence,
    Delta,
    Errors,
    Guesses,
    MethodName,
    NullText,
    Released,
    Statistic,
    Strata,
    Tail,
    configured,
    counted,
)
from tightaudit.commands.output import print_json, print_notes
from tightaudit.errors import InputError
from tightaudit.game import Evidence
from tightaudit.report.fields import bound_fields
from tightaudit.tradeoffs.base import TradeOff
from tightaudit.tradeoffs.text import null as read_null


def bound(
    n: Guesses,
    null: NullText,
    delta: Delta,
    released: Released = None,
    errors: Errors = None,
    confidence: Confidence = 0.95,
    method: MethodName = "exact",
    tail: Tail = None,
    strata: Strata = None,
    statistic: Statistic = None,
    as_json: AsJson = False,
) -> None:
    """The largest ε at δ that the errors rule out staying below.

    [bold]Examples[/bold]

    tightaudit bound --n 10000 --released 2000 --errors 250 --null gaussian --delta 1e-5

    tightaudit bound --n 10000 --released 2000 --errors 70 --null approx-dp --delta 0.01 --json

    tightaudit bound --n 10000 --released 2000 --errors 620 --null 'subsampled-gaussian(q=0.5)' --delta 1e-7
    """
    evidence = counted(n, released, errors, statistic)
    family = read_null(null, delta=delta)
    if isinstance(family, TradeOff):
        raise InputError("null", null, "a family: leave out the parameter to be bounded")
    chosen = configured(method, tail, strata)
    result = lower_bound(evidence, family, delta=delta, confidence=confidence, method=chosen)
    if as_json:
        print_json(bound_fields(result))
        return
    print(result)
    if result.status == "bounded" and result.parameter is not None:
        print(f"rejected {family.direction} {family.parameter} = {result.parameter:.6g}")
    if isinstance(evidence, Evidence):
        print_notes(chosen, evidence)

"""`tightaudit pvalue`: test one claim with counts."""

from __future__ import annotations

from tightaudit.commands.options import (
    AsJson,
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
from tightaudit.pvalues.base import p_value
from tightaudit.pvalues.exact import expected_errors
from tightaudit.report.fields import setting
from tightaudit.tradeoffs.base import Family
from tightaudit.tradeoffs.text import null as read_null


def pvalue(
    n: Guesses,
    null: NullText,
    released: Released = None,
    errors: Errors = None,
    method: MethodName = "exact",
    tail: Tail = None,
    strata: Strata = None,
    statistic: Statistic = None,
    as_json: AsJson = False,
) -> None:
    """How likely are so few errors if the claim holds?

    [bold]Examples[/bold]

    tightaudit pvalue --n 1000 --released 200 --errors 15 --null 'gaussian(mu=1)'

    tightaudit pvalue --method rank-weighted --n 300 --strata 50x3,250x1 --statistic 90 --null gaussian(mu=1)

    tightaudit pvalue --n 100 --released 100 --errors 15 --null 'approx-dp(epsilon=1,delta=0.01)' --json
    """
    evidence = counted(n, released, errors, statistic)
    claim = read_null(null)
    if isinstance(claim, Family):
        raise InputError("null", null, f"a claim with all its parameters; {claim.parameter} is missing")
    chosen = configured(method, tail, strata)
    result = p_value(evidence, claim, method=chosen)
    mean = expected_errors(claim, n=n, released=evidence.released) if isinstance(evidence, Evidence) else None
    if as_json:
        print_json({"p_value": result, "expected_errors": mean, **setting(claim, chosen, evidence)})
        return
    independent = chosen.assumes.independent_outcomes
    print(f"p-value {result:.4g} ({chosen.name}{'; if outcomes are independent' if independent else ''})")
    if isinstance(evidence, Evidence):
        print(
            f"{evidence.errors:,} errors among {evidence.released:,} released of {n:,} guesses; "
            f"independent channels of {claim} make {mean:,.4g} on average."
        )
        print_notes(chosen, evidence)

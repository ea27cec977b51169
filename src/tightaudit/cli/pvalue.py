"""`tightaudit pvalue`: test one claim with counts."""

from tightaudit.cli.options import AsJson, Claim, Counts, MethodOptions
from tightaudit.cli.output import print_json, print_notes


def pvalue(counts: Counts, claim: Claim, chosen: MethodOptions, as_json: AsJson = False) -> None:
    """How likely are so few errors if the claim holds?

    [bold]Examples[/bold]

    tightaudit pvalue --n 1000 --released 200 --errors 15 --claim 'gaussian(mu=1)'

    tightaudit pvalue --n 90 --strata 10x3,80x1 --statistic 9 --claim 'gaussian(mu=1)' --method rank-weighted

    tightaudit pvalue --n 100 --released 100 --errors 15 --claim 'approx-dp(epsilon=1,delta=0.01)' --json
    """
    from tightaudit.claims.text import as_claim
    from tightaudit.methods.base import Test
    from tightaudit.methods.exact import expected_errors
    from tightaudit.render.json.bound import setting_fields
    from tightaudit.render.wording import independence_condition

    evidence, tested = counts.evidence(), as_claim(claim)
    test = Test.of(chosen.configured(), evidence, lambda: tested)
    result = test.p_value(tested, test.statistic(evidence))
    released = test.counts(evidence)["released"]
    mean = None if released is None else expected_errors(tested, n=counts.n, released=released)
    if as_json:
        setting = {"claim": str(tested), **setting_fields(test, evidence)}
        print_json({"p_value": result, "expected_errors": mean, **setting})
        return
    condition = f"; {independence_condition(True)}" if test.method.assumes.independent_outcomes else ""
    print(f"p-value {result:.4g} ({test.method.name}{condition})")
    if mean is not None:
        print(
            f"{counts.errors:,} errors among {released:,} released of {counts.n:,} guesses; "
            f"{tested} gives at least {mean:,.4g} on average, if outcomes are independent."
        )
        print_notes(test)

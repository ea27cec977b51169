"""`tightaudit bound`: a lower bound from counts."""

from tightaudit.cli.options import AsJson, Confidence, Counts, Delta, Family, MethodOptions
from tightaudit.cli.output import print_json, print_notes


def bound(
    counts: Counts,
    family: Family,
    delta: Delta,
    chosen: MethodOptions,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """A lower bound on ε at δ, from how many released guesses are wrong.

    [bold]Examples[/bold]

    tightaudit bound --n 10000 --released 2000 --errors 250 --family gaussian --delta 1e-5

    tightaudit bound --n 10000 --released 2000 --errors 70 --family approx-dp --delta 0.01 --json

    tightaudit bound --n 10000 --released 2000 --errors 620 --family 'subsampled-gaussian(q=0.5)' --delta 1e-7
    """
    from tightaudit.bounds.one_run import lower_bound
    from tightaudit.render.json.bound import bound_fields
    from tightaudit.render.wording import last_rejected

    result = lower_bound(
        counts.evidence(), family, delta=delta, confidence=confidence, method=chosen.configured()
    )
    if as_json:
        print_json(bound_fields(result))
        return
    print(result)
    if result.parameter is not None:
        print(last_rejected(result))
    if counts.released is not None:
        print_notes(result.test)

"""`tightaudit many-runs`: the classic bounds with one guess per run."""

from typing import Annotated

from tightaudit.cli.options import AsJson, Confidence, Delta, counting
from tightaudit.cli.output import print_json, print_view


def many_runs(
    fp: Annotated[int, counting("False positives.", "--fp")],
    negatives: Annotated[int, counting("Runs without the canary.")],
    fn: Annotated[int, counting("False negatives.", "--fn")],
    positives: Annotated[int, counting("Runs with the canary.")],
    delta: Delta,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """The classic lower bounds on ε, from many runs with one guess each.

    [bold]Example[/bold]

    tightaudit many-runs --fp 50 --negatives 1000 --fn 100 --positives 1000 --delta 1e-5
    """
    from dataclasses import asdict

    import tightaudit
    from tightaudit.bounds.many_runs import many_runs as bounds_of_many_runs
    from tightaudit.render.json.numbers import finite_or_none
    from tightaudit.render.terminal.many_runs import many_runs_table

    result = bounds_of_many_runs(
        false_positives=fp,
        negatives=negatives,
        false_negatives=fn,
        positives=positives,
        delta=delta,
        confidence=confidence,
    )
    if as_json:
        # At δ = 0 no Gaussian mechanism has a finite ε, and JSON has no infinity.
        finite = {key: finite_or_none(value) for key, value in asdict(result).items()}
        print_json({**finite, "version": tightaudit.__version__})
        return
    print_view(many_runs_table(result))

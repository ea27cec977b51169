"""Bounds side by side, as tables on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tightaudit.bounds import Bound, rounded_down
from tightaudit.game import Evidence
from tightaudit.manyruns import ManyRuns


def method_table(*headings: str) -> Table:
    """A table with a row per method; the columns after its name are numbers.

    >>> [str(column.header) for column in method_table("level").columns]
    ['method', 'level']
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def bounds_table(bounds: Sequence[Bound], *, true_epsilon: float) -> Table:
    """One row per bound, with what it was computed from and how much of the truth it reaches.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=25)
    >>> bound = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5)
    >>> bounds_table([bound], true_epsilon=4.377).row_count
    1
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("assumes")
    for heading in ("released", "errors", "ε at least", "of true ε"):
        table.add_column(heading, justify="right")
    for bound in bounds:
        independent = bound.method.assumes.independent_outcomes
        reached = "" if bound.epsilon is None else f"{100 * bound.epsilon / true_epsilon:.0f}%"
        table.add_row(
            bound.method.name,
            "independence" if independent else "nothing",
            f"{bound.evidence.released:,}" if isinstance(bound.evidence, Evidence) else "",
            f"{bound.evidence.errors:,}" if isinstance(bound.evidence, Evidence) else "",
            bound.status if bound.epsilon is None else rounded_down(bound.epsilon),
            reached,
        )
    return table


def many_runs_table(result: ManyRuns) -> Table:
    """One row per classic method.

    >>> from tightaudit import many_runs
    >>> counts = dict(false_positives=5, negatives=100, false_negatives=10, positives=100)
    >>> many_runs_table(many_runs(**counts, delta=1e-5)).row_count
    4
    """
    table = method_table("ε at least")
    table.add_column("holds")
    exactly = f"with {100 * result.confidence:g}% confidence at δ={result.delta:g}"
    table.add_row("Clopper–Pearson", rounded_down(result.clopper_pearson), exactly)
    gaussian = "infinite" if math.isinf(result.gdp) else rounded_down(result.gdp)
    table.add_row(
        "GDP", gaussian, f"{exactly}, if the mechanism is Gaussian; μ ≥ {rounded_down(result.gdp_mu)}"
    )
    table.add_row(
        "Beta posterior", rounded_down(result.beta_posterior), "as a credible limit, Jeffreys priors"
    )
    table.add_row("log-Katz", rounded_down(result.log_katz), "approximately, for large counts")
    return table

"""Bounds side by side, as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tightaudit.bounds import Bound, rounded_down


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
            f"{bound.evidence.released:,}",
            f"{bound.evidence.errors:,}",
            bound.status if bound.epsilon is None else rounded_down(bound.epsilon),
            reached,
        )
    return table

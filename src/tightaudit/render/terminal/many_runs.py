"""The classic bounds from many runs, as a table."""

import math

from rich.table import Table

from tightaudit.bounds.many_runs import ManyRuns
from tightaudit.render.terminal.tables import method_table
from tightaudit.render.wording import percent, rounded_down


def many_runs_table(result: ManyRuns) -> Table:
    """One row per classic method.

    >>> from tightaudit import many_runs
    >>> counts = dict(false_positives=5, negatives=100, false_negatives=10, positives=100)
    >>> many_runs_table(many_runs(**counts, delta=1e-5)).row_count
    4
    """
    table = method_table("ε at least")
    table.add_column("holds")
    exactly = f"with {percent(result.confidence)} confidence at δ={result.delta:g}"
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

"""The expected bound of every row against the number of canaries."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from tightaudit.progress import Progress

if TYPE_CHECKING:
    from tightaudit.canary_plan import Forecast, Plan

SIZES = tuple(round(10 ** (half / 2)) for half in range(4, 15))
_LOOKS = {
    (True, True): ("#000000", "P", "-"),
    (True, False): ("#0072B2", "o", "--"),
    (False, True): ("#009E73", "^", "-"),
    (False, False): ("#E69F00", "v", "--"),
}


def draw_plan(plan: Plan, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
    """Draw the median bound against n, a line per row, with the number each needs marked."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    medians = []
    for done, n in enumerate(SIZES, start=1):
        medians.append([forecast.bound_at(0.5) for forecast in plan.forecast(n)])
        if progress is not None:
            progress(done, len(SIZES))
    figure, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
    axis.axhline(plan.true_epsilon, color="#444444", linewidth=1, label=f"ε of {plan.truth}")
    for place, row in enumerate(plan.rows):
        colour, marker, line = _LOOKS[row.independent, row.shape is not None]
        bounds = [found[place] for found in medians]
        axis.plot(SIZES, bounds, color=colour, marker=marker, linestyle=line, label=_label(row.forecast))
        if row.n is not None:
            axis.plot(
                [row.n, row.n], [0, row.forecast.bound_at(0.5)], color=colour, linewidth=0.8, linestyle=":"
            )
    axis.set_xscale("log")
    axis.set_ylim(0, 1.08 * max(plan.true_epsilon, *(max(found) for found in medians)))
    axis.set_xlabel("canaries (dotted: the number needed)")
    axis.set_ylabel(f"median lower bound on ε at δ = {plan.delta:g}")
    axis.grid(color="#e6e6e6")
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=8)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _label(forecast: Forecast) -> str:
    outcomes = "independent outcomes" if forecast.method.assumes.independent_outcomes else "any dependence"
    curve = "any curve" if forecast.row.shape is None else f"{forecast.row.shape} curve"
    return f"{outcomes}, {curve}: {forecast.method.name}"

"""The expected bound of every row against the number of canaries."""

from collections.abc import Sequence
from os import PathLike

from tightaudit.planning.canaries import Plan
from tightaudit.render.pictures import BLUE, GREEN, GREY, ORANGE, picture_style, save_picture
from tightaudit.render.wording import in_legend

_OUTCOMES = {True: (BLUE, "o"), False: (ORANGE, "v")}
_RUNS = (GREEN, "^")
"""Colour and marker, by what a row believes of outcomes."""


def draw_plan(plan: Plan, curves: Sequence[tuple[int, Sequence[float]]], path: str | PathLike[str]) -> None:
    """Draw the median bound against n, a line per row, with the number each needs marked."""
    with picture_style({"savefig.dpi": 160}):
        import matplotlib.pyplot as plt

        sizes = [n for n, _ in curves]
        figure, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
        axis.axhline(plan.true_epsilon, color=GREY, linewidth=1, label=f"ε of {plan.truth}")
        for place, row in enumerate(plan.rows):
            colour, marker = _OUTCOMES[row.beliefs.independent] if row.beliefs.runs == 1 else _RUNS
            line = "--" if row.beliefs.family is None else "-"
            medians = [bounds[place] for _, bounds in curves]
            label = f"{in_legend(row.beliefs)}: {row.forecast.method.name}"
            axis.plot(sizes, medians, color=colour, marker=marker, linestyle=line, label=label)
            if row.n is not None:
                axis.plot(
                    [row.n, row.n], [0, row.forecast.median], color=colour, linewidth=0.8, linestyle=":"
                )
        axis.set_xscale("log")
        axis.set_ylim(0, 1.08 * max(plan.true_epsilon, *(max(bounds) for _, bounds in curves)))
        axis.set_xlabel("canaries (dotted: the number needed)")
        axis.set_ylabel(f"median lower bound on ε at δ = {plan.question.delta:g}")
        axis.grid(visible=True)
        figure.legend(loc="outside lower center", ncols=1, fontsize=8)
        save_picture(figure, path)
        plt.close(figure)

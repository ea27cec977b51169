"""P-values against the number of wrong guesses.

From the paper: ε = 1, δ = 0.01 and 0.1, n = r = 100; compared with Steinke et al.; the expected number of
errors as a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import p_value
from tightaudit.methods.exact import expected_errors
from tightaudit.paper.figures.base import FIGURES, Cell, PaperFigure, Results, Row
from tightaudit.paper.figures.parts.style import LOOKS, TRUTH, plain_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

EPSILON, DELTAS, GUESSES = 1.0, (0.01, 0.1), 100
METHODS = ("order-statistics", "steinke", "exact", "any-dependence")
LEVEL = 0.05


@dataclass(frozen=True)
class PValueCell(Cell):
    """The p-values of every number of errors, by one method."""

    kind: ClassVar[str] = "p-values"
    method: str
    epsilon: float
    delta: float
    n: int

    def compute(self) -> dict[str, Any]:
        claim = ApproxDP(self.epsilon, self.delta)
        counts = range(self.n + 1)
        return {
            "p_values": [
                p_value(Evidence(self.n, self.n, errors), claim, method=self.method) for errors in counts
            ],
            "expected": expected_errors(claim, n=self.n, released=self.n),
        }


@FIGURES.register
class PValues(PaperFigure):
    name = "p-values"
    title = "P-values against the number of wrong guesses"

    def cells(self) -> list[Cell]:
        return [self._cell(method, delta) for delta in DELTAS for method in METHODS]

    def _cell(self, method: str, delta: float) -> PValueCell:
        return PValueCell(method, EPSILON, delta, GUESSES)

    def rows(self, results: Results) -> list[Row]:
        return [
            {
                "panel": f"ε = {EPSILON:g}, δ = {delta:g}",
                "delta": delta,
                "method": method,
                "x": errors,
                "p_value": p,
                "expected_errors": found["expected"],
            }
            for delta in DELTAS
            for method in METHODS
            for found in [results[self._cell(method, delta).key]]
            for errors, p in enumerate(found["p_values"])
        ]

    def draw(self, rows: Sequence[Row]) -> Drawing:
        with plain_style():
            import matplotlib.pyplot as plt

            figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.7), sharey=True, layout="constrained")
            for axis, delta in zip(axes, DELTAS, strict=True):
                here = [row for row in rows if float(row["delta"]) == delta]
                for method in METHODS:
                    line = [row for row in here if row["method"] == method and row["x"] <= 45]
                    look = LOOKS[method]
                    axis.plot(
                        [row["x"] for row in line],
                        [max(row["p_value"], 1e-12) for row in line],
                        color=look.colour,
                        linestyle=look.line,
                        marker=look.marker,
                        markevery=5,
                        label=look.label.split(" (recursion")[0],
                    )
                axis.axvline(here[0]["expected_errors"], color=TRUTH, linewidth=1, label="expected errors")
                axis.axhline(LEVEL, color=TRUTH, linewidth=0.8, linestyle=(0, (2, 2)), label="5%")
                axis.set_yscale("log")
                axis.set_ylim(1e-8, 1.5)
                axis.set_xlabel("wrong guesses of 100")
                axis.set_title(here[0]["panel"])
            axes[0].set_ylabel("p-value")
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
            plt.close(figure)
        return figure

"""Figures that draw bounds against the number of canaries or of guesses released."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, ClassVar

from tightaudit.evidence.counts import Rule
from tightaudit.paper.figures.base import Cell, PaperFigure, Results, Row
from tightaudit.paper.figures.parts.audits import REPETITIONS, AuditCell
from tightaudit.paper.figures.parts.style import TRUTH, draw_line, plain_style
from tightaudit.render.pictures import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SIZES = tuple(round(10 ** (half / 2)) for half in range(4, 13))
"""Numbers of canaries where the paper varies n, from 10² to 10⁶."""


@dataclass(frozen=True)
class Panel:
    """One picture of a figure."""

    title: str
    mechanism: str
    delta: float
    guessing: Rule | None = None


class LinesFigure(PaperFigure):
    """Bounds of several methods with error bars, a panel per setting, the true ε as a line."""

    panels: ClassVar[tuple[Panel, ...]]
    methods: ClassVar[tuple[str, ...]]
    x_label: ClassVar[str] = "canaries n"
    shows_accuracy: ClassVar[bool] = False

    @abstractmethod
    def sizes(self) -> Sequence[tuple[int, int, int]]:
        """For each point x, n and the number released."""

    def cells(self) -> list[Cell]:
        return [
            self._cell(panel, n, released, repetition)
            for panel in self.panels
            for _, n, released in self.sizes()
            for repetition in range(REPETITIONS)
        ]

    def _cell(self, panel: Panel, n: int, released: int, repetition: int) -> AuditCell:
        return AuditCell(
            mechanism=panel.mechanism,
            n=n,
            released=released,
            delta=panel.delta,
            repetition=repetition,
            methods=self.methods,
            guessing=panel.guessing,
        )

    def rows(self, results: Results) -> list[Row]:
        rows = []
        for panel in self.panels:
            for x, n, released in self.sizes():
                found = [results[self._cell(panel, n, released, k).key] for k in range(REPETITIONS)]
                for method in self.methods:
                    bounds = [one["bounds"][method] for one in found]
                    rows.append(
                        {
                            "panel": panel.title,
                            "mechanism": panel.mechanism,
                            "delta": panel.delta,
                            "method": method,
                            "x": x,
                            "n": n,
                            "released": released,
                            "mean": fmean(bounds),
                            "standard_deviation": stdev(bounds),
                            "repetitions": len(bounds),
                            "true_epsilon": found[0]["true"],
                            "accuracy": fmean(one["accuracy"] for one in found),
                        }
                    )
        return rows

    def draw(self, rows: Sequence[Row]) -> Drawing:
        with plain_style():
            import matplotlib.pyplot as plt

            width = {1: 6.4, 2: 4.6}.get(len(self.panels), 3.4)
            size = (width * len(self.panels), 3.7)
            figure, axes = plt.subplots(
                1, len(self.panels), figsize=size, squeeze=False, layout="constrained"
            )
            for axis, panel in zip(axes[0], self.panels, strict=True):
                self._draw_panel(axis, [row for row in rows if row["panel"] == panel.title])
                axis.set_title(panel.title)
            axes[0][0].set_ylabel("lower bound on ε")
            handles, labels = axes[0][0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3 if len(self.panels) > 2 else 2)
            plt.close(figure)
        return figure

    def _draw_panel(self, axis: Axes, rows: Sequence[Row]) -> None:
        true = float(rows[0]["true_epsilon"])
        axis.axhline(true, color=TRUTH, linewidth=1, label=r"true $\varepsilon$")
        for method in self.methods:
            draw_line(axis, method, "x", rows)
        axis.set_xscale("log")
        axis.set_ylim(0, 1.12 * true)
        axis.set_xlabel(self.x_label)
        if self.shows_accuracy:
            last = rows[0]["panel"] == self.panels[-1].title
            self._draw_accuracy(axis, [row for row in rows if row["method"] == self.methods[0]], named=last)

    @staticmethod
    def _draw_accuracy(axis: Axes, rows: Sequence[Row], *, named: bool) -> None:
        right = axis.twinx()
        right.plot(
            [row["x"] for row in rows], [row["accuracy"] for row in rows], color=GREY, linewidth=2, alpha=0.7
        )
        right.set_ylim(0.5, 1.02)
        if named:
            right.set_ylabel("accuracy of released guesses (grey)", color=GREY, fontsize=8)
        right.grid(visible=False)
        axis.set_zorder(right.get_zorder() + 1)
        axis.patch.set_visible(False)


class VaryingCanaries(LinesFigure):
    """n from 10² to 10⁶, a fifth of the guesses released."""

    def sizes(self) -> Sequence[tuple[int, int, int]]:
        return [(n, n, n // 5) for n in SIZES]

"""DP-SGD with white-box canaries.

From the paper: CIFAR-10, a 14-layer ResNet, Adam, n = 10⁴ canaries, r = n/2, the 2500 lowest sums guessed 0
and the 2500 highest 1; δ = 10⁻⁵; compared with Steinke et al. and Mahloujifar et al. Chosen here: scikit-
learn's digits and a small network, which train in seconds (white-box canaries do not depend on either), 200
steps at q = 0.1. The paper's method and its peers score by the plain sum and believe in a Gaussian curve;
ours score by the log-likelihood ratio and believe in the composed curve, or in none.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, ClassVar

from tightaudit.paper.figures.base import FIGURES, Cell, PaperFigure, Results, Row
from tightaudit.paper.figures.parts.audits import REPETITIONS
from tightaudit.paper.figures.parts.style import LOOKS, TRUTH, draw_line, plain_style
from tightaudit.support.extras import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
DELTA = 1e-5
CANARIES, STEPS = 10_000, 200
LINES = (
    ("order-statistics", "gaussian", "sum"),
    ("steinke", "any", "sum"),
    ("fdp-recursion", "gaussian", "sum"),
    ("exact", "dp-sgd", "log-likelihood-ratio"),
    ("rank-weighted", "dp-sgd", "log-likelihood-ratio"),
)
"""Method, the curve it believes in, and the score of the canaries."""


@dataclass(frozen=True)
class TrainingCell(Cell):
    """One training, audited in every way."""

    kind: ClassVar[str] = "training"
    data: str
    epsilon: float
    delta: float
    canaries: int
    released: int
    steps: int
    repetition: int

    def compute(self) -> dict[str, Any]:
        with needs("torch", "the figure dp-sgd"):
            from tightaudit.paper.trainings.data import load
            from tightaudit.paper.trainings.experiment import Experiment
            from tightaudit.paper.trainings.training import Recipe
        recipe = Recipe(steps=self.steps, canaries=self.canaries, seed=self.repetition)
        experiment = Experiment(load(self.data), recipe, self.delta, self.released)
        with tempfile.TemporaryDirectory() as folder:
            found = experiment.result(Path(folder), self.epsilon)
        return {
            "true": found["claim_epsilon"],
            "bounds": {
                _line(bound): bound["epsilon"] for bound in found["bounds"] if bound["epsilon"] is not None
            },
        }


def _line(bound: dict[str, Any]) -> str:
    curve = "any" if bound["assumes"]["family"] is None else bound["family"].split("(")[0]
    return f"{bound['method']}, {curve}, {bound['score']}"


@FIGURES.register
class DpSgdFigure(PaperFigure):
    name = "dp-sgd"
    title = "DP-SGD with white-box canaries"

    def cells(self) -> list[Cell]:
        return [self._cell(epsilon, k) for epsilon in EPSILONS for k in range(REPETITIONS)]

    def _cell(self, epsilon: float, repetition: int) -> TrainingCell:
        return TrainingCell("digits", epsilon, DELTA, CANARIES, CANARIES // 2, STEPS, repetition)

    def rows(self, results: Results) -> list[Row]:
        rows = []
        for epsilon in EPSILONS:
            found = [results[self._cell(epsilon, k).key] for k in range(REPETITIONS)]
            for method, curve, score in LINES:
                bounds = [one["bounds"][f"{method}, {curve}, {score}"] for one in found]
                rows.append(
                    {
                        "panel": "digits",
                        "delta": DELTA,
                        "method": method,
                        "curve": curve,
                        "score": score,
                        "x": epsilon,
                        "n": CANARIES,
                        "released": CANARIES if method == "rank-weighted" else CANARIES // 2,
                        "mean": fmean(bounds),
                        "standard_deviation": stdev(bounds),
                        "repetitions": len(bounds),
                        "true_epsilon": found[0]["true"],
                    }
                )
        return rows

    def draw(self, rows: Sequence[Row]) -> Drawing:
        with plain_style():
            import matplotlib.pyplot as plt

            figure, axis = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
            true = sorted({float(row["true_epsilon"]) for row in rows})
            axis.plot(true, true, color=TRUTH, linewidth=1, label=r"accountant's $\varepsilon$")
            for method, curve, score in LINES:
                told = "" if curve == "any" else f", {curve} curve"
                draw_line(axis, method, "true_epsilon", rows, f"{LOOKS[method].label}{told}, {score}")
            axis.set_xscale("log", base=2)
            axis.set_yscale("log", base=2)
            axis.set_xticks(EPSILONS, [f"{value:g}" for value in EPSILONS])
            ticks = (0.125, 0.25, 0.5, 1, 2, 4, 8, 16)
            axis.set_yticks(ticks, [f"{value:g}" for value in ticks])
            axis.set_ylim(0.1, 22)
            axis.set_xlabel(r"accountant's $\varepsilon$")
            axis.set_ylabel("lower bound on ε")
            figure.legend(loc="outside lower center", ncols=1, fontsize=7.5)
            plt.close(figure)
        return figure

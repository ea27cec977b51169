"""The base distribution pairs P, Q of four claims.

From the paper: 1-GDP, Lap(0, 1) against Lap(μ, 1), (0.5, 0.1)-DP, and the subsampled Gaussian with q = 0.5.
The paper does not state the Laplace's μ nor the subsampled Gaussian's 1/σ; chosen here: 1 for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tightaudit.claims.text import as_claim
from tightaudit.paper.figures.base import FIGURES, Cell, PaperFigure, Results, Row
from tightaudit.paper.figures.parts.style import plain_style
from tightaudit.render.pictures import BLUE, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CLAIMS = (
    ("1-GDP", "gaussian(mu=1)"),
    ("Lap(0, 1) against Lap(1, 1)", "laplace(mu=1)"),
    ("(0.5, 0.1)-DP", "approx-dp(epsilon=0.5,delta=0.1)"),
    ("subsampled Gaussian, 1/σ = 1, q = 0.5", "subsampled-gaussian(mu=1,q=0.5)"),
)
POINTS = 999
HIGHEST = 5.0


@dataclass(frozen=True)
class BasePairCell(Cell):
    """Densities of P and Q on a grid, and Q's atom at 1."""

    kind: ClassVar[str] = "base-pair"
    claim: str
    points: int = POINTS

    def compute(self) -> dict[str, Any]:
        pair = as_claim(self.claim).base_pair()
        x = np.arange(1, self.points + 1) / (self.points + 1)
        return {"x": x.tolist(), "q": pair.q_density(x).tolist(), "atom": pair.q_atom}


@FIGURES.register
class BasePairs(PaperFigure):
    name = "base-pairs"
    title = "Base distribution pairs"

    def cells(self) -> list[Cell]:
        return [BasePairCell(text) for _, text in CLAIMS]

    def rows(self, results: Results) -> list[Row]:
        return [
            {"panel": title, "claim": text, "x": x, "p": 1.0, "q": q, "q_atom_at_1": found["atom"]}
            for title, text in CLAIMS
            for found in [results[BasePairCell(text).key]]
            for x, q in zip(found["x"], found["q"], strict=True)
        ]

    def draw(self, rows: Sequence[Row]) -> Drawing:
        with plain_style():
            import matplotlib.pyplot as plt

            figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), sharey=True, layout="constrained")
            for axis, (title, _) in zip(axes, CLAIMS, strict=True):
                here = [row for row in rows if row["panel"] == title]
                x = [row["x"] for row in here]
                axis.plot(x, [row["p"] for row in here], color=BLUE, linestyle="--", label="P, uniform")
                axis.plot(x, [row["q"] for row in here], color=VERMILION, label="Q")
                atom = float(here[0]["q_atom_at_1"])
                if atom > 1e-12:
                    axis.annotate(
                        f"atom {atom:.2g} at 1",
                        xy=(1, HIGHEST),
                        xytext=(0.42, 0.9 * HIGHEST),
                        arrowprops={"arrowstyle": "->", "color": VERMILION},
                        color=VERMILION,
                    )
                axis.set_title(title)
                axis.set_ylim(0, HIGHEST)
                axis.set_xlabel("x")
            axes[0].set_ylabel("density")
            axes[0].legend(loc="upper center")
            plt.close(figure)
        return figure

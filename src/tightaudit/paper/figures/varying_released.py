"""n = 10⁵ guesses, a growing number of them released.

From the paper: 0.8-GDP, two-sided guesses, n = 10⁵, δ = 10⁻⁶ and 10⁻⁴, r varying; compared with Steinke et
al.; the accuracy of the released guesses on a second axis.
"""

from collections.abc import Sequence

from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.parts.lines import LinesFigure, Panel

CANARIES = 100_000


@FIGURES.register
class VaryingReleased(LinesFigure):
    name = "varying-released"
    title = "r guesses released of 100 000"
    panels = tuple(
        Panel(f"0.8-GDP, δ = {delta:g}", "gaussian(mu=0.8)", delta, "two-sided") for delta in (1e-6, 1e-4)
    )
    methods = ("order-statistics", "steinke", "exact", "rank-weighted", "any-dependence")
    x_label = "guesses released r"
    shows_accuracy = True

    def sizes(self) -> Sequence[tuple[int, int, int]]:
        counts = (100, 316, 1000, 3162, 10_000, 20_000, 31_623, 50_000, 70_000, 100_000)
        return [(released, CANARIES, released) for released in counts]

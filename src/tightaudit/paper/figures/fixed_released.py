"""r = 1000 guesses released, n growing.

From the paper: Gaussian mechanism, two-sided guesses, r = 1000, δ = 10⁻⁵, n varying; compared with Steinke
et al.; the accuracy of the released guesses beside it. The paper does not state μ; chosen here: 1.
"""

from collections.abc import Sequence

from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.parts.lines import SIZES, LinesFigure, Panel

RELEASED = 1000


@FIGURES.register
class FixedReleased(LinesFigure):
    name = "fixed-released"
    title = "1000 guesses released of n"
    panels = (Panel("1-GDP, r = 1000", "gaussian(mu=1)", 1e-5, "two-sided"),)
    methods = ("order-statistics", "steinke", "exact", "rank-weighted", "any-dependence")
    shows_accuracy = True

    def sizes(self) -> Sequence[tuple[int, int, int]]:
        return [(n, n, RELEASED) for n in SIZES if n >= RELEASED]

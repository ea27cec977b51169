"""Subsampled Gaussian mechanism.

From the paper: every bit is kept with probability q = 0.5, then N(0, σ²) is added, 1/σ = 0.2, 0.4, 0.8;
guessed 1 above 1/2; r = n/5; δ = 10⁻⁷; compared with Steinke et al. Chosen here: guesses are released in
the order of their privacy loss. Ordered by the distance from 1/2, half of those released would be guesses
of 0, which here say next to nothing.
"""

from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.parts.lines import Panel, VaryingCanaries


@FIGURES.register
class SubsampledFigure(VaryingCanaries):
    name = "subsampled-gaussian"
    title = "Subsampled Gaussian mechanism, q = 0.5"
    panels = tuple(
        Panel(f"1/σ = {mu:g}, q = 0.5", f"subsampled-gaussian(mu={mu:g},q=0.5)", 1e-7)
        for mu in (0.2, 0.4, 0.8)
    )
    methods = ("order-statistics", "steinke", "exact", "rank-weighted", "any-dependence")

"""Randomized response with a δ.

From the paper: ε = 3.2, δ = 10⁻⁴ and 10⁻²; r = n/5; compared with Steinke et al. Chosen here: answers that
reveal the bit are released first, the others in random order.
"""

from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.parts.lines import Panel, VaryingCanaries


@FIGURES.register
class RandomizedResponseFigure(VaryingCanaries):
    name = "randomized-response"
    title = "Randomized response, ε = 3.2"
    panels = tuple(
        Panel(f"δ = {delta:g}", f"randomized-response(epsilon=3.2,delta={delta:g})", delta)
        for delta in (1e-4, 1e-2)
    )
    methods = ("order-statistics", "steinke", "exact", "rank-weighted", "any-dependence")

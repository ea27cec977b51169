"""Laplace mechanism, guesses by threshold.

From the paper: b + Lap(c) with 1/c = 0.4, 0.8, 1.6; guessed 1 above 1/2; r = n/5; δ = 10⁻⁵; compared as for
the Gaussian. Chosen here: guesses are released in the order of their distance from 1/2.
"""

from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.parts.lines import Panel, VaryingCanaries


@FIGURES.register
class LaplaceIndependent(VaryingCanaries):
    name = "laplace-independent"
    title = "Laplace mechanism, guesses by threshold"
    panels = tuple(
        Panel(f"Lap(0, 1) against Lap({mu:g}, 1)", f"laplace(mu={mu:g})", 1e-5) for mu in (0.4, 0.8, 1.6)
    )
    methods = ("order-statistics", "bits", "steinke", "exact", "rank-weighted", "any-dependence")

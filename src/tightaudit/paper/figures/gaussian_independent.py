"""Gaussian mechanism, guesses by threshold.

From the paper: b + N(0, σ²) with 1/σ = 0.4, 0.8, 1.6; guessed 1 above 1/2; r = n/5; δ = 10⁻⁵; compared with
Steinke et al. and, because guesses are independent, with Xiang et al., who release all of them. Chosen
here: guesses are released in the order of their distance from 1/2.
"""

from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.parts.lines import Panel, VaryingCanaries


@FIGURES.register
class GaussianIndependent(VaryingCanaries):
    name = "gaussian-independent"
    title = "Gaussian mechanism, guesses by threshold"
    panels = tuple(Panel(f"{mu:g}-GDP", f"gaussian(mu={mu:g})", 1e-5) for mu in (0.4, 0.8, 1.6))
    methods = ("order-statistics", "bits", "steinke", "exact", "rank-weighted", "any-dependence")

"""Gaussian mechanism, two-sided guesses.

From the paper: μ = 0.5, 1, 2; the r/2 lowest outcomes guessed 0 and the r/2 highest 1; r = n/5; δ = 10⁻⁵;
compared with Steinke et al. and Mahloujifar et al. The paper takes the best result that the latter report;
here their recursion is run on the same scores, with a number released that is planned for it in advance.
"""

from tightaudit.paper.figures.base import FIGURES
from tightaudit.paper.figures.parts.lines import Panel, VaryingCanaries


@FIGURES.register
class GaussianTwoSided(VaryingCanaries):
    name = "gaussian-two-sided"
    title = "Gaussian mechanism, two-sided guesses"
    panels = tuple(Panel(f"{mu:g}-GDP", f"gaussian(mu={mu:g})", 1e-5, "two-sided") for mu in (0.5, 1.0, 2.0))
    methods = ("order-statistics", "steinke", "fdp-recursion", "exact", "rank-weighted", "any-dependence")

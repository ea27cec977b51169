"""The best p-value for a symmetric claim when nothing is assumed about how canaries depend on each other.

With q_k the probability of k errors, it is the largest Σ_{k≤u} q_k that the claim allows: a linear program
(`parts/error_law.py`, docs/any-dependence.md). A claim that is not symmetric is taken in the mean of its two
directions, which holds too, but allows more than the claim does.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method, in_normal_quantiles
from tightaudit.methods.exact import Exact
from tightaudit.methods.fdp_recursion import FdpRecursion
from tightaudit.methods.parts.dual_search import AHEAD, last_rejected_by_duals
from tightaudit.methods.parts.error_law import solved
from tightaudit.methods.steinke import Steinke
from tightaudit.support import checks

LARGEST_PROGRAM = 20_000
"""Released guesses above which the program would take more than a few seconds."""
QUICK_PROGRAM = 400
"""The same where several programs share the time of one."""
_NEGLIGIBLE = 1e-12
"""P-values that a program cannot improve: the rounding of its largest numbers is not far below."""


@METHODS.register
@dataclass(frozen=True)
class AnyDependence(Method):
    """The largest probability of so few errors that any mechanism with the claimed privacy can have.

    For a symmetric claim; for another one, an upper bound on it.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=100, released=100, errors=15)
    >>> round(ta.p_value(evidence, ta.ApproxDP(1.0, 1e-3), method="any-dependence"), 5)
    0.00561
    """

    largest_program: int = LARGEST_PROGRAM
    """With more guesses released than this, the simpler methods answer instead."""
    name = "any-dependence"
    assumes = Assumptions(independent_outcomes=False)
    holds_as_law = True
    resolution = 1e-4
    reference = "Linear program over the law of the error count; docs/any-dependence.md"

    def __post_init__(self) -> None:
        checks.count("largest_program", self.largest_program)

    @property
    def quick(self) -> FdpRecursion:
        return FdpRecursion()

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        recursion, independent = FdpRecursion().p_value(claim, evidence), Exact().p_value(claim, evidence)
        return self._between(independent, recursion, claim, evidence)

    def between_runs(self, runs: tuple[int, ...]) -> Method:
        from tightaudit.methods.between_runs import BetweenRuns

        return BetweenRuns(self, runs)

    def excess(self, claim: Claim, evidence: Evidence, level: float) -> float:
        """Positive if not rejected; the program is solved only where simpler bounds leave it open.

        It lies below the recursion, and above the exact law of independent outcomes, which are one way
        of depending.
        """
        recursion = FdpRecursion().p_value(claim, evidence)
        if recursion <= level:
            return in_normal_quantiles(recursion, level)
        independent = Exact().p_value(claim, evidence)
        if independent > level:
            return in_normal_quantiles(independent, level)
        return in_normal_quantiles(self._between(independent, recursion, claim, evidence), level)

    def remark(self, released: int) -> str | None:
        if released <= self.largest_program:
            return "solved as a linear program"
        return (
            f"more than {self.largest_program} released, where the linear program gets too slow: the smaller "
            "of fdp-recursion and steinke was taken, both valid under any dependence"
        )

    def last_rejected(self, family: Family, evidence: Evidence, level: float) -> float:
        """The largest leak that is rejected, from one or two programs."""
        recursion = FdpRecursion()

        def rough(claim: Claim) -> float:
            return recursion.excess(claim, evidence, level)

        if not self._solvable(evidence) or rough(family.most_private) > 0:
            return super().last_rejected(family, evidence, level)
        leak = family.last_rejected(rough, AHEAD)
        if family.leaking(leak).curve_kinks.size:
            # A dual stands on the kinks of its claim, and says little about one with kinks elsewhere.
            return family.last_rejected(
                lambda claim: self.excess(claim, evidence, level), self.resolution, rejected=leak
            )

        def solve(claim: Claim) -> Callable[[Claim], float]:
            dual = solved(claim, evidence, recursion.p_value(claim, evidence))
            return lambda other: dual.p_value(other, evidence.n)

        return last_rejected_by_duals(
            family, solve, rough, start=leak, level=level, resolution=self.resolution
        )

    def _solvable(self, evidence: Evidence) -> bool:
        """Whether the program is small enough, and has anything to say."""
        return evidence.released <= self.largest_program and evidence.errors < evidence.released

    def _between(self, independent: float, recursion: float, claim: Claim, evidence: Evidence) -> float:
        """The program's value between the p-values of `exact` and of the other valid methods."""
        found = min(recursion, Steinke().p_value(claim, evidence))
        if found > _NEGLIGIBLE and self._solvable(evidence):
            found = min(found, solved(claim, evidence, found).p_value(claim, evidence.n))
        # All of them hold but for rounding; the exact law of independent outcomes is a floor for that.
        return max(independent, found)

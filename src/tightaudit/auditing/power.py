"""The smallest leak that an audit could have detected.

A pass means little if no leak could have failed it, and much if a slight excess would have. Which it is does
not depend on the errors, only on the test, the claim and the number of canaries.
"""

from dataclasses import dataclass, replace

from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.methods.base import Test
from tightaudit.planning.forecast import Law

OFTEN = 0.95
"""The share of audits in which a leak must be detected to count as visible."""
_RESOLUTION = 2e-3


@dataclass(frozen=True)
class Visible:
    """The most private mechanism whose leak would have been detected, and how often; None if none would have.

    Canaries are assumed to be as strong as possible, and outcomes to be independent.
    """

    mechanism: Claim | None
    epsilon: float | None
    """Its ε at δ."""
    delta: float
    claimed: bool = True
    """Whether detected means that a claim is contradicted; otherwise, that any leak at all is shown."""
    often: float = OFTEN

    def __str__(self) -> str:
        from tightaudit.render.wording import visible_sentence

        return visible_sentence(self)

    @classmethod
    def by(
        cls, test: Test, claim: Claim, family: Family, *, level: float, delta: float, claimed: bool = True
    ) -> "Visible":
        """What a test of the claim would detect among the mechanisms of a family.

        >>> import tightaudit as ta
        >>> test = Test(ta.Exact(), n=1000, released=500)
        >>> seen = Visible.by(test, ta.Gaussian(1.0), ta.Gaussian.family(), level=0.05, delta=1e-5)
        >>> round(seen.mechanism.mu, 2), round(seen.epsilon, 1)
        (1.26, 5.7)
        """
        # A linear program would detect slightly smaller leaks, but takes seconds.
        quick = replace(test, method=test.method.quick)
        critical = Law(claim, quick).critical(level)

        def margin(mechanism: Claim) -> float:
            law = Law(mechanism, quick)
            return (critical + 0.5 - law.quantile(OFTEN)) / max(1.0, law.moments[1])

        if margin(family.least_private) < 0:
            return cls(None, None, delta, claimed)
        seen = family.most_private
        if margin(seen) < 0:
            unseen = family.last_rejected(margin, _RESOLUTION)
            seen = family.leaking(min((1 + _RESOLUTION) * unseen, 0.5 * (unseen + family.upper)))
        return cls(seen, seen.epsilon(delta), delta, claimed)

"""What an audit could have seen: the mildest leak that so many canaries would have shown.

A pass means little where nothing could have failed, and is worth much where a slight excess would have.
Neither depends on the errors: the test, the claim and the number of canaries decide.
"""

from dataclasses import dataclass, replace

from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.methods.base import Test
from tightaudit.planning.forecast import Law

OFTEN = 0.95
"""In which share of audits a leak is to be seen to count as visible."""
_RESOLUTION = 2e-3


@dataclass(frozen=True)
class Visible:
    """The mildest mechanism that would have been seen, and how often; None if no leak would have been.

    Canaries are taken to be as strong as they can be, and outcomes to be independent.
    """

    mechanism: Claim | None
    epsilon: float | None
    """Its ε at δ."""
    delta: float
    claimed: bool = True
    """Whether a claim was to be contradicted, or any leak at all to be shown."""
    often: float = OFTEN

    def __str__(self) -> str:
        from tightaudit.render.wording import visible_sentence

        return visible_sentence(self)

    @classmethod
    def by(
        cls, test: Test, claim: Claim, family: Family, *, level: float, delta: float, claimed: bool = True
    ) -> "Visible":
        """What a test of the claim would see of mechanisms of a family.

        >>> import tightaudit as ta
        >>> test = Test(ta.Exact(), n=1000, released=500)
        >>> seen = Visible.by(test, ta.Gaussian(1.0), ta.Gaussian.family(), level=0.05, delta=1e-5)
        >>> round(seen.mechanism.mu, 2), round(seen.epsilon, 1)
        (1.26, 5.7)
        """
        # A linear program would see a little more, and say so after seconds.
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

"""How many guesses to release, decided before any of them is looked at.

Suppose the mechanism were a typical one: it satisfies the claim under test and no more, or, without a claim,
it is a member of the family with an ε of 4, or as near as there is. The number to release is the one that
would give the largest bound if each count came out as expected. It depends on n, the method, the claim and
the confidence, never on the errors, so it needs no correction.
"""

from __future__ import annotations

from tightaudit.errors import InputError
from tightaudit.game import Evidence, Guessing
from tightaudit.pvalues.base import Method
from tightaudit.pvalues.exact import Exact, expected_errors
from tightaudit.pvalues.fdp_recursion import FdpRecursion
from tightaudit.search import least_private_rejected
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.gaussian import Gaussian
from tightaudit.tradeoffs.laplace import Laplace

TYPICAL_EPSILON = 4.0
LARGEST_TYPICAL_EPSILON = 100.0
_FEWEST, _FEWEST_POWER = 10, 0.4
_STEPS = (1, 2, 5)
_RESOLUTION = 0.01


def planned_count(
    n: int,
    method: Method,
    family: Family,
    typical: TradeOff,
    level: float,
    guessing: Guessing | None = None,
) -> int:
    """The number to release that promises the largest bound in the family if the mechanism is `typical`.

    >>> import tightaudit as ta
    >>> one, family = ta.Gaussian(1.0), ta.Gaussian.family()
    >>> planned_count(10_000, ta.Exact(), family, one, 0.05)
    5000
    >>> planned_count(1_000_000, ta.FdpRecursion(), family, one, 0.05)
    2000
    """
    independent = method.assumes.independent_outcomes
    guide: Method = Exact() if independent else FdpRecursion()
    expected = _expected_evidence(n, typical, one_sided=guessing == "one-sided")

    def excess(claim: TradeOff) -> float:
        return min(guide.excess(claim, evidence, level) for evidence in expected)

    if excess(family.most_private) > 0 or excess(family.least_private) <= 0:
        return min(expected[0].released, max(_FEWEST, n // 2 if independent else round(2 * n**0.5)))
    limit = family.leaking(least_private_rejected(family, excess, _RESOLUTION))
    return min(expected, key=lambda evidence: guide.p_value(limit, evidence)).released


def _expected_evidence(n: int, typical: TradeOff, *, one_sided: bool) -> list[Evidence]:
    """What each number released would come to; guesses for "in" alone are half of the best on both sides."""
    sides = 2 if one_sided and n > 1 else 1
    counts = [count for count in candidate_counts(n) if sides * count <= n] or [max(1, n // sides)]
    return [
        Evidence(n, count, round(expected_errors(typical, n=n, released=sides * count) / sides))
        for count in counts
    ]


def typical_claim(claim: TradeOff | None, family: Family | None, delta: float) -> TradeOff:
    """What to plan for: the claim, or a member of the family with the claimed ε or an ordinary one.

    >>> str(typical_claim(ApproxDP(4.377, 1e-5), None, 1e-5))[:16]
    'gaussian(mu=0.99'
    """
    if claim is not None and not isinstance(claim, ApproxDP):
        return claim
    epsilon = claim.claimed_epsilon if claim is not None and claim.claimed_epsilon > 0 else TYPICAL_EPSILON
    if family is None or family.delta is not None:
        family = Gaussian.family() if delta > 0 else Laplace.family()
    reachable = family.least_private.epsilon(delta) / 2
    if reachable == 0:
        return family.leaking(min(1.0, family.upper / 2))
    return member_at(family, min(epsilon, reachable, LARGEST_TYPICAL_EPSILON), delta)


def member_at(family: Family, epsilon: float, delta: float) -> TradeOff:
    """The least private member of a family whose ε at δ does not exceed the one given.

    >>> import tightaudit as ta
    >>> round(member_at(ta.Gaussian.family(), 4.3772, 1e-5).mu, 4)
    1.0
    """

    def excess(claim: TradeOff) -> float:
        return claim.epsilon(delta) - epsilon

    if excess(family.most_private) > 0 or excess(family.least_private) <= 0:
        raise InputError(
            "claim", f"ε={epsilon:g}", f"an ε at δ={delta:g} that members of the family {family} have"
        )
    return family.leaking(least_private_rejected(family, excess, Method.resolution))


def candidate_counts(n: int) -> list[int]:
    """All of them, a half, a fifth, a tenth, … but not so few that nothing could come of it."""
    shares, scale, fewest = [], 1, max(_FEWEST, n**_FEWEST_POWER)
    while n // scale >= fewest:
        shares += [n // (scale * step) for step in _STEPS]
        scale *= 10
    return sorted({count for count in shares if count >= fewest} | {n}, reverse=True)

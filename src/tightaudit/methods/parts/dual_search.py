"""A search along a family by dual solutions, each of which bounds the p-values of all claims.

Where such a bound crosses the level is a valid bound on the leak, and off by the square of how far the claim
that the dual was found for is from there. So programs for two or three claims are enough.
"""

from collections.abc import Callable

from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.methods.base import in_normal_quantiles

AHEAD = 0.01
"""How finely the start of a search has to be known."""
_MOST, _NEAR = 6, 0.02
"""Claims that programs are solved for, and how near the last of them has to be to the crossing."""
_UNSOLVED = 1e-3
"""A program's value may be above its optimum by less than this, relative to it, and another program's by more
or less. So much below the level, what this search rejects every other one rejects too.
"""


def last_rejected_by_duals(
    family: Family,
    solve: Callable[[Claim], Callable[[Claim], float]],
    rough: Callable[[Claim], float],
    *,
    start: float,
    level: float,
    resolution: float,
) -> float:
    """The largest leak that is rejected, from one that is: `start`, where the `rough` excess ends.

    `solve` finds duals for a claim, as a function that bounds the p-value of any other.
    """
    leak, safe_level = start, (1 - _UNSOLVED) * level
    bounds: list[Callable[[Claim], float]] = []

    def excess(claim: Claim) -> float:
        p = min(bound(claim) for bound in bounds)
        return in_normal_quantiles(min(max(p, 0.0), 1.0), safe_level)

    place = min((1 + 2 * AHEAD) * leak, 0.5 * (leak + family.upper))
    for _ in range(_MOST):
        bounds.append(solve(family.leaking(place)))
        if excess(family.leaking(leak)) > 0:
            return family.last_rejected(rough, resolution, rejected=leak)
        leak = family.last_rejected(excess, resolution / 2, rejected=leak)
        if abs(leak - place) <= _NEAR * place:
            break
        place = leak
    return leak

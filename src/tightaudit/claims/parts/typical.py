"""What to plan for when the mechanism is not known, and what a claim says about a curve of another shape."""

from collections.abc import Iterator

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.laplace import Laplace

TYPICAL_EPSILON = 4.0
SMALLEST_TYPICAL_EPSILON, LARGEST_TYPICAL_EPSILON = 0.1, 100.0
_LARGEST_LEAK = 500.0
_LEAKS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 16.0)


def typical_claim(claim: Claim | None, family: Family | None, delta: float) -> Claim:
    """What to plan for: the claim, or a member of the family with the claimed ε or an ordinary one.

    >>> str(typical_claim(ApproxDP(4.377, 1e-5), None, 1e-5))[:16]
    'gaussian(mu=0.99'
    """
    if claim is not None and claim.point is None:
        return claim if family is None or family.besides is None else as_seen_by(family, claim, delta)
    epsilon = TYPICAL_EPSILON if claim is None or claim.point is None else claim.point[0] or TYPICAL_EPSILON
    if family is None or not family.assumes_shape:
        family = usual_family(delta)
    reachable = family.least_private.epsilon(delta) / 2
    if reachable == 0:
        return family.leaking(min(1.0, family.upper / 2))
    return family.at_epsilon(min(epsilon, reachable, LARGEST_TYPICAL_EPSILON), delta)


def usual_family(delta: float) -> Family:
    """The family to suppose where nothing is known: Gaussian, or Laplace where only a pure ε is finite.

    >>> str(usual_family(1e-5)), str(usual_family(0.0))
    ('gaussian', 'laplace')
    """
    return Gaussian.family() if delta > 0 else Laplace.family()


def family_through(claim: Claim, delta: float) -> Family:
    """The family through a claim; the usual one where it has none.

    >>> str(family_through(Laplace(1.0), 1e-5))
    'laplace'
    """
    return claim.own_family() if claim.parameter_names else usual_family(delta)


def leaky_family(claim: Claim, delta: float) -> Family:
    """Where mechanisms that leak more than a claim are looked for: its own family, or the usual one.

    >>> str(leaky_family(Laplace(1.0), 1e-5)), str(leaky_family(ApproxDP(1.0, 1e-5), 1e-5))
    ('laplace', 'gaussian')
    """
    return usual_family(delta) if claim.point is not None else family_through(claim, delta)


def leaky_mechanisms(claim: Claim, delta: float) -> Iterator[Claim]:
    """Mechanisms that leak more than a claim allows, a little first.

    >>> [str(leaky) for leaky in leaky_mechanisms(Gaussian(1.0), 1e-5)][:2]
    ['gaussian(mu=1.25)', 'gaussian(mu=1.5)']
    """
    family, start = leaky_family(claim, delta), claim
    if claim.point is not None or not claim.parameter_names:
        epsilon = min(max(claim.epsilon(delta), SMALLEST_TYPICAL_EPSILON), LARGEST_TYPICAL_EPSILON)
        start = family.at_epsilon(epsilon, delta)
    for factor in _LEAKS:
        yield family.leaking(min(factor * family.leak(start), 0.5 * (1 + family.upper), _LARGEST_LEAK))


def as_seen_by(family: Family, claim: Claim, delta: float) -> Claim:
    """The claim as a row tests it that believes in a family: itself, or what it says about such a curve.

    >>> str(as_seen_by(ApproxDP.family(delta=1e-5), Gaussian(1.0), 1e-5))[:24]
    'approx-dp(epsilon=4.3771'
    """
    if not family.assumes_shape:
        return ApproxDP.implied_by(claim, delta)
    if family.besides is not None and not isinstance(claim, type(family.leaking(1.0))):
        # What is tested is not what the claim is about; the two meet in ε.
        return family.at_epsilon(claim.epsilon(delta), delta)
    return claim if claim.point is None else family.at_epsilon(claim.point[0], delta)

"""What is asked of a run: which claim, which δ and confidence, and what the user states as known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.parts.typical import (
    LARGEST_TYPICAL_EPSILON,
    family_through,
    typical_claim,
    usual_family,
)
from tightaudit.claims.text import as_claim, as_family
from tightaudit.support import checks
from tightaudit.support.errors import InputError


@dataclass(frozen=True)
class Question:
    """A claim or none, the family that may be believed in, δ, confidence, and what is known.

    >>> question = Question.of(claim="gaussian(mu=1)", delta=1e-5)
    >>> str(question.family), question.independent
    ('gaussian', False)
    """

    claim: Claim | None
    family: Family | None
    """The family of the rows that believe in one; None if (ε, δ)-DP alone was asked for."""
    delta: float
    confidence: float = 0.95
    independent: bool | str = False
    """Whether outcomes are known to be independent: the reason, or True without one."""
    family_known: bool = False
    """Whether the privacy curve is known to be in the family."""
    runs: tuple[int, ...] = ()
    """The canaries of each of several runs that are independent of each other; empty for one run."""

    @classmethod
    def of(
        cls,
        *,
        claim: Claim | str | None = None,
        claim_epsilon: float | None = None,
        family: Family | str | None = None,
        delta: float | None = None,
        confidence: float = 0.95,
        independent: bool | str = False,
        family_known: bool = False,
        runs: tuple[int, ...] = (),
    ) -> Question:
        """The question as users ask it: text for claims, δ from the claim, the claim's own family."""
        if claim_epsilon is not None:
            if claim is not None:
                raise InputError("claim_epsilon", claim_epsilon, "either this or a claim, not both")
            if delta is None:
                raise InputError("delta", None, "the δ of the claimed ε, for example 1e-5")
            claim = ApproxDP(checks.privacy_loss("claim_epsilon", claim_epsilon), delta)
        whole = None if claim is None else as_claim(claim, delta=delta)
        stated = None if whole is None or whole.point is None else whole.point[1]
        believed = None if family is None else as_family(family, delta=stated if delta is None else delta)
        fixed = [stated, None if believed is None else believed.delta]
        known = [each for each in (delta, *fixed) if each is not None]
        if not known:
            raise InputError("delta", None, "the δ at which ε is bounded, for example 1e-5")
        delta = checks.probability("delta", known[0])
        for each in fixed:
            if each not in (None, delta):
                raise InputError("delta", delta, f"{each:g}, the δ of the claim or family")
        return cls(
            whole,
            _family(whole, believed, delta),
            delta,
            checks.confidence(confidence),
            checks.reason("independent", independent),
            checks.flag("family_known", family_known),
            runs,
        )

    @cached_property
    def typical(self) -> Claim:
        """The mechanism that numbers to release and options of methods are chosen for."""
        return typical_claim(self.claim, self.family, self.delta)

    @cached_property
    def claimed_epsilon(self) -> float | None:
        """ε of the claim at δ; None without a claim."""
        return None if self.claim is None else self.claim.epsilon(self.delta)

    def require_bounds(self) -> None:
        """Refuse a δ at which the family has no ε to search for."""
        if self.family is not None:
            self.family.require_delta(self.delta)

    @property
    def level(self) -> float:
        """How often a true claim may be rejected."""
        return 1 - self.confidence


def _family(claim: Claim | None, given: Family | None, delta: float) -> Family | None:
    if given is not None:
        return given if given.assumes_shape else None
    if claim is not None and claim.point is None:
        return family_through(claim, delta)
    # At δ = 1 every mechanism has ε = 0, and beyond a large ε no member is told from the next.
    told_apart = delta < 1 and (claim is None or claim.epsilon(delta) <= LARGEST_TYPICAL_EPSILON)
    return usual_family(delta) if told_apart else None

"""From p-values to a lower bound: the least private claim of a family that the evidence rejects."""

import math
from dataclasses import dataclass
from typing import Literal

from tightaudit.bounds.beliefs import Beliefs
from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.parts.typical import typical_claim
from tightaudit.claims.text import as_family
from tightaudit.methods.base import AnyEvidence, Method, Test
from tightaudit.support import checks

Status = Literal["bounded", "none-rejected", "all-rejected"]


@dataclass(frozen=True, repr=False)
class Bound:
    """A lower bound on ε at δ, with what it rests on.

    `bounded`: every claim in the family up to `parameter` is rejected, so ε is at least `epsilon`.
    `none-rejected`: not even the most private claim is, and the bound is 0.
    `all-rejected`: the errors are too few for every member of the family. There is no bound to name;
    the family does not describe the mechanism.
    """

    epsilon: float | None
    parameter: float | None
    status: Status
    delta: float
    confidence: float
    family: Family
    test: Test
    """The method with its options fixed, for this number of guesses."""
    evidence: AnyEvidence

    def __str__(self) -> str:
        """One sentence that can be quoted, beliefs included.

        >>> import tightaudit as ta
        >>> evidence = ta.Evidence(n=10_000, released=2_000, errors=250)
        >>> bound = ta.lower_bound(evidence, "gaussian", delta=1e-5)
        >>> print(bound)  # doctest: +NORMALIZE_WHITESPACE
        ε ≥ 4.239 at δ=1e-05 with 95% confidence
        (exact; if outcomes are independent and the privacy curve is in the family gaussian)
        """
        from tightaudit.render.wording import bound_sentence

        return bound_sentence(self)

    def __repr__(self) -> str:
        return f"Bound(epsilon={self.epsilon}, delta={self.delta}, method={self.method.name!r})"

    def _repr_html_(self) -> str:
        from tightaudit.render.notebook import as_html

        return as_html(str(self))

    @property
    def method(self) -> Method:
        """The method, its options fixed."""
        return self.test.method

    @property
    def beliefs(self) -> Beliefs:
        """What has to be believed for the bound to hold."""
        return Beliefs.of(self.method, self.family)

    @property
    def rejected(self) -> Claim | None:
        """The least private claim in the family that is rejected; None if there is none to name."""
        if self.status != "bounded":
            return None
        return self.family.most_private if not self.parameter else self.family.member(self.parameter)

    @property
    def size(self) -> float:
        """ε for comparing bounds: infinite where the whole family is rejected."""
        return math.inf if self.epsilon is None else self.epsilon


def lower_bound(
    evidence: AnyEvidence,
    family: Family | str,
    *,
    delta: float,
    confidence: float = 0.95,
    method: str | Method = "exact",
) -> Bound:
    """A lower bound on ε at δ, with the given confidence.

    Searches the family for the least private claim whose p-value is at most 1 - confidence, and returns
    that rejected claim's ε, never a value on the other side of the line.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=25)
    >>> bound = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5)
    >>> round(bound.epsilon, 4), round(bound.parameter, 4), bound.status
    (3.6458, 0.8532, 'bounded')
    """
    delta = checks.probability("delta", delta)
    confidence = checks.confidence(confidence)
    searched = as_family(family, delta=delta)
    searched.require_delta(delta)
    test = Test.of(method, evidence, lambda: typical_claim(None, searched, delta), 1 - confidence)
    return search(test, evidence, searched, delta, confidence)


def search(test: Test, evidence: AnyEvidence, family: Family, delta: float, confidence: float) -> Bound:
    """The bound that a test gives in a family."""
    level, statistic = 1 - confidence, test.statistic(evidence)

    def excess(claim: Claim) -> float:
        return test.excess(claim, statistic, level)

    def bound(status: Status, epsilon: float | None, parameter: float | None = None) -> Bound:
        return Bound(epsilon, parameter, status, delta, confidence, family, test, evidence)

    if excess(family.most_private) > 0:
        return bound("none-rejected", 0.0)
    if excess(family.least_private) <= 0:
        return bound("all-rejected", None)
    leak = test.last_rejected(family, statistic, level)
    parameter = family.parameter_at(leak)
    epsilon = family.leaking(leak).epsilon(delta)
    return bound("bounded", epsilon, parameter if math.isfinite(parameter) else None)

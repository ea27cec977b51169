"""From p-values to a lower bound: the least private claim of a family that the evidence rejects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scipy.optimize import brentq

from tightaudit import checks
from tightaudit.errors import InputError
from tightaudit.game import Evidence
from tightaudit.pvalues.base import Method, resolve
from tightaudit.tradeoffs.base import Family, TradeOff

Status = Literal["bounded", "none-rejected", "all-rejected"]

_MAX_DOUBLINGS = 9
_SMALLEST = 1e-9
_FAR = 40.0
_NOT_ZERO = 1e-12


@dataclass(frozen=True)
class Bound:
    """A lower bound on ε at δ, with what it rests on.

    `bounded`: every claim of the family up to `parameter` is rejected, so ε is at least `epsilon`.
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
    method: Method
    evidence: Evidence

    def __str__(self) -> str:
        """One sentence that can be quoted, beliefs included.

        >>> import tightaudit as ta
        >>> evidence = ta.Evidence(n=10_000, released=2_000, errors=250)
        >>> bound = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5)
        >>> print(bound)  # doctest: +NORMALIZE_WHITESPACE
        ε ≥ 4.239 at δ=1e-05 with 95% confidence
        (exact; if outcomes are independent and the privacy curve is of the family gaussian)
        """
        sure = f"{100 * self.confidence:.10g}% confidence"
        if self.status == "none-rejected":
            return f"no lower bound at δ={self.delta:g}: nothing is rejected with {sure} ({self.beliefs})"
        if self.status == "all-rejected":
            return (
                f"every claim of the family {self.family} is rejected with {sure} ({self.beliefs}): "
                "the family does not describe this mechanism"
            )
        return f"ε ≥ {rounded_down(self.epsilon or 0.0)} at δ={self.delta:g} with {sure} ({self.beliefs})"

    @property
    def remark(self) -> str | None:
        """What a reader should know about how the bound was computed, if anything."""
        return self.method.remark(self.evidence)

    @property
    def beliefs(self) -> str:
        """The method, and what has to be believed for the bound to hold."""
        believed = []
        if self.method.assumes.independent_outcomes:
            believed.append("outcomes are independent")
        if self.family.delta is None:
            believed.append(f"the privacy curve is of the family {self.family}")
        return f"{self.method.name}; if {' and '.join(believed)}" if believed else self.method.name


def rounded_down(epsilon: float) -> str:
    """A lower bound to three decimals, which must not gain from being printed.

    >>> rounded_down(4.2399)
    '4.239'
    """
    return f"{math.floor(epsilon * 1000) / 1000:.3f}"


def lower_bound(
    evidence: Evidence,
    family: Family,
    *,
    delta: float,
    confidence: float = 0.95,
    method: str | Method = "exact",
) -> Bound:
    """The largest ε at δ that the evidence rules out staying below, with the given confidence.

    Searches the family for the least private claim whose p-value is at most 1 - confidence, and returns
    that rejected claim's ε, never a value on the other side of the line.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=25)
    >>> bound = ta.lower_bound(evidence, ta.Gaussian.family(), delta=1e-5)
    >>> round(bound.epsilon, 4), round(bound.parameter, 4), bound.status
    (3.6458, 0.8532, 'bounded')
    """
    if not isinstance(family, Family):
        expected = "a family, such as Gaussian.family(): a claim with one parameter left out"
        raise InputError("family", str(family), expected)
    delta = checks.probability("delta", delta)
    confidence = checks.confidence(confidence)
    chosen = resolve(method)
    if family.delta is not None and family.delta != delta:
        raise InputError("delta", delta, f"the δ of the family {family}")
    if family.delta is None and math.isinf(family.member(min(1.0, family.upper)).epsilon(delta)):
        raise InputError("delta", delta, f"a δ at which claims of the family {family} have a finite ε")
    level = 1 - confidence

    def result(status: Status, epsilon: float | None, parameter: float | None) -> Bound:
        return Bound(epsilon, parameter, status, delta, confidence, family, chosen, evidence)

    def excess(claim: TradeOff) -> float:
        return chosen.excess(claim, evidence, level)

    if excess(family.most_private) > 0:
        return result("none-rejected", 0.0, None)
    if excess(family.least_private) <= 0:
        return result("all-rejected", None, None)
    parameter = least_private_rejected(family, excess, chosen.resolution)
    claim = family.member(parameter) if parameter > 0 else family.most_private
    return result("bounded", claim.epsilon(delta), parameter)


def least_private_rejected(family: Family, excess: Callable[[TradeOff], float], resolution: float) -> float:
    """The largest parameter whose excess is not positive, for a family with both kinds among its limits.

    >>> import tightaudit as ta
    >>> parameter = least_private_rejected(ta.Laplace.family(), lambda claim: claim.epsilon(0.0) - 2, 1e-8)
    >>> round(parameter, 6)
    2.0
    """

    def at(parameter: float) -> float:
        value = min(max(excess(family.member(parameter)), -_FAR), _FAR)
        # Zero counts as rejected; left as it is, a root finder would stop at the near end of a plateau.
        return value if value > 0 else min(value, -_NOT_ZERO)

    low, high = 0.0, min(1.0, family.upper / 2)
    for _ in range(_MAX_DOUBLINGS):
        if at(high) > 0:
            break
        low, high = high, 2 * high if math.isinf(family.upper) else 0.5 * (high + family.upper)
    else:
        raise ArithmeticError(f"no member of the family {family} is accepted, although its limit is")
    while low == 0 and high > _SMALLEST:
        if at(high / 2) > 0:
            high /= 2
        else:
            low = high / 2
    if low == 0:
        return low
    root = float(brentq(at, low, high, xtol=resolution * low, rtol=resolution))
    step = resolution * root
    while root > low and at(root) > 0:
        root, step = max(low, root - step), 2 * step
    return root

"""Claims on a line: one parameter is free, and a search walks along it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from scipy.optimize import brentq

from tightaudit.support.errors import InputError

if TYPE_CHECKING:
    from tightaudit.claims.base import Claim

RESOLUTION = 1e-8
"""How finely a parameter is searched, relative to itself, unless something coarser will do."""
_LARGEST = 256.0
_MOST_STEPS = 40
"""Steps outward in a search, which are of a factor 2, or the half of what is left, but for the first."""
_FAR = 40.0
_NOT_ZERO = 1e-12
_CLOSE = 0.02
_MORE_PRIVATE = 1 / 8


@dataclass(frozen=True)
class Family:
    """Claims that differ in one parameter.

    A search walks along the *leak*, which grows as the members get less private: the parameter itself, or
    its inverse where a larger parameter is more private, as with noise.

    >>> import tightaudit as ta
    >>> family = ta.Gaussian.family()
    >>> family.parameter, family.member(2.0)
    ('mu', Gaussian(mu=2.0))
    """

    text: str
    """The text form, with the free parameter left out."""
    parameter: str
    """Name of the free parameter."""
    member: Callable[[float], Claim]
    """The claim at one value of the parameter."""
    most_private: Claim
    """The limit as the leak goes to 0."""
    least_private: Claim
    """The limit as the leak goes to `upper`."""
    lower: float = 1e-9
    """The smallest leak above 0 of which there is a member, or of which it makes sense to speak."""
    upper: float = math.inf
    """Where the leak ends."""
    delta: float | None = None
    """The δ of every member, for the families of (ε, δ)-DP, which assume no shape."""
    protects: bool = False
    """Whether a larger parameter is more private."""
    besides: str | None = None
    """What else has to be true for the ε of members to follow, where it is not that of what was tested."""

    def __str__(self) -> str:
        return self.text

    @property
    def assumes_shape(self) -> bool:
        """Whether being in the family is a belief about the whole privacy curve."""
        return self.delta is None

    def require_delta(self, delta: float) -> None:
        """Refuse a δ at which the family has no ε to search for.

        >>> import tightaudit as ta
        >>> ta.ApproxDP.family(delta=0.1).require_delta(0.2)
        Traceback (most recent call last):
            ...
        tightaudit.InputError: delta=0.2: expected 0.1, the δ of the family approx-dp(delta=0.1)
        """
        if self.delta is not None and self.delta != delta:
            raise InputError("delta", delta, f"{self.delta:g}, the δ of the family {self}")
        # A member may leak more than numbers can hold, where more private ones have an ordinary ε.
        leak = min(1.0, self.upper)
        while self.assumes_shape and math.isinf(self.leaking(leak).epsilon(delta)):
            if leak > self.lower:
                leak = max(self.lower, leak * _MORE_PRIVATE)
                continue
            expected = f"a δ at which claims of the family {self} have a finite ε, or another family"
            raise InputError("delta", delta, expected)

    @property
    def direction(self) -> str:
        """How to name the rejected members by the last of them: all more private ones are rejected too."""
        return "down to" if self.protects else "up to"

    def leaking(self, leak: float) -> Claim:
        """The member with this leak, anywhere from 0 to below `upper`.

        >>> import tightaudit as ta
        >>> ta.Gaussian.family().leaking(2.0)
        Gaussian(mu=2.0)
        """
        return self.member(self.parameter_at(leak)) if leak > 0 else self.most_private

    def parameter_at(self, leak: float) -> float:
        """The parameter of the member with this leak."""
        if not self.protects:
            return leak
        return 1 / leak if leak > 0 else math.inf

    def leak(self, claim: Claim) -> float:
        """The leak of a member.

        >>> import tightaudit as ta
        >>> ta.Laplace.family().leak(ta.Laplace(0.5))
        0.5
        """
        # 1/x is its own inverse.
        return self.parameter_at(claim.parameters[self.parameter])

    def last_rejected(
        self, excess: Callable[[Claim], float], resolution: float = RESOLUTION, *, rejected: float = 0.0
    ) -> float:
        """The largest leak whose excess is not positive, where both kinds are among the family's limits.

        The search is short where a leak just below is known to be `rejected`, and none is lost if it is not.

        >>> import tightaudit as ta
        >>> round(ta.Laplace.family().last_rejected(lambda claim: claim.epsilon(0.0) - 2), 6)
        2.0
        """

        @cache  # the ends and the root are asked for again
        def at(leak: float) -> float:
            value = min(max(excess(self.leaking(leak)), -_FAR), _FAR)
            # Zero counts as rejected; left as it is, a root finder would stop at the near end of a plateau.
            return value if value > 0 else min(value, -_NOT_ZERO)

        low, high = 0.0, min(1.0, self.upper / 2)
        step = 2.0
        if rejected > 0 and at(rejected) <= 0:
            low = rejected
            step = 1 + _CLOSE
            high = min(rejected * step, 0.5 * (rejected + self.upper))
        for _ in range(_MOST_STEPS):
            if at(high) > 0:
                break
            further = min(step * high, _LARGEST) if math.isinf(self.upper) else 0.5 * (high + self.upper)
            low, high, step = high, max(high, further), min(2.0, step**2)
        else:
            raise ArithmeticError(f"no member of the family {self} is accepted, although its limit is")
        while low == 0 and high > self.lower:
            nearer = max(high / 2, self.lower)
            if at(nearer) > 0:
                high = nearer
            else:
                low = nearer
        if low == 0:
            return low
        root = float(brentq(at, low, high, xtol=resolution * low, rtol=resolution))
        back = resolution * root
        while root > low and at(root) > 0:
            root, back = max(low, root - back), 2 * back
        return root

    def at_epsilon(self, epsilon: float, delta: float) -> Claim:
        """The least private member whose ε at δ does not exceed the one given.

        >>> import tightaudit as ta
        >>> round(ta.Gaussian.family().at_epsilon(4.3772, 1e-5).mu, 4)
        1.0
        """

        def excess(claim: Claim) -> float:
            return claim.epsilon(delta) - epsilon

        if excess(self.most_private) > 0 or excess(self.least_private) <= 0:
            expected = f"an ε at δ={delta:g} that members of the family {self} have"
            raise InputError("claim", f"ε={epsilon:g}", expected)
        return self.leaking(self.last_rejected(excess))

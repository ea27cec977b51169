"""The pair of laws on [0, 1] that stands for a trade-off function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightaudit.support import checks
from tightaudit.support.checks import Numbers, like_the_question

if TYPE_CHECKING:
    from tightaudit.claims.base import Claim


class BasePair:
    """P and Q on [0, 1] with T(P, Q) = f: P is uniform, Q has density -f'(1-x) and an atom at 1.

    Definition 9 of Xiang et al., after Dong, Roth and Su.

    >>> import tightaudit as ta
    >>> pair = ta.Gaussian(1.0).base_pair()
    >>> pair.q_cdf([0.0, 0.5]).round(6)
    array([0.      , 0.158655])
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim

    @property
    def q_atom(self) -> float:
        """Mass of Q at the point 1."""
        return 1 - self.claim.f(0.0)

    def p_density(self, x: Numbers) -> Numbers:
        """Density of P: 1 everywhere."""
        return like_the_question(np.ones_like(checks.within("x", x, 0, 1)))

    def q_density(self, x: Numbers) -> Numbers:
        """Density of Q apart from its atom."""
        return like_the_question(-self.claim.slope(1 - checks.within("x", x, 0, 1)))

    def q_cdf(self, x: Numbers) -> Numbers:
        """Mass of Q on [0, x]; the atom is counted at x = 1."""
        point = checks.within("x", x, 0, 1)
        return like_the_question(np.where(point == 1, 1.0, self.claim.f(1 - point)))

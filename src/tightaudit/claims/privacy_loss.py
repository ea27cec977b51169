"""A claim given by its privacy loss distribution, as an accountant would hand it over."""

import numpy as np
from numpy.typing import ArrayLike

from tightaudit.claims.parts.discrete import MASS_TOLERANCE, DiscretePair
from tightaudit.support import checks
from tightaudit.support.errors import InputError


class PrivacyLoss(DiscretePair):
    """T(P, Q) from the law of L = ln dQ/dP under Q.

    `masses` are probabilities under Q and sum to 1. The loss may be +∞ (Q only). Under P a loss l has
    mass e^-l times as large; whatever P has left over sits at loss -∞.

    >>> claim = PrivacyLoss(losses=[1.0, -1.0, float("inf")], masses=[0.66, 0.24, 0.1])
    >>> round(claim.epsilon(0.2), 4), round(claim.f(0.0), 4)
    (0.8423, 0.9)
    """

    name = "privacy-loss"

    def __init__(self, losses: ArrayLike, masses: ArrayLike) -> None:
        loss = checks.vector("losses", losses)
        mass = checks.vector("masses", masses)
        if loss.shape != mass.shape:
            raise InputError("masses", f"{mass.size} values", f"as many as losses, {loss.size}")
        if np.any(mass < 0):
            raise InputError("masses", float(mass.min()), "probabilities of at least 0")
        if np.any(loss == -np.inf):
            raise InputError(
                "losses", "-inf", "losses above -inf (Q has no mass there; what P has left over is put there)"
            )
        if abs(mass.sum() - 1) > MASS_TOLERANCE:
            raise InputError("masses", f"values with sum {mass.sum():.12g}", "a sum of 1")
        used = mass > 0
        loss, mass = loss[used], mass[used]
        with np.errstate(over="ignore"):
            p_mass = np.exp(-loss) * mass
        if p_mass.sum() > 1 + MASS_TOLERANCE:
            raise InputError(
                "losses",
                f"losses that give P the mass {p_mass.sum():.12g}",
                "the sum of masses·exp(-losses) to be at most 1",
            )
        left_over = max(0.0, 1 - p_mass.sum())
        super().__init__(np.append(p_mass, left_over), np.append(mass, 0.0))

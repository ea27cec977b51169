"""All guesses released, outcomes independent: a plain binomial tail."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincc

from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method
from tightaudit.support.errors import InputError


def binomial_tail(errors: int, trials: int, error_rate: float) -> float:
    """Pr[Binomial(trials, error_rate) ≤ errors], to full relative accuracy in the deep tail.

    >>> round(binomial_tail(1, 3, 0.5), 6)
    0.5
    """
    if errors >= trials:
        return 1.0
    return float(betaincc(errors + 1, trials - errors, error_rate))


@METHODS.register
@dataclass(frozen=True)
class Bits(Method):
    """BinomCDF(u; n, A(0)): no filtering, every guess as good as the best single guess can be.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=1000, errors=280)
    >>> round(ta.p_value(evidence, ta.Gaussian(1.0), method="bits"), 6)
    0.026676
    """

    name = "bits"
    assumes = Assumptions(independent_outcomes=True, evidence="all guesses released")
    releases_all = True
    reference = "Xiang, Wang, Xiao, Wang: Privacy Audit as Bits Transmission, 2025"

    def p_value(self, claim: Claim, evidence: Evidence) -> float:
        if evidence.released != evidence.n:
            raise InputError(
                "released", evidence.released, f"all n={evidence.n} guesses released for method bits"
            )
        return binomial_tail(evidence.errors, evidence.n, float(claim.top_error_mass(np.asarray(1.0))))

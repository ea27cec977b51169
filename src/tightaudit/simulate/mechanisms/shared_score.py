"""One confidence for everybody: each bit alone sees exactly f, but errors rise and fall together."""

from dataclasses import dataclass

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.claims.text import as_claim
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

_ROUNDING = 1e-9


@MECHANISMS.register
@dataclass(frozen=True, init=False)
class SharedScore(Mechanism):
    """Draws one score from the law of |L| under a symmetric f, publishes it, and flips every bit at its rate.

    Given all other bits, an observer of bit i sees the score and one answer of randomized response at it:
    the pair behind f. So it satisfies f, for every f that is symmetric in P and Q.
    """

    shared: Claim
    name = "shared-score"
    example = "shared-score(claim=gaussian(mu=1))"
    independent = False
    why = "all canaries share one error rate"
    rule = "threshold"

    def __init__(self, claim: Claim) -> None:
        claim = as_claim(claim)
        if claim.asymmetry > _ROUNDING:
            raise InputError("claim", str(claim), "a claim that is symmetric in P and Q")
        object.__setattr__(self, "shared", claim)

    @property
    def claim(self) -> Claim:
        return self.shared

    @property
    def parameters(self) -> dict[str, object]:
        return {"claim": self.shared}

    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        rate = self.shared.error_probability(rng.random((members.shape[0], 1)))
        return np.where(members ^ (rng.random(members.shape) < rate), 1.0, -1.0)

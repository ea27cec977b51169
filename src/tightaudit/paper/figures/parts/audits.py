"""Cells that simulate one audit and bound it by several methods on the same guesses."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tightaudit.bounds.one_run import lower_bound
from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.family import Family
from tightaudit.claims.parts.typical import typical_claim
from tightaudit.evidence.counts import Evidence, Rule
from tightaudit.methods.any_dependence import QUICK_PROGRAM
from tightaudit.methods.base import METHODS, Method
from tightaudit.paper.figures.base import Cell
from tightaudit.planning.release import Planned, Setting
from tightaudit.simulate.mechanisms.base import as_mechanism

OPTIONS: dict[str, dict[str, Any]] = {"any-dependence": {"largest_program": QUICK_PROGRAM}}
"""Of methods whose default takes too long for hundreds of audits."""
CONFIDENCE = 0.95
REPETITIONS = 5
_WITHOUT_SHAPE = ("steinke",)
"""Methods that bound ε of (ε, δ)-DP whatever the curve."""
_PLANNED = ("fdp-recursion", "any-dependence")
"""Methods that few guesses serve better: theirs are planned before the errors are seen."""


@dataclass(frozen=True)
class AuditCell(Cell):
    """One audit of a mechanism: all methods on the same guesses."""

    kind: ClassVar[str] = "audit"
    mechanism: str
    n: int
    released: int
    """For the methods that count errors among some of the guesses."""
    delta: float
    repetition: int
    methods: tuple[str, ...]
    guessing: Rule | None = None
    """The rule of the guesses, if not the mechanism's own."""

    @property
    def family(self) -> Family:
        """The curve that methods are told: the mechanism's own, its parameter unknown."""
        claim = as_mechanism(self.mechanism).claim
        return claim.own_family() if claim.point is None else ApproxDP.family(delta=self.delta)

    def compute(self) -> dict[str, Any]:
        guesses = self._guesses()
        bounds = {name: self._bound(guesses, name) for name in self.methods}
        few = guesses.top(self.released)
        return {
            "true": as_mechanism(self.mechanism).claim.epsilon(self.delta),
            "accuracy": 1 - few.errors / few.released,
            "bounds": bounds,
        }

    def _guesses(self) -> Evidence:
        chosen = as_mechanism(self.mechanism)
        rng = np.random.default_rng([self.repetition, self.n])
        return chosen.play(self.n, self.n, rng, runs=1, rule=self.guessing)[0]

    def _bound(self, guesses: Evidence, name: str) -> float:
        method = METHODS[name](**OPTIONS.get(name, {}))
        family = ApproxDP.family(delta=self.delta) if name in _WITHOUT_SHAPE else self.family
        evidence = guesses.top(self._count(method, family))
        found = lower_bound(evidence, family, delta=self.delta, confidence=CONFIDENCE, method=method)
        return found.size

    def _count(self, method: Method, family: Family) -> int:
        if method.releases_all:
            return self.n
        if method.name in _PLANNED:
            typical = typical_claim(None, family, self.delta)
            return Planned().counts(Setting(self.n, method, family, typical, 1 - CONFIDENCE))[0]
        return self.released

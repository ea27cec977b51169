"""Cells that simulate one audit and bound it by several methods on the same guesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tightaudit.bounds import lower_bound
from tightaudit.figures.base import Cell
from tightaudit.game import Evidence, Guessing
from tightaudit.mechanisms.base import mechanism
from tightaudit.planning import planned_count, typical_claim
from tightaudit.pvalues.any_dependence import AnyDependence
from tightaudit.pvalues.base import Method, resolve
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import Family

LARGEST_PROGRAM = 400
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
    guessing: Guessing | None = None
    """The rule of the guesses, if not the mechanism's own."""

    @property
    def family(self) -> Family:
        """The curve that methods are told: the mechanism's own, its parameter unknown."""
        claim = mechanism(self.mechanism).claim
        return ApproxDP.family(delta=self.delta) if isinstance(claim, ApproxDP) else claim.own_family()

    def compute(self) -> dict[str, Any]:
        guesses = self._guesses()
        bounds = {name: self._bound(guesses, name) for name in self.methods}
        few = guesses.release(self.released)
        return {
            "true": mechanism(self.mechanism).claim.epsilon(self.delta),
            "accuracy": 1 - few.errors / few.released,
            "bounds": bounds,
        }

    def _guesses(self) -> Evidence:
        chosen = mechanism(self.mechanism)
        rng = np.random.default_rng([self.repetition, self.n])
        return chosen.play(self.n, self.n, rng, runs=1, guessing=self.guessing)[0]

    def _bound(self, guesses: Evidence, name: str) -> float:
        method = AnyDependence(largest_program=LARGEST_PROGRAM) if name == "any-dependence" else resolve(name)
        family = ApproxDP.family(delta=self.delta) if name in _WITHOUT_SHAPE else self.family
        evidence = guesses.release(self._count(method, family))
        found = lower_bound(evidence, family, delta=self.delta, confidence=CONFIDENCE, method=method)
        # A family whose every member is rejected has no bound; its largest ε would be an honest one.
        return float("inf") if found.epsilon is None else found.epsilon

    def _count(self, method: Method, family: Family) -> int:
        if method.releases_all or method.name == "bits":
            return self.n
        if method.name in _PLANNED:
            typical = typical_claim(None, family, self.delta)
            return planned_count(self.n, method, family, typical, 1 - CONFIDENCE)
        return self.released

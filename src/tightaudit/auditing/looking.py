"""Audits of a training while it goes on: at the steps that were fixed, each at its share of the level."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from tightaudit.auditing.audit import audit
from tightaudit.auditing.report import Look, Looked, Report
from tightaudit.evidence.run import Run
from tightaudit.planning.looks import EARLY, Looks
from tightaudit.support import checks
from tightaudit.support.errors import InputError


@dataclass
class Looking:
    """Looks at a training, one after the other; canaries make it and tell it of every step."""

    looks: Looks
    delta: float
    confidence: float = 0.95
    on_rejection: Callable[[Report], object] | None = None
    say: Callable[[str], object] = print
    taken: tuple[Look, ...] = ()
    report: Report | None = None
    """That of the last look; None before the first, or if the first is still to come after a checkpoint."""

    @classmethod
    def of(
        cls,
        looks: Looks | None,
        *,
        every: int | None,
        until: int | None,
        at: tuple[int, ...] | None,
        **asked: Any,
    ) -> "Looking":
        """As users ask for it: looks, or when to take them."""
        given = [
            name for name, value in (("looks", looks), ("every", every), ("at", at)) if value is not None
        ]
        if len(given) != 1:
            found = " and ".join(given) or None
            raise InputError("looks", found, "one of looks=ta.Looks(…), every=… with until=…, or at=(…)")
        if every is not None:
            if until is None:
                raise InputError("until", None, "the last step of the training: when to look is fixed before")
            looks = Looks.every(every, until=until)
        elif at is not None:
            looks = Looks(at, EARLY)
        if not isinstance(looks, Looks):
            raise InputError("looks", looks, "ta.Looks(at=…)")
        asked["delta"] = checks.probability("delta", asked["delta"])
        asked["confidence"] = checks.confidence(asked["confidence"])
        return cls(looks, **asked)

    def due(self, step: int) -> bool:
        """Whether to look after this step: if it was planned, and was not done before a checkpoint."""
        return step in self.looks.at and all(look.step < step for look in self.taken)

    def take(self, step: int, run: Run, *, aloud: bool = True) -> Report:
        """Look: audit the run so far at this look's share of the level, and say what came out."""
        from tightaudit.render.wording import look_line

        share = self.looks.share(self.looks.at.index(step))
        report = audit(run, delta=self.delta, confidence=1 - share * (1 - self.confidence))
        claim, row = report.question.claim, report.claim_row
        look = Look(
            step,
            report.question.confidence,
            report.epsilon,
            None if claim is None else claim.epsilon(self.delta),
            None if row is None else row.p_value,
            bool(report.violated),
        )
        self.taken = (*self.taken, look)
        self.report = replace(report, looked=Looked(self.looks, self.confidence, self.taken))
        if aloud:
            self.say(look_line(self.report))
        if look.rejected and self.on_rejection is not None:
            self.on_rejection(self.report)
        return self.report

    def state(self) -> str:
        """What a checkpoint keeps: when to look, and what was seen."""
        plan = {"looks": asdict(self.looks), "delta": self.delta, "confidence": self.confidence}
        return json.dumps({**plan, "taken": [asdict(look) for look in self.taken]})

    def load(self, state: str) -> None:
        """Go on from a checkpoint: looks that were taken are not taken again."""
        saved = json.loads(state)
        planned = Looks(**saved["looks"]), saved["delta"], saved["confidence"]
        given = self.looks, self.delta, self.confidence
        for name, before, now in zip(("looks", "delta", "confidence"), planned, given, strict=True):
            if before != now:
                raise InputError(name, f"{now}", f"{before}, as fixed before the first look")
        self.taken = tuple(Look(**look) for look in saved["taken"])

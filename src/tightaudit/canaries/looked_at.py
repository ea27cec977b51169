"""Canaries that are audited while the training goes on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tightaudit.support.errors import InputError

if TYPE_CHECKING:
    from tightaudit.auditing.looking import Looking
    from tightaudit.auditing.report import Report
    from tightaudit.planning.looks import Looks


class LookedAt:
    """What canaries of all frameworks have in common there."""

    _looking: "Looking | None" = None
    _looked = ""
    """What a checkpoint says of looks that were taken before it."""

    @property
    def _last_step(self) -> int | None:
        """The last step that is audited, if that is known."""
        return None

    def looks(
        self,
        looks: "Looks | None" = None,
        *,
        every: int | None = None,
        until: int | None = None,
        at: tuple[int, ...] | None = None,
        delta: float,
        confidence: float = 0.95,
        on_rejection: "Callable[[Report], object] | None" = None,
        say: Callable[[str], object] = print,
    ) -> "Looking":
        """Audit the training while it goes on, after steps that are fixed now.

        Look `every` so many steps `until` the last one, or at named steps (`at`), or as `ta.Looks` says. Each
        look prints one line, and calls `on_rejection` with its report if the claim is rejected, so that the
        training can be stopped. The last report is `looking.report`. Looks share the level, so that all of
        them together keep the confidence.
        """
        from tightaudit.auditing.looking import Looking

        looking = Looking.of(
            looks,
            every=every,
            until=until,
            at=at,
            delta=delta,
            confidence=confidence,
            on_rejection=on_rejection,
            say=say,
        )
        before = self._looked if self._looking is None else self._looking.state()
        if before and (self._looking is None or self._looking.taken):
            looking.load(before)
        last = self._last_step
        if last is not None and looking.looks.at[-1] > last:
            raise InputError("looks", looking.looks.at, f"steps up to {last}, the last that is audited")
        self._looking = looking
        return looking

"""Which failed check leaves which others without meaning."""

from collections.abc import Iterator
from dataclasses import replace

from tightaudit.evidence.checkup import Check

_LENGTHS = ("contribution",)
_PREREQUISITES = {
    "records used twice in a step": _LENGTHS,
    "participation, spread": ("batch size, spread",),
    "batch size": ("batch size, spread",),
    "sampling rate": ("batch size",),
    "noise, step by step": ("contribution, spread", "shape of the noise", "equal values in a step"),
    "noise between steps": (
        "noise, step by step",
        "noise, too much",
        "noise from step to step",
        "contribution, spread",
        "noise between tensors",
        "noise between coordinates",
        "shape of the noise",
    ),
    "correlation between steps": (
        *_LENGTHS,
        "noise",
        "noise, too much",
        "noise, step by step",
        "noise between steps",
        "noise from step to step",
        "noise between coordinates",
        "shape of the noise",
    ),
    "noise between tensors": (
        *_LENGTHS,
        "noise, step by step",
        "noise between steps",
        "noise from step to step",
        "noise between coordinates",
        "shape of the noise",
        "equal values in a step",
    ),
    "noise between coordinates": (
        "scale of gradients",
        *_LENGTHS,
        "noise, step by step",
        "noise between tensors",
        "noise from step to step",
        "shape of the noise",
        "equal values in a step",
    ),
    "equal values in a step": ("shape of the noise",),
}
"""The checks that take another one for granted, by their names or how those begin."""
_CERTAIN = 1e-50
"""Below this, one p-value is no clearer than another."""


def told(checks: list[Check], level: float) -> Iterator[Check]:
    """The checks; one that takes for granted what clearly fails has no say, which only lowers the level."""
    failed = [check for check in checks if check.p_value <= level / len(checks)]
    causes = [check for check in failed if not any(_explains(other, check) for other in failed)]
    for check in checks:
        because = next((other.name for other in causes if _explains(other, check)), None)
        yield check if because is None else replace(check, p_value=1.0, explained_by=because)


def _explains(failed: Check, check: Check) -> bool:
    if failed is check or not _is_prerequisite(failed, check):
        return False
    # Of two checks that take each other for granted, the clearer failure is the cause.
    one, other = max(failed.p_value, _CERTAIN), max(check.p_value, _CERTAIN)
    return one < other or (one == other and not _is_prerequisite(check, failed))


def _is_prerequisite(one: Check, other: Check) -> bool:
    named = _PREREQUISITES.get(one.name, ())
    return other.name in named or any(start in named and other.name.startswith(start) for start in _LENGTHS)

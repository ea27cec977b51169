"""The rule that says how many guesses are released: a count, a fraction, `auto` or `best`."""

from __future__ import annotations

from dataclasses import dataclass

from tightaudit import checks
from tightaudit.errors import InputError
from tightaudit.game import Guessing
from tightaudit.planning import planned_count
from tightaudit.pvalues.base import Method
from tightaudit.tradeoffs.base import Family, TradeOff

EXPECTED = "a count, a fraction below 1 such as 0.2, 'auto' or 'best'"
_RATIO = 4
_FEWEST = 10


@dataclass(frozen=True)
class ReleaseRule:
    """How many guesses to release, fixed before they are looked at.

    `auto` is planned from n, the method and the claim. `best` tries several counts and pays for it: each is
    tested at its share of the level, so that the best of them may be reported.

    >>> import tightaudit as ta
    >>> case = (1000, ta.Exact(), ta.Gaussian.family(), ta.Gaussian(1.0), 0.05)
    >>> [ReleaseRule(given).counts(*case) for given in (0.2, "auto", "best")]
    [(200,), (500,), (500, 125, 31)]
    """

    chosen: int | float | str = "auto"

    def __post_init__(self) -> None:
        chosen = self.chosen
        if isinstance(chosen, str):
            if chosen not in ("auto", "best"):
                object.__setattr__(self, "chosen", _number(chosen))
        elif isinstance(chosen, float) and not 0 < chosen < 1:
            raise InputError("release", chosen, EXPECTED)
        elif not isinstance(chosen, float):
            object.__setattr__(self, "chosen", checks.count("release", chosen, minimum=1))

    def __str__(self) -> str:
        return str(self.chosen)

    def allows_all(self, n: int) -> bool:
        """Whether a method that needs every guess can have them."""
        return isinstance(self.chosen, str) or self.chosen == n

    def counts(
        self,
        n: int,
        method: Method,
        family: Family,
        typical: TradeOff,
        level: float,
        guessing: Guessing | None = None,
    ) -> tuple[int, ...]:
        """The counts to try, one unless the rule is `best`."""
        if method.releases_all:
            if not self.allows_all(n):
                raise InputError("release", self.chosen, f"all n={n} guesses for method {method.name}")
            return (n,)
        if isinstance(self.chosen, int):
            if self.chosen > n:
                raise InputError("release", self.chosen, f"at most n={n}")
            return (self.chosen,)
        if isinstance(self.chosen, float):
            return (max(1, round(n * self.chosen)),)
        if self.chosen == "auto":
            return (planned_count(n, method, family, typical, level, guessing),)
        counts = [max(1, n // 2)]
        while counts[-1] // _RATIO >= max(_FEWEST, int(n**0.5)):
            counts.append(counts[-1] // _RATIO)
        return tuple(counts)


def _number(text: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        raise InputError("release", text, EXPECTED) from None
    if text.strip().isdigit():
        if number > checks.LARGEST_COUNT:
            raise InputError("release", text, f"at most {checks.LARGEST_COUNT:.0e}")
        return checks.count("release", int(text), minimum=1)
    if not 0 < number < 1:
        raise InputError("release", text, EXPECTED)
    return number

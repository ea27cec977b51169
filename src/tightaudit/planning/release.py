"""How many guesses to release, decided before anyone looks at them.

Suppose the mechanism is typical: it leaks exactly what the claim under test allows, or, without a claim, it
is the member of the family with ε = 4, or the nearest to it. The number planned is the one that would give
the largest bound if each count came out as expected. It depends on n, the method, the claim and the
confidence, never on the errors, so it needs no correction. Trying several numbers does.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from tightaudit.claims.base import Claim
from tightaudit.claims.family import Family
from tightaudit.claims.parts.typical import leaky_mechanisms
from tightaudit.evidence.counts import Evidence, Rule
from tightaudit.methods.base import Method
from tightaudit.methods.exact import expected_errors
from tightaudit.support import checks
from tightaudit.support.errors import InputError

EXPECTED = "a count, a share below 1 such as 0.2, 'planned' or 'best'"
_FEWEST, _FEWEST_POWER = 10, 0.4
_STEPS = (1, 2, 5)
_RESOLUTION = 0.01
_RATIO = 4


@dataclass(frozen=True)
class Setting:
    """All that a number to release may depend on."""

    n: int
    method: Method
    family: Family
    typical: Claim
    level: float
    rule: Rule = "two-sided"
    decides: tuple[Claim, float] | None = None
    """The claim that the count is to decide, if there is one, and the δ of its ε."""

    def expected(self, truth: Claim) -> list[Evidence]:
        """What each number worth considering would come to, if the mechanism is this one."""
        found = _expected_evidence(self.n, truth, one_sided=self.rule == "one-sided")
        most = self.method.most_released(self.n)
        return [each for each in found if each.released <= most] or found[-1:]


class Release(ABC):
    """How many guesses to release, fixed before anyone looks at them."""

    open: bool = False
    """Whether a method may release all guesses if it serves better."""
    tries_several: bool = False

    @property
    def said(self) -> int | float | str:
        """As users write it: 500, 0.2, 'planned', 'best'."""
        return next(iter(vars(self).values()), type(self).__name__.lower())

    def __str__(self) -> str:
        return str(self.said)

    @abstractmethod
    def counts(self, setting: Setting) -> tuple[int, ...]:
        """The numbers to try: one, unless the best of several is wanted."""

    def allows_all(self, n: int) -> bool:  # noqa: ARG002
        """Whether a method that needs all n guesses can have them."""
        return self.open

    def counts_for(self, setting: Setting) -> tuple[int, ...]:
        """The numbers to try with a method that may need every guess."""
        if not setting.method.releases_all:
            return self.counts(setting)
        if not self.allows_all(setting.n):
            raise InputError(
                "released", str(self), f"all n={setting.n} guesses for method {setting.method.name}"
            )
        return (setting.n,)


@dataclass(frozen=True)
class Count(Release):
    """A fixed number of guesses.

    >>> Count(200).number
    200
    """

    number: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", checks.count("released", self.number, minimum=1))

    def allows_all(self, n: int) -> bool:
        return self.number == n

    def counts(self, setting: Setting) -> tuple[int, ...]:
        if self.number > setting.n:
            raise InputError("released", self.number, f"at most n={setting.n}")
        return (self.number,)


@dataclass(frozen=True)
class Share(Release):
    """A share of the guesses.

    >>> Share(0.2).share
    0.2
    """

    share: float

    def __post_init__(self) -> None:
        checks.between("released", self.share, EXPECTED)

    def counts(self, setting: Setting) -> tuple[int, ...]:
        return (max(1, round(setting.n * self.share)),)


@dataclass(frozen=True)
class Planned(Release):
    """The number that promises the largest bound in the family if the mechanism is typical.

    >>> import tightaudit as ta
    >>> family, one = ta.Gaussian.family(), ta.Gaussian(1.0)
    >>> Planned().counts(Setting(10_000, ta.Exact(), family, one, 0.05))
    (5000,)
    >>> Planned().counts(Setting(1_000_000, ta.FdpRecursion(), family, one, 0.05))
    (2000,)
    """

    open = True

    def counts(self, setting: Setting) -> tuple[int, ...]:
        n, family, level = setting.n, setting.family, setting.level
        quick = setting.method.stand_in
        expected = setting.expected(setting.typical)

        def rejects(evidence: Evidence, claim: Claim) -> bool:
            return quick.excess(claim, evidence, level) <= 0

        if not any(rejects(each, family.most_private) for each in expected) or any(
            rejects(each, family.least_private) for each in expected
        ):
            independent = setting.method.assumes.independent_outcomes
            usual = n // 2 if independent else round(2 * n**0.5)
            return (min(expected[0].released, max(_FEWEST, usual)),)
        leak = 0.0
        # A number that comes nowhere near the largest bound so far is asked about once; near √n it is large.
        for evidence in sorted(expected, key=lambda each: abs(math.log(each.released / n**0.5))):
            beyond = min((1 + _RESOLUTION) * leak, 0.5 * (leak + family.upper))
            if rejects(evidence, family.leaking(beyond)):
                leak = family.last_rejected(
                    lambda claim, evidence=evidence: quick.excess(claim, evidence, level),  # type: ignore[misc]
                    _RESOLUTION,
                    rejected=beyond,
                )
        limit = family.leaking(leak)
        planned = min(expected, key=lambda evidence: quick.p_value(limit, evidence)).released
        return (self._deciding(setting, planned),)

    def _deciding(self, setting: Setting, planned: int) -> int:
        """The number planned, unless even without an error it could not reject the claim it decides.

        It is then the best one for the mildest leak that would contradict it; if no leak of its own kind
        would, the smallest one without errors that does.
        """
        if setting.decides is None or _rejects(setting, setting.decides[0], planned, 0):
            return planned
        claim, delta = setting.decides
        found = decisive(setting, claim, delta)
        if found is None:
            counts = sorted(each.released for each in setting.expected(claim))
            found = next((count for count in counts if _rejects(setting, claim, count, 0)), None)
        return planned if found is None else found


@dataclass(frozen=True)
class Best(Release):
    """The best of several numbers, each tested at its share of the level, so that the best may be reported.

    >>> import tightaudit as ta
    >>> Best().counts(Setting(1000, ta.Exact(), ta.Gaussian.family(), ta.Gaussian(1.0), 0.05))
    (500, 125, 31)
    """

    open = True
    tries_several = True

    def counts(self, setting: Setting) -> tuple[int, ...]:
        counts = [max(1, min(setting.n // 2, setting.method.most_released(setting.n)))]
        while counts[-1] // _RATIO >= max(_FEWEST, int(setting.n**0.5)):
            counts.append(counts[-1] // _RATIO)
        return tuple(counts)


def decisive(setting: Setting, claim: Claim, delta: float) -> int | None:
    """The best number for the mildest leak that would contradict a claim; None if none would.

    >>> import tightaudit as ta
    >>> claim = ta.ApproxDP(4.0, 1e-5)
    >>> setting = Setting(2000, ta.Exact(), ta.ApproxDP.family(delta=1e-5), ta.Gaussian(0.93), 0.05)
    >>> Planned().counts(setting), decisive(setting, claim, 1e-5)
    ((100,), 400)
    """
    quick = setting.method.stand_in
    for leaky in leaky_mechanisms(claim, delta):
        best = min(setting.expected(leaky), key=lambda evidence: quick.excess(claim, evidence, setting.level))
        if _rejects(setting, claim, best.released, best.errors):
            return best.released
    return None


def _rejects(setting: Setting, claim: Claim, released: int, errors: int) -> bool:
    evidence = Evidence(setting.n, released, errors)
    return setting.method.excess(claim, evidence, setting.level) <= 0


def as_release(given: int | float | str | Release) -> Release:
    """How many to release as it is, or as users write it: 500, 0.2, 'planned', 'best'.

    >>> as_release("0.2"), as_release("best")
    (Share(share=0.2), Best())
    """
    if isinstance(given, Release):
        return given
    if isinstance(given, str):
        words: dict[str, Release] = {"planned": Planned(), "best": Best()}
        return words[given] if given in words else as_release(_number(given))
    return Share(given) if isinstance(given, float) else Count(given)


def _number(text: str) -> int | float:
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        raise InputError("released", text, EXPECTED) from None


def candidate_counts(n: int) -> list[int]:
    """All of them, a half, a fifth, a tenth, … but not too few to find anything.

    >>> candidate_counts(1000)
    [1000, 500, 200, 100, 50, 20]
    """
    shares, scale, fewest = [], 1, max(_FEWEST, n**_FEWEST_POWER)
    while n // scale >= fewest:
        shares += [n // (scale * step) for step in _STEPS]
        scale *= 10
    return sorted({count for count in shares if count >= fewest} | {n}, reverse=True)


def _expected_evidence(n: int, typical: Claim, *, one_sided: bool) -> list[Evidence]:
    """What each number released would come to; guesses for "in" alone are half of the best on both sides."""
    sides = 2 if one_sided and n > 1 else 1
    counts = [count for count in candidate_counts(n) if sides * count <= n] or [max(1, n // sides)]
    return [
        Evidence(n, count, round(expected_errors(typical, n=n, released=sides * count) / sides))
        for count in counts
    ]

"""One assertion for a test suite: a mechanism leaks no more than it claims."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightaudit.auditing.audit import IMPLAUSIBLE_COIN, wrong_way_round
from tightaudit.auditing.power import Visible
from tightaudit.calls.audit import Learning, audit_calls
from tightaudit.claims.base import Claim
from tightaudit.claims.parts.typical import family_through, leaky_family
from tightaudit.claims.text import as_claim
from tightaudit.evidence.coins import draw_coins, recorded_seed, stream
from tightaudit.evidence.counts import Evidence, Guessing, Rule, as_guessing
from tightaudit.evidence.guessing import release
from tightaudit.methods.any_dependence import QUICK_PROGRAM, AnyDependence
from tightaudit.methods.base import Method, Test
from tightaudit.methods.exact import Exact, expected_errors
from tightaudit.planning.release import Setting, decisive
from tightaudit.render.wording import independence_condition
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray
from tightaudit.support.errors import InputError

_NOISE_STREAM = 3
_RESOLUTION = 1e-3
_FOR_DIRECTION = 0.01
"""The share of the false-alarm rate spent on checking that the scores are not the wrong way round."""
_PLANNING_DELTA = 1e-5


class PrivacyViolationError(AssertionError):
    """A mechanism made fewer errors than its claim allows."""


class VacuousTestError(AssertionError):
    """A test could not have detected the leak that it must catch."""


def assert_private(
    mechanism: Callable[[BoolArray, np.random.Generator], ArrayLike],
    claim: Claim | str,
    *,
    n: int = 10_000,
    false_alarm: float = 1e-6,
    independent: bool = False,
    guessing: Guessing | Rule = "two-sided",
    must_catch: float | None = None,
    seed: int | None = None,
) -> Visible:
    """Fail if one run of a mechanism on n secret bits contradicts a claim; return what it could detect.

    `mechanism(bits, rng)` runs once and returns a score per bit, higher where the bit looks like 1. If the
    claim is true, the assertion fails with probability at most `false_alarm`. `independent=True` states that
    each score depends only on its own bit and its own noise, and detects smaller leaks. Without it the result
    holds under any dependence, but at such a small false-alarm rate only gross leaks are detected, unless the
    claim is a pure ε. It is an input error if not even a gross leak could be detected, if all scores are
    equal, or if they are the wrong way round. With `must_catch` the assertion also fails if a mechanism with
    that ε could not have been detected. Without a seed, one is drawn and named in the failure.

    >>> def laplace(bits, rng):
    ...     return bits + rng.laplace(scale=1.0, size=bits.size)
    >>> print(assert_private(laplace, "laplace(mu=1)", independent=True))  # doctest: +NORMALIZE_WHITESPACE
    Could have detected: ε = 1.2 or more at δ = 1e-05 (laplace(mu=1.2)). With this many canaries,
    that contradicts the claim in 95% of audits, if canaries are as strong as possible and outcomes
    are independent.

    >>> def half_the_noise(bits, rng):
    ...     return bits + rng.laplace(scale=0.5, size=bits.size)
    >>> assert_private(half_the_noise, "laplace(mu=1)", independent=True, seed=1)
    Traceback (most recent call last):
        ...
    tightaudit.testing.PrivacyViolationError: the mechanism leaks more than laplace(mu=1) allows.
    ...
    """
    __tracebackhide__ = True
    tested = as_claim(claim)
    level = checks.between("false_alarm", false_alarm)
    recorded = recorded_seed(seed)
    stated = checks.flag("independent", independent)
    method: Method = Exact() if stated else AnyDependence(largest_program=QUICK_PROGRAM)
    family = family_through(tested, _PLANNING_DELTA)
    shared = (1 - _FOR_DIRECTION) * level
    canaries, rule = checks.count("n", n, minimum=1), as_guessing(guessing)
    setting = Setting(canaries, method, family, tested, shared, rule.rule)
    released = _released(setting)

    def run(seed: int) -> Evidence:
        return _guessed(mechanism, canaries, released, replace(rule, seed=seed))

    evidence = run(recorded)
    _require_direction(evidence, run, _FOR_DIRECTION * level, seed=recorded, independent=stated)
    if method.excess(tested, evidence, shared) <= 0:
        raise PrivacyViolationError(_message(setting, evidence, recorded))
    seen = Visible.by(
        Test(method, canaries, released),
        tested,
        leaky_family(tested, _delta(tested)),
        level=shared,
        delta=_delta(tested),
    )
    _require_sight(seen, must_catch, f"n={canaries}")
    return seen


def assert_private_pair(
    mechanism: Callable[..., Any],
    first: Any,
    second: Any,
    claim: Claim | str,
    *,
    calls: int = 20_000,
    false_alarm: float = 1e-6,
    must_catch: float | None = None,
    learning: Learning | None = None,
    vectorized: bool = False,
    seed: int | None = None,
) -> Visible:
    """Fail if calls of a mechanism on two neighbouring inputs contradict a claim; return what they could see.

    `mechanism(data, rng)` may return anything; a score is learned from a half of the calls, the other half is
    audited (`ta.audit_calls`). If the claim is true, the assertion fails with probability at most
    `false_alarm`. With `must_catch` it also fails if a mechanism with that ε could not have been detected.

    >>> def noisy_count(data, rng, size):
    ...     return sum(data) + rng.laplace(scale=1.0, size=size)
    >>> seen = assert_private_pair(
    ...     noisy_count, [1, 1], [1, 0], "approx-dp(epsilon=1,delta=0)", vectorized=True, must_catch=1.5
    ... )
    >>> 1.0 < seen.epsilon < 1.5
    True
    """
    __tracebackhide__ = True
    level = checks.between("false_alarm", false_alarm)
    report = audit_calls(
        mechanism,
        first,
        second,
        calls=calls,
        claim=claim,
        confidence=1 - level,
        learning=learning,
        vectorized=vectorized,
        seed=seed,
        delta=None if as_claim(claim).point is not None else _PLANNING_DELTA,
    )
    if report.violated:
        row = report.claim_row
        assert row is not None
        raise PrivacyViolationError(
            f"the mechanism leaks more than {as_claim(claim)} allows.\n"
            f"{report.run.source}: {row.evidence.errors:,} of {row.evidence.released:,} released guesses are "
            f"wrong (p = {row.p_value:.2g}; false-alarm rate {level:g}).\nTo repeat: seed={report.run.seed}"
        )
    _require_sight(report.visible, must_catch, f"calls={calls}")
    return report.visible


def _require_sight(seen: Visible, must_catch: float | None, size: str) -> None:
    """Fail where the leak that must be caught could not have been."""
    __tracebackhide__ = True
    if must_catch is None:
        return
    wanted = checks.privacy_loss("must_catch", must_catch)
    if seen.epsilon is None or seen.epsilon > wanted:
        least = "no leak at all" if seen.epsilon is None else f"ε = {seen.epsilon:.3g} or more"
        raise VacuousTestError(
            f"a leak of ε = {wanted:g} could not have been detected: {size} can show {least}. "
            "Give more, or a larger false_alarm."
        )


def _guessed(
    mechanism: Callable[[BoolArray, np.random.Generator], ArrayLike], n: int, released: int, rule: Guessing
) -> Evidence:
    """One run of the mechanism on fresh coins, from the seed of the rule."""
    coins = draw_coins(n, seed=rule.seed)
    scores = checks.scores(
        "mechanism",
        mechanism(coins.members.copy(), stream(rule.seed, _NOISE_STREAM)),
        "a function that returns ",
    )
    if scores.size != n:
        raise InputError("mechanism", f"{scores.size} scores", f"a function that returns one per bit, {n}")
    if n > 1 and bool(np.all(scores == scores[0])):
        expected = "scores that differ: equal scores cannot show a leak"
        raise InputError("mechanism", f"{n} scores of {scores[0]:g}", expected)
    return release(scores, coins.members, released=released, guessing=rule)


def _require_direction(
    evidence: Evidence, run: Callable[[int], Evidence], level: float, *, seed: int, independent: bool
) -> None:
    """Refuse scores that are the wrong way round, which would let every leak pass.

    Guesses of a mechanism whose scores are the right way round are right at least as often as tossed coins.
    Where outcomes depend on each other all of them can be wrong together, though in at most every other run:
    the mechanism then runs again until chance is no explanation.
    """
    first, chance, repeats = evidence, 1.0, 0
    while chance > level:
        wrong = wrong_way_round(evidence.errors, evidence.released)
        if wrong > IMPLAUSIBLE_COIN:
            return
        chance *= wrong if independent else 0.5
        if chance > level:
            repeats += 1
            evidence = run(seed + repeats)
    found = f"{first.errors:,} of {first.released:,} guesses wrong"
    expected = "scores that are higher where the bit is 1; are they the wrong way round?"
    raise InputError("mechanism", found, expected)


def _delta(claim: Claim) -> float:
    """The δ at which leaks are reported."""
    return _PLANNING_DELTA if claim.point is None else claim.point[1]


def _released(setting: Setting) -> int:
    """The number to release that suits the mildest leak that could be detected; `typical` is the claim."""
    claim = setting.typical
    count = decisive(setting, claim, _delta(claim))
    if count is not None:
        return count
    independence = "" if setting.method.assumes.independent_outcomes else ", or independence"
    expected = (
        f"more canaries or a larger false_alarm{independence}: no leak beyond {claim} could be detected"
    )
    raise InputError("n", setting.n, expected)


def _message(setting: Setting, evidence: Evidence, seed: int) -> str:
    claim, method, family = setting.typical, setting.method, setting.family
    p = method.p_value(claim, evidence)
    mean = expected_errors(claim, n=evidence.n, released=evidence.released)
    condition = independence_condition(method.assumes.independent_outcomes, stated=True)
    lines = [
        f"the mechanism leaks more than {claim} allows.",
        f"Of the {evidence.released:,} most confident guesses about {evidence.n:,} secret bits, "
        f"{evidence.errors:,} are wrong.",
        f"With the claimed privacy, about {mean:,.0f} would be; "
        f"the probability of so few is at most {p:.2g},",
        f"{condition} ({method.name}; false-alarm rate {setting.level / (1 - _FOR_DIRECTION):g}).",
    ]
    limit = _rejected_limit(setting, evidence)
    if limit is not None:
        # Rounded so that the claim named is still a rejected one.
        thousandths = (math.ceil if family.protects else math.floor)(1000 * limit)
        lines.append(
            f"Also rejected: every {family} claim {family.direction} {family.parameter} = "
            f"{thousandths / 1000:.3f}."
        )
    lines.append(f"To repeat: seed={seed}")
    return "\n".join(lines)


def _rejected_limit(setting: Setting, evidence: Evidence) -> float | None:
    """How far beyond the claim its family is rejected; None if the claim has no family or all of it is."""
    quick, family = setting.method.stand_in, setting.family

    def excess(member: Claim) -> float:
        return quick.excess(member, evidence, setting.level)

    limits = family.most_private, family.least_private
    if not setting.typical.parameter_names or excess(limits[1]) <= 0 or excess(limits[0]) > 0:
        return None
    return family.parameter_at(family.last_rejected(excess, _RESOLUTION))

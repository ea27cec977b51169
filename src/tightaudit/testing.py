"""One assertion for a test suite: a mechanism leaks no more than it claims."""

import math
import secrets
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tightaudit.claims.base import Claim
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.parts.typical import family_through
from tightaudit.claims.text import as_claim
from tightaudit.evidence.coins import draw_coins, stream
from tightaudit.evidence.counts import Evidence, Guessing, Rule, as_guessing
from tightaudit.evidence.guessing import release
from tightaudit.methods.any_dependence import QUICK_PROGRAM, AnyDependence
from tightaudit.methods.base import Method
from tightaudit.methods.exact import Exact, expected_errors
from tightaudit.planning.release import Planned, Setting
from tightaudit.render.wording import independence_condition
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray
from tightaudit.support.errors import InputError

_NOISE_STREAM = 3
_RESOLUTION = 1e-3
_LEAKS = (2.0, 4.0, 8.0, 16.0)
_PLANNING_DELTA, _LARGEST_PLANNING_EPSILON = 1e-5, 100.0


class PrivacyViolationError(AssertionError):
    """A mechanism made fewer errors than its claim allows."""


def assert_private(
    mechanism: Callable[[BoolArray, np.random.Generator], ArrayLike],
    claim: Claim | str,
    *,
    n: int = 10_000,
    false_alarm: float = 1e-6,
    independent: bool = False,
    guessing: Guessing | Rule = "two-sided",
    seed: int | None = None,
) -> None:
    """Fail if one run of a mechanism on n secret bits contradicts a claim.

    `mechanism(bits, rng)` runs once and returns a score per bit, higher where the bit looks like 1. A true
    claim makes the assertion fail with probability `false_alarm` at most. `independent=True` states that each
    score depends on its own bit and its own noise alone, and finds more; without it the answer holds under
    any dependence, but sees only gross leaks at so small a false-alarm rate unless the claim is a pure ε.
    Where not even a gross leak could be seen, that is an input error. Without a seed, one is drawn and
    named in the failure.

    >>> def laplace(bits, rng):
    ...     return bits + rng.laplace(scale=1.0, size=bits.size)
    >>> assert_private(laplace, "laplace(mu=1)", independent=True)

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
    recorded = secrets.randbits(63) if seed is None else checks.seed(seed)
    stated = checks.flag("independent", independent)
    method: Method = Exact() if stated else AnyDependence(largest_program=QUICK_PROGRAM)
    rule = replace(as_guessing(guessing), seed=recorded)
    coins = draw_coins(n, seed=recorded)
    setting = Setting(coins.members.size, method, family_through(tested), tested, level, rule.rule)
    released = _released(setting)
    scores = checks.vector(
        "mechanism",
        mechanism(coins.members.copy(), stream(recorded, _NOISE_STREAM)),
        "a function that returns ",
    )
    if scores.size != setting.n:
        expected = f"a function that returns one per bit, {setting.n}"
        raise InputError("mechanism", f"{scores.size} scores", expected)
    evidence = release(scores, coins.members, released=released, guessing=rule)
    if method.excess(tested, evidence, level) <= 0:
        raise PrivacyViolationError(_message(setting, evidence, recorded))


def _released(setting: Setting) -> int:
    """The number to release that suits the mildest leak that could be seen; `typical` is the claim."""
    claim, family = setting.typical, setting.family
    for factor in _LEAKS:
        if claim.parameter_names and claim.point is None:
            leaky = family.leaking(min(factor * family.leak(claim), 0.5 * (1 + family.upper)))
        else:
            epsilon = max(claim.epsilon(_PLANNING_DELTA), 0.1)
            start = Gaussian.family().at_epsilon(min(epsilon, _LARGEST_PLANNING_EPSILON), _PLANNING_DELTA)
            leaky = Gaussian.family().member(factor * start.parameters["mu"])
        (count,) = Planned().counts(replace(setting, typical=leaky))
        errors = round(expected_errors(leaky, n=setting.n, released=count))
        if setting.method.excess(claim, Evidence(setting.n, count, errors), setting.level) <= 0:
            return count
    expected = f"more canaries, a larger false_alarm or independence: no leak from {claim} could be seen"
    raise InputError("n", setting.n, expected)


def _message(setting: Setting, evidence: Evidence, seed: int) -> str:
    claim, method, family = setting.typical, setting.method, setting.family
    p = method.p_value(claim, evidence)
    mean = expected_errors(claim, n=evidence.n, released=evidence.released)
    condition = independence_condition(method.assumes.independent_outcomes, stated=True)
    lines = [
        f"the mechanism leaks more than {claim} allows.",
        f"Of the {evidence.released:,} most confident guesses about {evidence.n:,} secret bits "
        f"{evidence.errors:,} are wrong;",
        f"with the claimed privacy it would be about {mean:,.0f}, and so few with probability {p:.2g}",
        f"at most, {condition} ({method.name}; false-alarm rate {setting.level:g}).",
    ]
    limit = _rejected_limit(setting, evidence)
    if limit is not None:
        # Rounded so that the claim named is still a rejected one.
        thousandths = (math.ceil if family.protects else math.floor)(1000 * limit)
        lines.append(
            f"Rejected in the same way: every {family} claim {family.direction} {family.parameter} = "
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

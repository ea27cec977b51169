"""One assertion for a test suite: a mechanism leaks no more than it claims."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tightaudit import checks
from tightaudit.checks import BoolArray
from tightaudit.errors import InputError
from tightaudit.game import Evidence, Guessing, draw_coins, release
from tightaudit.planning import member_at, planned_count
from tightaudit.pvalues.any_dependence import AnyDependence
from tightaudit.pvalues.base import Method
from tightaudit.pvalues.exact import Exact, expected_errors
from tightaudit.pvalues.fdp_recursion import FdpRecursion
from tightaudit.search import least_private_rejected
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.gaussian import Gaussian
from tightaudit.tradeoffs.text import null

_NOISE_STREAM = 3
_RESOLUTION = 1e-3
_LARGEST_PROGRAM = 400
_LEAKS = (2.0, 4.0, 8.0, 16.0)
_PLANNING_DELTA, _LARGEST_PLANNING_EPSILON = 1e-5, 100.0


class PrivacyViolationError(AssertionError):
    """A mechanism made fewer errors than its claim allows."""


def assert_private(
    mechanism: Callable[[BoolArray, np.random.Generator], ArrayLike],
    claim: TradeOff | str,
    *,
    n: int = 10_000,
    false_alarm: float = 1e-6,
    independent: bool = False,
    guessing: Guessing = "two-sided",
    threshold: float | None = None,
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
    tested = null(claim) if isinstance(claim, str) else claim
    if not isinstance(tested, TradeOff):
        raise InputError("claim", str(claim), "a claim with all its parameters, such as 'gaussian(mu=1)'")
    level = checks.number("false_alarm", false_alarm)
    if not 0 < level < 1:
        raise InputError("false_alarm", false_alarm, "a number strictly between 0 and 1")
    chosen_seed = secrets.randbits(63) if seed is None else checks.seed(seed)
    stated = checks.flag("independent", independent)
    method: Method = Exact() if stated else AnyDependence(largest_program=_LARGEST_PROGRAM)
    coins = draw_coins(n, seed=chosen_seed)
    family = _family(tested)
    released = _planned(coins.members.size, method, tested, family, level, guessing)
    rng = np.random.default_rng(np.random.SeedSequence(chosen_seed, spawn_key=(_NOISE_STREAM,)))
    scores = _scores(mechanism(coins.members.copy(), rng), coins.members.size)
    evidence = release(
        scores, coins.members, released=released, guessing=guessing, threshold=threshold, seed=chosen_seed
    )
    if method.excess(tested, evidence, level) <= 0:
        raise PrivacyViolationError(_message(tested, family, evidence, method, level, chosen_seed))


def _planned(
    n: int, method: Method, claim: TradeOff, family: Family, level: float, guessing: Guessing
) -> int:
    """The number to release that suits the mildest leak that could be seen."""
    for factor in _LEAKS:
        if claim.parameter_names and not isinstance(claim, ApproxDP):
            leaky = family.leaking(min(factor * family.leak(claim), 0.5 * (1 + family.upper)))
        else:
            epsilon = max(claim.epsilon(_PLANNING_DELTA), 0.1)
            start = member_at(Gaussian.family(), min(epsilon, _LARGEST_PLANNING_EPSILON), _PLANNING_DELTA)
            leaky = Gaussian.family().member(factor * start.parameters["mu"])
        count = planned_count(n, method, family, leaky, level, guessing)
        errors = round(expected_errors(leaky, n=n, released=count))
        if method.excess(claim, Evidence(n, count, errors), level) <= 0:
            return count
    expected = f"more canaries, a larger false_alarm or independence: no leak from {claim} could be seen"
    raise InputError("n", n, expected)


def _family(claim: TradeOff) -> Family:
    """The family through the claim; for a claim without one, any family does to plan with."""
    return claim.own_family() if claim.parameter_names else Gaussian.family()


def _scores(returned: ArrayLike, n: int) -> checks.FloatArray:
    try:
        scores = checks.vector("mechanism", returned)
    except InputError as error:
        raise InputError("mechanism", error.value, f"a function that returns {error.expected}") from None
    if scores.size != n:
        raise InputError("mechanism", f"{scores.size} scores", f"a function that returns one per bit, {n}")
    return scores


def _message(
    claim: TradeOff, family: Family, evidence: Evidence, method: Method, level: float, seed: int
) -> str:
    p = method.p_value(claim, evidence)
    mean = expected_errors(claim, n=evidence.n, released=evidence.released)
    condition = (
        "if outcomes are independent, as stated"
        if method.assumes.independent_outcomes
        else ("whatever the dependence between outcomes")
    )
    lines = [
        f"the mechanism leaks more than {claim} allows.",
        f"Of the {evidence.released:,} most confident guesses about {evidence.n:,} secret bits "
        f"{evidence.errors:,} are wrong;",
        f"with the claimed privacy it would be about {mean:,.0f}, and so few with probability {p:.2g}",
        f"at most, {condition} ({method.name}; false-alarm rate {level:g}).",
    ]
    limit = _rejected_limit(claim, family, evidence, method, level)
    if limit is not None:
        # Rounded so that the claim named is still a rejected one.
        thousandths = (math.ceil if family.protects else math.floor)(1000 * limit)
        lines.append(
            f"Rejected in the same way: every {family} claim {family.direction} {family.parameter} = "
            f"{thousandths / 1000:.3f}."
        )
    lines.append(f"To repeat: seed={seed}")
    return "\n".join(lines)


def _rejected_limit(
    claim: TradeOff, family: Family, evidence: Evidence, method: Method, level: float
) -> float | None:
    """How far beyond the claim its family is rejected; None if the claim has no family or all of it is."""
    guide: Method = method if method.assumes.independent_outcomes else FdpRecursion()

    def excess(member: TradeOff) -> float:
        return guide.excess(member, evidence, level)

    if not claim.parameter_names or excess(family.least_private) <= 0 or excess(family.most_private) > 0:
        return None
    return family.parameter_at(least_private_rejected(family, excess, _RESOLUTION))

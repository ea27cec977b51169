"""Claims and families from their text form: wherever one is expected, its text will do."""

import re
from typing import Any

from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.family import Family
from tightaudit.support.errors import InputError
from tightaudit.support.notation import Call, parse

WHOLE = "a claim with all its parameters"
_NOT_ALONE = (
    f"{WHOLE}, such as 'gaussian(mu=1)' or 'approx-dp(epsilon=1,delta=1e-5)'; an ε alone goes to "
    "claim_epsilon (--claim-epsilon), where there is one"
)
_EPSILON_ALONE = re.compile(r"\s*((eps|epsilon|ε)\s*[=<≤:]|[(\d.])", re.IGNORECASE)


def as_claim(
    given: Claim | Family | Call | str, *, argument: str = "claim", delta: float | None = None
) -> Claim:
    """A claim as it is, or read from its text.

    `delta` fills in the δ of `approx-dp` where the text leaves it out; `argument` is what errors call it.

    >>> as_claim("gaussian(mu=1)")
    Gaussian(mu=1.0)
    """
    if isinstance(given, str | Call):
        claim, parameters, missing = _read(given, argument, delta)
        if missing:
            raise InputError(argument, str(given), f"{WHOLE}; missing: {' and '.join(missing)}")
        return claim(**parameters)
    if isinstance(given, Family):
        raise InputError(argument, str(given), f"{WHOLE}; missing: {given.parameter}")
    if not isinstance(given, Claim):
        raise InputError(argument, given, _NOT_ALONE)
    return given


def as_family(given: Claim | Family | str, *, argument: str = "family", delta: float | None = None) -> Family:
    """A family as it is, or read from its text: a claim with one parameter left out.

    >>> as_family("subsampled-gaussian(q=0.5)").parameter, str(as_family("approx-dp", delta=1e-5))
    ('mu', 'approx-dp(delta=1e-05)')
    """
    if isinstance(given, str):
        claim, parameters, missing = _read(given, argument, delta)
        if len(missing) > 1:
            raise InputError(argument, given, f"a value for all but one of {' and '.join(missing)}")
        if missing:
            return claim.family(**parameters)
    if not isinstance(given, Family):
        raise InputError(argument, str(given), "a family: a claim with one parameter left out")
    return given


def _read(
    given: str | Call, argument: str, delta: float | None
) -> tuple[type[Claim], dict[str, Any], list[str]]:
    """The claim that a text names, the parameters it gives, and the names of those it leaves out."""
    if isinstance(given, str) and _EPSILON_ALONE.match(given):
        raise InputError(argument, given, _NOT_ALONE)
    call = given if isinstance(given, Call) else parse(argument, given)
    claim = CLAIMS.named(call.name, argument)
    parameters = call.numbers(claim.parameter_names, claim.list_names)
    if delta is not None and "delta" in claim.parameter_names:
        parameters.setdefault("delta", delta)
    return claim, parameters, [name for name in claim.parameter_names if name not in parameters]

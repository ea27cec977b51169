"""Claims and families from their text form: wherever one is expected, its text will do."""

from __future__ import annotations

from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.family import Family
from tightaudit.support.errors import InputError
from tightaudit.support.notation import Call, parse

WHOLE = "a claim with all its parameters"


def as_claim(given: Claim | Family | str, *, argument: str = "claim", delta: float | None = None) -> Claim:
    """A claim as it is, or read from its text.

    `delta` fills in the δ of `approx-dp` where the text leaves it out; `argument` is what errors call it.

    >>> as_claim("gaussian(mu=1)")
    Gaussian(mu=1.0)
    """
    read = read_call(parse(argument, given), delta) if isinstance(given, str) else given
    if isinstance(read, Family):
        raise InputError(argument, str(given), f"{WHOLE}; {read.parameter} is missing")
    if not isinstance(read, Claim):
        raise InputError(argument, read, f"{WHOLE}, such as 'gaussian(mu=1)'")
    return read


def as_family(given: Claim | Family | str, *, argument: str = "family", delta: float | None = None) -> Family:
    """A family as it is, or read from its text: a claim with one parameter left out.

    >>> as_family("subsampled-gaussian(q=0.5)").parameter, str(as_family("approx-dp", delta=1e-5))
    ('mu', 'approx-dp(delta=1e-05)')
    """
    read = read_call(parse(argument, given), delta) if isinstance(given, str) else given
    if not isinstance(read, Family):
        raise InputError(argument, str(read), "a family: a claim with one parameter left out")
    return read


def read_call(call: Call, delta: float | None = None) -> Claim | Family:
    """The claim or family that a parsed call names."""
    claim = CLAIMS.named(call.name, call.source.label)
    parameters = call.numbers(claim.parameter_names)
    if delta is not None and "delta" in claim.parameter_names:
        parameters.setdefault("delta", delta)
    missing = [name for name in claim.parameter_names if name not in parameters]
    if not missing:
        return claim(**parameters)
    if len(missing) > 1:
        raise InputError(call.source.label, call.source.text, f"values for {' and '.join(missing)} too")
    return claim.family(**parameters)

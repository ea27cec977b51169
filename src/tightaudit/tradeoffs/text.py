"""Claims and families from their text form."""

from __future__ import annotations

from tightaudit.text import Call, parse
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.registry import TRADEOFFS


def null(text: str, *, delta: float | None = None) -> TradeOff | Family:
    """Read a claim, or a family when one parameter is left out.

    `delta` fills in the δ of `approx-dp` where the text leaves it out.

    >>> null("gaussian(mu=1)")
    Gaussian(mu=1.0)
    >>> null("subsampled-gaussian(q=0.5)").parameter
    'mu'
    >>> str(null("approx-dp", delta=1e-5))
    'approx-dp(delta=1e-05)'
    """
    return null_of_call(parse("null", text), delta=delta)


def null_of_call(call: Call, *, delta: float | None = None) -> TradeOff | Family:
    """The claim or family that a parsed call names."""
    claim = TRADEOFFS[call.name]
    parameters = call.numbers(claim.parameter_names)
    if delta is not None and "delta" in claim.parameter_names:
        parameters.setdefault("delta", delta)
    if len(parameters) == len(claim.parameter_names):
        return claim(**parameters)
    return claim.family(**parameters)

"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from tightaudit.errors import InputError
from tightaudit.game import Evidence, WeightedCount
from tightaudit.mechanisms.base import MECHANISMS
from tightaudit.pvalues.base import METHODS, Method, resolve
from tightaudit.pvalues.order_statistics import OrderStatistics
from tightaudit.pvalues.rank_weighted import RankWeighted
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.registry import TRADEOFFS
from tightaudit.tradeoffs.text import null as read_null


def null_names(incomplete: str) -> list[str]:
    return [name for name in TRADEOFFS if name.startswith(incomplete)]


def mechanism_names(incomplete: str) -> list[str]:
    return [name for name in MECHANISMS if name.startswith(incomplete)]


def method_names(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


def count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"expected a whole number, not {text!r}") from None


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, not {text!r}") from None


Guesses = Annotated[
    int, typer.Option("--n", parser=count, metavar="COUNT", help="Number of guesses: one per canary.")
]
Released = Annotated[
    int | None,
    typer.Option(parser=count, metavar="COUNT", help="Number of guesses released, the most confident ones."),
]
Errors = Annotated[
    int | None,
    typer.Option(parser=count, metavar="COUNT", help="How many of the released guesses are wrong."),
]
NullText = Annotated[
    str,
    typer.Option(
        "--null",
        help="The claim, as in 'gaussian(mu=1)'; a family when one parameter is left out, as in 'gaussian'. "
        f"Known: {', '.join(TRADEOFFS)}.",
        autocompletion=null_names,
    ),
]
ClaimText = Annotated[
    str | None, typer.Option("--claim", help="The claim, as in 'gaussian(mu=1)'.", autocompletion=null_names)
]
ClaimEpsilon = Annotated[
    float | None, typer.Option(parser=number, metavar="NUMBER", help="The claim (ε, δ)-DP with this ε.")
]
ShapeText = Annotated[
    str | None,
    typer.Option(
        "--null",
        help="Family whose shape the curve may have; by default the claim's, else gaussian.",
        autocompletion=null_names,
    ),
]
MethodName = Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.", autocompletion=method_names)]
Tail = Annotated[
    str | None, typer.Option(help="Tail bound of order-statistics: chernoff (default) or hoeffding.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Delta = Annotated[
    float, typer.Option(parser=number, metavar="NUMBER", help="The δ at which ε is bounded, in [0, 1].")
]
Strata = Annotated[
    str | None,
    typer.Option(
        metavar="SIZExWEIGHT,...", help="Strata of rank-weighted, best ranks first, as in 50x20,100x15."
    ),
]
Statistic = Annotated[
    int | None,
    typer.Option(
        parser=count, metavar="COUNT", help="Weighted number of errors, instead of --released and --errors."
    ),
]
Confidence = Annotated[
    float,
    typer.Option(parser=number, metavar="NUMBER", help="Confidence of the lower bound, between 0 and 1."),
]


def counted(
    n: int, released: int | None, errors: int | None, statistic: int | None
) -> Evidence | WeightedCount:
    """The evidence that the counts of the command line make."""
    if statistic is not None:
        for name, value in (("released", released), ("errors", errors)):
            if value is not None:
                raise InputError(name, value, "nothing beside --statistic, which takes its place")
        return WeightedCount(n, statistic)
    for name, value in (("released", released), ("errors", errors)):
        if value is None:
            raise InputError(name, None, "a count (or --strata and --statistic)")
    return Evidence(n, released or 0, errors or 0)


def configured(method: str, tail: str | None, strata: str | None = None) -> Method:
    """The method by name, with the options it takes."""
    if strata is not None:
        if method != RankWeighted.name:
            raise InputError("strata", strata, f"method {RankWeighted.name}, the only one with this option")
        return RankWeighted(*_strata(strata))
    if tail is None:
        return resolve(method)
    if method != OrderStatistics.name:
        raise InputError("tail", tail, f"method {OrderStatistics.name}, the only one with this option")
    if tail not in ("chernoff", "hoeffding"):
        raise InputError("tail", tail, "chernoff or hoeffding")
    return OrderStatistics(tail="hoeffding" if tail == "hoeffding" else "chernoff")


def _strata(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pieces = [piece.strip().lower().split("x") for piece in text.split(",")]
    if any(len(piece) != 2 or not all(part.isdigit() for part in piece) for piece in pieces):
        raise InputError("strata", text, "sizes and weights as in 50x20,100x15")
    return tuple(int(size) for size, _ in pieces), tuple(int(weight) for _, weight in pieces)


def claim_of(text: str | None, epsilon: float | None, delta: float | None) -> TradeOff | None:
    """The claim that the options name, if they name one."""
    if text is not None and epsilon is not None:
        raise InputError("claim-epsilon", epsilon, "no --claim beside it")
    if epsilon is not None:
        if delta is None:
            raise InputError("delta", None, "the δ of the claim")
        return ApproxDP(epsilon, delta)
    if text is None:
        return None
    try:
        claim = read_null(text, delta=delta)
    except InputError as error:
        if error.argument == "family":
            raise InputError("claim", text, "a claim with all its parameters, or --delta for its δ") from None
        raise InputError("claim", error.value, error.expected) from None
    if isinstance(claim, Family):
        raise InputError("claim", text, f"a claim with all its parameters; {claim.parameter} is missing")
    return claim


def family_of(text: str | None, delta: float | None) -> Family | None:
    """The family that the option names, if it names one."""
    if text is None:
        return None
    family = read_null(text, delta=delta)
    if isinstance(family, TradeOff):
        raise InputError(
            "null", text, "a family: leave out the parameter to be bounded, or make it the claim"
        )
    return family

"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from tightaudit.errors import InputError
from tightaudit.mechanisms.base import MECHANISMS
from tightaudit.pvalues.base import METHODS, Method, resolve
from tightaudit.pvalues.order_statistics import OrderStatistics
from tightaudit.tradeoffs.registry import TRADEOFFS


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
    int,
    typer.Option(parser=count, metavar="COUNT", help="Number of guesses released, the most confident ones."),
]
Errors = Annotated[
    int, typer.Option(parser=count, metavar="COUNT", help="How many of the released guesses are wrong.")
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
MethodName = Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.", autocompletion=method_names)]
Tail = Annotated[
    str | None, typer.Option(help="Tail bound of order-statistics: chernoff (default) or hoeffding.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Delta = Annotated[
    float, typer.Option(parser=number, metavar="NUMBER", help="The δ at which ε is bounded, in [0, 1].")
]
Confidence = Annotated[
    float,
    typer.Option(parser=number, metavar="NUMBER", help="Confidence of the lower bound, between 0 and 1."),
]


def configured(method: str, tail: str | None) -> Method:
    if tail is None:
        return resolve(method)
    if method != OrderStatistics.name:
        raise InputError("tail", tail, f"method {OrderStatistics.name}, the only one with this option")
    if tail not in ("chernoff", "hoeffding"):
        raise InputError("tail", tail, "chernoff or hoeffding")
    return OrderStatistics(tail="hoeffding" if tail == "hoeffding" else "chernoff")

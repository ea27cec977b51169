"""The options that several commands share, by what belongs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightaudit.cli.option_groups import completing
from tightaudit.support.errors import InputError, quoted

if TYPE_CHECKING:
    from tightaudit.methods.base import AnyEvidence, Method


def count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"expected a whole number, not {quoted(repr(text))}") from None


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, not {quoted(repr(text))}") from None


def counting(text: str, *names: str) -> Any:
    """An option that takes a whole number."""
    return typer.Option(*names, parser=count, metavar="COUNT", help=text)


def measuring(text: str, *names: str, metavar: str = "NUMBER") -> Any:
    """An option that takes a number."""
    return typer.Option(*names, parser=number, metavar=metavar, help=text)


def naming(text: str, kind: str) -> Any:
    """An option that takes a name, or a text that begins with one, of the claims, methods or mechanisms."""
    return typer.Option(help=text, autocompletion=completing(kind))


Guesses = Annotated[int, counting("Number of guesses: one per canary.", "--n")]
Claim = Annotated[str, naming("The claim, as in 'gaussian(mu=1)'. Known: {claims}.", "claims")]
Family = Annotated[
    str,
    naming("The family: a claim with one parameter left out, as in 'gaussian'. Known: {claims}.", "claims"),
]
Released = Annotated[
    str,
    typer.Option(metavar="NUMBER", help="Guesses to release: a count, a share such as 0.2, planned or best."),
]
Delta = Annotated[float, measuring("The δ at which ε is bounded, for example 1e-5.")]
Confidence = Annotated[float, measuring("Confidence of the lower bound, between 0 and 1.")]
Seed = Annotated[int, counting("Seed for all randomness.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass(frozen=True)
class Counts:
    """What is known about a run, as counts."""

    n: Guesses
    released: Annotated[int | None, counting("Number of guesses released, the most confident ones.")] = None
    errors: Annotated[int | None, counting("How many of the released guesses are wrong.")] = None
    runs: Annotated[
        int, counting("Number of runs that these counts are from, of one size and independent of each other.")
    ] = 1
    statistic: Annotated[
        int | None, counting("Weighted number of errors, instead of --released and --errors.")
    ] = None

    def evidence(self) -> AnyEvidence:
        """The evidence that the numbers make."""
        from tightaudit.evidence.counts import Evidence, WeightedCount

        for name, value in (("released", self.released), ("errors", self.errors)):
            if self.statistic is not None and value is not None:
                raise InputError(name, value, "no value together with --statistic, which replaces it")
            if self.statistic is None and value is None:
                raise InputError(name, None, "a count, or --strata and --statistic")
        if self.statistic is not None:
            if self.runs != 1:
                raise InputError("runs", self.runs, "1 with --statistic")
            return WeightedCount(self.n, self.statistic)
        return Evidence(self.n, self.released or 0, self.errors or 0, runs=self.runs)


@dataclass(frozen=True)
class MethodOptions:
    """A method and the options that some have."""

    method: Annotated[str, naming("One of {methods}.", "methods")] = "exact"
    tail: Annotated[
        str | None, typer.Option(help="Tail bound of order-statistics: chernoff (default) or hoeffding.")
    ] = None
    strata: Annotated[
        str | None,
        typer.Option(
            metavar="SIZExWEIGHT,...", help="Strata of rank-weighted, best ranks first, as in 50x20,100x15."
        ),
    ] = None

    def configured(self) -> Method:
        """The method with the options given."""
        from tightaudit.methods.base import METHODS

        options: dict[str, Any] = {} if self.tail is None else {"tail": self.tail}
        if self.strata is not None:
            sizes, weights = _strata(self.strata)
            options |= {"strata": sizes, "weights": weights}
        kind = METHODS[self.method]
        known = kind().options
        for name in options:
            if name not in known:
                methods = ", ".join(each for each in METHODS if name in METHODS[each]().options)
                raise InputError(name, options[name], f"method {methods}, the only one with this option")
        return kind(**options)


def _strata(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pieces = [piece.strip().lower().split("x") for piece in text.split(",")]
    try:
        sizes_and_weights = [(count(size), count(weight)) for size, weight in pieces]
    except (ValueError, typer.BadParameter):
        raise InputError("strata", text, "sizes and weights as in 50x20,100x15") from None
    sizes, weights = zip(*sizes_and_weights, strict=True)
    return sizes, weights


@dataclass(frozen=True)
class ClaimOptions:
    """What is claimed, and the family that may be believed in."""

    claim: Annotated[str | None, naming("The claim, as in 'gaussian(mu=1)'. Known: {claims}.", "claims")] = (
        None
    )
    claim_epsilon: Annotated[float | None, measuring("The claim (ε, δ)-DP with this ε.")] = None
    family: Annotated[
        str | None,
        naming("Family the privacy curve may be in; by default the claim's, else gaussian.", "claims"),
    ] = None

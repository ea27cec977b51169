"""The command line: `tightaudit pvalue`, `bound` and `demo`."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

import tightaudit
from tightaudit.bounds import Bound, lower_bound
from tightaudit.demo import CANARIES, run_demo
from tightaudit.errors import InputError
from tightaudit.game import Evidence
from tightaudit.pvalues.base import METHODS, Method, p_value, resolve
from tightaudit.pvalues.exact import expected_errors
from tightaudit.pvalues.order_statistics import OrderStatistics
from tightaudit.report.terminal import bounds_table
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.registry import TRADEOFFS
from tightaudit.tradeoffs.text import null as read_null

BAD_INPUT, FAILED = 2, 3

app = typer.Typer(
    name="tightaudit",
    help="How much does a differentially private algorithm really leak? Lower bounds on ε from one run.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _null_names(incomplete: str) -> list[str]:
    return [name for name in TRADEOFFS if name.startswith(incomplete)]


def _method_names(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"expected a whole number, not {text!r}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, not {text!r}") from None


Guesses = Annotated[
    int, typer.Option("--n", parser=_count, metavar="COUNT", help="Number of guesses: one per canary.")
]
Released = Annotated[
    int,
    typer.Option(parser=_count, metavar="COUNT", help="Number of guesses released, the most confident ones."),
]
Errors = Annotated[
    int, typer.Option(parser=_count, metavar="COUNT", help="How many of the released guesses are wrong.")
]
NullText = Annotated[
    str,
    typer.Option(
        "--null",
        help="The claim, as in 'gaussian(mu=1)'; a family when one parameter is left out, as in 'gaussian'. "
        f"Known: {', '.join(TRADEOFFS)}.",
        autocompletion=_null_names,
    ),
]
MethodName = Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.", autocompletion=_method_names)]
Tail = Annotated[
    str | None, typer.Option(help="Tail bound of order-statistics: chernoff (default) or hoeffding.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Delta = Annotated[
    float, typer.Option(parser=_number, metavar="NUMBER", help="The δ at which ε is bounded, in [0, 1].")
]
Confidence = Annotated[
    float,
    typer.Option(parser=_number, metavar="NUMBER", help="Confidence of the lower bound, between 0 and 1."),
]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(f"tightaudit {tightaudit.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def pvalue(
    n: Guesses,
    released: Released,
    errors: Errors,
    null: NullText,
    method: MethodName = "exact",
    tail: Tail = None,
    as_json: AsJson = False,
) -> None:
    """How likely are so few errors if the claim holds?

    [bold]Examples[/bold]

    tightaudit pvalue --n 1000 --released 200 --errors 15 --null 'gaussian(mu=1)'

    tightaudit pvalue --n 100 --released 100 --errors 15 --null 'approx-dp(epsilon=1,delta=0.01)' --json
    """
    evidence = Evidence(n=n, released=released, errors=errors)
    claim = read_null(null)
    if isinstance(claim, Family):
        raise InputError("null", null, f"a claim with all its parameters; {claim.parameter} is missing")
    chosen = _configured(method, tail)
    result = p_value(evidence, claim, method=chosen)
    mean = expected_errors(claim, n=n, released=released)
    if as_json:
        _print_json({"p_value": result, "expected_errors": mean, **_setting(claim, chosen, evidence)})
        return
    independent = chosen.assumes.independent_outcomes
    print(f"p-value {result:.4g} ({chosen.name}{'; if outcomes are independent' if independent else ''})")
    print(
        f"{errors:,} errors among {released:,} released of {n:,} guesses; "
        f"independent channels of {claim} make {mean:,.4g} on average."
    )
    _print_caveat(chosen)


@app.command()
def bound(
    n: Guesses,
    released: Released,
    errors: Errors,
    null: NullText,
    delta: Delta,
    confidence: Confidence = 0.95,
    method: MethodName = "exact",
    tail: Tail = None,
    as_json: AsJson = False,
) -> None:
    """The largest ε at δ that the errors rule out staying below.

    [bold]Examples[/bold]

    tightaudit bound --n 10000 --released 2000 --errors 250 --null gaussian --delta 1e-5

    tightaudit bound --n 10000 --released 2000 --errors 70 --null approx-dp --delta 0.01 --json

    tightaudit bound --n 10000 --released 2000 --errors 620 --null 'subsampled-gaussian(q=0.5)' --delta 1e-7
    """
    evidence = Evidence(n=n, released=released, errors=errors)
    family = read_null(null, delta=delta)
    if isinstance(family, TradeOff):
        raise InputError("null", null, "a family: leave out the parameter to be bounded")
    chosen = _configured(method, tail)
    result = lower_bound(evidence, family, delta=delta, confidence=confidence, method=chosen)
    if as_json:
        _print_json(_bound_fields(result))
        return
    print(result)
    if result.status == "bounded" and result.parameter is not None:
        print(f"rejected up to {family.parameter} = {result.parameter:.6g}")
    _print_caveat(chosen)


@app.command()
def demo(
    seed: Annotated[
        int, typer.Option(parser=_count, metavar="COUNT", help="Seed of the coins and the noise.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Audit the Gaussian mechanism once, and see the bounds beside the true ε."""
    result = run_demo(seed)
    if as_json:
        fields = {
            "true_epsilon": result.true_epsilon,
            "claim": str(result.claim),
            "delta": result.delta,
            "seed": result.seed,
            "bounds": [_bound_fields(bound) for bound in result.bounds],
            "version": tightaudit.__version__,
        }
        _print_json(fields)
        return
    console = Console(highlight=False)
    console.print(
        f"{CANARIES:,} canaries, each in or out by a fair secret coin, went once through the Gaussian "
        f"mechanism with μ = {result.claim.mu:g}. From its output every coin was guessed, and the guesses "
        "that looked surest were released and counted."
    )
    console.print()
    console.print(bounds_table(result.bounds, true_epsilon=result.true_epsilon))
    console.print(f"true ε = {result.true_epsilon:.3f} at δ = {result.delta:g}; seed {result.seed}")
    console.print(
        "Each row alone holds with 95% confidence, if the privacy curve is Gaussian. "
        "Picking the largest of them afterwards does not."
    )


def _configured(method: str, tail: str | None) -> Method:
    if tail is None:
        return resolve(method)
    if method != OrderStatistics.name:
        raise InputError("tail", tail, f"method {OrderStatistics.name}, the only one with this option")
    if tail not in ("chernoff", "hoeffding"):
        raise InputError("tail", tail, "chernoff or hoeffding")
    return OrderStatistics(tail="hoeffding" if tail == "hoeffding" else "chernoff")


def _setting(null: TradeOff | Family, method: Method, evidence: Evidence) -> dict[str, Any]:
    """What a result was computed from and rests on."""
    return {
        "null": str(null),
        "method": method.name,
        "assumes": {"independent_outcomes": method.assumes.independent_outcomes},
        "caveat": method.assumes.caveat,
        "reference": method.reference,
        "n": evidence.n,
        "released": evidence.released,
        "errors": evidence.errors,
        "version": tightaudit.__version__,
    }


def _bound_fields(bound: Bound) -> dict[str, Any]:
    setting = _setting(bound.family, bound.method, bound.evidence)
    setting["assumes"]["family"] = None if bound.family.delta is not None else str(bound.family)
    return {
        "epsilon": bound.epsilon,
        "parameter": bound.parameter,
        "parameter_name": bound.family.parameter,
        "status": bound.status,
        "delta": bound.delta,
        "confidence": bound.confidence,
        **setting,
    }


def _print_caveat(method: Method) -> None:
    if method.assumes.caveat is not None:
        print(f"caution: {method.name} {method.assumes.caveat}")


def _print_json(fields: dict[str, Any]) -> None:
    print(json.dumps(fields, allow_nan=False))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    try:
        code = app(args=arguments, prog_name="tightaudit", standalone_mode=False)
    except typer.TyperException as error:
        _fail(error.format_message(), BAD_INPUT)
    except InputError as error:
        _fail(str(error), BAD_INPUT)
    except ArithmeticError as error:
        _fail(f"the computation failed: {error}", FAILED)
    except typer.Abort:
        _fail("stopped", FAILED)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"tightaudit: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)

"""The command line: `tightaudit pvalue`, `bound`, `many-runs`, `calibrate` and `demo`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import tightaudit
from tightaudit.bounds import Bound, lower_bound
from tightaudit.calibration import calibrate
from tightaudit.demo import CANARIES, run_demo
from tightaudit.errors import InputError
from tightaudit.game import Evidence
from tightaudit.manyruns import many_runs
from tightaudit.mechanisms.base import MECHANISMS
from tightaudit.mechanisms.base import mechanism as read_mechanism
from tightaudit.pvalues.base import METHODS, Method, p_value, resolve
from tightaudit.pvalues.exact import expected_errors
from tightaudit.pvalues.order_statistics import OrderStatistics
from tightaudit.report.calibration import calibration_fields, calibration_view, finite_or_none
from tightaudit.report.terminal import bounds_table, many_runs_table
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


def _mechanism_names(incomplete: str) -> list[str]:
    return [name for name in MECHANISMS if name.startswith(incomplete)]


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
    _print_notes(chosen, evidence)


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
    _print_notes(chosen, evidence)


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


@app.command("many-runs")
def many_runs_command(
    fp: Annotated[int, typer.Option("--fp", parser=_count, metavar="COUNT", help="False positives.")],
    negatives: Annotated[int, typer.Option(parser=_count, metavar="COUNT", help="Runs without the canary.")],
    fn: Annotated[int, typer.Option("--fn", parser=_count, metavar="COUNT", help="False negatives.")],
    positives: Annotated[int, typer.Option(parser=_count, metavar="COUNT", help="Runs with the canary.")],
    delta: Delta,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """The classics: lower bounds on ε from many runs with one guess each.

    [bold]Example[/bold]

    tightaudit many-runs --fp 50 --negatives 1000 --fn 100 --positives 1000 --delta 1e-5
    """
    result = many_runs(
        false_positives=fp,
        negatives=negatives,
        false_negatives=fn,
        positives=positives,
        delta=delta,
        confidence=confidence,
    )
    if as_json:
        # At δ = 0 no Gaussian mechanism has a finite ε, and JSON has no infinity.
        finite = {key: finite_or_none(value) for key, value in asdict(result).items()}
        _print_json({**finite, "version": tightaudit.__version__})
        return
    Console(highlight=False).print(many_runs_table(result))


@app.command("calibrate")
def calibrate_command(
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"What to audit, as in 'gaussian(mu=1)'. Known: {', '.join(MECHANISMS)}.",
            autocompletion=_mechanism_names,
        ),
    ],
    n: Guesses,
    released: Released,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method; repeat it for several. All by default.", autocompletion=_method_names),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="The claim to test, by default the one the mechanism satisfies.")
    ] = None,
    level: Annotated[
        list[float] | None,
        typer.Option(parser=_number, metavar="NUMBER", help="Nominal level; repeat it for several."),
    ] = None,
    repetitions: Annotated[int, typer.Option(parser=_count, metavar="COUNT", help="Audits.")] = 10_000,
    delta: Annotated[
        float, typer.Option(parser=_number, metavar="NUMBER", help="The δ of the mean bounds.")
    ] = 1e-5,
    confidence: Confidence = 0.95,
    bounds: Annotated[bool, typer.Option(help="Also mean bounds beside the true ε; takes longer.")] = True,
    seed: Annotated[int, typer.Option(parser=_count, metavar="COUNT", help="Seed of everything.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = -1,
    as_json: AsJson = False,
) -> None:
    """How often does a method reject a claim that is true? Repeated audits of a known mechanism.

    [bold]Examples[/bold]

    tightaudit calibrate --mechanism 'gaussian(mu=1)' --n 1000 --released 200

    tightaudit calibrate --mechanism 'shared-score(claim=gaussian(mu=1))' --n 200 --released 200 --no-bounds
    """
    tested = None if claim is None else read_null(claim)
    if isinstance(tested, Family):
        raise InputError("claim", claim, f"a claim with all its parameters; {tested.parameter} is missing")
    with _progress_bar("auditing") as progress:
        result = calibrate(
            read_mechanism(mechanism),
            n=n,
            released=released,
            methods=method or None,
            claim=tested,
            levels=level or (0.05,),
            repetitions=repetitions,
            delta=delta,
            confidence=confidence,
            bounds=bounds,
            seed=seed,
            workers=workers,
            progress=progress,
        )
    if as_json:
        _print_json(calibration_fields(result) | {"version": tightaudit.__version__})
        return
    console = Console(highlight=False)
    for part in calibration_view(result):
        console.print(part)


@contextmanager
def _progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
        "assumes": {
            "independent_outcomes": method.assumes.independent_outcomes,
            "claims": method.assumes.claims,
            "evidence": method.assumes.evidence,
        },
        "caveat": method.assumes.caveat,
        "remark": method.remark(evidence),
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


def _print_notes(method: Method, evidence: Evidence) -> None:
    if method.assumes.caveat is not None:
        print(f"caution: {method.name} {method.assumes.caveat}")
    if (remark := method.remark(evidence)) is not None:
        print(f"note: {remark}")


def _print_json(fields: dict[str, Any]) -> None:
    print(json.dumps(fields, allow_nan=False))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters still gets the numbers
    try:
        code = app(args=arguments, prog_name="tightaudit", standalone_mode=False)
    except typer.TyperException as error:
        _fail(error.format_message(), BAD_INPUT)
    except InputError as error:
        _fail(str(error), BAD_INPUT)
    except ArithmeticError as error:
        _fail(f"the computation failed: {error}", FAILED)
    except OSError as error:
        _fail(f"the output could not be written: {error}", FAILED)
    except typer.Abort:
        _fail("stopped", FAILED)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"tightaudit: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)

"""`tightaudit audit`: from a file of scores to the table of beliefs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from tightaudit import auditing
from tightaudit.commands.options import (
    AsJson,
    ClaimEpsilon,
    ClaimText,
    Confidence,
    ShapeText,
    claim_of,
    configured,
    count,
    family_of,
    method_names,
    number,
)
from tightaudit.commands.output import print_json, progress_bar
from tightaudit.errors import InputError
from tightaudit.game import Guessing
from tightaudit.pvalues.base import METHODS
from tightaudit.reading.files import FORMATS, read_run
from tightaudit.report.audit_json import audit_fields
from tightaudit.report.audit_text import audit_view
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import TradeOff

VIOLATED = 1


def audit(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            help=f"Scores and secret bits: {', '.join(FORMATS)} or a saved run; - reads standard input."
        ),
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            parser=number, metavar="NUMBER", help="The δ at which ε is bounded; by default that of the claim."
        ),
    ] = None,
    claim: ClaimText = None,
    claim_epsilon: ClaimEpsilon = None,
    null: ShapeText = None,
    independent: Annotated[
        bool | None,
        typer.Option(
            "--independent/--dependent",
            help="State that each canary's outcome depends on its own bit and noise alone; or not.",
        ),
    ] = None,
    shape_known: Annotated[
        bool | None,
        typer.Option(
            "--shape-known/--shape-unknown", help="State that the privacy curve is of the family; or not."
        ),
    ] = None,
    release: Annotated[
        str,
        typer.Option(
            metavar="RULE", help="Guesses to release: a count, a fraction such as 0.2, auto or best."
        ),
    ] = "auto",
    method: Annotated[
        str | None,
        typer.Option(help=f"One method instead: {', '.join(METHODS)}.", autocompletion=method_names),
    ] = None,
    confidence: Confidence = 0.95,
    guessing: Annotated[
        str | None,
        typer.Option(help="two-sided, one-sided or threshold; by default as the run says, else two-sided."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(parser=number, metavar="NUMBER", help="Threshold of the scores, fixed in advance."),
    ] = None,
    members: Annotated[
        str | None, typer.Option(metavar="FILE", help="The secret bits, if in another file; joined by id.")
    ] = None,
    score_column: Annotated[
        str | None, typer.Option(help="Column of the scores; score if not given.")
    ] = None,
    member_column: Annotated[
        str | None, typer.Option(help="Column of the secret bits; member if not given.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="Column of the ids; id if not given.")] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help=f"Format, if the name does not tell: {', '.join(FORMATS)}."),
    ] = None,
    seed: Annotated[int, typer.Option(parser=count, metavar="COUNT", help="Seed of the order of ties.")] = 0,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the report as a web page.")] = None,
    as_json: AsJson = False,
    fail_on_violation: Annotated[
        bool, typer.Option("--fail-on-violation", help="Exit with 1 if the claim is rejected.")
    ] = False,
) -> None:
    """How much did one run leak? Lower bounds on ε, one per combination of beliefs.

    [bold]Examples[/bold]

    tightaudit audit scores.csv --delta 1e-5

    tightaudit audit run.npz --delta 1e-5 --claim 'gaussian(mu=1)' --independent --html audit.html

    tightaudit audit scores.parquet --members coins.csv --delta 1e-5 --claim-epsilon 8 --fail-on-violation
    """
    for source in (file, members):
        if html is not None and source is not None and Path(html).resolve() == Path(source).resolve():
            raise InputError("html", html, "a file other than the scores")
    run = read_run(
        file,
        members=members,
        score_column=score_column,
        member_column=member_column,
        id_column=id_column,
        file_format=file_format,
    )
    tested = claim_of(claim, claim_epsilon, delta)
    if fail_on_violation and tested is None and run.claim is None:
        raise InputError("fail-on-violation", True, "a claim to test")
    with progress_bar("rows of the table") as progress:
        report = auditing.audit(
            run,
            delta=delta,
            claim=tested,
            null=family_of(null, _known_delta(delta, tested)),
            independent=independent,
            shape_known=shape_known,
            release=release,
            method=None if method is None else configured(method, None),
            confidence=confidence,
            guessing=None if guessing is None else _rule(guessing),
            threshold=threshold,
            seed=seed,
            progress=progress,
            command=shlex.join(["tightaudit", *(context.obj or [])]),
        )
    if fail_on_violation and report.violated is None:
        expected = "a row that decides about the claim: --independent, or a method that does not need it"
        raise InputError("fail-on-violation", True, expected)
    if html is not None:
        report.to_html(html)
    if as_json:
        print_json(audit_fields(report))
    else:
        Console(highlight=False, soft_wrap=False).print(audit_view(report))
    if fail_on_violation and report.violated:
        raise typer.Exit(VIOLATED)


def _known_delta(delta: float | None, claim: TradeOff | None) -> float | None:
    return claim.claimed_delta if delta is None and isinstance(claim, ApproxDP) else delta


def _rule(text: str) -> Guessing:
    for rule in get_args(Guessing):
        if text == rule:
            return rule
    raise InputError("guessing", text, f"one of {', '.join(get_args(Guessing))}")

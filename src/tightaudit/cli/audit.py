"""`tightaudit audit`: from a file of scores to the table of beliefs."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tightaudit.cli.options import AsJson, ClaimOptions, Confidence, Released, counting, measuring, naming
from tightaudit.cli.output import print_json, print_view, progress_bar, warn
from tightaudit.cli.streams import say
from tightaudit.support.errors import InputError
from tightaudit.support.writing import require_writable

if TYPE_CHECKING:
    from tightaudit.evidence.counts import Guessing, Rule
    from tightaudit.evidence.run import Run

VIOLATED = 1


@dataclass(frozen=True)
class Input:
    """Where scores and secret bits are."""

    file: Annotated[
        str,
        typer.Argument(help="Scores and secret bits: {formats} or a saved run; - reads standard input."),
    ]
    members: Annotated[
        str | None, typer.Option(metavar="FILE", help="The secret bits, if in another file; joined by id.")
    ] = None
    score_column: Annotated[str | None, typer.Option(help="Column of the scores; by default score.")] = None
    member_column: Annotated[
        str | None, typer.Option(help="Column of the secret bits; by default member.")
    ] = None
    id_column: Annotated[str | None, typer.Option(help="Column of the ids; by default id.")] = None
    run_column: Annotated[
        str | None,
        typer.Option(help="Column that says in which of several runs a canary was; by default run."),
    ] = None
    file_format: Annotated[
        str | None, typer.Option("--format", help="Format, if not clear from the file name: {formats}.")
    ] = None

    def run(self) -> Run:
        """Read them."""
        from tightaudit.evidence.reading.columns import Columns
        from tightaudit.evidence.reading.files import read_run

        columns = Columns(self.score_column, self.member_column, self.id_column, self.run_column)
        return read_run(self.file, members=self.members, columns=columns, file_format=self.file_format)


@dataclass(frozen=True)
class Asked(ClaimOptions):
    """What is asked of the run."""

    delta: Annotated[
        float | None, measuring("The δ at which ε is bounded; by default that of the claim.")
    ] = None
    confidence: Confidence = 0.95


@dataclass(frozen=True)
class Stated:
    """What the user states as known."""

    independent: Annotated[
        bool | None,
        typer.Option(
            "--independent/--dependent",
            help="State whether each canary's outcome depends only on its own bit and noise.",
        ),
    ] = None
    family_known: Annotated[
        bool | None,
        typer.Option(
            "--family-known/--family-unknown", help="State whether the privacy curve is in the family."
        ),
    ] = None


@dataclass(frozen=True)
class GuessingOptions:
    """How bits are guessed."""

    guessing: Annotated[
        str | None,
        typer.Option(
            help="two-sided, one-sided or threshold; by default threshold if there is one, else two-sided."
        ),
    ] = None
    threshold: Annotated[float | None, measuring("Threshold of the scores, fixed in advance.")] = None
    seed: Annotated[int, counting("Seed for breaking ties.")] = 0

    def of(self, run: Run) -> Guessing:
        """As given; where nothing is, as the run says."""
        from tightaudit.evidence.counts import Guessing

        if self.guessing is None and self.threshold is None:
            return replace(run.guessing, seed=self.seed)
        rule = self.guessing or "threshold"
        known = run.threshold if rule == "threshold" and self.threshold is None else self.threshold
        return Guessing(cast("Rule", rule), known, self.seed)


@dataclass(frozen=True)
class Output:
    """What comes out."""

    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the report as a web page.")] = None
    as_json: AsJson = False
    fail_on_violation: Annotated[
        bool, typer.Option("--fail-on-violation", help="Exit with 1 if the claim is rejected.")
    ] = False


def audit(
    context: typer.Context,
    source: Input,
    asked: Asked,
    stated: Stated,
    guesses: GuessingOptions,
    output: Output,
    released: Released = "planned",
    method: Annotated[str | None, naming("Use one method for all rows: {methods}.", "methods")] = None,
) -> None:
    """How much did one run leak? Lower bounds on ε, one per combination of beliefs.

    [bold]Examples[/bold]

    tightaudit audit scores.csv --delta 1e-5

    tightaudit audit run.npz --delta 1e-5 --claim 'gaussian(mu=1)' --independent --html audit.html

    tightaudit audit scores.parquet --members coins.csv --delta 1e-5 --claim-epsilon 8 --fail-on-violation
    """
    from tightaudit.auditing.audit import audit as audit_run

    if output.html is not None:
        inputs = [path for path in (source.file, source.members) if path is not None]
        if os.path.realpath(output.html) in [os.path.realpath(path) for path in inputs]:
            raise InputError("html", output.html, "a file other than the scores")
        require_writable(output.html)
    run = source.run()
    nothing_claimed = asked.claim is None and asked.claim_epsilon is None and run.claim is None
    if output.fail_on_violation and nothing_claimed:
        raise InputError("fail-on-violation", True, "a claim to test")
    with progress_bar("rows of the table") as progress:
        report = audit_run(
            run,
            **vars(asked),
            **vars(stated),
            released=released,
            method=method,
            guessing=guesses.of(run),
            progress=progress,
        )
    report = replace(report, command=shlex.join(["tightaudit", *(context.obj or [])]))
    if output.fail_on_violation and report.violated is None:
        expected = "a row that decides the claim: --independent, or a method that does not need it"
        raise InputError("fail-on-violation", True, expected)
    if output.fail_on_violation and report.violated is False and report.visible.epsilon is None:
        warn(f"--fail-on-violation could not fail: {report.verdict}")
    if output.html is not None:
        report.to_html(output.html)
        say(f"wrote {output.html}")
    if output.as_json:
        print_json(report.to_dict())
    else:
        from tightaudit.render.terminal.audit import audit_view

        print_view(audit_view(report))
    if output.fail_on_violation and report.violated:
        raise typer.Exit(VIOLATED)

"""An audit on the terminal: the verdict, the table of beliefs, and what to mind."""

from __future__ import annotations

import io

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tightaudit.auditing import Report
from tightaudit.belief_rows import Row
from tightaudit.bounds import rounded_down
from tightaudit.errors import printable
from tightaudit.tradeoffs.approximate import ApproxDP

_WIDTH = 80
_SMALLEST_SHOWN = 1e-99
_NO_FIT = "no fit"
_BELOW = "as below"
_WIDEST_SHAPE = 10


def audit_view(report: Report) -> RenderableType:
    """The report as something rich can print; nothing in it is taken for markup."""
    parts: list[RenderableType] = [_verdict(report), Text(setting_line(report), style="dim"), ""]
    parts += [_table(report), ""]
    below = next((row.shape for row in report.rows if _short(row) == _BELOW), None)
    if below is not None:
        parts.append(Text(f"Curve as below: the family {below}.", style="dim"))
    parts += [Text(line, style="dim") for line in notes(report)]
    parts += [Text(f"warning: {printable(warning)}", style="yellow") for warning in report.warnings]
    return Group(*parts)


def plain_text(report: Report) -> str:
    """The same without colours, 80 columns wide.

    >>> import tightaudit as ta
    >>> text = plain_text(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> max(len(line) for line in text.splitlines()) <= 80
    True
    """
    console = Console(width=_WIDTH, file=io.StringIO(), color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(audit_view(report))
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def _verdict(report: Report) -> Text:
    style = {True: "bold red", False: "bold green", None: "bold"}[report.violated]
    sentences = [report.verdict]
    if report.claim is not None and report.headline is not None:
        sentences.append(report.headline.finding)
    return Text(" ".join(sentences), style=style)


def setting_line(report: Report) -> str:
    """How many canaries there were and how their bits were guessed."""
    run, evidence = report.run, report.evidence
    source = f"{printable(run.source)}: " if run.source else ""
    canaries = "canary" if run.n == 1 else "canaries"
    return (
        f"{source}{run.n:,} {canaries}, {int(run.members.sum()):,} in; {evidence.guessing} guessing; "
        f"seed {evidence.seed}"
    )


def _table(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("outcomes", no_wrap=True)
    table.add_column("curve", no_wrap=True)
    table.add_column("method", no_wrap=True)
    table.add_column("errors", justify="right", no_wrap=True)
    table.add_column("ε ≥", justify="right", no_wrap=True)
    if report.claim is not None:
        table.add_column("claim", no_wrap=True)
        table.add_column("p", no_wrap=True)
    for row in report.rows:
        chosen = row is report.headline
        cells = [
            "▶" if chosen else "",
            "independent" if row.independent else "any",
            _short(row),
            row.method.name,
            f"{row.evidence.errors}/{row.evidence.released}",
            shown_epsilon(row),
        ]
        if row.p_value is not None:
            decides = " ◀" if row is report.claim_row else ""
            cells += [("rejected" if row.rejected else "stands") + decides, shown_p_value(row.p_value)]
        table.add_row(*(Text(cell) for cell in cells), style="bold" if chosen else None)
    return table


def _short(row: Row) -> str:
    if row.shape is None:
        return "any"
    return str(row.shape) if len(str(row.shape)) <= _WIDEST_SHAPE else _BELOW


def label(row: Row) -> str:
    """The row by its beliefs, in few words."""
    return f"({'independent' if row.independent else 'any'}, {'any' if row.shape is None else row.shape})"


def shown_p_value(p: float) -> str:
    """A p-value for a table.

    >>> shown_p_value(0.01234), shown_p_value(1e-200)
    ('0.012', '<1e-99')
    """
    return f"{p:.2g}" if p >= _SMALLEST_SHOWN else f"<{_SMALLEST_SHOWN:g}"


def shown_claim(row: Row) -> str:
    """The claim as the row tests it, without digits nobody needs.

    >>> import tightaudit as ta
    >>> report = ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5, claim=ta.Gaussian(1.0))
    >>> shown_claim(report.rows[0]), shown_claim(report.rows[1])
    ('gaussian(mu=1)', 'ε ≤ 4.3772')
    """
    if isinstance(row.tested, ApproxDP):
        return f"ε ≤ {row.tested.epsilon(row.bound.delta):.5g}"
    return str(row.tested)


def shown_epsilon(row: Row) -> str:
    """The bound for a table: rounded down, or why there is none."""
    return _NO_FIT if row.bound.epsilon is None else rounded_down(row.bound.epsilon)


def notes(report: Report) -> list[str]:
    """What a reader of the table has to know."""
    sure = f"{100 * report.confidence:.10g}%"
    lines = [
        f"Each row alone holds with {sure} confidence, at δ = {report.delta:g}, if its beliefs do; picking "
        "the largest afterwards does not."
    ]
    if report.headline is not None:
        lines.append(f"▶ rests on what was stated: {report.headline.beliefs}.")
    if report.claim_row is not None:
        lines.append("◀ decides about the claim: the row that tests it on what was stated.")
    if report.why is not None:
        lines.append(f"Independent outcomes: {printable(report.why)}.")
    if report.release.chosen == "best":
        tried = report.rows[0].counts
        counts = f"best of {len(tried)} counts ({', '.join(f'{count:,}' for count in tried)})"
        costs = [f"{row.cost:.3f} in {label(row)}" for row in report.rows if row.cost is not None]
        paid = f"; trying so many cost in ε: {', '.join(costs)}" if costs else ""
        lines.append(f"Released: the {counts}{paid}.")
    if any(row.bound.epsilon is None for row in report.rows):
        lines.append(
            f"{_NO_FIT}: every claim of the family is rejected with {sure} confidence, if the row's other "
            "beliefs hold; the curve is then not of that family."
        )
    remarks = {row.bound.remark for row in report.rows} - {None}
    lines += [f"any-dependence: {remark}." for remark in sorted(map(str, remarks))]
    lines += sorted(
        {
            f"Caution: {row.method.name} {row.method.assumes.caveat}"
            for row in report.rows
            if row.method.assumes.caveat
        }
    )
    return lines

"""An audit on the terminal: the verdict, the table of beliefs, and what to mind."""

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tightaudit.auditing.report import Report
from tightaudit.auditing.rows import Row
from tightaudit.render import wording
from tightaudit.render.terminal.checkup import findings
from tightaudit.render.terminal.tables import without_colours
from tightaudit.support.errors import printable

_BELOW = "as below"
_WIDEST_FAMILY = 10


def audit_view(report: Report) -> RenderableType:
    """The report as something rich can print; nothing in it is taken for markup."""
    style = {True: "bold red", False: "bold green", None: "bold"}[report.violated]
    if report.violated is False and (report.warnings or report.faulted or report.visible.epsilon is None):
        style = "bold yellow"
    verdict, *numbers = wording.verdict_sentences(report)
    parts: list[RenderableType] = [
        Text(verdict, style=style),
        *([Text(" ".join(numbers))] if numbers else []),
        *(Text(f"warning: {printable(warning)}", style="yellow") for warning in report.warnings),
        *([] if report.checkup is None else [Text("Check-up:"), *findings(report.checkup)]),
        Text(wording.setting_line(report), style="dim"),
        "",
        _table(report),
        "",
    ]
    if below := next((row.beliefs.family for row in report.rows if _short(row) == _BELOW), None):
        parts.append(Text(f"Curve as below: the family {below}.", style="dim"))
    parts += [Text(line, style="dim") for line in wording.notes(report)]
    return Group(*parts)


def plain_text(report: Report) -> str:
    """The same without colours, 80 columns wide.

    >>> import tightaudit as ta
    >>> text = plain_text(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> max(len(line) for line in text.splitlines()) <= 80
    True
    """
    return without_colours(audit_view(report))


def _table(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for name in ("outcomes", "curve", "method"):
        table.add_column(name, no_wrap=True)
    for name in ("errors", "ε ≥"):
        table.add_column(name, justify="right", no_wrap=True)
    if report.question.claim is not None:
        table.add_column("claim", no_wrap=True)
        table.add_column("p", no_wrap=True)
    for at, row in enumerate(report.rows):
        headline = at == report.decides.headline
        cells = [
            "▶" if headline else "",
            wording.outcomes(row.beliefs),
            _short(row),
            row.method.name,
            f"{row.evidence.errors}/{row.evidence.released}",
            wording.shown_epsilon(row.bound),
        ]
        if row.p_value is not None:
            decides = " ◀" if at == report.decides.deciding else ""
            cells += [wording.shown_decision(row) + decides, wording.shown_p_value(row.p_value)]
        table.add_row(*(Text(cell) for cell in cells), style="bold" if headline else None)
    return table


def _short(row: Row) -> str:
    family = wording.curve(row.beliefs)
    return family if len(family) <= _WIDEST_FAMILY else _BELOW

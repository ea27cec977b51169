"""A check-up on the terminal: the faults in words, then the checks."""

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tightaudit.evidence.checkup import Checkup
from tightaudit.render import wording
from tightaudit.support.errors import printable

_STYLES = {"fault": "bold red", "note": "yellow", "none": "bold green"}


def checkup_view(checkup: Checkup) -> Group:
    """What was found, and the table of checks."""
    return Group(*findings(checkup), "", checks_view(checkup))


def findings(checkup: Checkup) -> list[RenderableType]:
    """What was found, a line for each fault and note."""
    return [Text(printable(text), style=_STYLES[kind]) for kind, text in wording.checkup_sentences(checkup)]


def checks_view(checkup: Checkup) -> Group:
    """The table of checks, and what it is worth."""
    return Group(_table(checkup), "", Text(wording.checkup_level(checkup), style="dim"))


def _table(checkup: Checkup) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("check")
    for name in ("assumed", "seen", "99% interval"):
        table.add_column(name, no_wrap=True)
    table.add_column("p", no_wrap=True)
    failed = {id(check) for check in (*checkup.faults, *checkup.notes)}
    for place, check in enumerate(checkup.checks):
        cells = (check.name, check.assumed, check.seen, check.interval, wording.checked(checkup, place))
        style = "bold" if id(check) in failed else None
        table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
    return table

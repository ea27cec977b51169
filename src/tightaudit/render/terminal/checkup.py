"""A check-up on the terminal: the faults in words, then every check."""

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tightaudit.canaries.checkup import Checkup
from tightaudit.render.wording import percent, shown_p_value


def checkup_view(checkup: Checkup) -> Group:
    """What was found, and the table of checks."""
    found: list[RenderableType] = [
        *(Text(f"Fault: {check.fault}.", style="bold red") for check in checkup.faults),
        *(Text(f"Note: {check.fault}. That costs no privacy.", style="yellow") for check in checkup.notes),
    ]
    if not checkup.faults:
        found.insert(0, Text("No fault was found in what the accountant assumes.", style="bold green"))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("check", "assumed", "seen", "p, corrected"):
        table.add_column(name, no_wrap=True)
    for check, corrected in zip(checkup.checks, checkup.corrected, strict=True):
        table.add_row(check.name, check.assumed, check.seen, shown_p_value(corrected))
    sure = Text(
        f"An honest training passes all of these checks with {percent(1 - checkup.level)} probability. "
        "The check-up is separate from the bound on ε."
    )
    return Group(*found, "", table, "", sure)

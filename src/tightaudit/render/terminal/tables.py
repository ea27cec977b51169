"""What tables on a terminal have in common."""

import io

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

WIDTH = 80


def without_colours(view: RenderableType) -> str:
    """The text of a view, without colours and 80 columns wide.

    >>> without_colours("as it is  ")
    'as it is'
    """
    console = Console(width=WIDTH, file=io.StringIO(), color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(view)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def method_table(*headings: str) -> Table:
    """A table with a row per method; the columns after its name are numbers.

    >>> [str(column.header) for column in method_table("level").columns]
    ['method', 'level']
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table

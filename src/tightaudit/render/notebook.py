"""What a notebook shows of a result that a terminal shows as a table: the same view, as HTML."""

from collections.abc import Iterable
from html import escape

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def as_html(view: RenderableType | Iterable[RenderableType]) -> str:
    """A view made of sentences and tables as HTML, everything in it escaped.

    >>> as_html("1 < 2")
    '<p>1 &lt; 2</p>'
    """
    if isinstance(view, Table):
        return _table(view)
    if isinstance(view, str | Text):
        return f"<p>{escape(str(view))}</p>"
    parts = view.renderables if isinstance(view, Group) else view
    assert isinstance(parts, Iterable)
    return "".join(as_html(part) for part in parts)


def _table(table: Table) -> str:
    headings = "".join(f"<th>{escape(str(column.header))}</th>" for column in table.columns)
    rows = zip(*(column.cells for column in table.columns), strict=True)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    return f"<table><thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>"

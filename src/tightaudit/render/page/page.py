"""An audit as HTML: a self-contained page, or what a notebook shows; no script, nothing from elsewhere.

Everything from the user is escaped.
"""

from dataclasses import dataclass
from os import PathLike
from typing import Any

import tightaudit
from tightaudit.auditing.audit import coin_p_value
from tightaudit.auditing.report import Report
from tightaudit.render import wording
from tightaudit.render.page.plots import figures
from tightaudit.support.errors import printable
from tightaudit.support.writing import replacing

_LONGEST_BAR = 68.0
"""Percent of a track that the longest bar fills, so that its number fits beside it."""


@dataclass(frozen=True)
class Bar:
    """One ε as a bar: the claimed one, or a row's bound."""

    label: str
    value: str
    width: float
    kind: str
    headline: bool = False


def html_page(report: Report) -> str:
    """The page as text.

    >>> import tightaudit as ta
    >>> page = html_page(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> page.count("<svg"), "<script" in page
    (3, False)
    """
    return _rendered(
        "audit.html.j2",
        report,
        statement_tag="h1",
        figures=list(figures(report)),
        coin=coin_p_value(report.run),
        members=int(report.run.members.sum()),
        references=sorted({(row.method.name, row.method.reference) for row in report.rows}),
        version=tightaudit.__version__,
    )


def notebook_html(report: Report) -> str:
    """The findings alone, to be shown in a notebook.

    >>> import tightaudit as ta
    >>> shown = notebook_html(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> shown.startswith('<div class="tightaudit">'), "<html" in shown
    (True, False)
    """
    return _rendered("notebook.html.j2", report, statement_tag="div")


def write_html(report: Report, path: str | PathLike[str]) -> None:
    """Write the page to a file that appears only when it is complete."""
    page = html_page(report).encode("utf-8", "replace")
    with replacing(path) as file:
        file.write(page)


def bars(report: Report) -> tuple[list[Bar], float | None]:
    """The claimed ε and every row's bound as bars, and where the claimed one ends."""
    claimed = report.question.claimed_epsilon
    longest = max([row.epsilon or 0.0 for row in report.rows] + ([] if claimed is None else [claimed])) or 1.0

    def width(epsilon: float) -> float:
        return round(_LONGEST_BAR * epsilon / longest, 2)

    found = [] if claimed is None else [Bar("claimed", f"ε = {claimed:.4g}", width(claimed), "claim")]
    for at, row in enumerate(report.rows):
        shown = wording.shown_epsilon(row.bound)
        value = shown if row.epsilon is None else f"ε ≥ {shown}"
        # A family that is rejected as a whole has no bound to draw.
        size = width(row.epsilon or 0.0)
        kind = "rejects" if row.rejected else "bound"
        found.append(Bar(wording.in_legend(row.beliefs), value, size, kind, at == report.decides.headline))
    return found, None if claimed is None else width(claimed)


def _rendered(template: str, report: Report, **values: Any) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def breakable(text: str) -> Markup:
        """Escaped, with places to break a long claim that are not in the middle of a word."""
        return Markup(str(escape(text)).replace(",", ",<wbr>").replace("(", "(<wbr>"))

    templates = Environment(
        loader=PackageLoader("tightaudit.render.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"printable": printable, "breakable": breakable}
    drawn, limit = bars(report)
    return templates.get_template(template).render(
        report=report,
        question=report.question,
        wording=wording,
        bars=drawn,
        bars_label="; ".join(f"{bar.label}: {bar.value}" for bar in drawn),
        limit=limit,
        **values,
    )

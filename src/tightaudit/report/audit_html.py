"""An audit as one self-contained HTML page: no script, no network, everything from the user escaped."""

from __future__ import annotations

from os import PathLike

import tightaudit
from tightaudit.auditing import Report, coin_p_value
from tightaudit.errors import printable
from tightaudit.report.audit_plots import figures
from tightaudit.report.audit_text import notes, setting_line, shown_claim, shown_epsilon, shown_p_value
from tightaudit.writing import replacing


def html_page(report: Report) -> str:
    """The page as text.

    >>> import tightaudit as ta
    >>> page = html_page(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> page.count("<svg"), "<script" in page
    (3, False)
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("tightaudit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["printable"] = printable
    return templates.get_template("audit.html.j2").render(
        report=report,
        figures=list(figures(report)),
        notes=notes(report),
        setting=setting_line(report),
        coin=coin_p_value(report.run),
        members=int(report.run.members.sum()),
        references=sorted({(row.method.name, row.method.reference) for row in report.rows}),
        shown_claim=shown_claim,
        shown_epsilon=shown_epsilon,
        shown_p_value=shown_p_value,
        version=tightaudit.__version__,
    )


def write_html(report: Report, path: str | PathLike[str]) -> None:
    """Write the page to a file that appears only when it is complete."""
    page = html_page(report).encode("utf-8", "replace")
    with replacing(path) as file:
        file.write(page)

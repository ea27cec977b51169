"""An audit as one self-contained HTML page: no script, no network, everything from the user escaped."""

from os import PathLike

import tightaudit
from tightaudit.auditing.audit import coin_p_value
from tightaudit.auditing.report import Report
from tightaudit.render import wording
from tightaudit.render.page.plots import figures
from tightaudit.support.errors import printable
from tightaudit.support.writing import replacing


def html_page(report: Report) -> str:
    """The page as text.

    >>> import tightaudit as ta
    >>> page = html_page(ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5))
    >>> page.count("<svg"), "<script" in page
    (3, False)
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("tightaudit.render.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["printable"] = printable
    return templates.get_template("audit.html.j2").render(
        report=report,
        question=report.question,
        figures=list(figures(report)),
        coin=coin_p_value(report.run),
        members=int(report.run.members.sum()),
        references=sorted({(row.method.name, row.method.reference) for row in report.rows}),
        wording=wording,
        version=tightaudit.__version__,
    )


def write_html(report: Report, path: str | PathLike[str]) -> None:
    """Write the page to a file that appears only when it is complete."""
    page = html_page(report).encode("utf-8", "replace")
    with replacing(path) as file:
        file.write(page)

"""Figures in the documentation are those that were measured."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path

import pytest

from tightaudit.methods.base import METHODS
from tightaudit.simulate.mechanisms.base import MECHANISMS

DOCS = Path(__file__).parents[2] / "docs"
ROWS = list(csv.DictReader((DOCS / "validity.csv").read_text(encoding="utf-8").splitlines()))
PAGE = (DOCS / "validity.md").read_text(encoding="utf-8").splitlines()


def test_what_was_measured_is_there() -> None:
    """Those that are new are measured by `make validity`; until then tests/validity tries them briefly."""
    assert {row["mechanism"].split("(")[0] for row in ROWS} <= set(MECHANISMS)
    assert {row["method"] for row in ROWS} <= set(METHODS)


def test_table_shows_the_measured_rates() -> None:
    lines = [line for line in PAGE if line.startswith("| `")]
    header = next(line for line in PAGE if line.startswith("| mechanism"))
    methods = re.findall(r"`([^`]+)`", header)
    shown = 0
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name, sizes, _, level, *rates = cells
        n, released = sizes.split(", ")
        for method, rate in zip(methods, rates, strict=True):
            found = [
                row
                for row in ROWS
                if (row["mechanism"], row["n"], row["released"], row["method"])
                == (name.strip("`"), n, released, method)
                and float(row["level"]) == pytest.approx(float(level.strip("%")) / 100)
            ]
            if rate == "–":
                assert not found
                continue
            (row,) = found
            assert rate.strip("*") == f"{100 * float(row['rate']):.2f}%"
            assert rate.startswith("**") == (row["exceeds"] == "True")
            shown += 1
    assert shown == len(ROWS)


def test_methods_that_claim_to_hold_do() -> None:
    """No method rejects too often where its assumptions hold, except as its caveat says."""
    for row in ROWS:
        assumes = METHODS[row["method"]].assumes
        holds = row["independent"] == "True" or not assumes.independent_outcomes
        if holds and assumes.caveat is None:
            assert row["exceeds"] == "False", row


AUDITS = list(csv.DictReader((DOCS / "validity-of-audits.csv").read_text(encoding="utf-8").splitlines()))


def test_rows_of_audits_hold_where_their_beliefs_do() -> None:
    assert {row["mechanism"].split("(")[0] for row in AUDITS} <= set(MECHANISMS)
    assert {row["released"] for row in AUDITS} == {"planned", "best"}
    assert {row["repetitions"] for row in AUDITS} == {"10000"}
    for row in AUDITS:
        if row["independent"] == "True" or row["row"].startswith(("any", "verdict, nothing")):
            assert row["exceeds"] == "False", row


def test_table_of_audits_shows_the_measured_rates() -> None:
    lines = PAGE[next(at for at, line in enumerate(PAGE) if line.startswith("| audited mechanism")) + 2 :]
    shown = 0
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines):
        name, _, release, level, *rates = (cell.strip() for cell in line.strip("|").split("|"))
        found = [
            row
            for row in AUDITS
            if (row["mechanism"], row["released"]) == (name, release)
            and float(row["level"]) == pytest.approx(float(level.strip("%")) / 100)
        ]
        for rate, row in zip([rate for rate in rates if rate != "–"], found, strict=True):
            assert rate.strip("*") == f"{100 * float(row['rate']):.2f}%"
            assert rate.startswith("**") == (row["exceeds"] == "True")
        shown += len(found)
    assert shown == len(AUDITS)


SPEED = list(csv.DictReader((DOCS / "speed.csv").read_text(encoding="utf-8").splitlines()))


def speed_table(heading: str) -> dict[str, list[str]]:
    """The cells of each row of a table in the page, one per number of canaries."""
    page = (DOCS / "speed.md").read_text(encoding="utf-8").splitlines()
    start = next(at for at, line in enumerate(page) if line.startswith(f"| {heading} |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), page[start + 2 :])
    cells = ([cell.strip(" *") for cell in row.strip("|").split("|")] for row in rows)
    return {name: values[:5] for name, *values in cells}


@pytest.mark.parametrize(
    ("heading", "column", "ratio", "scale"),
    [
        ("from scores to ε, in sorts", "sorts", "times_ours", 1),
        ("from counts to ε, in ms", "seconds_bound", "times_ours_bound", 1000),
        ("peak MB", "peak_megabytes", None, 1),
        ("ε at least", "epsilon", None, 1),
    ],
)
def test_speed_tables_show_what_was_measured(
    heading: str, column: str, ratio: str | None, scale: float
) -> None:
    shown, sizes = speed_table(heading), sorted({int(row["n"]) for row in SPEED})
    assert len(sizes) == 5
    for row in SPEED:
        if row["contender"] not in shown or not row[column]:
            continue
        figure, _, times = shown[row["contender"]][sizes.index(int(row["n"]))].partition(" ")
        # Two digits in the table, four or more in the file.
        assert float(figure.replace(",", "")) == pytest.approx(scale * float(row[column]), rel=0.051)
        if times:
            assert ratio is not None
            found = float(times.strip("(×)").replace(",", ""))
            assert found == pytest.approx(float(row[ratio]), rel=0.051)


def test_the_same_guesses_give_the_same_bounds_elsewhere() -> None:
    own = {(row["contender"], row["n"]): float(row["epsilon"]) for row in SPEED if row["epsilon"]}
    compared = [row for row in SPEED if row["epsilon"] and "its default" not in row["contender"]]
    assert len({row["contender"] for row in compared}) >= 11
    for row in compared:
        assert float(row["epsilon"]) == pytest.approx(own[row["compared_with"], row["n"]], abs=1e-4)


def test_links_between_pages_lead_somewhere() -> None:
    for page in (*DOCS.glob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (page.name, link)


def test_tables_of_other_auditors_show_the_measured_rates() -> None:
    rows = list(csv.DictReader((DOCS / "peers-validity.csv").read_text(encoding="utf-8").splitlines()))
    measured = {(row["mechanism"], row["n"], row["auditor"]): row for row in rows}
    shown = 0
    auditors: list[str] = []
    for line in (DOCS / "peers.md").read_text(encoding="utf-8").splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if name.endswith("on a true claim of"):
            auditors = cells[2:]
        if not line.startswith("| `"):
            continue
        for auditor, cell in zip(auditors, cells[2:], strict=True):
            row = measured.get((name.strip("`"), cells[0].split(", ")[0], auditor))
            if cell == "–":
                assert row is None
                continue
            assert row is not None
            rate, low, high = (f"{100 * float(row[key]):.1f}" for key in ("rate", "low", "high"))
            assert cell.strip("*") == f"{rate}% ({low} to {high})"
            assert cell.startswith("**") == (row["exceeds"] == "True")
            shown += 1
    assert shown == len(rows)

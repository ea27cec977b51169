"""What a reader gets: text, JSON and a page, complete and escaped."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.render.page.page import html_page
from tightaudit.render.page.svg import Axis, Plot

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}[bold]\x1b[2J"
DOCS = Path(__file__).parents[2] / "docs"


def report(**options: Any) -> ta.Report:
    coins = ta.draw_coins(500, seed=4)
    scores = 2 * coins.members + np.random.default_rng(4).standard_normal(500)
    run = ta.Run(scores, coins.members, source=options.pop("source", "scores.csv"))
    command = options.pop("command", None)
    settings: dict[str, Any] = {"delta": 1e-5, "claim": ta.Gaussian(1.0)} | options
    return replace(ta.audit(run, **settings), command=command)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_page_is_self_contained_and_accessible() -> None:
    page = html_page(report(independent=True))
    parser = Tags()
    parser.feed(page)
    tags = [tag for tag, _ in parser.seen]
    assert "script" not in tags
    assert "img" not in tags
    for tag, attributes in parser.seen:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert "url(" not in page
    assert "@import" not in page
    plots = [attributes for tag, attributes in parser.seen if tag == "svg"]
    assert [plot["role"] for plot in plots] == ["img"] * 3
    assert page.count("<title>") == 4
    assert parser.seen[0] == ("html", {"lang": "en"})
    assert tags.count("h1") == 1
    assert tags.count("caption") == 1


def test_everything_from_the_user_is_escaped() -> None:
    page = html_page(report(source=HOSTILE, command=HOSTILE, independent=True))
    assert "<script" not in page
    assert "<img" not in page
    assert html.escape("<script>alert(1)</script>") in page
    assert "{{7*7}}" in page
    text = str(report(source=HOSTILE))
    assert "\x1b" not in text
    assert "[bold]" in text


def test_the_reason_for_independence_is_escaped_too() -> None:
    coins = ta.draw_coins(100, seed=1)
    run = ta.Run(np.arange(100.0), coins.members, independent=HOSTILE)
    assert "<script" not in html_page(ta.audit(run, delta=1e-5))


@pytest.mark.parametrize("independent", [True, False])
def test_text_reads_well_at_80_columns(independent: bool) -> None:
    for claim in (ta.Gaussian(1.0), ta.SubsampledGaussian(1.0, 0.25), ta.ApproxDP(1.0, 1e-5)):
        text = str(report(claim=claim, independent=independent, released="best"))
        assert max(map(len, text.splitlines())) <= 80
        assert "…" not in text
        assert "▶" in text


def test_page_shows_every_row() -> None:
    result = report(independent=True)
    page = html_page(result)
    for row in result.rows:
        assert f"{row.evidence.errors:,} of {row.evidence.released:,}" in page
    assert page.count('class="headline"') == 1
    assert "exploratory" in page
    assert ta.__version__ in page


def test_json_is_complete_and_documented(tmp_path: Path) -> None:
    result = report(independent=True, released="best")
    checkup = ta.Checkup((ta.Check("noise", "1", "0.5", 1e-9, "the noise is 0.5 of what was asked for"),))
    result = replace(result, run=replace(result.run, checkup=checkup))
    path = tmp_path / "audit.json"
    result.to_json(path)
    fields = json.loads(path.read_text(encoding="utf-8"))
    assert fields == json.loads(json.dumps(result.to_dict()))
    assert fields["schema"] == "tightaudit.audit/1"
    assert fields["rows"][fields["headline"]]["epsilon"] == fields["epsilon"]
    assert fields["claim"]["row"] == 0
    documented = set(re.findall(r"^\| `([a-z_.]+)`", (DOCS / "audit-json.md").read_text(), re.MULTILINE))
    assert documented == set(_paths(fields))


def _paths(fields: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key, value in fields.items():
        found.append(prefix + key)
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            found += _paths(inner, f"{prefix}{key}.")
    return found


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such folder"):
        report().to_html(tmp_path / "missing" / "audit.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "scores",
    [
        [1e308, -1e308] * 20,
        [np.inf, -np.inf] * 20,
        [1e-320, 0.0] * 20,
        [5.0] * 40,
        [1e16, 1e16 + 2] * 20,
        [0.0] * 39 + [1e300],
    ],
)
def test_any_scores_can_be_drawn(scores: list[float]) -> None:
    page = html_page(ta.audit(scores, [1, 0] * 20, delta=1e-5))
    assert not re.search(r"[\s,\"]-?(nan|inf)[\s,\"]", page)


def test_ticks_are_round_numbers() -> None:
    assert Axis("r", 9.0, 11_000.0, logarithmic=True).ticks().tolist() == [10, 100, 1000, 10_000]
    assert Axis("x", -2.2, 3.1).ticks().tolist() == [-2, 0, 2]
    assert len(Axis("x", 0.0, 1e-9).ticks()) >= 3


def test_labels_are_escaped() -> None:
    assert "<x>" not in Plot("<title>", Axis("<x>", 0, 1), Axis("<y>", 0, 1)).to_svg()

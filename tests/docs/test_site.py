"""The documentation site, built as readers get it: no warning, no dead link, nothing from another host."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser
from tests.docs.pages import ROOT

import tightaudit as ta

# One worker builds the site.
pytestmark = pytest.mark.xdist_group("browser")

ADDRESSES = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The anchors of a page, and the addresses it mentions by the kind of element."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[tuple[str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        address = found.get(ADDRESSES.get(tag, ""))
        if address is not None:
            self.addresses.append((tag, address))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_page_is_there(site: Path) -> None:
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= {path.stem for path in site.glob("*.html")}


def test_every_link_and_anchor_leads_somewhere(pages: dict[Path, Page]) -> None:
    followed = 0
    for path, page in pages.items():
        # The page for what is not found has to work at any depth, so its addresses start at the root.
        if path.name == "404.html":
            continue
        for tag, address in page.addresses:
            link = urlsplit(address)
            if link.scheme or link.netloc:
                assert tag == "a", f"{path.name} fetches {address}"
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            assert target.exists(), f"{path.name} links to {address}"
            if link.fragment and target in pages and link.fragment != "__skip":
                assert unquote(link.fragment) in pages[target].anchors, f"{path.name} links to {address}"
            followed += 1
    assert followed > 1000


def test_every_public_name_is_in_the_reference(site: Path, pages: dict[Path, Page]) -> None:
    missing = {f"tightaudit.{name}" for name in ta.__all__} - pages[site / "api.html"].anchors
    assert missing == set()


def test_sessions_are_shown_as_code(site: Path) -> None:
    """`>>>` is no quotation, and marks for the tests are not for readers."""
    for path in site.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<blockquote>" not in text, path.name
        assert "BLANKLINE" not in text, path.name
        assert "doctest:" not in text, path.name


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["index", "api", "validity", "adding-a-mechanism"])
def test_pages_in_a_browser(browser: Browser, site: Path, name: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_load_state("networkidle")
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()

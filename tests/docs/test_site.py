"""The documentation site, built as readers get it and opened from its folder, without a server."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from matplotlib.image import imread
from playwright.sync_api import Browser, Locator
from tests.docs.pages import ROOT

import tightaudit as ta

# One worker builds the site.
pytestmark = pytest.mark.xdist_group("browser")

DOCS = ROOT / "docs"
ADDRESSES = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "source": "src"}
BUILD = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]


def build(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    doctrees = folder.with_name(f"{folder.name}-doctrees")
    command = [*BUILD, "--doctree-dir", str(doctrees), str(source), str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


TOO_WIDE = """() => [...document.querySelectorAll("html, .content, pre, div.math, .table-wrapper")]
    .filter((part) => part.scrollWidth > part.clientWidth + 1)
    .map((part) => [part.tagName, getComputedStyle(part).overflowX, part.textContent.slice(0, 60)])"""
CUT_OFF = """() => [...document.querySelectorAll("article :is(p, img, dt, li, math)")]
    .filter((part) => !part.closest(".table-wrapper, pre, div.math"))
    .filter((part) => part.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((part) => part.textContent.slice(0, 60))"""


class Page(HTMLParser):
    """The anchors of a page, the addresses it mentions by the kind of element, and its prose."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[tuple[str, str]] = []
        self.prose: list[str] = []
        self.formulas = 0
        self._within: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        address = found.get(ADDRESSES.get(tag, ""))
        if address is not None:
            self.addresses.append((tag, address))
        self.formulas += tag == "math"
        if tag in ("pre", "code", "script", "style", "title", "math", "head"):
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.prose.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(DOCS, folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_make_builds_it_in_the_same_way() -> None:
    said = next(
        line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if "sphinx" in line
    )
    assert all(option in said.split() for option in BUILD[3:])


def test_mistakes_stop_the_build(tmp_path: Path) -> None:
    """A dead link, a page that no navigation names, and a formula that cannot be read."""
    source = tmp_path / "docs"
    source.mkdir()
    for name in ("conf.py", "site.css", "scorer.js", "stix-two-math.woff2"):
        shutil.copy(DOCS / name, source)
    (source / "index.md").write_text("# First\n\n[nowhere](nowhere.md#at-all)\n", encoding="utf-8")
    (source / "lonely.md").write_text("# Lonely\n\n$\\nonsense{x}$ and `code`\n", encoding="utf-8")
    done = build(source, tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
    assert re.search(r"lonely\.md.* isn't included in any toctree", done.stderr)
    assert re.search(r"lonely\.md.*\\nonsense", done.stderr)


def test_every_page_is_there(site: Path) -> None:
    assert {path.stem for path in DOCS.glob("*.md")} <= {path.stem for path in site.glob("*.html")}


def test_every_link_and_anchor_leads_somewhere(pages: dict[Path, Page]) -> None:
    followed = 0
    for path, page in pages.items():
        for tag, address in page.addresses:
            link = urlsplit(address)
            if link.scheme or link.netloc:
                assert tag == "a", f"{path.name} fetches {address}"
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            assert target.exists(), f"{path.name} links to {address}"
            if link.fragment and target in pages:
                assert unquote(link.fragment) in pages[target].anchors, f"{path.name} links to {address}"
            followed += 1
    assert followed > 1000


def test_every_public_name_is_in_the_reference(site: Path, pages: dict[Path, Page]) -> None:
    missing = {f"tightaudit.{name}" for name in ta.__all__} - pages[site / "api.html"].anchors
    assert missing == set()


def test_types_have_the_names_that_readers_know(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "api.html").read_text(encoding="utf-8"))
    assert "ArrayLike" in text
    assert "_SupportsArray" not in text


def test_sessions_are_shown_as_code(pages: dict[Path, Page]) -> None:
    """`>>>` is no quotation, and marks for the tests are not for readers."""
    for path, page in pages.items():
        text = path.read_text(encoding="utf-8")
        assert "<blockquote>" not in text, path.name
        assert "BLANKLINE" not in text, path.name
        assert "doctest:" not in text, path.name
        assert ">>>" not in "".join(page.prose), path.name


def test_formulas_are_typeset(site: Path, pages: dict[Path, Page]) -> None:
    total = 0
    for source in DOCS.glob("*.md"):
        prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", source.read_text(encoding="utf-8"), flags=re.M | re.S)
        written = len(re.findall(r"\$\$.+?\$\$|\$[^$]+\$", prose, flags=re.S))
        page = pages[site / f"{source.stem}.html"]
        assert page.formulas == written, source.name
        assert "$" not in "".join(page.prose), source.name
        total += written
    assert total > 200


def test_pages_fit_into_the_window(browser: Browser, site: Path) -> None:
    """Code, tables and formulas that are too wide scroll by themselves; in a wide window nothing has to."""
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for path in sorted(site.glob("*.html")):
        page.goto(path.as_uri())
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            for tag, overflow, text in page.evaluate(TOO_WIDE):
                said = f"{path.name} at {width}: {text!r}"
                assert tag in ("PRE", "DIV"), said
                assert overflow in ("auto", "scroll"), said
                assert width < 1000, said
            assert page.evaluate(CUT_OFF) == [], f"{path.name} at {width}"
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    page.close()


def brightness(picture: Locator) -> float:
    return float(imread(io.BytesIO(picture.screenshot()), format="png")[..., :3].mean())


@pytest.mark.parametrize("name", ["index", "paper", "plan", "speed", "tightness", "validity"])
def test_pictures_turn_with_the_page(browser: Browser, site: Path, name: str) -> None:
    """By the button of the page, whatever the reader's system says."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    page.goto((site / f"{name}.html").as_uri())
    pictures = page.locator("article img").all()
    assert len(pictures) == len(re.findall(r"!\[", (DOCS / f"{name}.md").read_text(encoding="utf-8")))
    for theme, low, high in (("light", 0.75, 1.0), ("dark", 0.0, 0.3)):
        for _ in range(3):
            if page.locator("body").get_attribute("data-theme") == theme:
                break
            page.locator(".theme-toggle:visible").first.click()
        assert page.locator("body").get_attribute("data-theme") == theme
        for picture in pictures:
            assert low <= brightness(picture) <= high, (theme, picture.get_attribute("src"))
    page.close()


@pytest.mark.parametrize(
    ("words", "page_found"),
    [("how many canaries", "plan.html"), ("dependence", "any-dependence.html"), ("lower_bound", "api.html")],
)
def test_search_works_from_a_folder(browser: Browser, site: Path, words: str, page_found: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "index.html").as_uri())
    page.locator("input.sidebar-search").fill(words)
    page.keyboard.press("Enter")
    found = page.locator("#search-results ul.search > li a:first-child")
    found.first.wait_for()
    first = [str(link.get_attribute("href")).partition("#")[0] for link in found.all()[:2]]
    assert page_found in first
    page.close()

"""The page in a real browser: no errors, no requests, every figure, nothing cut off at any width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import tightaudit as ta

# One worker opens the browser and makes the page.
pytestmark = pytest.mark.xdist_group("browser")

WIDTHS = {"phone": 360, "tablet": 768, "desktop": 1280}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    coins = ta.draw_coins(2000, seed=4)
    scores = 2 * coins.members + np.random.default_rng(4).standard_normal(2000)
    name = "<img src=x onerror=alert(1)> a-very-long-name-" + "x" * 200
    run = ta.Run(scores, coins.members, source=name)
    path = tmp_path_factory.mktemp("page") / "audit.html"
    ta.audit(run, delta=1e-5, claim=ta.SubsampledGaussian(1.0, 0.25), independent=True).to_html(path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_page_in_a_browser(
    browser: Browser, page_file: Path, width: str, scheme: str, tmp_path: Path
) -> None:
    page = browser.new_page(
        viewport={"width": WIDTHS[width], "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.goto(page_file.as_uri())
    page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
    assert messages == []
    assert requests == [page_file.as_uri()]
    plots = page.locator("figure svg.plot")
    assert plots.count() == 3
    for at in range(3):
        box = plots.nth(at).bounding_box()
        assert box is not None
        assert box["width"] > 250
        assert box["height"] > 150
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]
    for low in page.evaluate(_CONTRASTS):
        pytest.fail(f"too little contrast: {low}")
    page.close()


_CONTRASTS = """
() => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = colour => rgb(colour).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$/.test(colour) && colour !== 'transparent') return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const low = [];
  for (const node of document.querySelectorAll('h1,h2,h3,p,td,th,li,dt,dd,caption,figcaption,span,text')) {
    const style = getComputedStyle(node);
    const front = node.tagName === 'text' ? style.fill : style.color;
    const [a, b] = [light(front), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(node.tagName + ' ' + node.textContent.slice(0, 30));
  }
  return low;
}
"""


def test_page_prints_in_black_on_white(browser: Browser, page_file: Path) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    page.close()


def test_the_table_can_be_reached_by_keyboard(browser: Browser, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#table")
    page.close()


def test_the_top_says_it_at_a_glance(browser: Browser, page_file: Path) -> None:
    """One large statement, the claimed ε against each row's, bars as long as their numbers say."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(page_file.as_uri())
    sizes = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,p')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert sizes[1:].count(max(sizes)) == 1
    assert page.locator("h1").inner_text() == "It leaks more than claimed"
    values = [
        float(text.split()[-1]) for text in page.locator(".bars .value").all_inner_texts() if "ε" in text
    ]
    assert len(values) == 5
    widths = page.evaluate(
        "[...document.querySelectorAll('.bars .track')].map(t => t.querySelector('.fill').offsetWidth)"
    )
    scale = widths[0] / values[0]
    assert widths == pytest.approx([scale * value for value in values], abs=3)
    limits = page.evaluate("[...document.querySelectorAll('.bars .limit')].map(e => e.offsetLeft)")
    assert limits == pytest.approx([widths[0]] * 5, abs=3)
    page.close()


def test_plots_are_aligned_and_words_whole(browser: Browser, page_file: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(page_file.as_uri())
    tops = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().top)"
    )
    assert max(tops) - min(tops) < 1
    legends = page.locator("figure").nth(2).locator("text.legend").all_inner_texts()
    # What releases all guesses is one dot: it has its name beside it and no entry in the legend.
    lines = page.locator("figure").nth(2).locator("polyline").count()
    assert len(legends) == lines
    page.set_viewport_size({"width": 390, "height": 800})
    broken = page.evaluate(_BROKEN_WORDS)
    assert broken == []
    page.close()


_BROKEN_WORDS = """
() => {
  const broken = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest('svg,style,dd,.faint')) continue;
    for (const word of node.textContent.matchAll(/[A-Za-z-]{3,}/g)) {
      if (word[0].length > 40) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (tops.size > 1 && !word[0].includes('-')) broken.push(word[0]);
    }
  }
  return broken;
}
"""

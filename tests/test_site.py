"""The documentation as it is built: strictly, and for everybody.

Pictures have words for those who cannot see them, words stand out from what is behind them, everything is reached by
keyboard, and no page is endless.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stiction.studies import STUDIES
from stiction.viewer import palette

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")
WIDTH, TALLEST = 1200, 8000  # pixels
CONTRAST = 4.5  # of text, as the guidelines for accessible pages ask

# Every text that is shown against what is behind it; those of less contrast, one of a kind, with their kind.
FAINT = """() => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parsed = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (one, two) => [0, 1, 2].map((i) => one[i] * one[3] + two[i] * (1 - one[3])).concat([1]);
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const above = (node) => (node ? [node, ...above(node.parentElement)] : []);
  const found = {};
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim(), node = texts.currentNode.parentElement;
    if (!text || node.closest("script, style, template, noscript")) continue;
    if (!node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    const style = getComputedStyle(node), around = above(node);
    const back = around.map((each) => parsed(getComputedStyle(each).backgroundColor)).reverse()
      .reduce((base, layer) => over(layer, base), [255, 255, 255, 1]);
    const ink = parsed(style.color);
    ink[3] *= around.reduce((product, each) => product * getComputedStyle(each).opacity, 1);
    const [low, high] = [light(over(ink, back)), light(back)].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (large ? 3 : CONTRAST)) found[`${node.tagName}.${node.className}: ${text.slice(0, 30)}`] = contrast;
  }
  return found;
}""".replace("CONTRAST", str(CONTRAST))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once; strict, so that every warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    """Where a browser finds it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def pages(site: Path) -> list[str]:
    """Addresses within the site."""
    return [f"/{path.parent.relative_to(site).as_posix()}/" for path in sorted(site.rglob("index.html"))]


def test_it_shows_every_contract(site):
    from stiction.solvers import ALL, Auto

    table = (site / "which-solver" / "index.html").read_text(encoding="utf-8")
    for solver in (Auto, *ALL):
        for cell in (solver.__name__, solver.contract.guarantee, solver.contract.cost, solver.contract.choose):
            shown = cell.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            assert shown in table, f"{solver.__name__}: {cell}"


def test_every_study_has_a_page(site):
    overview = (ROOT / "docs" / "studies" / "index.md").read_text(encoding="utf-8")
    for study in STUDIES:
        assert f"[`{study}`]({study}.md)" in overview
        assert f"stiction study check {study}" in (site / "studies" / study / "index.html").read_text(encoding="utf-8")


class Markup(HTMLParser):
    """What a page lacks for those who do not see it, or have no mouse."""

    def __init__(self) -> None:
        super().__init__()
        self.lacks: list[str] = []
        self.level = 0
        self.title = self.language = ""
        self._within = ""

    def handle_starttag(self, tag: str, pairs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in pairs}
        self._within = tag
        if tag == "html":
            self.language = given.get("lang", "")
        if tag == "img" and not given.get("alt", "").strip():
            self.lacks.append(f"words for {given.get('src')}")
        if tag == "video" and not (given.get("aria-label", "").strip() and "controls" in given):
            self.lacks.append(f"words and controls for {given.get('src')}")
        if int(given.get("tabindex") or 0) > 0:
            self.lacks.append(f"the natural order of focus at {tag}")
        if re.fullmatch("h[1-6]", tag):
            level = int(tag[1])
            if level > self.level + 1:
                self.lacks.append(f"a heading between h{self.level} and {tag}")
            self.level = level

    def handle_data(self, data: str) -> None:
        if self._within == "title":
            self.title += data.strip()


def test_every_page_has_words_for_its_pictures_and_headings_in_order(site):
    for path in sorted(site.rglob("index.html")):
        page = Markup()
        page.feed(path.read_text(encoding="utf-8"))
        assert page.lacks == [], path.relative_to(site)
        assert (page.language, bool(page.title)) == ("en", True), path.relative_to(site)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_and_no_page_is_endless(site, address, browser, scheme):
    """Pages of the API list every name there is, and may be long."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for each in pages(site):
        page.goto(address + each)
        assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
        assert page.evaluate(FAINT) == {}, f"{each} has words that are too faint"
        tall, wide = page.evaluate("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")
        assert wide <= WIDTH, f"{each} is wider than the window"
        assert tall <= TALLEST or each.startswith("/api/"), f"{each} is {tall} pixels tall"
    context.close()


@needs_browser
def test_pages_are_used_by_keyboard_alone(address, browser):
    context = browser.new_context(viewport={"width": WIDTH, "height": 800})
    page = context.new_page()
    page.goto(f"{address}/gallery/")
    focused = """(() => {
      const at = document.activeElement;
      return [at.tagName, (at.innerText || "").trim(), at.href || "", getComputedStyle(at).outlineStyle];
    })()"""
    visited = []
    for _ in range(150):
        page.keyboard.press("Tab")
        visited.append(page.evaluate(focused))
    assert visited[0][1] == "Skip to content"
    tags = [tag for tag, *_ in visited]
    assert "INPUT" in tags, "the search is not reached"
    assert "VIDEO" in tags, "clips cannot be stopped"
    assert "SUMMARY" in tags, "code cannot be unfolded"
    assert any(link.endswith("/tutorial/") for _, _, link, _ in visited), "other pages are not reached"
    assert [each for each in visited if each[0] == "A" and each[3] == "none"] == [], "nobody sees where the focus is"
    context.close()


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", palette.THEMES)
def test_words_of_plots_stand_out_from_their_paper(theme):
    chosen = palette.THEMES[theme]
    assert contrast(chosen.ink, chosen.paper) >= CONTRAST


def test_pictures_of_plots_have_no_words_in_colours():
    """Text of the drawings in the documentation is black or nearly so."""
    for path in sorted((ROOT / "docs" / "images").rglob("*.svg")):
        text = path.read_text(encoding="utf-8")
        for colour in re.findall(r"<text[^>]*(?:fill: |fill=\")(#[0-9a-f]{6})", text):
            assert contrast(colour, palette.LIGHT.paper) >= CONTRAST, f"{path.name}: {colour}"


def test_notebooks_have_words_for_their_pictures():
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for words in re.findall(r"!\[([^\]]*)\]", "".join(cell["source"])):
                assert words.strip(), path.name

"""The page needs nothing but itself, escapes what it shows, and tells every claim, figure and table."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from stiction import optional
from stiction.studies import report as page
from stiction.studies.claims import Claim
from stiction.studies.results import Findings, Plate, Sheet

VOID = {"meta", "br", "img", "link", "hr"}
CLAIMS = [
    Claim("a < b & c", True, "1 < 2", printed="<b>2</b>"),
    Claim("it grows", False, "it does not", documented=False, printed="3", why="because of `code`"),
    Claim("surprising", True, "yes", documented=False, why="not needed"),
]


class Results(Findings):
    declared: ClassVar = {"values": "(point,)"}


class Tags(HTMLParser):
    """Checks that tags are closed in order, and collects names, ids and links."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.names = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if key in ("href", "src"):
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def drawn(results):
    plates = []
    for name in ("first", "second"):
        figure = optional.matplotlib().figure.Figure(figsize=(3.0, 2.0))
        ax = figure.subplots()
        ax.plot(results.values, "o-")
        ax.set_title("t < u")
        plates.append(Plate(name, f"Caption of {name} <i>.", figure))
    return plates


@pytest.fixture
def studies(monkeypatch):
    doc = "Head & line.\n\nA paragraph with `code`.\n\n    indented <block>\n\n- one\n- two\n"
    one = SimpleNamespace(
        __doc__=doc,
        Results=Results,
        check=lambda results: CLAIMS,
        figures=drawn,
        tables=lambda results: [Sheet("A table <x>", ("case", "value"), [("a", f"{results.values.sum():g}")])],
    )
    other = SimpleNamespace(__doc__="Another.", Results=Results, check=lambda r: [], figures=lambda r: [])
    modules = {"stiction.studies.one": one, "stiction.studies.other": other}
    monkeypatch.setattr(page, "STUDIES", ("one", "other"))
    monkeypatch.setattr(page, "import_module", modules.__getitem__)


@pytest.fixture
def text(studies, tmp_path):
    Results(7, ("Python 3", "numpy <2>"), values=np.arange(4.0)).save(tmp_path / "one-quick.npz")
    path = page.report(tmp_path, quick=True)
    assert path == tmp_path / "report-quick.html"
    return path.read_text(encoding="utf-8")


def test_page_is_well_formed_and_needs_nothing_else(text):
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))
    assert all(link.startswith("#") and link[1:] in tags.ids for link in tags.links)
    assert not {"script", "link", "img", "iframe"} & set(tags.names)
    assert "http" not in text
    assert "@import" not in text
    assert all(name[1:] in tags.ids for name in re.findall(r"url\(([^)]*)\)", text))


def test_claims_are_told_with_verdict_numbers_and_reason(text):
    assert "a &lt; b &amp; c" in text
    assert "&lt;b&gt;2&lt;/b&gt;" in text
    assert text.count('<tr class="holds">') == text.count('<tr class="departs">') == 1
    assert "because of <code>code</code>" in text
    assert "Not as documented (holds)" in text
    assert "<b>1 hold</b>, <b>1 do not</b>" in text
    assert "<b>1 came out otherwise than documented</b>" in text


def test_figures_tables_and_origin_are_there(text):
    assert text.count("<svg role=") == 2
    assert "Caption of first &lt;i&gt;." in text
    assert "A table &lt;x&gt;" in text
    assert "<td>6</td>" in text
    assert "numpy &lt;2&gt;; seed 7." in text
    assert "quick setting" in text


def test_docstring_becomes_paragraphs_blocks_and_lists(text):
    assert "<p>A paragraph with <code>code</code>.</p>" in text
    assert "<pre>    indented &lt;block&gt;</pre>" in text
    assert "<ul><li>one</li><li>two\n</li></ul>" in text or "<ul><li>one</li><li>two</li></ul>" in text


def test_a_study_without_results_is_named_as_not_run(text):
    assert "not run</td>" in text
    assert "<b>Not run.</b>" in text


def test_same_results_same_page(studies, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        Results(7, ("here",), values=np.arange(4.0)).save(tmp_path / folder / "one.npz")
    first, second = (page.report(tmp_path / folder).read_bytes() for folder in ("a", "b"))
    assert first == second
    assert b"full setting" in first

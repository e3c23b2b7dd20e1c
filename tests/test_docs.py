"""What the documentation shows is what happens."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CITATION = re.compile(r"\[([A-Z][A-Za-z]+\d{4})\b")


PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```python\n" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES)
def test_code_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    """Every python block is run, in order and in one namespace; a text block after it is its output."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in BLOCK.findall(text) if block[0] in {"python", "text"}]
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    assert any(language == "text" for language, _ in blocks), f"{page} shows no output"
    for (language, code), following in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            shown = following[1] if following[0] == "text" else ""
            assert run(code, namespace, page) == shown


def run(code: str, namespace: dict[str, object], page: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, page, "exec"), namespace)
    return output.getvalue()


def test_tables_of_the_overview_are_made_of_the_results():
    renewed = runpy.run_path(str(ROOT / "benchmarks" / "summary.py"))["renewed"]
    page = (ROOT / "docs" / "performance" / "index.md").read_text(encoding="utf-8")
    assert renewed(page, ROOT / "benchmarks" / "results") == page
    assert page.count("| 100 %, ") >= 5


def test_the_readme_opens_with_a_clip_and_three_claims_made_of_the_results():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    with_claims = runpy.run_path(str(ROOT / "benchmarks" / "summary.py"))["with_claims"]
    assert with_claims(page, ROOT / "benchmarks" / "results") == page
    claims = page.partition("<!-- claims -->\n")[2].partition("<!-- end of claims -->")[0]
    assert claims.count("\n- **") + claims.startswith("- **") == 3
    assert claims.count("](docs/performance/") == 3
    clip = re.search(r"!\[[^\]]{20,}\]\(([^)]+\.gif)\)", page)
    assert clip is not None, "no clip, or no words for those who cannot see it"
    assert page.index(clip[0]) < page.index("pip install") < page.index("```python") < page.index("<!-- claims")
    assert (ROOT / clip[1]).stat().st_size < 1_500_000
    assert "\n|" not in page, "tables belong in the documentation"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_the_checkout_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_links_of_the_readme_work_on_a_package_index(monkeypatch):
    """They lead to the code host once one is named; until then no link is left that leads nowhere."""
    for name, base in (
        ("hatchling.builders.hooks.plugin.interface", "BuildHookInterface"),
        ("hatchling.metadata.plugin.interface", "MetadataHookInterface"),
    ):
        stub = ModuleType(name)
        setattr(stub, base, object)
        monkeypatch.setitem(sys.modules, name, stub)
    for_an_index = runpy.run_path(str(ROOT / "hatch_build.py"))["for_an_index"]
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = for_an_index(page, "https://host/stiction/", "1.2")
    assert "](https://host/stiction/raw/v1.2/docs/images/side-by-side.gif)" in shown
    assert "[tutorial](https://host/stiction/blob/v1.2/docs/tutorial.md)" in shown
    assert re.findall(r"\]\((?!https://)", shown) == []
    assert len(re.findall(r"\]\(", shown)) == len(re.findall(r"\]\(", page)) > 10
    bare = for_an_index(page, None, "1.2")
    assert "](" not in bare
    assert "From here: the tutorial, from an empty folder" in bare
    assert "*The same capsule pinched between two pads" in bare
    assert for_an_index("[kept](https://a.b) [here](#more)", None, "1.2") == "[kept](https://a.b) [here](#more)"


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@cache
def output_of(example: Path) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(example)])
        runpy.run_path(str(example), run_name="__main__")
    return output.getvalue()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run_and_are_short(example):
    assert output_of(example)
    assert len(example.read_text(encoding="utf-8").splitlines()) <= 70


def test_every_law_is_shown_solved():
    shown = output_of(ROOT / "examples" / "laws.py")
    for law in ("Coulomb()", "Coulomb(facets=8)", "BoxFriction", "NoSlip", "Viscous", "Frictionless"):
        line = next(line for line in shown.splitlines() if line.strip().startswith(law))
        assert float(re.search(r" (\d+e-\d+) ", line)[1]) <= 1e-8, line
    assert "contact forces are not determined" in shown


def test_the_examples_of_derivatives_reach_what_they_are_about():
    found = output_of(ROOT / "examples" / "identify.py").splitlines()
    mu, mass = (float(x) for x in re.search(r"mu = ([\d.]+), mass = ([\d.]+)", found[0]).groups())
    assert mu == pytest.approx(0.45, abs=1e-6)
    assert mass == pytest.approx(2.0, abs=1e-6)
    pushed = output_of(ROOT / "examples" / "push.py").splitlines()
    assert float(re.search(r"misses by (\S+) m", pushed[1])[1]) <= 2e-6
    assert float(re.search(r"moves at (\S+) m/s", pushed[1])[1]) <= 1e-12
    balanced = output_of(ROOT / "examples" / "balance.py").splitlines()
    assert "smooth" in balanced[0]
    assert float(re.search(r"at the end by (\S+) rad", balanced[1])[1]) <= 1e-4


def test_the_complementarity_example_shows_every_solver_and_a_proof():
    from stiction.solvers import COMPLEMENTARITY, Auto

    shown = output_of(ROOT / "examples" / "complementarity.py")
    hopeless = shown.partition("no solution exists")[2]
    assert "proves that there is no solution" in hopeless
    assert " SOLVED " not in hopeless
    for solver in (Auto, *COMPLEMENTARITY):
        assert re.search(rf"^  {solver.__name__}\b.* SOLVED ", shown, re.MULTILINE), solver.__name__


def test_every_citation_is_in_the_list():
    listed = set(re.findall(r"^`(\w+)`$", (ROOT / "docs" / "references.md").read_text(encoding="utf-8"), re.MULTILINE))
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py")]
    cited = {key for path in sources for key in CITATION.findall(path.read_text(encoding="utf-8"))}
    assert cited - listed == set()


NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_print_what_is_stored(notebook):
    """Every code cell, in order; `python tests/notebooks.py` renews what is stored."""
    runner = runpy.run_path(str(ROOT / "tests" / "notebooks.py"))
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    stored = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    assert notebook.stat().st_size < 150_000
    assert any(runner["texts"](outputs) for outputs in stored)
    for kept, made in zip(stored, runner["execute"](cells, notebook.name), strict=True):
        assert runner["texts"](kept) == runner["texts"](made)
        assert kinds(kept) == kinds(made)


def kinds(outputs: list[dict[str, object]]) -> list[list[str]]:
    """Which outputs a cell has, and as what each is stored."""
    return [sorted(output.get("data", {"text/plain": ""})) for output in outputs]

"""The benchmarks run, refuse unknown names, and renew the tables of a page."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, text=True, encoding="utf-8")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(RUN.parent))
    spec = importlib.util.spec_from_file_location("benchmarks_run", RUN)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pyramids"], "there is no suite 'pyramids'; did you mean 'pyramid'?"),
        (["zzz"], "there is no suite 'zzz'; there are lemke, contact, quadratic, block, warm, overhead, baraff, "),
        (["lemke", "--quik"], "there is no option '--quik'; did you mean '--quick'?"),
        (["lemke", "--jason=a.json"], "there is no option '--jason'; did you mean '--json'?"),
    ],
)
def test_names_that_are_not_known_are_told_in_one_line_with_the_nearest(words, message):
    ended = bench(*words)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"bench: {message}")
    assert ended.stderr.count("\n") == 1


def test_a_page_keeps_its_words_and_gets_new_tables(run):
    """Each with the machine it was measured on, so that pages may be renewed one by one."""
    import pages

    page = pages.renewed("# Kept\n\n<!-- tables -->\nstale\n", "a machine", ["old"])
    assert page == "# Kept\n\n<!-- tables -->\n\n*a machine.*\n\nold\n"
    again = pages.renewed(page, "another", ["new", "newer"])
    assert again == page.replace("a machine", "another").replace("old\n", "new\n\nnewer\n")
    assert pages.blank("block").startswith("# Block pivoting\n\n")
    assert pages.blank("block").endswith(pages.MARK)


def test_every_suite_has_a_page_in_the_documentation(run):
    import pages

    folder = RUN.parents[1] / "docs" / "performance"
    overview = (folder / "index.md").read_text(encoding="utf-8")
    navigation = (RUN.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    for suite in pages.TITLES:
        text = (folder / f"{suite}.md").read_text(encoding="utf-8")
        assert "|---|" in text.partition(pages.MARK)[2], f"{suite} has no table"
        assert f"]({suite}.md)" in overview
        assert f"performance/{suite}.md" in navigation


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    ended = bench("--into", str(tmp_path / "nowhere"))
    assert ended.returncode == 2
    assert "there is no such folder" in ended.stderr


def test_tables_are_kept_as_csv(run, tmp_path):
    from measure import Table

    (tmp_path / "block-3.csv").write_text("of an earlier run")
    (tmp_path / "warm-1.csv").write_text("of another suite")
    run.keep(tmp_path, "block", [Table("First", ("a", "b"), [("x, y", "1")], ["a note"]), Table("Second", ("a",), [])])
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["block-1.csv", "block-2.csv", "block.txt", "warm-1.csv"]
    assert (tmp_path / "block-1.csv").read_text().splitlines() == ["First", "a,b", '"x, y",1', "a note"]
    assert "numpy" in (tmp_path / "block.txt").read_text()


@pytest.mark.slow
def test_aims_tell_what_is_missed(tmp_path):
    ended = bench("call", "no-slip", "--quick", "--json", str(tmp_path / "numbers.json"))
    assert ended.returncode == 0, ended.stderr
    tables = json.loads((tmp_path / "numbers.json").read_text())["tables"]
    aims = [aim for table in tables for aim in table.get("aims", ())]
    assert len(aims) == 4
    for aim in aims:
        bound = float(aim["wanted"].split()[-1])
        assert aim["reached"] == (aim["measured"] >= bound if "least" in aim["wanted"] else aim["measured"] <= bound)
    assert ended.stdout.count("missed") == sum(not aim["reached"] for aim in aims)


@pytest.mark.slow
def test_tables_are_printed_and_renewed(tmp_path):
    page = tmp_path / "docs" / "block.md"
    page.parent.mkdir()
    page.write_text("# Kept\n\n<!-- tables -->\nstale\n", encoding="utf-8")
    ended = bench("block", "--quick", "--into", str(page.parent), "--json", str(tmp_path / "numbers.json"))
    assert ended.returncode == 0, ended.stderr
    assert "Cholesky factorizations" in ended.stdout
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Kept\n\n<!-- tables -->\n")
    assert "stale" not in text
    assert "| 400 |" in text
    assert json.loads((tmp_path / "numbers.json").read_text())["tables"][0]["suite"] == "block"

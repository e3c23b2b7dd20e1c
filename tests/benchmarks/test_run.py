"""The benchmarks run, refuse unknown names, and renew the tables of a page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, text=True, encoding="utf-8")


def test_an_unknown_suite_is_refused():
    ended = bench("lemkee")
    assert ended.returncode == 2
    assert "no suite 'lemkee'; there are lemke, contact, quadratic, block, warm, overhead" in ended.stderr


@pytest.mark.slow
def test_tables_are_printed_and_renewed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Kept\n\n<!-- tables -->\nstale\n", encoding="utf-8")
    ended = bench("block", "--quick", "--into", str(page), "--json", str(tmp_path / "numbers.json"))
    assert ended.returncode == 0, ended.stderr
    assert "Cholesky factorizations" in ended.stdout
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Kept\n\n<!-- tables -->\n")
    assert "stale" not in text
    assert "| 400 |" in text
    assert json.loads((tmp_path / "numbers.json").read_text())["tables"][0]["suite"] == "block"

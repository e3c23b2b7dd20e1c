"""Two states of the sources are stepped in turns, and the ratio of their times is what is printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def against(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "against.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.mark.slow
def test_the_same_sources_cost_the_same(tmp_path):
    src = str(ROOT / "src")
    ended = against(src, src, "--scene", "sliding-ball", "--turns", "20", "--json", str(tmp_path / "ratios.json"))
    assert (ended.returncode, ended.stderr) == (0, "")
    ratios = json.loads((tmp_path / "ratios.json").read_text())["sliding-ball"]
    assert len(ratios) == 20
    assert 0.5 < sorted(ratios)[10] < 2.0
    assert ended.stdout.splitlines()[1].split()[0] == "sliding-ball"
    slower = against(src, str(ROOT), "--quick", "--scene", "sliding-ball", "--most", "0.01")
    assert slower.returncode == 1
    assert "is more than 0.01" in slower.stdout


def test_what_holds_no_package_is_refused(tmp_path):
    for given in (str(tmp_path), "no-such-commit"):
        ended = against(given, "--scene", "sliding-ball")
        assert ended.returncode == 1
        assert f"{given} is neither a folder that holds the package stiction nor a commit" in ended.stderr
    assert "name the old sources" in against().stderr

"""`benchmarks/models.py` tells of every model what became of it, and renews the table of a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "benchmarks" / "models.py"
FALLS = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
  <body pos="0 0 .2"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""
SOFT = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
  <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="0 0 1" dim="2"/></worldbody></mujoco>"""
LACKS = '<mujoco><asset><mesh name="m" file="nowhere.obj"/></asset></mujoco>'


def test_a_line_for_each_model_and_a_page(tmp_path):
    for name, content in (("scene_falls", FALLS), ("scene_lacks", LACKS), ("scene_soft", SOFT), ("part", FALLS)):
        (tmp_path / f"{name}.xml").write_text(content)
    page = tmp_path / "page.md"
    page.write_text("# Kept\n\n<!-- table -->\n\nold\n")
    ran = subprocess.run(
        [sys.executable, str(MODELS), str(tmp_path), "--steps", "40", "--into", str(page)],
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = {line.split("|")[1].strip(): line for line in ran.stdout.splitlines() if line.startswith("| scene_")}
    assert list(rows) == ["scene_falls.xml", "scene_lacks.xml", "scene_soft.xml"]  # others are parts of scenes
    assert "| stepped |" in rows["scene_falls.xml"]
    assert "**not loaded**" in rows["scene_lacks.xml"]
    assert "**refused**" in rows["scene_soft.xml"]
    assert "cloth" in rows["scene_soft.xml"]
    assert "3 files: 1 made all of 40 steps, 1 refused, 0 failed, 0 took too long, 1 could not be loaded." in ran.stdout

    # The page keeps what comes before its mark.
    text = page.read_text()
    assert text.startswith("# Kept")
    assert "old" not in text
    assert "| scene_falls |" in text


def test_a_folder_that_is_not_there_is_named(tmp_path):
    ran = subprocess.run([sys.executable, str(MODELS), str(tmp_path / "none")], capture_output=True, text=True)
    assert ran.returncode == 2
    assert "there is no folder" in ran.stderr

"""Files appear whole or not at all, under a name that was nobody's; what cannot be written is told in one line."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import stiction as st
from stiction import disk
from stiction.disk import Part, check_archive, check_growth, written_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_has_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with written_whole(path, "test") as part:
        assert part.parent == tmp_path
        assert part.suffix == ".txt"
        assert part.name.startswith(".")
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]
    if os.name == "posix":
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask, "others may read it as they may read any file"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError("no"), OSError(28, "No space left on device")])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def written():
        with written_whole(path, "test", st.InvalidScene, "; do this") as part:
            part.write_text("half")
            raise error

    raised = st.InvalidScene if isinstance(error, OSError) else error if isinstance(error, type) else type(error)
    with pytest.raises(raised) as caught:
        written()
    if raised is st.InvalidScene:
        assert str(caught.value) == f"test: cannot write {path} (No space left on device); do this"
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_folders_and_missing_folders_are_told(tmp_path):
    for path, reason in ((tmp_path, "is a folder"), (tmp_path / "no" / "a", "No such file or directory")):
        with pytest.raises(st.InvalidProblem, match=rf"test: cannot write .* \({reason}\)$"):
            written_whole(path, "test").__enter__()
    assert names(tmp_path) == []


def test_what_somebody_laid_in_the_way_is_not_written_to(tmp_path, monkeypatch):
    """The name of the part cannot be guessed; and were it guessed, a link there would not be followed."""
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    monkeypatch.setattr(disk.secrets, "token_hex", lambda size: "guessed")
    (tmp_path / ".a-guessed.part.txt").symlink_to(victim)
    with pytest.raises(FileExistsError):
        Part(tmp_path / "a.txt")
    with pytest.raises(st.InvalidProblem, match=r"test: cannot write .*a\.txt \(File exists\)"):
        written_whole(tmp_path / "a.txt", "test").__enter__()
    assert victim.read_text() == "untouched"


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a.txt"
    with written_whole(path, "test") as one, written_whole(path, "test") as two:
        assert one != two
        one.write_text("one")
        two.write_text("two")
    assert path.read_text() == "one"
    assert names(tmp_path) == ["a.txt"]


def test_files_reach_the_disk_before_they_get_their_name(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(disk.os, "fsync", lambda number: done.append(("fsync", stat.S_ISDIR(os.fstat(number).st_mode))))
    replace = Path.replace
    monkeypatch.setattr(disk.Path, "replace", lambda self, to: done.append(("replace", to.name)) or replace(self, to))
    with written_whole(tmp_path / "a", "test") as part:
        part.write_text("x")
    assert done == [("fsync", False), ("replace", "a"), ("fsync", True)]


def test_archives_that_grow_beyond_proportion_are_refused():
    check_growth("a", 10, disk.ROOM)
    check_growth("a", disk.ROOM, disk.GROWTH * disk.ROOM)
    with pytest.raises(st.InvalidProblem, match=r"a takes 10 bytes and says that it holds .*: refused"):
        check_growth("a", 10, disk.ROOM + 1)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a", "b"):
            archive.writestr(name, bytes(disk.ROOM // 2 + 1))
    with (
        zipfile.ZipFile(packed) as archive,
        pytest.raises(st.InvalidProblem, match="refused, lest it fill the memory"),
    ):
        check_archive("bomb", archive, len(packed.getvalue()))


LIMITED = """
import resource, sys
import stiction.cli
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.exit(stiction.cli.main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes are of POSIX")
@pytest.mark.parametrize("output", [
    ["--log", "a.npz"], ["--log", "a.parquet"], ["--plot", "a.svg"], ["--record", "a.html"], ["--record", "a.mp4"],
    ["--record", "a.gif"],
])  # fmt: skip
def test_a_disk_that_is_full_is_told_in_one_line(tmp_path, output):
    """A limit on the size of files stands for a full disk: writing fails midway."""
    if output[1].endswith(("mp4", "gif")):
        gl = pytest.importorskip("stiction.viewer.gl")
        try:
            gl.platform()
        except st.MissingDependency:
            pytest.skip("neither EGL nor OSMesa is installed")
    old = tmp_path / output[1]
    old.write_bytes(b"old")
    # One step in free flight needs no kernels but those of a step.
    (tmp_path / "falling.xml").write_text(
        "<mujoco><worldbody><body pos='0 0 1'><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"
    )
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, "run", "falling.xml", "--seconds", "0.1", "--quiet", *output],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert run.returncode == 2, run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert f"cannot write {output[1]} (" in run.stderr
    assert old.read_bytes() == b"old"
    assert names(tmp_path) == sorted([output[1], "falling.xml"])


def test_bombs_among_problems_logs_and_simulations_are_refused_at_once(tmp_path):
    """6 MB that became 1.5 GB."""
    from stiction.stepping.log import Log

    path = tmp_path / "bomb.npz"
    zeros = np.broadcast_to(0.0, (1 << 12, 1 << 12))  # 128 MB
    np.savez_compressed(path, format="stiction problem", version=1, kind="LCP", M=zeros, q=zeros[0])
    assert path.stat().st_size < 1 << 18
    for opened, kind in (
        (st.load, st.InvalidProblem),
        (Log.load, st.InvalidProblem),
        (st.Simulation.restore, st.InvalidScene),
    ):
        with pytest.raises(kind, match="refused, lest it fill the memory") as caught:
            opened(path)
        assert "\n" not in str(caught.value)

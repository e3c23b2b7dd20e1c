"""Films and replays: as long as they should be, there as a whole or not at all."""

from __future__ import annotations

import re
import subprocess

import imageio_ffmpeg
import numpy as np
import pytest
from opengl import needs_opengl

import stiction as st
from stiction.viewer import gl
from stiction.viewer.notebook import show
from stiction.viewer.pictures import Pictures
from stiction.viewer.record import Recorder

SMALL = {"width": 160, "height": 120}


def simulation(name="box-on-plane") -> st.Simulation:
    return st.Simulation(st.Scene.named(name))


def record(path, seconds=1.0, what=None, **options) -> Recorder:
    made = what or simulation()
    with Recorder(made, path, **(SMALL | options)) as film:
        for _ in made.run(seconds):
            film.frame()
            assert not path.exists()
    return film


@needs_opengl
@pytest.mark.parametrize(("name", "fps", "speed", "pictures"), [
    ("a.mp4", 30, 1.0, 30), ("a.mp4", 25, 0.5, 50), ("a.gif", 20, 2.0, 10),
])  # fmt: skip
def test_a_film_is_as_long_as_it_should_be(tmp_path, name, fps, speed, pictures):
    film = record(tmp_path / name, fps=fps, speed=speed)
    assert film.frames == pictures
    counted, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / name))
    assert counted == pictures
    assert seconds == pytest.approx(1.0 / speed, abs=0.02)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@needs_opengl
def test_a_film_shows_what_moves(tmp_path):
    record(tmp_path / "a.mp4", what=simulation("block-feeder"), seconds=1.0)
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(tmp_path / "a.mp4")]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    pictures = np.frombuffer(raw, np.uint8).reshape(30, 120, 160, 3).astype(int)
    assert np.abs(pictures[-1] - pictures[0]).max() > 60


@needs_opengl
def test_pictures_show_forces_and_leave_the_simulation_alone():
    plain, drawn = simulation("block-stack"), simulation("block-stack")
    looks = [Pictures(drawn, 640, 480, forces=forces) for forces in (True, False)]
    for _ in range(5):
        plain.step()
        drawn.step()
        with_forces, without = (look.take().astype(int) for look in looks)
    blue = (with_forces[..., 2] > 150) & (with_forces[..., 0] < 60)
    assert blue.sum() > without[blue].shape[0] * 0.5 > 20
    assert np.abs(with_forces - without).max() > 60
    assert np.array_equal(plain.data.qpos, drawn.data.qpos)
    assert drawn.model.vis.global_.offwidth == plain.model.vis.global_.offwidth
    for look in looks:
        look.close()


@needs_opengl
def test_what_was_recorded_before_an_error_is_kept(tmp_path):
    made = simulation()
    film = Recorder(made, tmp_path / "a.mp4", **SMALL)

    def interrupted():
        with film:
            for k, _ in enumerate(made.run(1.0)):
                film.frame()
                if k == 49:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    counted, _ = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))
    assert counted == film.frames > 0


@needs_opengl
@pytest.mark.parametrize("name", ["a.mp4", "A.GIF"])
def test_a_film_has_at_least_one_picture(tmp_path, name):
    film = Recorder(simulation(), tmp_path / name, **SMALL)
    assert film.close() == film.close() == tmp_path / name
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / name))[0] == film.frames == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_replay_has_at_least_one_picture(tmp_path):
    """`--record a.html --seconds 0.01` said that it was writing, and wrote nothing."""
    film = record(tmp_path / "a.html", seconds=0.01)
    assert film.frames == 1
    assert "__VISER_EMBED_DATA__" in (tmp_path / "a.html").read_text(encoding="utf-8")


@needs_opengl
def test_how_ffmpeg_ends_is_looked_at(tmp_path, monkeypatch):
    """Disk full left a broken file, and was no error."""
    path = tmp_path / "a.mp4"
    path.write_bytes(b"old")
    made = simulation()

    def film(script: str) -> Recorder:
        program = tmp_path / "ffmpeg"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", lambda: str(program))
        return Recorder(made, path, **SMALL)

    failing = film("cat > /dev/null; echo 'trouble' >&2; echo 'more' >&2; exit 3")
    made.step()
    with pytest.raises(st.InvalidScene, match=r"record: cannot write .*a\.mp4 \(ffmpeg: trouble\)$"):
        failing.close()
    assert failing.close() is None
    silent = film("cat > /dev/null; exit 3")
    with pytest.raises(st.InvalidScene, match=r"\(ffmpeg ended with status 3\)$"):
        silent.close()
    full = film("cat > /dev/null; echo 'Error writing trailer: No space left on device' >&2; exit 0")
    with pytest.raises(st.InvalidScene, match=r"record: cannot write .*a\.mp4 \(No space left on device\)$"):
        full.close()
    # One that ends at once is told by the first picture that does not fit the pipe, and not a second time.
    early = film("echo 'No space left on device' >&2; exit 1")

    def run() -> None:
        for _ in range(1000):
            made.step()
            early.frame()

    with pytest.raises(st.InvalidScene, match=r"a\.mp4 \(No space left on device\)$"):
        run()
    assert early.close() is None
    assert path.read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.mp4", "ffmpeg"]


@needs_opengl
def test_an_older_film_is_replaced_when_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.gif"
    path.write_bytes(b"old")
    made = simulation()
    film = Recorder(made, path, **SMALL)
    for _ in made.run(0.2):
        film.frame()
    assert path.read_bytes() == b"old"
    assert film.close() == path
    assert path.read_bytes().startswith(b"GIF89a")


@needs_opengl
def test_an_unknown_camera_is_named(tmp_path):
    with pytest.raises(st.InvalidScene, match="there is no camera 'left'; there are none"):
        Recorder(simulation(), tmp_path / "a.mp4", camera="left")
    text = """<mujoco><worldbody><camera name="side" pos="0 -3 1"/>
        <body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""
    with pytest.raises(st.InvalidScene, match="there is no camera 'sied'; did you mean 'side'?"):
        Recorder(st.Simulation(st.Scene.from_xml(text)), tmp_path / "a.mp4", camera="sied")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "options", "message"), [
    ("a.avi", {}, r"must end in \.mp4, \.gif, \.html"),
    ("no/such/a.mp4", {}, "cannot write .*a.mp4 .No such file"),
    ("a.mp4", {"fps": 0}, "fps must be a positive number, got 0"),
    ("a.mp4", {"speed": float("nan")}, "speed must be a positive number, got nan"),
    ("a.mp4", {"width": 161}, "width must be an even number"),
    ("a.mp4", {"height": 0}, "height must be an even number"),
])  # fmt: skip
def test_bad_wishes_are_named_and_leave_nothing(tmp_path, name, options, message):
    with pytest.raises(st.InvalidScene, match=message):
        Recorder(simulation(), tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_film(tmp_path):
    (tmp_path / "a.mp4").mkdir()
    with pytest.raises(st.InvalidScene, match=r"cannot write .*a\.mp4 \(is a folder\)"):
        Recorder(simulation(), tmp_path / "a.mp4")


def test_a_replay_is_one_page_with_everything_in_it(tmp_path, capfd):
    film = record(tmp_path / "a.html", seconds=0.5)
    assert film.frames == 15
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "__VISER_EMBED_DATA__" in page
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=[\"']?https?:", page)
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert capfd.readouterr().out == ""


def test_a_notebook_shows_a_page_or_a_film(tmp_path):
    shown = show(simulation(), 0.1)._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    assert "&quot;" in shown
    (tmp_path / "a.mp4").write_bytes(b"abc")
    assert 'src="data:video/mp4;base64,YWJj"' in show(tmp_path / "a.mp4")._repr_html_()
    (tmp_path / "a.gif").write_bytes(b"abc")
    assert 'src="data:image/gif;base64,YWJj"' in show(str(tmp_path / "a.gif"))._repr_html_()
    with pytest.raises(st.InvalidScene, match="there is no file"):
        show(tmp_path / "b.mp4")
    with pytest.raises(st.InvalidScene, match="kind must be one of mp4, gif, html"):
        show(simulation(), kind="flip-book")


def test_egl_comes_before_osmesa_and_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("MUJOCO_GL", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(gl, "egl_works", lambda: True)
    assert gl.platform() == "egl"
    monkeypatch.setattr(gl, "egl_works", lambda: False)
    monkeypatch.setattr(gl, "library", lambda *names: object())
    assert gl.platform() == "osmesa"
    monkeypatch.setattr(gl, "library", lambda *names: None)
    with pytest.raises(st.MissingDependency, match="apt-get install libegl1"):
        gl.platform()
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    assert gl.platform() is None

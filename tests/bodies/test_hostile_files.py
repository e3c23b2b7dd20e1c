"""Scene files that are not what they should be are told in one line, at once."""

from __future__ import annotations

import time

import pytest

import stiction as st
from stiction.bodies.urdf import is_urdf

ROBOT = '<robot name="r"><link name="base"><inertial><mass value="1"/>' \
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'  # fmt: skip
BALL = "<mujoco{name}><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"


@pytest.mark.parametrize(
    ("text", "urdf"),
    [
        (ROBOT, True),
        ("\ufeff" + ROBOT, True),
        (" " * 10_000 + "\n<?xml version='1.0'?>\n<!-- a > b --> <!DOCTYPE robot>\n\t<!-- <mujoco> -->" + ROBOT, True),
        ("<robot>", True),
        ("<robot/>", True),
        ("<robots/>", False),
        ("<robot-arm/>", False),
        ("<mujoco><!-- <robot> --></mujoco>", False),
        ("<!-- <robot> -->" + BALL.format(name=""), False),
        ("<!-- <robot>", False),
        ("robot", False),
        ("<robot", False),
        ("", False),
    ],
)
def test_a_urdf_is_known_by_its_first_element(tmp_path, text, urdf):
    path = tmp_path / "scene.xml"
    path.write_text(text, encoding="utf-8")
    assert is_urdf(path) == urdf


@pytest.mark.parametrize(
    "text",
    ["<!--" * 200_000, "<!-- -->" * 200_000, "<?" * 200_000, "<!" * 200_000, " " * 2_000_000, "<!-->" * 100_000],
    ids=["comments", "closed", "declarations", "types", "blanks", "odd"],
)
def test_looking_at_a_file_takes_no_longer_than_reading_it(tmp_path, text):
    """80 kB of `<!--` took 54 s."""
    path = tmp_path / "scene.xml"
    path.write_text(text)
    begin = time.process_time()
    assert not is_urdf(path)
    assert time.process_time() - begin < 1.0
    path.write_text(text[:80_000])
    begin = time.process_time()
    with pytest.raises(st.InvalidScene, match=r"scene\.xml: ") as caught:
        st.Scene.load(path)
    assert time.process_time() - begin < 1.0
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
def test_elements_200_000_deep_are_refused(tmp_path, suffix):
    path = tmp_path / f"deep.{suffix}"
    tag = "robot" if suffix == "urdf" else "mujoco"
    path.write_text(f"<{tag}>" + "<body>" * 200_000 + "</body>" * 200_000 + f"</{tag}>")
    begin = time.process_time()
    with pytest.raises(st.InvalidScene, match=rf"deep\.{suffix}: ") as caught:
        st.Scene.load(path)
    assert "\n" not in str(caught.value)
    assert time.process_time() - begin < 1.0


def test_folders_heights_and_names_are_told(tmp_path):
    with pytest.raises(st.InvalidScene, match=r": a folder; name the .xml or .urdf file in it"):
        st.Scene.load(tmp_path)
    for height in (float("nan"), float("inf")):
        with pytest.raises(st.InvalidScene, match="scene: ground must be a height in m, got"):
            st.Scene.from_xml(BALL.format(name=""), ground=height)
    with pytest.raises(st.InvalidScene, match="there is no scene 'domino'; did you mean 'dominoes'\\?$"):
        st.Scene.named("domino")
    with pytest.raises(st.InvalidScene, match="there is no scene 'xyz'; there are ball-in-rim, "):
        st.Scene.named("xyz")


def test_models_without_a_name_are_called_by_their_file(tmp_path):
    (tmp_path / "ball.xml").write_text(BALL.format(name=""))
    (tmp_path / "other.xml").write_text(BALL.format(name=" model='named'"))
    assert st.Scene.load(tmp_path / "ball.xml").description == "ball"
    assert st.Scene.load(tmp_path / "other.xml").description == "named"
    assert st.Scene.from_xml(BALL.format(name="")).description == ""

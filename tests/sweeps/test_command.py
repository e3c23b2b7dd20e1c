"""`stiction sweep`: what it varies, measures, prints and leaves."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pyarrow.parquet as pq
import pytest

import stiction as st
from stiction.cli import sweep as command
from stiction.cli.main import main
from stiction.sweeps.fields import apply

# A block that a pad presses against a wall with 10 N: friction holds at most 2 mu 10 N of its weight m g.
PRESS = """<mujoco model="press"><option timestep="0.01"/><worldbody>
  <geom name="wall" type="box" size="0.01 0.1 0.1" pos="-0.06 0 0" friction="0.5"/>
  <body name="pad" pos="0.06 0 0"><joint name="slider" type="slide" axis="-1 0 0"/>
    <geom name="pad" type="box" size="0.01 0.1 0.1" mass="0.1" friction="0.5"/></body>
  <body name="block"><freejoint name="free"/><geom type="box" size="0.05 0.05 0.05" mass="1" friction="0.5"/></body>
</worldbody><actuator><motor name="push" joint="slider" ctrlrange="0 100" ctrllimited="true"/></actuator></mujoco>"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "press.xml").write_text(PRESS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_parameters_make_a_heat_map_and_the_physics_is_right(folder, capsys):
    varied = ["--vary", "geom.friction=0.1:1:4", "--vary", "block.mass=0.5,1,2"]
    options = ["--measure", "moved,residual", "--ctrl", "push=10", "--seconds", "0.1"]
    assert main(["sweep", "press.xml", *varied, *options, "--out", "grip"]) == 0
    told = capsys.readouterr()
    table = pq.read_table("grip/table.parquet")
    assert table.num_rows == 12
    for row in table.to_pylist():
        holds = 2.0 * row["geom.friction"] * 10.0 > row["block.mass"] * 9.81
        assert (row["moved"] < 1e-9) == holds, row
        assert row["residual"] <= 1e-8
    assert told.out.splitlines()[0].split() == ["geom.friction", "block.mass", "moved", "[m]", "residual"]
    assert len(told.out.splitlines()) == 13
    assert told.err == "stiction: grip/table.parquet and grip/sweep.svg\n"
    assert (folder / "grip" / "sweep.svg").read_text().count("<image") >= 2  # a heat map for each measure
    assert main(["sweep", "press.xml", *varied, *options, "--out", "grip", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_case_that_fails_is_a_row_and_the_exit_status_is_1(folder, capsys):
    """The bounds of an actuator are known only when the scene is there: the second case breaks them."""
    assert main(["sweep", "press.xml", "--vary", "push.ctrl=10,200", "--seconds", "0.02", "--out", "out"]) == 1
    told = capsys.readouterr()
    assert "1 of 2 cases failed; the first: InvalidScene: --ctrl push=200: push takes values from 0 to 100" in told.err
    assert pq.read_table("out/table.parquet")["slip"].to_pylist()[1] is None


def test_another_file_or_other_options_are_another_sweep(folder, capsys):
    line = ["sweep", "press.xml", "--vary", "push.ctrl=10", "--seconds", "0.02", "--out", "out", "--quiet"]
    assert main(line) == 0
    assert main([*line, "--law", "no-slip"]) == 2
    assert "the code of the function has changed since out was begun" in capsys.readouterr().err
    (folder / "press.xml").write_text(PRESS.replace("0.01 0.1 0.1", "0.01 0.1 0.2"))
    assert main(line) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vary", "x"], "--vary x: write NAME=FROM:TO:COUNT or NAME=VALUE,VALUE"),
        (["--vary", "geom.friction=1:2"], "--vary geom.friction=1:2: write geom.friction=FROM:TO:COUNT"),
        (["--vary", "geom.friction=0:1:0"], "the count must be from 1 to"),
        (["--vary", "geom.friction=0:1:1e9"], "the count must be from 1 to"),
        (["--vary", "pod.mass=1"], "--vary pod.mass: there is no body with a mass 'pod'; did you mean 'pad'?"),
        (["--vary", "mu=1"], "--vary mu: no parameter of this scene; write KIND.FIELD or NAME.FIELD"),
        (["--vary", "geom.frction=1"], "--vary geom.frction: there is no field 'frction'; did you mean 'friction'?"),
        (["--vary", "geom.friction=-1"], "--vary geom.friction: must be at least 0, got -1"),
        (["--vary", "geom.friction=much"], "--vary geom.friction: must be a number, got 'much'"),
        (["--vary", "pad.mass=0"], "--vary pad.mass: must be above 0, got 0"),
        (["--vary", "glider.damping=1"], "--vary glider.damping: there is no joint 'glider'; did you mean 'slider'?"),
        (["--vary", "roof.friction=1"], "--vary roof.friction: there is no geom 'roof'"),
        (["--vary", "option.gravty=1"], "--vary option.gravty: there is no option 'gravty'; did you mean 'gravity'?"),
        (["--vary", "option.timestep=0"], "--vary option.timestep: must be a time above 0, got 0"),
        (["--vary", "push.ctrl=200"], "--ctrl push=200: push takes values from 0 to 100"),
        (["--vary", "pad.mass=1", "--vary", "pad.mass=2"], "--vary: each name once"),
        (["--vary", "pad.mass=1", "--measure", "slipp"], "--measure: there is no measure 'slipp'; did you mean"),
        (["--vary", "pad.mass=1", "--measure", ","], "--measure: name at least one of slip, energy"),
        (["--vary", "pad.mass=1", "--on", "moon"], "on must be one of 'here', 'cores', 'ray', got 'moon'"),
        (["--vary", "pad.mass=1", "--seconds", "-1"], "--seconds must be a time of at least 0, got -1"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_written(options, message, folder, capsys):
    assert main(["sweep", "press.xml", *options, "--out", "out"]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert len(told.err.splitlines()) == 1
    assert told.out == ""
    assert not (folder / "out").exists()


def test_fields_are_set_where_the_model_has_them():
    model = mujoco.MjModel.from_xml_string(PRESS)
    inertia = np.array(model.body("block").inertia)
    apply(model, "block.mass", 3.0)
    assert model.body("block").mass == 3.0
    assert model.body("block").inertia == pytest.approx(3.0 * inertia)
    assert model.body_subtreemass[0] == pytest.approx(3.1)
    apply(model, "wall.friction", 0.7)
    apply(model, "block.friction", 0.8)  # the body, whose geom has no name
    assert model.geom_friction[:, 0].tolist() == [0.7, 0.5, 0.8]
    apply(model, "slider.damping", 2.0)
    assert model.dof_damping.tolist() == [2.0, *[0.0] * 6]
    apply(model, "joint.stiffness", 4.0)
    assert model.jnt_stiffness.tolist() == [4.0, 4.0]
    apply(model, "option.gravity", 1.62)
    apply(model, "option.timestep", 0.005)
    assert (model.opt.gravity.tolist(), model.opt.timestep) == ([0.0, 0.0, -1.62], 0.005)
    apply(model, "body.mass", 5.0)
    assert model.body_mass.tolist() == [0.0, 5.0, 5.0]


def test_measures_are_what_they_say(folder):
    """A block that falls freely for a tenth of a second beside a pad that does not push."""
    given = command.Given(
        "press.xml", 0.1, ("slip", "energy", "residual", "moved", "force", "gap", "contacts"),
        command.Stepping(), command.Driving(), command.Reading(), "",
    )  # fmt: skip
    found = command.case(given, **{"geom.friction": 0.0})
    fallen = 9.81 * 0.01 * 0.01 * 55  # of ten steps: the sum of 1 to 10
    assert found["moved"] == pytest.approx(fallen)
    assert found["slip"] == pytest.approx(0.0)  # nothing bears
    assert found["force"] == pytest.approx(0.0, abs=1e-9)
    assert found["gap"] == pytest.approx(0.0, abs=1e-12)
    assert found["contacts"] == 8
    kinetic, potential = 0.5 * (9.81 * 0.1) ** 2, -9.81 * fallen
    assert found["energy"] == pytest.approx(kinetic + potential)
    assert math.isfinite(found["residual"])
    with pytest.raises(st.InvalidScene, match="pod"):
        command.case(given, **{"pod.mass": 1.0})

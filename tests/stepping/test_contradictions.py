"""Overlaps and constraints that contradict each other make no step fail, add no energy, and are named."""

from __future__ import annotations

import re
import time

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.stepping import contradictions

WALLS = """<mujoco><option timestep="0.002"/><worldbody>
  <geom name="left" type="box" pos="-.199 0 .1" size=".1 .1 .1"/>
  <geom name="right" type="box" pos=".199 0 .1" size=".1 .1 .1"/>
  <body pos="0 0 .1"><joint name="slide" type="slide" axis="1 0 0"{limit}/>
    <geom name="block" type="box" size=".1 .1 .09" mass="1"/></body>
</worldbody></mujoco>"""
WELDED = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="wheel" pos="0 0 0.05"><freejoint/><geom name="wheel" size="0.1" mass="2"/></body>
</worldbody><equality><weld name="glue" body1="wheel"/></equality></mujoco>"""


def stepped(xml, count, start=None):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if start is not None:
        data.qpos[0] = start
    reports = [st.step(model, data) for _ in range(count)]
    return data, reports


# A four-bar linkage in a plane, closed twice, whose last axis is out of line by what five decimals leave.
LINKAGE = """<mujoco><option timestep="0.002" gravity="3 0 -9"/>
  <default><geom type="capsule" size=".02" contype="0"/></default><worldbody>
  <body><joint axis="0 1 0"/><geom fromto="0 0 0 0 0 .3"/>
    <body pos="0 0 .3"><joint axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/>
      <body name="end" pos=".4 0 0"><joint axis="0 1 {tilt}"/><geom fromto="0 0 0 0 0 -.3"/></body></body></body>
</worldbody><equality>
  <connect body1="end" anchor="0 0 -.3"/><connect body1="end" anchor="0 0 -.3"/>
</equality></mujoco>"""
# An arm of two links, all but stretched, whose hand is to follow a target out of its reach.
STRETCHED = """<mujoco><option timestep="0.002"/><worldbody><body name="target" mocap="true" pos=".6 0 0"/>
  <body><joint name="shoulder" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    <body pos=".3 0 0"><joint name="elbow" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body name="hand" pos=".3 0 0"><geom size=".04" contype="0"/></body></body></body>
</worldbody><equality><connect body1="hand" body2="target" anchor="0 0 0"/></equality></mujoco>"""


def test_a_slider_in_two_walls_goes_on():
    data, reports = stepped(WALLS.format(limit=""), 20)
    assert all(report.ok and report.certificate.residual <= 1e-8 for report in reports)
    assert reports[-1].contradictions == ("contact of geoms left and block", "contact of geoms right and block")
    assert np.abs(data.qvel).max() <= 1e-12
    assert abs(data.qpos[0]) <= 1e-12


def test_it_comes_to_rest_in_the_middle():
    data, reports = stepped(WALLS.format(limit=""), 100, start=0.0005)
    assert abs(data.qpos[0]) <= 1e-5
    assert np.abs(data.qvel).max() <= 1e-12
    assert all(report.kinetic <= 1e-20 for report in reports)


def test_a_limit_against_a_wall_is_named():
    xml = WALLS.format(limit=' limited="true" range="-1 -.0005"').replace(
        'name="right"', 'name="far" contype="0" conaffinity="0"'
    )
    _, reports = stepped(xml.replace('pos="-.199', 'pos="-.1985'), 3)
    assert all(report.ok for report in reports)
    assert set(reports[0].contradictions) == {"contact of geoms left and block", "limit of joint slide"}


def test_a_weld_against_the_floor_is_named_and_held():
    data, reports = stepped(WELDED, 50)
    assert all(report.ok for report in reports)
    assert set(reports[0].contradictions) == {"contact of geoms floor and wheel", "equality glue"}
    assert np.abs(data.qvel).max() <= 1e-9
    assert 0.05 <= data.qpos[2] <= 0.1  # between where the weld and where the floor want it


def test_what_agrees_is_taken_back_meanwhile():
    """Beside the wedged slider a ball lies too deep in the floor: it is lifted, as it would be alone."""
    ball = '<body pos="1 0 .09"><freejoint/><geom name="ball" size=".1" mass="1"/></body></worldbody>'
    floor = '<geom name="floor" type="plane" size="5 5 1"/><body pos="0 0 .1">'
    xml = WALLS.format(limit="").replace("</worldbody>", ball).replace('<body pos="0 0 .1">', floor)
    data, reports = stepped(xml, 100)
    assert all(report.ok for report in reports)
    assert data.qpos[3] == pytest.approx(0.1, abs=1e-4)


def test_what_is_not_solved_moves_nothing(monkeypatch):
    """The least squares are solved as any other problem is, and may fail as any other: then nothing is taken back."""
    solve = contradictions.solve
    monkeypatch.setattr(
        contradictions, "solve", lambda *given, **more: solve(*given, **more)._replace(status=st.Status.RAY)
    )
    monkeypatch.setattr(contradictions, "natural_map", lambda *given: (np.inf,))
    data, reports = stepped(WALLS.format(limit=""), 3, start=0.0005)
    assert data.qpos[0] == 0.0005
    assert all(len(report.contradictions) == 2 for report in reports)


def test_no_contradiction_is_told_where_there_is_none():
    _, reports = stepped(WALLS.format(limit="").replace('pos=".199', 'pos=".25'), 5)
    assert all(report.contradictions == () for report in reports)


def test_a_weld_to_a_moving_target_follows_as_its_author_tuned_it():
    """A free body is drawn to a mocap target 0.3 m away, as MuJoCo does softly: not at 0.1 m/s."""
    xml = """<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody>
      <body name="target" mocap="true" pos="0.3 0 1"/>
      <body name="hand" pos="0 0 1"><freejoint/><geom size=".05" mass="1"/></body></worldbody>
      <equality><weld body1="target" body2="hand" solref="0.02 1" solimp="0.999 0.9999 0.001"
        relpose="0 0 0 1 0 0 0"/></equality></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    soft, hard = mujoco.MjData(model), mujoco.MjData(model)
    for _ in range(300):
        mujoco.mj_step(model, soft)
        st.step(model, hard)
        assert hard.qpos[0] == pytest.approx(soft.qpos[0], abs=0.01)
    assert hard.qpos[0] == pytest.approx(0.3, abs=2e-3)
    slow = mujoco.MjData(model)
    sim = st.Simulation(st.Scene.of(model), stepper=st.TimeStepping(recovery=0.1))
    sim.data.mocap_pos[:] = slow.mocap_pos
    for _ in sim.run(0.1):
        pass
    assert sim.data.qpos[0] == pytest.approx(0.01, abs=1e-6)  # 0.1 m/s, as it is asked to


def test_a_stiff_reference_does_not_overshoot():
    xml = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>
      <body><joint name="a" type="slide"/><geom size=".1"/></body>
      </worldbody><equality><joint joint1="a" polycoef="1 0 0 0 0" solref="-1e9 -1e6"/></equality></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for _ in range(5):
        st.step(model, data)
        assert data.qpos[0] == pytest.approx(1.0, abs=1e-9)


def test_an_infinite_recovery_takes_errors_back_at_once():
    sim = st.Simulation(st.Scene.from_xml(WALLS.format(limit="").replace('pos=".199', 'pos=".25')),
                        stepper=st.TimeStepping(recovery=np.inf))  # fmt: skip
    sim.step()
    assert sim.data.qpos[0] == pytest.approx(0.001, abs=1e-9)


def test_contradicting_steps_are_not_tried_again_and_again():
    """What has contradicted itself is tried after 1, 3, 7 ... steps; the others solve what is left at once."""
    _, reports = stepped(WALLS.format(limit=""), 64, start=0.0005)
    tried = [k for k, report in enumerate(reports) if report.solution.iterations > 3]
    assert len(tried) <= 7
    assert all("apart from velocities" in report.solution.trace[-1] for report in reports)


def test_contradicting_steps_are_the_same_in_rollouts_and_after_saving(tmp_path):
    model = mujoco.MjModel.from_xml_string(WALLS.format(limit=""))
    data = mujoco.MjData(model)
    data.qpos[0] = 0.0005
    sim = st.Simulation(st.Scene.of(model))
    sim.data.qpos[0] = 0.0005
    rolled = st.rollout(model, mujoco.MjData(model), np.array([[0.0, 0.0005, 0.0]]), nstep=20).state
    for k in range(20):
        st.step(model, data)
        if k == 10:
            sim.save(tmp_path / "saved.npz")
            sim = st.Simulation.restore(tmp_path / "saved.npz")
        sim.step()
        assert data.qpos[0] == rolled[0, k, 1] == sim.data.qpos[0]


@pytest.mark.parametrize("tilt", [0.0, 1e-7, 1e-5, 3e-5, 8e-5])
def test_loops_that_the_decimals_of_a_model_close_take_no_enormous_forces(tilt):
    data, reports = stepped(LINKAGE.format(tilt=tilt), 200)
    assert all(report.ok for report in reports)
    assert np.abs(data.qvel).max() > 0.1  # it swings
    assert max(np.abs(report.solution.joint_impulse).max() for report in reports) <= 1.0
    assert np.abs(data.efc_pos[: data.ne]).max() <= 1e-4


@pytest.mark.parametrize("bend", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("away", [(0.02, 0.0, 0.0), (0.02, 0.0, 0.02), (-0.01, 0.0, 0.0)])
def test_what_is_out_of_reach_throws_nothing(bend, away):
    model = mujoco.MjModel.from_xml_string(STRETCHED)
    soft, hard = mujoco.MjData(model), mujoco.MjData(model)
    for data in (soft, hard):
        data.qpos[:] = -0.5 * bend, bend
        data.mocap_pos[0] += away
    fastest = np.zeros(2)
    for _ in range(200):
        mujoco.mj_step(model, soft)
        assert st.step(model, hard).ok
        fastest = np.maximum(fastest, [np.abs(soft.qvel).max(), np.abs(hard.qvel).max()])
    assert fastest[1] <= 10.0 * fastest[0]


@pytest.mark.parametrize("bend", [0.0, 0.05])
@pytest.mark.parametrize("away", [(0.001, 0.0, 0.02), (0.001, 0.0, -0.008), (0.0, 0.0, 0.01)])
def test_what_is_out_of_reach_is_approached_as_far_as_the_arm_reaches(bend, away):
    """Along a stretched arm nothing can be put right, across it all: in the end the hand is on the line to its target.

    An arm of 0.6 m that turns about the origin is |target| - 0.6 away then.
    """
    model = mujoco.MjModel.from_xml_string(STRETCHED)
    data = mujoco.MjData(model)
    data.qpos[:] = -0.5 * bend, bend
    data.mocap_pos[0] += away
    for _ in range(600):
        report = st.step(model, data)
    assert report.contradictions == ("equality 0",)
    assert np.abs(data.qvel).max() <= 1e-12
    assert np.linalg.norm(data.efc_pos[: data.ne]) <= 1.01 * (np.linalg.norm(data.mocap_pos[0]) - 0.6)


WEDGE = """<mujoco><option timestep="0.002"/><default><geom friction="1.5 .01 .001" condim="{condim}"/></default>
<worldbody>
<geom type="box" size=".02 2 .3" pos="-.1 0 .2" euler="0 -20 0" surfacevel="0 0 {down} 0 0 0"/>
<geom type="box" size=".02 2 .3" pos=".1 0 .2" euler="0 20 0" surfacevel="0 0 {down} 0 0 0"/>
<body pos="0 0 .16">{joint}{spheres}</body></worldbody></mujoco>"""


def wedged(count, condim, down, joint="<freejoint/>"):
    """Spheres on one body between two belts at 20° to the vertical, which go down at a speed."""
    spheres = "".join(f'<geom type="sphere" size=".06" mass="1" pos="0 {0.13 * k:.2f} 0"/>' for k in range(count))
    return mujoco.MjModel.from_xml_string(WEDGE.format(condim=condim, down=-down, joint=joint, spheres=spheres))


@pytest.mark.parametrize(("count", "condim"), [(1, 3), (4, 3), (16, 3), (2, 6), (8, 6)])
def test_a_step_without_solution_ends_within_two_hundred_steps(count, condim):
    """Belts draw a body into a wedge: friction mu p exceeds p tan 20°, so that every load asks for a larger one.

    Nothing solves that. At rest the same scene makes the steps that the time is compared to.
    """
    joint = '<joint type="slide" axis="0 0 1"/>' if count == 1 else "<freejoint/>"
    model = wedged(count, condim, 0.0, joint)
    data, seconds = mujoco.MjData(model), []
    for _ in range(200):
        begin = time.process_time()
        assert st.step(model, data).ok
        seconds.append(time.process_time() - begin)

    # The belts begin to move.
    jams, took, ends = wedged(count, condim, 0.3, joint), [], set()
    tried = mujoco.MjData(jams)
    for _ in range(5):
        tried.qpos[:], tried.qvel[:] = data.qpos, 0.0
        begin = time.process_time()
        with pytest.raises(st.SolveFailed) as raised:
            st.step(jams, tried)
        took.append(time.process_time() - begin)
        ends.add(raised.value.solution.trace)
        assert np.array_equal(tried.qpos, data.qpos)
    assert min(took) <= 200.0 * np.median(seconds)

    # It is work that is counted, not time: all attempts end alike, and say so.
    assert len(ends) == 1
    assert re.fullmatch(r"no more is tried after \d+ iterations: \d+ were allowed", ends.pop()[-1])

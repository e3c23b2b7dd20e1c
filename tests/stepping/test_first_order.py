"""Worlds in which force is mass times velocity: what is pushed moves, stops with the push, sticks, and jams."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.errors import InvalidProblem

MU, MASS, G = 0.5, 2.0, 9.81


def block(friction=MU, height=0.1, **options):
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody>
          <geom type="plane" size="1 1 1" friction="{friction}"/>
          <body name="block" pos="0 0 {height}"><freejoint/>
            <geom type="box" size=".3 .2 .1" mass="{MASS}" friction="{friction}"/></body>
        </worldbody></mujoco>"""
    )
    return st.Simulation(st.Scene.of(model), stepper=st.FirstOrder(**options))


@pytest.mark.parametrize("time", [1.0, 0.02])
@pytest.mark.parametrize("push", [0.5, 0.99, 1.01, 3.0])
def test_a_pushed_block_moves_with_what_friction_leaves_or_not_at_all(push, time):
    simulation = block(time=time)
    force = push * MU * MASS * G
    simulation.data.xfrc_applied[1, 0] = force
    simulation.data.qvel[0] = 7.0  # of no effect: nothing is remembered
    report = simulation.step()
    expected = time * max(force - MU * MASS * G, 0.0) / MASS
    assert abs(simulation.data.qvel[0] - expected) < 1e-7
    assert abs(simulation.data.qpos[0] - 0.002 * expected) < 1e-9
    assert report.ok
    # Forces are in newtons wherever MuJoCo keeps them: the floor carries the weight and bears friction.
    assert np.abs(simulation.data.qfrc_constraint[:3] - [-min(force, MU * MASS * G), 0.0, MASS * G]).max() < 1e-5
    assert abs(simulation.net_force("block")[2] - MASS * G) < 1e-5


def test_motion_stops_with_the_force():
    simulation = block()
    simulation.data.xfrc_applied[1, 0] = 20.0
    for _ in range(5):
        simulation.step()
    assert simulation.data.qvel[0] > 1.0
    simulation.data.xfrc_applied[1, 0] = 0.0
    simulation.step()
    assert np.abs(simulation.data.qvel).max() < 1e-9


def test_a_falling_block_lands_without_impact():
    """It falls at τ g from the first step on, and is found before it passes through the floor."""
    simulation = block(height=0.15)
    simulation.step()
    assert abs(simulation.data.qvel[2] + G) < 1e-9
    for _ in range(5):
        simulation.step()
    assert abs(simulation.data.qpos[2] - 0.1) < 1e-9
    assert np.abs(simulation.data.qvel).max() < 1e-7


DEPTH, WIDE = 0.2, 0.05  # of the hole that the peg is in, and half the peg's width


def peg(offset, push):
    """A peg without clearance between two walls, pushed down beside its axis."""
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option gravity="0 0 0"/>
        <default><geom friction="{MU}" condim="3"/></default>
        <worldbody>
          <geom type="box" size=".1 .1 .5" pos="{WIDE + 0.1} 0 -.5"/>
          <geom type="box" size=".1 .1 .5" pos="{-WIDE - 0.1} 0 -.5"/>
          <body name="peg" pos="0 0 0">
            <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 1 0"/>
            <geom type="box" size="{WIDE} .02 {DEPTH}" mass="1"/>
          </body>
        </worldbody></mujoco>"""
    )
    simulation = st.Simulation(st.Scene.of(model), stepper=st.FirstOrder())
    simulation.data.qfrc_applied[:] = 0.0, -push, offset * push
    return simulation


@pytest.mark.parametrize("push", [1.0, 50.0])
def test_a_peg_jams_and_unjams_at_the_computed_offset(push):
    """Opposite corners bear N = F e / depth each, with friction 2 mu N against F: it moves while e < depth / 2 mu."""
    limit = DEPTH / (2.0 * MU)
    for part in (0.3, 0.9, 0.99):
        simulation = peg(part * limit, push)
        simulation.step()
        assert abs(simulation.data.qvel[1] + push * (1.0 - part)) < 1e-6 * push
    for part in (1.01, 2.0):
        simulation = peg(part * limit, push)
        simulation.step()
        assert np.abs(simulation.data.qvel).max() < 1e-9 * push
        # Pushed on its axis it moves again.
        simulation.data.qfrc_applied[2] = 0.0
        simulation.step()
        assert abs(simulation.data.qvel[1] + push) < 1e-6 * push


def test_an_equality_holds_and_dampers_resist():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option gravity="0 0 0"/><worldbody>
          <body><joint name="a" type="slide" axis="1 0 0" damping="3"/><geom size=".1" mass="1"/></body>
          <body pos="0 1 0"><joint name="b" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body>
        </worldbody><equality><joint joint1="a" joint2="b"/></equality></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qfrc_applied[0] = 12.0
    for _ in range(3):
        st.step(model, data, stepper=st.FirstOrder())
    assert np.abs(data.qvel - 12.0 / (1.0 + 2.0 + 3.0)).max() < 1e-9
    assert abs(data.qpos[0] - data.qpos[1]) < 1e-12


def test_a_refused_step_moves_nothing():
    simulation = block()
    simulation.data.qvel[0] = 1.0
    simulation.data.qfrc_applied[0] = np.nan
    with pytest.raises(st.InvalidScene):
        simulation.step()
    assert simulation.data.qvel[0] == 1.0
    assert simulation.time == 0.0


def test_saved_copied_and_known_by_its_word(tmp_path):
    from stiction.cli import words

    simulation = block(time=0.5)
    simulation.data.xfrc_applied[1, 0] = 20.0
    simulation.step()
    simulation.save(tmp_path / "kept.npz")
    again, copied = st.Simulation.restore(tmp_path / "kept.npz"), simulation.copy()
    for each in (simulation, again, copied):
        each.step()
    assert again.stepper == simulation.stepper
    assert np.array_equal(again.data.qpos, simulation.data.qpos)
    assert np.array_equal(copied.data.qpos, simulation.data.qpos)
    assert words.stepper("first-order:time=0.5", None) == simulation.stepper
    with pytest.raises(InvalidProblem, match="FirstOrder: time must be above zero"):
        st.FirstOrder(time=0.0)

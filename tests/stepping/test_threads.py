"""Threads: two MjData of one model give the bits of one after the other; one data in two threads raises."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.errors import StictionError

BOXES = "".join(
    f'<body pos="{0.01 * i} 0 {0.1 + 0.21 * i}"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body>'
    for i in range(3)
)
XML = f'<mujoco><worldbody><geom type="plane" size="3 3 1"/>{BOXES}</worldbody></mujoco>'


def course(model, speed: float, steps: int = 150):
    data = mujoco.MjData(model)
    data.qvel[0] = speed
    for _ in range(steps):
        st.step(model, data)
    return data.qpos.copy(), data.qvel.copy(), data.sensordata.copy()


def test_two_data_of_one_model_in_two_threads_give_the_bits_of_one_after_the_other():
    model = mujoco.MjModel.from_xml_string(XML)
    speeds = (0.0, 3.0, 0.5, 20.0)
    apart = [course(model, speed) for speed in speeds]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda speed: course(model, speed), speeds))
    for one, two in zip(apart, together, strict=True):
        for a, b in zip(one, two, strict=True):
            assert np.array_equal(a, b)


def test_a_simulation_stepped_by_two_threads_at_once_raises():
    scene = st.Scene.of(mujoco.MjModel.from_xml_string(XML))
    inside, go_on = threading.Event(), threading.Event()

    def control(model, data):
        inside.set()
        assert go_on.wait(30.0)

    object.__setattr__(scene, "control", control)
    sim = st.Simulation(scene)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(sim.step)
        assert inside.wait(30.0)
        for act in (sim.step, sim.reset, lambda: st.step(sim.model, sim.data)):
            with pytest.raises(StictionError, match="being stepped already.*own Simulation or MjData"):
                act()
        go_on.set()
        first.result()
    sim.step()
    assert sim.time == pytest.approx(2 * sim.model.opt.timestep)


def test_one_data_in_many_threads_never_crashes():
    """Segmentation fault before. Every step is made whole or refused."""
    model = mujoco.MjModel.from_xml_string(XML)
    data, made, refused = mujoco.MjData(model), [], []

    def run(_):
        for _ in range(100):
            try:
                st.step(model, data)
                made.append(1)
            except StictionError:
                refused.append(1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert len(made) + len(refused) == 400
    assert data.time == pytest.approx(len(made) * model.opt.timestep)
    other = mujoco.MjData(model)
    for _ in made:
        st.step(model, other)
    assert np.array_equal(data.qpos, other.qpos)


def test_a_step_within_a_step_is_refused():
    scene = st.Scene.of(mujoco.MjModel.from_xml_string(XML))
    object.__setattr__(scene, "control", lambda model, data: sim.step())
    sim = st.Simulation(scene)
    with pytest.raises(StictionError, match="being stepped already"):
        sim.step()

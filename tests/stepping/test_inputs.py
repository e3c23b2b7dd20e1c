"""What is no number, or beyond bounds, never enters a step: it is named, and nothing moves."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.bodies.state import state
from stiction.errors import InvalidScene

XML = """<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="3 3 1"/>
<body name="box" pos="0 0 {z}"><freejoint/><geom type="{shape}" size=".1 .1 .1" mass="2"/></body>
<body pos="1 0 1"><joint name="j"/><geom size=".1" pos=".3 0 0"/></body>
<body mocap="true" pos="0 2 1"><geom size=".1" contype="0" conaffinity="0"/></body></worldbody>
<actuator><motor joint="j"/><general joint="j" dyntype="integrator"/></actuator></mujoco>"""
STEPPERS = [st.TimeStepping(), st.EventDriven()]
BAD = [
    ("data", "qpos", 2, np.nan, r"data\.qpos\[2\] = nan must be a number of at most 1e\+10"),
    ("data", "qpos", 0, np.inf, r"data\.qpos\[0\] = inf"),
    ("data", "qpos", 0, 1e11, r"data\.qpos\[0\] = 100000000000\.0"),
    ("data", "qvel", 6, np.nan, r"data\.qvel\[6\] = nan"),
    ("data", "qvel", 1, -np.inf, r"data\.qvel\[1\] = -inf"),
    ("data", "qvel", 1, -2e10, r"data\.qvel\[1\] = -20000000000\.0"),
    ("data", "ctrl", 1, np.nan, r"data\.ctrl\[1\] = nan"),
    ("data", "ctrl", 0, np.inf, r"data\.ctrl\[0\] = inf"),
    ("data", "ctrl", 0, 1e12, r"data\.ctrl\[0\] = 1000000000000\.0"),
    ("data", "act", 0, np.nan, r"data\.act\[0\] = nan"),
    ("data", "qfrc_applied", 0, np.nan, r"data\.qfrc_applied\[0\] = nan must be a finite number"),
    ("data", "xfrc_applied", (1, 2), np.nan, r"data\.xfrc_applied\[1, 2\] = nan"),
    ("data", "xfrc_applied", (2, 5), np.inf, r"data\.xfrc_applied\[2, 5\] = inf"),
    ("data", "mocap_pos", (0, 1), np.nan, r"data\.mocap_pos\[0, 1\] = nan"),
    ("data", "mocap_quat", (0, 3), np.nan, r"data\.mocap_quat\[0, 3\] = nan"),
    ("model", "body_mass", 1, np.nan, r"model\.body_mass\[1\] = nan must be a number that is not negative"),
    ("model", "body_mass", 1, -1.0, r"model\.body_mass\[1\] = -1\.0"),
    ("model", "body_inertia", (1, 2), np.inf, r"model\.body_inertia\[1, 2\] = inf"),
    ("model.opt", "gravity", 2, np.nan, r"model\.opt\.gravity\[2\] = nan"),
]


def made(z: float = 0.1, shape: str = "box"):
    model = mujoco.MjModel.from_xml_string(XML.format(z=z, shape=shape))
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize(("owner", "field", "index", "value", "message"), BAD)
def test_bad_numbers_are_named_and_nothing_moves(stepper, owner, field, index, value, message):
    """In free flight and at rest; MuJoCo resets the state or the controls, and without contact NaN was certified."""
    for z in (0.1, 5.0):
        model, data = made(z)
        st.step(model, data, stepper=stepper)
        good = state(model, data)
        array = getattr({"data": data, "model": model, "model.opt": model.opt}[owner], field)
        kept = array[index]
        array[index] = value
        before = state(model, data)
        with pytest.raises(InvalidScene, match=message):
            st.step(model, data, stepper=stepper)
        assert np.array_equal(state(model, data), before, equal_nan=True)
        array[index] = kept
        assert np.array_equal(state(model, data), good)
        st.step(model, data, stepper=stepper)
        assert np.isfinite(data.qpos).all()
        assert data.time == pytest.approx(0.02)


@pytest.mark.parametrize("value", [0.0, -0.01, np.nan, np.inf])
def test_the_timestep_must_be_a_time(value):
    model, data = made()
    model.opt.timestep = value
    with pytest.raises(InvalidScene, match=r"model\.opt\.timestep = .* must be a time above zero"):
        st.step(model, data)
    data.time, model.opt.timestep = value, 0.01
    if not np.isfinite(value):
        with pytest.raises(InvalidScene, match=r"data\.time = "):
            st.step(model, data)


def test_shapes_that_are_mended_are_checked_too():
    model, data = made(shape="cylinder")
    st.step(model, data)
    data.qvel[0] = np.nan
    with pytest.raises(InvalidScene, match=r"data\.qvel\[0\]"):
        st.step(model, data)


def test_a_control_is_checked_after_it_is_set():
    scene = st.Scene.of(made()[0])

    def control(model, data):
        data.ctrl[0] = np.nan if data.time > 0.015 else 0.0

    object.__setattr__(scene, "control", control)
    sim = st.Simulation(scene)
    sim.step()
    sim.step()
    with pytest.raises(InvalidScene, match=r"data\.ctrl\[0\] = nan"):
        sim.step()
    assert sim.time == pytest.approx(0.02)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_callback_that_sets_a_bad_control_is_told(stepper):
    """MuJoCo sets all controls to zero then."""
    model, data = made()

    def spoil(_, of):
        of.ctrl[1] = np.nan

    mujoco.set_mjcb_control(spoil)
    try:
        with pytest.raises(InvalidScene, match=r"data\.ctrl\[1\] = nan .* mjcb_control has set it"):
            st.step(model, data, stepper=stepper)
    finally:
        mujoco.set_mjcb_control(None)
    assert data.time == 0.0


@pytest.mark.parametrize("stepper", STEPPERS)
def test_forces_of_the_model_that_are_no_number_are_told(stepper):
    model, data = made(5.0)
    before = state(model, data)
    model.dof_damping[6] = np.nan
    with pytest.raises(InvalidScene, match=r"data\.qacc_smooth\[\d\] = nan must be finite"):
        st.step(model, data, stepper=stepper)
    assert np.array_equal(state(model, data), before)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_what_would_leave_the_bounds_does_not_enter_the_state(stepper):
    model, data = made(5.0)
    for force, speed, named in ((1e300, 0.0, r"qacc_smooth\[2\]"), (4e10, 9.9e9, r"qvel\[2\]|qpos\[2\]")):
        data.qfrc_applied[2], data.qvel[2] = force, speed  # upwards, where nothing is met
        before = state(model, data)
        with pytest.raises(InvalidScene, match=named):
            st.step(model, data, stepper=stepper)
        assert np.array_equal(state(model, data), before)


def test_a_data_that_others_left_with_bad_places_is_stepped_from_its_state():
    """After a diverged `mj_step` places of geoms are NaN; a new state in qpos and qvel must not lose its contacts."""
    model, data = made()
    st.step(model, data)
    data.geom_xpos[:] = data.subtree_com[:] = data.cdof[:] = data.qacc[:] = np.nan
    for _ in range(5):
        st.step(model, data)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-9)
    assert np.isfinite(data.qpos).all()

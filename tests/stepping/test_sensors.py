"""Sensors and forces of bodies are those of the step just made: against physics by hand, and beside `mj_step`."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st

IMU = """<sensor><accelerometer site="imu"/><gyro site="imu"/><velocimeter site="imu"/><touch site="sole"/>
<framelinacc objtype="body" objname="box"/><frameangacc objtype="body" objname="box"/>
<subtreelinvel body="box"/><contact geom1="box" data="found force" num="1" reduce="netforce"/></sensor>"""
PLACES = {"accelerometer": 0, "gyro": 3, "velocimeter": 6, "touch": 9, "linacc": 10, "subtree": 16, "contact": 19}
STEPPERS = [st.TimeStepping(), st.EventDriven()]


def boxed(z: float, option: str = "", shape: str = "box", sensors: str = IMU):
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep=".005" {option}/><worldbody>
    <geom type="plane" size="3 3 1"/><body name="box" pos="0 0 {z}"><freejoint/>
    <geom name="box" type="{shape}" size=".1 .1 .1" mass="2"/>
    <site name="imu"/><site name="sole" type="box" size=".2 .2 .2"/></body></worldbody>{sensors}</mujoco>""")
    return model, mujoco.MjData(model)


def read(data, name: str, size: int = 3):
    return data.sensordata[PLACES[name] : PLACES[name] + size]


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("shape", ["box", "cylinder"])
@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_box_that_falls_and_comes_to_rest(stepper, shape, cone):
    """Frozen at the first step before: the accelerometer read 0, and cfrc_ext was 0, for ever."""
    model, data = boxed(0.2, f'cone="{cone}"', shape)
    st.step(model, data, stepper=stepper)
    np.testing.assert_allclose(read(data, "accelerometer"), 0.0, atol=1e-11)
    np.testing.assert_allclose(read(data, "linacc"), 0.0, atol=1e-11)  # MuJoCo counts gravity in
    np.testing.assert_allclose(data.cfrc_ext[1], 0.0, atol=1e-11)
    assert read(data, "touch", 1)[0] == 0.0
    for _ in range(80):
        st.step(model, data, stepper=stepper)
    weight = 2.0 * 9.81
    np.testing.assert_allclose(read(data, "accelerometer"), [0.0, 0.0, 9.81], atol=1e-6)
    np.testing.assert_allclose(read(data, "linacc"), [0.0, 0.0, 9.81], atol=1e-6)
    np.testing.assert_allclose(data.cfrc_ext[1], [0.0, 0.0, 0.0, 0.0, 0.0, weight], atol=1e-6)
    np.testing.assert_allclose(data.cacc[1], [0.0, 0.0, 0.0, 0.0, 0.0, 9.81], atol=1e-6)
    np.testing.assert_allclose(data.qfrc_constraint[:3], [0.0, 0.0, weight], atol=1e-6)
    assert read(data, "touch", 1)[0] == pytest.approx(weight, abs=1e-6)
    found, *force = read(data, "contact", 4)
    assert found > 0.0
    assert np.abs(force).max() == pytest.approx(weight, abs=1e-6)


def test_the_impact_is_the_change_of_velocity_over_one_step():
    model, data = boxed(0.2)
    before = 0.0
    while data.qvel[2] <= before:
        before = data.qvel[2]
        st.step(model, data)
    assert read(data, "accelerometer")[2] == pytest.approx((data.qvel[2] - before) / 0.005 + 9.81, rel=1e-9)


def test_forces_of_bodies_need_no_sensor():
    model, data = boxed(0.1, sensors="")
    st.step(model, data)
    np.testing.assert_allclose(data.cfrc_ext[1], [0.0, 0.0, 0.0, 0.0, 0.0, 19.62], atol=1e-9)
    again = data.cfrc_ext.copy()
    mujoco.mj_rnePostConstraint(model, data)  # with the user's model, whose cone is pyramidal
    np.testing.assert_allclose(data.cfrc_ext, again, atol=1e-12)


def test_a_force_sensor_in_a_stack_carries_what_is_above():
    """A table on a welded leg, 3 kg, and a box of 2 kg on it: the sensor below the leg feels both; a torque if off."""
    model = mujoco.MjModel.from_xml_string("""<mujoco><option timestep=".005"/><worldbody>
    <body name="table" pos="0 0 .5"><geom type="box" size=".5 .5 .05" mass="3"/>
    <site name="foot" pos="0 0 -.05"/></body>
    <body pos=".2 0 .65"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body></worldbody>
    <sensor><force site="foot"/><torque site="foot"/></sensor></mujoco>""")
    data = mujoco.MjData(model)
    for _ in range(20):
        st.step(model, data)
    np.testing.assert_allclose(data.sensordata[:3], [0.0, 0.0, 5.0 * 9.81], atol=1e-8)
    np.testing.assert_allclose(data.sensordata[3:], [0.0, -0.2 * 2.0 * 9.81, 0.0], atol=1e-8)
    assert data.cfrc_int[1, 5] == pytest.approx(5.0 * 9.81, abs=1e-8)


@pytest.mark.parametrize("shape", ["box", "cylinder"])
def test_in_free_flight_all_sensors_are_those_of_mj_step(shape):
    model, data = boxed(3.0, shape=shape)
    other = mujoco.MjData(model)
    for each in (data, other):
        each.qvel[:] = 1.0, -2.0, 3.0, 0.5, -0.3, 0.2
        each.xfrc_applied[1] = 1.0, 2.0, 3.0, 0.1, 0.2, 0.3
    for _ in range(20):
        st.step(model, data)
        mujoco.mj_step(model, other)  # its accelerometer has it compute cacc and others, before it moves on
        np.testing.assert_allclose(data.sensordata, other.sensordata, atol=1e-9)
        for name in ("cacc", "cfrc_int", "cfrc_ext", "qacc", "qfrc_constraint"):
            np.testing.assert_allclose(getattr(data, name), getattr(other, name), atol=1e-9)


def test_at_rest_sensors_that_do_not_depend_on_forces_are_those_of_mj_step():
    """On the same state: position and velocity sensors, and what they are computed from, are equal to the bit."""
    model, data = boxed(0.1)
    st.step(model, data)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    for _ in range(10):
        state, other = np.empty(mujoco.mj_stateSize(model, kind)), mujoco.MjData(model)
        mujoco.mj_getState(model, data, state, kind)
        mujoco.mj_setState(model, other, state, kind)
        st.step(model, data)
        mujoco.mj_step(model, other)
        for name in ("gyro", "velocimeter", "subtree"):
            assert np.array_equal(read(data, name), read(other, name))
        assert np.array_equal(data.xpos, other.xpos)


def test_mj_forward_afterwards_gives_mujocos_own_forces():
    """Described in docs/simulation.md: soft forces at the new state, in place of those of the step."""
    model, data = boxed(0.1)
    st.step(model, data)
    ours = data.efc_force.copy()
    data.qpos[2] -= 1e-4  # MuJoCo's margin is zero
    mujoco.mj_forward(model, data)
    assert data.nefc == 16  # four edges at each of four contacts: the user's cone is pyramidal
    assert data.efc_force.shape != ours.shape
    data.qpos[2] += 1e-4
    st.step(model, data)
    np.testing.assert_allclose(data.qfrc_constraint[2], 19.62, atol=1e-6)


TANGLE = """<mujoco><option timestep=".002" {option}/><worldbody><geom type="plane" size="3 3 1" friction=".6"/>
<body pos="0 0 .5"><freejoint/><geom type="box" size=".2 .1 .05" mass="3" pos=".01 .02 .03"/>
<body pos=".2 0 0"><joint axis="0 1 0" damping=".1"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 -.1"/>
<body pos=".3 0 -.1"><joint type="ball"/><geom type="sphere" size=".06" pos=".05 0 0"/></body></body></body>
<body pos="1 0 .2" euler="20 30 10"><freejoint/><geom type="box" size=".1 .15 .2"/></body>
<body pos="0 1 .3"><joint axis="1 0 0"/><joint type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .3"/></body>
</worldbody>{more}</mujoco>"""


@pytest.mark.parametrize("option", ["", 'cone="elliptic" gravity="1 2 -9"', 'jacobian="sparse"'])
@pytest.mark.parametrize("more", ["", '<equality><connect body1="world" body2="world" anchor="0 0 0"/></equality>'])
def test_forces_of_bodies_are_those_of_mj_rne_post_constraint(option, more):
    """With the user's model, right after each of many steps: falling, hitting, sliding, at rest."""
    if more:
        more = more.replace('body1="world" body2="world"', 'body1="held" body2="world"')
    held = '<body name="held" pos="2 2 1"><freejoint/><geom size=".1"/></body>'
    xml = TANGLE.format(option=option, more=more).replace("</worldbody>", f"{held}</worldbody>")
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    pressed = 0.0
    for k in range(120):
        data.xfrc_applied[:] = rng.normal(size=(model.nbody, 6)) if k % 3 else 0.0
        before = data.qvel.copy()
        st.step(model, data)
        ours = [np.array(getattr(data, name)) for name in ("cacc", "cfrc_int", "cfrc_ext")]
        after = data.qvel.copy()
        data.qvel[:] = before  # as it was when the forces acted
        mujoco.mj_rnePostConstraint(model, data)
        data.qvel[:] = after
        for mine, name in zip(ours, ("cacc", "cfrc_int", "cfrc_ext"), strict=True):
            theirs = getattr(data, name)
            np.testing.assert_allclose(mine, theirs, atol=1e-10 * (1.0 + np.abs(theirs).max()), err_msg=name)
        pressed = max(pressed, np.abs(data.efc_force).max(initial=0.0))
    assert pressed > 10.0

"""`st.step` in loops that were written for `mj_step`: halves of a step, callbacks, keyframes, resets, copies."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.errors import InvalidScene

ARM = """
<mujoco>
  <option integrator="implicitfast"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0.3 0 0.0505"><freejoint/><geom name="ball" size="0.05" condim="6"/></body>
    <body name="arm" pos="0 0 0.2">
      <joint name="hinge" axis="0 1 0" damping="0.05"/>
      <geom name="arm" type="capsule" size="0.02" fromto="0 0 0 0.25 0 0" mass="0.2"/>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="hinge" kp="4" kv="0.2"/></actuator>
  <sensor><jointpos joint="hinge"/><jointvel joint="hinge"/></sensor>
  <keyframe><key name="up" qpos="0.3 0 0.05 1 0 0 0 -0.5" ctrl="-0.5"/></keyframe>
</mujoco>
"""


def arm():
    model = mujoco.MjModel.from_xml_string(ARM)
    return model, mujoco.MjData(model)


def whole_state(model, data):
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    found = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, found, spec)
    return found


def course(model, data, steps, step=st.step):
    rows = []
    for _ in range(steps):
        step(model, data)
        rows.append(whole_state(model, data))
    return np.array(rows)


def in_halves(model, data):
    st.step1(model, data)
    return st.step2(model, data)


def test_two_halves_are_a_step_to_the_bit():
    model, data = arm()
    data.ctrl[0] = 0.4
    other = copy.copy(data)
    assert np.array_equal(course(model, data, 20), course(model, other, 20, in_halves))


@pytest.mark.parametrize("stepper", [st.TimeStepping(restitution=0.5), st.EventDriven()])
def test_halves_with_other_steppers(stepper):
    model, data = arm()
    model.geom_condim[:] = 3
    other = copy.copy(data)

    def halves(model, data):
        st.step1(model, data)
        st.step2(model, data, stepper=stepper)

    def whole(model, data):
        st.step(model, data, stepper=stepper)

    assert np.array_equal(course(model, data, 5, whole), course(model, other, 5, halves))


def test_controls_between_the_halves_count_and_sensors_are_those_of_this_step():
    model, data = arm()
    other = copy.copy(data)
    for _ in range(5):
        st.step1(model, data)
        assert data.sensordata[0] == data.qpos[7]
        data.ctrl[0] = 0.3 - data.sensordata[0]
        data.qfrc_applied[6] = 0.01
        st.step2(model, data)
        other.ctrl[0] = 0.3 - other.qpos[7]
        other.qfrc_applied[6] = 0.01
        st.step(model, other)
    assert np.array_equal(data.qpos, other.qpos)


def test_a_second_half_needs_a_first():
    model, data = arm()
    with pytest.raises(InvalidScene, match=r"step2: .* call step1"):
        st.step2(model, data)
    st.step1(model, data)
    st.step2(model, data)
    with pytest.raises(InvalidScene, match=r"step2: .* call step1"):
        st.step2(model, data)
    st.step1(model, data)
    st.step(model, data)  # a whole step begins anew
    with pytest.raises(InvalidScene, match=r"step2: .* call step1"):
        st.step2(model, data)
    with pytest.raises(InvalidScene, match=r"step2: .* call step1"):
        st.step2(model, None)


def test_what_must_not_enter_a_second_half_is_refused_and_nothing_moves():
    model, data = arm()
    st.step1(model, data)
    before, data.ctrl[0] = np.array(data.qpos), np.nan
    with pytest.raises(InvalidScene, match="ctrl"):
        st.step2(model, data)
    assert np.array_equal(data.qpos, before)


def test_features_are_left_out_on_request():
    """Without torsion and rolling a ball that spins goes on spinning."""
    model, data = arm()
    data.qpos[2], data.qvel[5] = 0.05, 10.0
    other = copy.copy(data)
    for _ in range(20):
        st.step(model, data)
        st.step(model, other, ignore=("torsion",))
    assert data.qvel[5] < 9.9
    assert abs(other.qvel[5] - 10.0) < 1e-9
    with pytest.raises(InvalidScene, match="ignore must be"):
        st.step(model, data, ignore=("gravity",))


def test_a_control_callback_drives_a_step():
    model, data = arm()
    other = copy.copy(data)
    given = []

    def control(model, data):
        given.append(model.nu)
        data.ctrl[0] = 0.2 - data.qpos[7]

    mujoco.set_mjcb_control(control)
    try:
        for _ in range(3):
            st.step(model, data)
    finally:
        mujoco.set_mjcb_control(None)
    for _ in range(3):
        other.ctrl[0] = 0.2 - other.qpos[7]
        st.step(model, other)
    assert len(given) == 3
    assert np.array_equal(data.qpos, other.qpos)


def test_a_reset_begins_anew():
    """Nothing of the steps before is left, but impulses to start from, which change no digit that counts."""
    model, data = arm()
    first = course(model, data, 10)
    mujoco.mj_resetData(model, data)
    assert np.allclose(course(model, data, 10), first, rtol=0.0, atol=1e-9)


def test_a_keyframe_is_where_steps_begin():
    model, data = arm()
    course(model, data, 5)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    new = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, new, 0)
    assert np.allclose(course(model, data, 10), course(model, new, 10), rtol=0.0, atol=1e-9)
    assert abs(data.qpos[7] + 0.5) < 0.1


def test_copies_of_a_data_go_on_by_themselves():
    model, data = arm()
    course(model, data, 5)
    other, third = copy.copy(data), mujoco.MjData(model)
    mujoco.mj_copyData(third, model, data)
    here = course(model, data, 5)
    assert np.allclose(course(model, other, 5), here, rtol=0.0, atol=1e-9)
    assert np.allclose(course(model, third, 5), here, rtol=0.0, atol=1e-9)


def test_sleeping_bodies_are_awake():
    """MuJoCo would leave out bodies that it thinks asleep; exact contact lets them rest, and a push is felt."""
    text = ARM.replace('integrator="implicitfast"/>', 'integrator="implicitfast"><flag sleep="enable"/></option>')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    course(model, data, 5)
    assert any("sleeping" in line for line in st.Scene.of(model).report().ignored)
    data.qfrc_applied[0] = 5.0
    st.step(model, data)
    assert data.qvel[0] > 0.0


def test_stiff_velocity_gains_stay_stable():
    """As with implicitfast, dampers and velocity gains are in the mass that contacts see."""
    model, data = arm()
    model.dof_damping[6] = 1e3
    model.actuator_biasprm[0, 2] = -1e3
    model.opt.gravity[:] = 0.0
    data.qvel[6] = 1.0
    mujoco.mj_forward(model, data)
    inertia = float(data.M[-1])
    st.step(model, data)
    assert abs(data.qvel[6] - inertia / (inertia + 2e3 * model.opt.timestep)) < 1e-12


def test_runge_kutta_is_told():
    model, _ = arm()
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    assert any("RK4 becomes semi-implicit Euler" in line for line in st.Scene.of(model).report().ignored)


def test_flexes_are_refused_by_name_in_one_line():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody>
          <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01" mass="1"/>
        </worldbody></mujoco>"""
    )
    with pytest.raises(InvalidScene, match="^1 flexible body, flex 'cloth': only rigid bodies are supported$"):
        st.step(model, mujoco.MjData(model))


@pytest.mark.parametrize(
    ("x", "z", "turn"),
    [(0.498, 0.1316, "5.03 9.9 23.95"), (0.5462, 0.1236, "-4.76 1.63 5.66"), (0.5281, 0.1443, "2.02 -.39 7.8")],
)
def test_contacts_that_mending_excludes_have_no_rows(x, z, turn):
    """A cylinder on the edge of a table: MuJoCo finds more contacts than there are."""
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody><geom type="box" size=".5 .5 .1"/>
      <body pos="{x} 0 {z}" euler="{turn}"><freejoint/><geom type="cylinder" size=".1 .05" mass="1"/></body>
      </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    st.step1(model, data)
    excluded, dims = np.array(data.contact.exclude) != 0, np.array(data.contact.dim)
    assert excluded.any()
    first = np.cumsum(np.where(excluded, 0, dims)) - dims
    assert np.array_equal(data.contact.efc_address, np.where(excluded, -1, first))

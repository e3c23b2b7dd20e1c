"""The user's model stays the user's; what is edited in it is seen at once; callbacks get it."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.bodies.shadow import MARGINS, Shadow, never_free
from stiction.bodies.state import model_bytes
from stiction.errors import InvalidScene

SOFT = '<option integrator="RK4" solver="PGS" noslip_iterations="2"><flag sleep="enable"/></option>'
ARM = """<body name="arm" pos="0 0 1"><joint name="j" damping=".1" limited="true" range="-2 2"/>
<geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass="1"/></body>"""


CLOTH = (
    '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01" mass="1">'
    '<elasticity young="1e3" poisson=".1" thickness=".01" elastic2d="both"/></flexcomp>'
)


def xml(option: str = SOFT, geom: str = "", more: str = "") -> str:
    return f"""<mujoco>{option}<worldbody><geom type="plane" size="3 3 1"/>
    <body name="box" pos="1 0 .11"><freejoint/>
    <geom name="box" type="box" size=".1 .1 .1" mass="2" margin=".003" {geom}/>
    </body>{ARM}</worldbody><actuator><motor joint="j"/></actuator>{more}</mujoco>"""


def model_of(*given: str, **named: str):
    return mujoco.MjModel.from_xml_string(xml(*given, **named))


def test_neither_a_scene_nor_a_step_changes_the_model():
    model = model_of()
    before = model_bytes(model)
    scene = st.Scene.of(model)
    sim = st.Simulation(scene)
    for _ in sim.run(0.02):
        pass
    for stepper in (st.TimeStepping(restitution=0.5), st.EventDriven(), st.EventDriven(method="rk4")):
        other = st.Simulation(scene, stepper=stepper)
        other.step()
    data = mujoco.MjData(model)
    st.step(model, data)
    assert np.array_equal(model_bytes(model), before)


def test_a_refusal_changes_neither_model_nor_data():
    """`mj_step` ended elsewhere after one: integrator and flags had been set."""
    model = mujoco.MjModel.from_xml_string(xml().replace("</worldbody>", f"{CLOTH}</worldbody>"))
    before, data = model_bytes(model), mujoco.MjData(model)
    with pytest.raises(InvalidScene, match="flex 'cloth'"):
        st.step(model, data)
    with pytest.raises(InvalidScene, match="flex 'cloth'"):
        st.Simulation(st.Scene.of(model))
    assert np.array_equal(model_bytes(model), before)
    untouched = mujoco.MjData(mujoco.MjModel.from_xml_string(xml().replace("</worldbody>", f"{CLOTH}</worldbody>")))
    for _ in range(50):
        mujoco.mj_step(model, data)
        mujoco.mj_step(untouched.model, untouched)
    assert np.array_equal(data.qpos, untouched.qpos)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_mj_step_afterwards_is_what_it_was(cone):
    option = f'<option cone="{cone}" integrator="implicitfast"/>'
    model, fresh = model_of(option), model_of(option)
    data, other = mujoco.MjData(model), mujoco.MjData(fresh)
    for _ in range(30):
        st.step(model, data)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    mujoco.mj_setState(fresh, other, state, kind)
    for _ in range(30):
        mujoco.mj_step(model, data)
        mujoco.mj_step(fresh, other)
    assert np.array_equal(data.qpos, other.qpos)
    assert np.array_equal(data.sensordata, other.sensordata)


def test_what_is_edited_between_steps_is_seen_at_once():
    model = model_of("", more="")
    data = mujoco.MjData(model)
    data.qpos[2] = 5.0
    st.step(model, data)
    model.opt.gravity[:] = 0.0, 0.0, 3.0
    model.opt.timestep = 0.001
    speed, time = data.qvel[2], data.time
    st.step(model, data)
    assert data.qvel[2] - speed == pytest.approx(0.003, abs=1e-15)
    assert data.time == pytest.approx(time + 0.001, abs=1e-15)
    model.opt.gravity[:] = 0.0
    model.body_mass[1] = 4.0
    mujoco.mj_setConst(model, mujoco.MjData(model))  # MuJoCo keeps the inertia of a free body
    data.qfrc_applied[2] = 8.0
    speed = data.qvel[2]
    st.step(model, data)
    assert data.qvel[2] - speed == pytest.approx(0.002, abs=1e-15)


def test_friction_edited_between_steps_is_seen_at_once():
    model = model_of("")
    data = mujoco.MjData(model)
    data.qpos[2], data.qvel[0] = 0.1, 1.0
    model.opt.timestep = 0.002
    model.geom_friction[:, 0] = 0.5
    st.step(model, data)
    assert data.qvel[0] == pytest.approx(1.0 - 0.5 * 9.81 * 0.002, abs=1e-6)
    speed, model.geom_friction[:, 0] = data.qvel[0], 0.25
    st.step(model, data)
    assert data.qvel[0] == pytest.approx(speed - 0.25 * 9.81 * 0.002, abs=1e-6)


def test_each_data_has_its_own_margins():
    model = model_of()
    slow, fast = (st.Simulation(st.Scene.of(model)) for _ in range(2))
    fast.data.qvel[2] = -50.0
    slow.step()
    fast.step()
    one, two = slow.engine.shadow.margins["geom_margin"], fast.engine.shadow.margins["geom_margin"]
    assert two[1] > 0.1 > 0.01 > one[1] > 0.0
    assert model.geom_margin.tolist() == pytest.approx([0.0, 0.003, 0.0])


def test_contact_forces_are_read_with_the_users_model():
    """Whatever its cone is: friction 1 and a push of 5 N on a box of 2 kg; and in a copy of the data."""
    for cone in ("pyramidal", "elliptic"):
        model = model_of(f'<option cone="{cone}"/>', geom='friction="1"')
        data = mujoco.MjData(model)
        data.qpos[2] = 0.1
        data.xfrc_applied[1, :3] = 4.0, 3.0, 0.0
        for _ in range(3):
            st.step(model, data)
        for of in (data, copy.copy(data)):
            total, force = np.zeros(3), np.zeros(6)
            for i in range(of.ncon):
                mujoco.mj_contactForce(model, of, i, force)
                total += of.contact[i].frame.reshape(3, 3).T @ force[:3]
            np.testing.assert_allclose(total, [-4.0, -3.0, 19.62], atol=1e-9)
        rows = data.efc_J.reshape(data.nefc, model.nv)
        np.testing.assert_allclose(rows.T @ data.efc_force, data.qfrc_constraint, atol=1e-12)


def test_callbacks_get_what_equals_the_users_model():
    model, seen = model_of(), []
    data = mujoco.MjData(model)
    model.body_mass[1] = 3.0

    def remember(given, of):
        seen.append((given == model, {model: "known"}[given], given.body_mass[1], given.body("box").id, of is data))
        given.opt.density = 0.5

    for setter in (mujoco.set_mjcb_control, mujoco.set_mjcb_passive):
        setter(remember)
        try:
            st.step(model, data)
        finally:
            setter(None)
    assert seen == [(True, "known", 3.0, 1, True)] * len(seen)
    assert len(seen) >= 2
    assert model.opt.density == 0.5


def test_a_control_callback_acts():
    model = model_of("", more="")
    data = mujoco.MjData(model)

    def push(_, of):
        of.ctrl[0] = 0.7

    mujoco.set_mjcb_control(push)
    try:
        st.step(model, data)
    finally:
        mujoco.set_mjcb_control(None)
    assert data.qfrc_actuator[6] == 0.7


def test_an_error_of_mujocos_is_raised_not_fatal():
    """A callback that raises comes back as its own error, and the next step works."""
    model = model_of()
    data = mujoco.MjData(model)

    def fails(*_):
        raise KeyError("mine")

    mujoco.set_mjcb_passive(fails)
    try:
        with pytest.raises(KeyError, match="mine"):
            st.step(model, data)
    finally:
        mujoco.set_mjcb_passive(None)
    assert data.time == 0.0
    st.step(model, data)


def test_shadows_are_models_that_free_what_is_theirs():
    model = model_of()
    shadow = Shadow.of(model)
    assert isinstance(shadow, mujoco.MjModel)
    assert shadow.nv == model.nv
    assert shadow.body_mass is not None
    assert np.shares_memory(shadow.body_mass, model.body_mass)
    assert set(shadow.margins) == set(MARGINS)
    assert type(copy.copy(shadow)) is mujoco.MjModel
    assert pickle.loads(pickle.dumps(shadow)).nv == model.nv
    assert copy.deepcopy(shadow).nbody == model.nbody
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is not None  # its buffer is used
    del shadow
    gc.collect()
    assert alive() is None


def test_many_shadows_come_and_go():
    model = model_of()
    before = model_bytes(model)
    for _ in range(200):
        Shadow.of(model)
    gc.collect()
    assert np.array_equal(model_bytes(model), before)
    mujoco.mj_step(model, mujoco.MjData(model))


def test_a_shadow_that_is_left_at_the_end_is_never_freed():
    """The interpreter's last collection does not call `__del__`: MuJoCo would free the user's buffer a second time."""
    shadow = Shadow.of(model_of())
    alive = weakref.ref(shadow)
    never_free()
    del shadow
    gc.collect()
    assert alive() is not None


def test_a_data_of_another_model_is_refused():
    small = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    model = model_of()
    with pytest.raises(InvalidScene, match="belongs to another model"):
        st.step(model, mujoco.MjData(small))
    with pytest.raises(InvalidScene, match="belongs to another model"):
        st.step(small, mujoco.MjData(model))
    with pytest.raises(InvalidScene, match="data must be an MjData, got dict"):
        st.step(model, {})
    with pytest.raises(InvalidScene, match="model must be an MjModel"):
        st.step("box.xml", mujoco.MjData(model))


def test_a_data_of_an_equal_model_is_taken():
    """As MuJoCo takes it: a copy of the model with other masses, say."""
    model = model_of()
    data, heavier = mujoco.MjData(model), copy.copy(model)
    heavier.body_mass[1] = 20.0
    st.step(model, data)
    st.step(heavier, data)
    st.step(model, data)
    assert data.time == pytest.approx(3 * model.opt.timestep)

"""A step in one call: the bits of a step through Python, and whatever needs Python goes there."""

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.arrays.compiled import is_compiled
from stiction.stepping.step import engine_of

SERVO = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><joint name="slide" type="slide" axis="1 0 0"/><geom size="0.1"/></body></worldbody>
  <actuator><motor joint="slide"/></actuator></mujoco>"""


@pytest.mark.parametrize("name", ["box-on-plane", "sliding-cube", "rolling-balls", "dominoes", "log-heap"])
def test_one_call_and_many_give_the_same_bits(name):
    """It would catch stages in another order, and mending that is left out."""
    scene = st.Scene.named(name)
    one, many = st.Simulation(scene), st.Simulation(scene)
    many.engine.one_call = False
    for _ in range(60):
        one.step()
        many.step()
    assert one.data.qpos.tobytes() == many.data.qpos.tobytes()
    assert one.data.qvel.tobytes() == many.data.qvel.tobytes()
    assert one.data.sensordata.tobytes() == many.data.sensordata.tobytes()
    assert bool(one.engine.one_call) == is_compiled()


def test_a_callback_that_is_set_between_steps_is_called():
    model = mujoco.MjModel.from_xml_string(SERVO)
    data = mujoco.MjData(model)

    def push(model, data):
        data.ctrl[0] = 1.0

    for _ in range(3):
        st.step(model, data)
    assert data.qvel[0] == 0.0
    mujoco.set_mjcb_control(push)
    try:
        st.step(model, data)
    finally:
        mujoco.set_mjcb_control(None)
    assert data.qvel[0] > 0.0


def test_input_that_is_refused_is_told_of():
    model = mujoco.MjModel.from_xml_string(SERVO)
    data = mujoco.MjData(model)
    for _ in range(3):
        st.step(model, data)
    data.qvel[0] = np.nan
    with pytest.raises(st.InvalidScene, match="qvel"):
        st.step(model, data)


def test_an_arena_that_is_getting_full_goes_through_bindings():
    """It would catch an error of MuJoCo's that ends the process."""
    model = mujoco.MjModel.from_xml_string(SERVO.replace("<worldbody>", '<size memory="1M"/><worldbody>', 1))
    data = mujoco.MjData(model)
    for _ in range(5):
        st.step(model, data)
    engine = engine_of(model, data, ())
    if engine.one_call:
        engine.data = data
        assert engine.one_call(engine, st.TimeStepping().settings, True) == (None, None, False)
        engine.data = None

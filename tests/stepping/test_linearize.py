"""`linearize` against differences of `st.step` itself, by hand, with sensors, and at kinks."""

from __future__ import annotations

import mujoco as mj
import numpy as np
import pytest

import stiction as st

EVERYTHING = int(mj.mjtState.mjSTATE_INTEGRATION)
BOX = """<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="0 0 1" friction="{0}"/>
<body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".2 .25 .1" mass="1" friction="{0}"/></body>
</worldbody></mujoco>"""
ARM = """<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="0 0 1"/>
<body pos="0 0 .5"><joint name="a" axis="0 1 0" damping=".1" range="-100 100"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><site name="tip" pos=".3 0 0"/></body></body>
</worldbody><actuator><motor joint="a" gear="2"/><position joint="b" kp="10" kv="1"/>
<general joint="a" dyntype="filter" dynprm=".05" gainprm="3"/></actuator>
<sensor><jointpos joint="a"/><jointvel joint="b"/><accelerometer site="tip"/></sensor></mujoco>"""
LOOP = """<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="0 0 1"/>
<body name="one" pos="0 0 .3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body>
<body name="two" pos=".7 0 .3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 -.3 0 -.2" size=".02"/></body>
<body name="ball" pos=".35 0 .1"><freejoint/><geom type="sphere" size=".1" mass=".5"/></body>
</worldbody><equality><connect body1="one" body2="ball" anchor=".3 0 0"/></equality></mujoco>"""


def made(xml, steps, change=None, law=st.Coulomb()):  # noqa: B008
    model = mj.MjModel.from_xml_string(xml)
    data = mj.MjData(model)
    if change is not None:
        change(data)
    for _ in range(steps):
        st.step(model, data, law=law)
    return model, data


def differences(model, data, eps=1e-6, law=st.Coulomb()):  # noqa: B008
    """Central differences of whole steps: next states, and sensors."""
    state = np.empty(mj.mj_stateSize(model, EVERYTHING))
    mj.mj_getState(model, data, state, EVERYTHING)

    def stepped(what, k, step):
        other = mj.MjData(model)
        mj.mj_setState(model, other, state, EVERYTHING)
        if what == "qpos":
            mj.mj_integratePos(model, other.qpos, np.eye(model.nv)[k], step)
        else:
            getattr(other, what)[k] += step
        st.step(model, other, law=law)
        return other

    columns, seen = [], []
    for what, count in (("qpos", model.nv), ("qvel", model.nv), ("act", model.na), ("ctrl", model.nu)):
        for k in range(count):
            ahead, back = stepped(what, k, eps), stepped(what, k, -eps)
            tangent = np.zeros(model.nv)
            mj.mj_differentiatePos(model, tangent, 1.0, back.qpos, ahead.qpos)
            columns.append(np.concatenate([tangent, ahead.qvel - back.qvel, ahead.act - back.act]) / (2.0 * eps))
            seen.append((ahead.sensordata - back.sensordata) / (2.0 * eps))
    size = 2 * model.nv + model.na
    whole, sensed = np.array(columns).T, np.array(seen).T
    return whole[:, :size], whole[:, size:], sensed[:, :size], sensed[:, size:]


def push(data):
    data.qvel[0] = 1.0


def bend(data):
    data.qpos[:] = 0.3, 0.4
    data.ctrl[:] = 0.2, 0.1, 0.3


def roll(data):
    data.qvel[:] = 0.5, 0.2, 0.0, 0.0, 6.0, 3.0


DRIVEN = ARM.replace('<general joint="a" dyntype="filter" dynprm=".05" gainprm="3"/>', "")  # without activations
BALL = """<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="0 0 1" condim="6" friction=".5 .02 .01"/>
<body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1" condim="6" friction=".5 .02 .01"/></body>
</worldbody></mujoco>"""


CASES = {
    "box at rest": (BOX.format(0.5), 30, None),
    "box that slides": (BOX.format(0.1), 30, push),
    "box in the air": (BOX.format(0.1).replace("0 0 .1", "0 0 1"), 5, push),
    "arm in the air": (ARM, 10, bend),
    "arm on the ground": (ARM, 300, bend),
    "dry friction that slips": (
        ARM.replace('name="b" axis="0 1 0"', 'name="b" axis="0 1 0" frictionloss=".01"').replace("0 0 .5", "0 0 5"),
        30,
        bend,
    ),
    "loop": (LOOP, 30, None),
    "driven arm in the air": (DRIVEN, 10, lambda data: data.qpos.__setitem__(slice(None), (0.3, 0.4))),
    "driven arm on the ground": (DRIVEN, 300, lambda data: data.ctrl.__setitem__(slice(None), (0.2, 0.1))),
    "ball that slides, spins and rolls": (BALL, 5, roll),
}


@pytest.mark.parametrize("case", CASES)
def test_against_differences_of_the_step(case):
    model, data = made(*CASES[case])
    before = np.empty(mj.mj_stateSize(model, EVERYTHING))
    mj.mj_getState(model, data, before, EVERYTHING)
    found = st.linearize(model, data)
    assert found.smooth, found.reason
    A, B = found
    # Whole steps of the ball curve within 1e-6 m: their differences converge with the square of their length.
    expected = differences(model, data, eps=1e-7 if "rolls" in case else 1e-6)
    size = np.abs(expected[0]).max()
    assert pytest.approx(expected[0], abs=1e-6 * size) == A
    assert pytest.approx(expected[1], abs=1e-6 * np.abs(expected[1]).max(initial=1.0)) == B
    after = np.empty_like(before)
    mj.mj_getState(model, data, after, EVERYTHING)
    assert np.array_equal(before, after)  # the user's data stay as they are


@pytest.mark.parametrize("law", [st.Coulomb(facets=8), st.BoxFriction(), st.NoSlip(), st.Frictionless()])
def test_other_laws(law):
    xml = BOX.format(0.4)
    model, data = made(xml, 10, law=law)
    A, _ = st.linearize(model, data, law=law)
    expected = differences(model, data, law=law)[0]
    assert pytest.approx(expected, abs=1e-6 * np.abs(expected).max()) == A


def test_sensors():
    model, data = made(ARM, 300, bend)
    found = st.linearize(model, data, sensors=True)
    assert len(found) == 4
    expected = differences(model, data)
    for ours, theirs in zip(found[2:], expected[2:], strict=True):
        assert ours.shape == theirs.shape
        assert ours == pytest.approx(theirs, abs=1e-5 * np.abs(theirs).max(initial=1.0))


def test_without_contact_it_is_mujocos():
    """No contact, no damping, Euler: the same map as `mjd_transitionFD`."""
    xml = ARM.replace('damping=".1"', "").replace('kv="1"', "")
    model, data = made(xml.replace("0 0 .5", "0 0 5"), 3, bend)
    A, B = st.linearize(model, data)
    size = 2 * model.nv + model.na
    theirs = np.zeros((size, size)), np.zeros((size, model.nu))
    mj.mjd_transitionFD(model, data, 1e-6, True, theirs[0], theirs[1], None, None)
    assert pytest.approx(theirs[0], abs=1e-7) == A
    assert pytest.approx(theirs[1], abs=1e-7) == B


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("case", ["driven arm on the ground", "box that slides", "loop"])
def test_the_compiled_loop_and_python_agree(case, centered, monkeypatch):
    """The stages differenced in one call, and through Python: the same numbers up to rounding of the differences."""
    model, data = made(*CASES[case])
    one = st.linearize(model, data, centered=centered)
    monkeypatch.setattr("stiction.stepping.linearize.can_difference", lambda *_: False)
    two = st.linearize(model, data, centered=centered)
    for a, b in zip(one, two, strict=True):
        assert a == pytest.approx(b, abs=1e-6 * np.abs(b).max(initial=1.0))
    assert (one.reason, one.jumps, one.tied) == (two.reason, two.jumps, two.tied)


def test_one_sided_differences():
    model, data = made(*CASES["arm in the air"])
    both, one = st.linearize(model, data), st.linearize(model, data, centered=False)
    assert one[0] == pytest.approx(both[0], abs=1e-4)


def test_by_hand():
    """A resting box that is lifted comes back to the ground in the step; its velocity after it is -height / dt."""
    model, data = made(BOX.format(0.5), 30)
    A, B = st.linearize(model, data)
    assert B.shape == (12, 0)
    assert A[2] == pytest.approx(np.zeros(12), abs=1e-6)
    assert A[8, 2] == pytest.approx(-1.0 / 0.002, rel=1e-6)
    assert A[8, 8] == pytest.approx(0.0, abs=1e-9)


def test_kinks_are_reported():
    """A box that slides at the verge of tipping: its rear corners press no longer."""
    xml = BOX.format(1.0).replace(".2 .25 .1", ".1 .12 .1")
    model, data = made(xml, 20, push)
    found = st.linearize(model, data)
    assert not found.smooth
    assert len(found.kinks) == 2
    assert "slides or opens" in found.reason


def test_contacts_that_cannot_all_keep_their_modes_are_reported():
    """A tip that sticks, in a joint that sticks: displaced by anything, one of them must give."""
    model, data = made(ARM.replace('name="b" axis="0 1 0"', 'name="b" axis="0 1 0" frictionloss=".01"'), 300, bend)
    found = st.linearize(model, data)
    assert not found.smooth
    assert set(found.tied) == {("qpos", 0), ("qpos", 1)}
    assert "cannot all keep their modes as qpos[0], qpos[1] change" in found.reason


def test_of_a_simulation():
    simulation = st.Simulation(st.Scene.from_xml(BOX.format(0.5)))
    for _ in simulation.run(0.05):
        pass
    A, B = simulation.linearize()
    theirs = st.linearize(simulation.model, simulation.data)
    assert np.array_equal(A, theirs[0])
    assert np.array_equal(B, theirs[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 0.0}, "eps must be a positive number of at most 0.01, got 0.0"),
        ({"stepper": st.EventDriven()}, "stepper must be TimeStepping"),
        ({"stepper": st.TimeStepping(restitution=0.5)}, "steps with restitution are not supported"),
        ({"law": "cone"}, "law must be a law"),
        ({"solver": 3}, "solver must be a solver"),
    ],
)
def test_bad_input(options, message):
    model, data = made(BOX.format(0.5), 0)
    with pytest.raises(st.InvalidScene, match=message):
        st.linearize(model, data, **options)
    with pytest.raises(st.InvalidScene):
        st.linearize(model, "data")

"""Surfaces that move by themselves, such as belts and turntables: against what is known by hand, and MuJoCo's own."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st

G, MU, SPEED, DT = 9.81, 0.3, 0.5, 0.002


def belt(
    surface: str = f"{SPEED} 0 0 0 0 0", body: str = "type='box' size='.05 .05 .05'", more: str = "", condim: int = 3,
    aside: float = 0.0,
) -> mujoco.MjModel:  # fmt: skip
    """A body of 1 kg on a belt whose upper side is at z = 0."""
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{DT}"/>
        <default><geom friction="{MU} .01 .001" condim="{condim}"/></default><worldbody>
        <geom name="belt" type="box" size="5 1 .1" pos="0 {aside} -.1" surfacevel="{surface}"/>
        <body name="load" pos="0 0 .05"><freejoint/><geom name="load" mass="1" {body}/></body>{more}
        </worldbody></mujoco>""")


def test_a_block_on_a_belt_is_dragged_along_and_then_rides():
    """It gains mu g dt a step until it is as fast as the belt; then it does not slip, and nothing pushes it."""
    model = belt()
    data = mujoco.MjData(model)
    for step in range(1, 120):
        report = st.step(model, data)
        assert report.certificate.residual <= 1e-10
        np.testing.assert_allclose(data.qvel[0], min(MU * G * step * DT, SPEED), atol=1e-9)
        u, mode = report.solution.contact_velocity, report.solution.mode
        rides = MU * G * step * DT > SPEED
        assert (mode == (st.Mode.STICK if rides else st.Mode.SLIDE)).all()
        if rides:
            assert np.abs(u[:, 1:]).max() <= 1e-9
            assert np.abs(data.qacc).max() <= 1e-6 or MU * G * (step - 1) * DT < SPEED
    np.testing.assert_allclose(data.geom("load").xpos[2], 0.05, atol=1e-6)


def test_a_belt_that_is_stopped_stops_what_rides_on_it():
    """Edits between steps are seen; it decelerates with mu g."""
    model = belt()
    data = mujoco.MjData(model)
    for _ in range(100):
        st.step(model, data)
    np.testing.assert_allclose(data.qvel[0], SPEED, atol=1e-9)
    model.geom_surfacevel[model.geom("belt").id] = 0.0
    st.step(model, data)
    np.testing.assert_allclose(data.qvel[0], SPEED - MU * G * DT, atol=1e-9)


def test_two_belts_against_each_other_turn_a_dumbbell_on_the_spot():
    """A ball of it lies on each: their friction cancels, but for its moment about the vertical."""
    balls = "type='sphere' size='.05' pos='0 .2 0'/><geom type='sphere' size='.05' pos='0 -.2 0' mass='1'"
    other = '<geom name="back" type="box" size="5 1 .1" pos="0 1.01 -.1" surfacevel="-.5 0 0 0 0 0"/>'
    model = belt(body=balls, more=other, aside=-1.01)
    data = mujoco.MjData(model)
    report = st.step(model, data)
    np.testing.assert_allclose(report.solution.impulse[:, 0], G * DT, rtol=1e-9)
    assert np.abs(data.qvel[:3]).max() <= 1e-10
    inertia = 2 * (0.4 * 0.05**2 + 0.2**2)
    np.testing.assert_allclose(data.qvel[5], 2 * 0.2 * MU * G * DT / inertia, rtol=1e-9)


def test_torsional_friction_of_a_turntable_spins_a_ball_up():
    """On its axis: the spin gains mu_t m g dt / I a step, up to that of the table."""
    omega, radius = 3.0, 0.05
    model = belt(f"0 0 0 0 0 {omega}", f"type='sphere' size='{radius}'", condim=4)
    data, inertia = mujoco.MjData(model), 0.4 * radius**2
    for step in range(1, 60):
        assert st.step(model, data).certificate.residual <= 1e-9
        np.testing.assert_allclose(data.qvel[5], min(0.01 * G * step * DT / inertia, omega), rtol=1e-8)
    assert np.abs(data.qvel[:5]).max() <= 1e-8


def test_a_ball_far_from_the_axis_of_a_turntable_is_dragged_along_the_circle():
    model = belt("0 0 0 0 0 2", body="type='sphere' size='.05'")
    data = mujoco.MjData(model)
    data.qpos[1] = -0.5
    st.step(model, data)
    np.testing.assert_allclose(data.qvel[:2], [MU * G * DT, 0.0], atol=1e-10)


@pytest.mark.parametrize("condim", [3, 4, 6])
def test_rates_are_those_that_mujoco_finds(condim):
    """At a tilted body on a tilted geom, both of which move; with friction that differs between directions."""
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option cone="elliptic"/><worldbody>
        <geom name="a" type="box" size="1 1 .1" euler="10 -20 30" condim="{condim}" surfacevel=".3 -.2 .1 1 -2 .5"/>
        <body name="b" pos=".1 .2 .3" euler="40 10 -25"><freejoint/>
        <geom name="b" type="capsule" size=".1 .2" condim="{condim}" surfacevel="-.1 .4 .2 .7 .2 -.6"/></body>
        </worldbody><contact><pair geom1="a" geom2="b" condim="{condim}" friction=".8 .5 .01 .002 .001"/></contact>
        </mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = np.array(data.contact.surfacevel)
    assert len(theirs) > 0
    assert np.abs(theirs[:, : 3 if condim > 3 else 2]).min() > 1e-3
    report = st.step(model, data)
    problem = report.solution.require_problem()
    scale = np.array([1.0, 0.5 / 0.8, 0.01 / 0.8])[: 3 if condim > 3 else 2]
    ours = problem.tangent_rate[:, : len(scale)]
    np.testing.assert_allclose(ours, theirs[: len(ours), : len(scale)] * scale, rtol=1e-9)
    assert not problem.tangent_rate[:, 3:].any()
    assert report.certificate.residual <= 1e-8


def test_it_can_be_ignored_and_events_refuse_it():
    model = belt()
    data = mujoco.MjData(model)
    st.step(model, data, ignore=("surfacevel",))
    assert abs(data.qvel[0]) <= 1e-10
    with pytest.raises(st.InvalidScene, match=r"takes no moving surfaces \(surfacevel\): use TimeStepping\(\)"):
        st.step(model, mujoco.MjData(model), stepper=st.EventDriven())
    st.step(model, mujoco.MjData(model), stepper=st.EventDriven(), law=st.Frictionless())


def test_first_order_worlds_are_carried_at_once():
    """Friction of up to mu m g moves 1 kg at up to 2.9 m/s there, and the belt asks for less."""
    model = belt()
    data = mujoco.MjData(model)
    st.step(model, data, stepper=st.FirstOrder())
    np.testing.assert_allclose(data.qvel[0], SPEED, atol=1e-9)


@pytest.mark.parametrize(
    ("law", "gained"),
    [
        (st.Coulomb(facets=8), MU * G * DT),
        (st.BoxFriction(), MU * G * DT),
        (st.Viscous(), 4 * 2.0 * SPEED * DT),  # four contacts, 2 N / (m/s) each
        (st.Viscous(implicit=True), 4 * 2.0 * SPEED * DT / (1.0 + 4 * 2.0 * DT)),
        (st.Frictionless(), 0.0),
    ],
    ids=str,
)
def test_every_law_knows_surfaces(law, gained):
    model = belt()
    data = mujoco.MjData(model)
    report = st.step(model, data, law=law, stepper=st.TimeStepping(viscosity=2.0 if law.viscous else None))
    assert report.certificate.residual <= 1e-8
    np.testing.assert_allclose(data.qvel[0], gained, atol=1e-9)


def test_without_slip_a_block_is_torn_along_and_tips():
    """As fast as the belt at once, which takes more than its weight can balance: it leaves with its front."""
    model = belt()
    data = mujoco.MjData(model)
    solution = st.step(model, data, law=st.NoSlip()).solution
    pressed = solution.impulse[:, 0] > 0.0
    assert 0 < pressed.sum() < 4
    assert np.abs(solution.contact_velocity[pressed]).max() <= 1e-9


def test_rollouts_save_files_and_derivatives_know_surfaces(tmp_path):
    model = belt()
    data = mujoco.MjData(model)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    start = np.empty(size)
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = st.rollout(model, mujoco.MjData(model), start, nstep=5)[0]
    simulation = st.Simulation(st.Scene.of(model))
    for _ in range(5):
        simulation.step()
    np.testing.assert_array_equal(states[0, -1, 1 : 1 + model.nq], simulation.data.qpos)
    simulation.save(tmp_path / "belt.npz")
    again = st.Simulation.restore(tmp_path / "belt.npz")
    simulation.step()
    again.step()
    np.testing.assert_array_equal(again.data.qvel, simulation.data.qvel)


def test_linearized_steps_know_that_a_turning_body_meets_the_belt_otherwise():
    """Against differences of whole steps, on a turntable, where the surface's velocity changes with the place."""
    model = belt("0 0 0 0 0 2", body="type='sphere' size='.05'")
    data = mujoco.MjData(model)
    data.qpos[:2] = 0.3, -0.4
    data.qvel[:] = 0.1, 0.2, 0.0, 1.0, -2.0, 0.3
    A, _ = st.linearize(model, data)
    eps, expected = 1e-6, np.zeros((12, 12))
    for k in range(12):
        ends = []
        for sign in (1.0, -1.0):
            beside = mujoco.MjData(model)
            beside.qpos[:], beside.qvel[:] = data.qpos, data.qvel
            if k < 6:
                way = np.zeros(6)
                way[k] = sign * eps
                mujoco.mj_integratePos(model, beside.qpos, way, 1.0)
            else:
                beside.qvel[k - 6] += sign * eps
            st.step(model, beside)
            ends.append(beside)
        moved = np.zeros(6)
        mujoco.mj_differentiatePos(model, moved, 1.0, ends[1].qpos, ends[0].qpos)
        expected[:, k] = np.concatenate([moved, ends[0].qvel - ends[1].qvel]) / (2.0 * eps)
    np.testing.assert_allclose(A, expected, atol=2e-5)

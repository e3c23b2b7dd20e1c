"""Torsional and rolling friction (condim 4 and 6), against what is known by hand."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

import stiction as st

G, R, MASS = 9.81, 0.1, 2.0
INERTIA = 0.4 * MASS * R * R


def ball(condim, friction, tilt=0.0, dt=0.001):
    """On a plane, which is tilted about y: it runs down along x."""
    gravity = f"{G * math.sin(tilt)} 0 {-G * math.cos(tilt)}"
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco><option timestep="{dt}" gravity="{gravity}"/><worldbody>
        <geom type="plane" size="9 9 .1" condim="{condim}" friction="{friction}"/>
        <body pos="0 0 {R}"><freejoint/>
          <geom type="sphere" size="{R}" mass="{MASS}" condim="{condim}" friction="{friction}"/></body>
        </worldbody></mujoco>""")
    return model, mujoco.MjData(model)


def simulated(model, data, ignore=(), **options):
    """A simulation that begins as this data is, and its own data."""
    sim = st.Simulation(st.Scene.of(model, ignore=ignore), **options)
    sim.data.qvel[:] = data.qvel
    return sim, sim.data


def go(sim, seconds):
    for _ in sim.run(seconds):
        pass


@pytest.mark.parametrize("joint", [True, False])
def test_a_spinning_ball_stops_when_torsion_has_stopped_it(joint):
    model, data = ball(4, "0.5 0.01 0")
    data.qvel[5] = 3.0
    stops = 3.0 * INERTIA / (0.01 * MASS * G)
    sim, data = simulated(model, data, law=st.Coulomb(joint=joint))
    go(sim, 0.8 * stops)
    assert data.qvel[5] == pytest.approx(3.0 * (1.0 - data.time / stops), rel=1e-9)
    assert sim.report.solution.mode.tolist() == [st.Mode.SPIN]
    go(sim, 0.3 * stops)
    assert np.abs(data.qvel).max() <= 1e-12
    assert sim.report.solution.mode.tolist() == [st.Mode.STICK]


def test_a_rolling_ball_decelerates_as_computed():
    """Bounded apart, rolling friction is all that brakes it: m a r = mu_r m g - I a / r and a = 5/7 mu_r g / r."""
    model, data = ball(6, "0.5 0.01 0.002")
    data.qvel[0], data.qvel[4] = 1.0, 1.0 / R
    brakes = 5.0 / 7.0 * 0.002 * G / R
    sim, data = simulated(model, data, law=st.Coulomb(joint=False))
    go(sim, 1.0)
    assert data.qvel[0] == pytest.approx(1.0 - brakes * data.time, rel=1e-9)
    assert data.qvel[4] * R == pytest.approx(data.qvel[0], rel=1e-12)
    assert sim.report.solution.mode.tolist() == [st.Mode.ROLL]
    go(sim, 1.0 / brakes)
    assert np.abs(data.qvel).max() <= 1e-12


def test_bounded_together_friction_also_slides_a_little():
    """The elliptic cone spends a part of its friction on sliding, so that the ball brakes a little less."""
    model, data = ball(6, "0.5 0.01 0.002")
    data.qvel[0], data.qvel[4] = 1.0, 1.0 / R
    for _ in range(1000):
        report = st.step(model, data)
    brakes = (1.0 - data.qvel[0]) / data.time
    assert 0.98 * 5.0 / 7.0 * 0.002 * G / R < brakes < 5.0 / 7.0 * 0.002 * G / R
    p = report.solution.impulse[0]
    assert np.linalg.norm(p[1:]) == pytest.approx(0.5 * p[0], rel=1e-12)  # on the rim of the cone


@pytest.mark.parametrize("joint", [True, False])
def test_a_ball_on_a_slope_rolls_from_the_computed_angle_on(joint):
    """tan alpha = mu_r / r. Together with sliding the ellipse is met a little earlier: both share p_n."""
    mu, rolling = 0.5, 0.005
    steepest = math.atan(rolling / R)
    if not joint:
        bound = steepest
    else:  # (m g sin)² / mu² + (m g sin r)² / mu_r² = (m g cos)²
        bound = math.atan(1.0 / math.hypot(1.0 / mu, R / rolling))
        assert bound < steepest
    for tilt, rolls in ((0.999 * bound, False), (1.001 * bound, True)):
        model, data = ball(6, f"{mu} 0.01 {rolling}", tilt)
        sim, data = simulated(model, data, law=st.Coulomb(joint=joint))
        go(sim, 0.2)
        assert (abs(data.qvel[0]) > 1e-6) == rolls
        if not rolls:
            assert np.abs(data.qvel).max() <= 1e-12


def test_a_card_between_two_soft_fingers_turns_at_the_computed_torque():
    """Each finger presses with 10 N and resists 10 mu_t: a torque of up to 20 mu_t turns nothing."""
    torsion = 0.02
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco><option timestep="0.001" gravity="0 0 0"/><default><geom condim="4" friction="1 {torsion} 0"/></default>
        <worldbody>
        <body name="card"><freejoint/><geom type="box" size=".001 .05 .05" mass=".01"/></body>
        <body pos="-.011 0 0"><joint name="left" type="slide" axis="1 0 0"/><geom size=".01" mass=".1"/></body>
        <body pos=".011 0 0"><joint name="right" type="slide" axis="-1 0 0"/><geom size=".01" mass=".1"/></body>
        </worldbody></mujoco>""")
    for part, turns in ((0.99, False), (1.01, True)):
        data = mujoco.MjData(model)
        data.qfrc_applied[-2:] = 10.0
        for k in range(100):
            data.xfrc_applied[1, 3] = part * 2.0 * torsion * 10.0 if k > 10 else 0.0
            st.step(model, data)
        assert (abs(data.qvel[3]) > 1e-3) == turns
        if not turns:
            assert np.abs(data.qvel).max() <= 1e-10


def test_forces_are_where_mujoco_keeps_its_own():
    model, data = ball(6, "0.5 0.01 0.002")
    data.qvel[:] = 0.3, -0.1, 0.0, 1.0, 2.0, 3.0
    for _ in range(20):
        st.step(model, data)
    six = np.zeros(6)
    mujoco.mj_contactForce(model, data, 0, six)
    scaled = six[1:] / (six[0] * data.contact.friction[0])
    assert np.linalg.norm(scaled) == pytest.approx(1.0, rel=1e-9)  # on the rim of MuJoCo's elliptic cone
    frame = data.contact.frame[0].reshape(3, 3)
    np.testing.assert_allclose(data.cfrc_ext[1][3:], six[:3] @ frame, atol=1e-9)
    spot = data.contact.pos[0] - data.subtree_com[1]
    np.testing.assert_allclose(data.cfrc_ext[1][:3], six[3:] @ frame + np.cross(spot, six[:3] @ frame), atol=1e-9)
    # The momentum that friction takes is what the ball loses.
    np.testing.assert_allclose(MASS * data.qacc[:3] - MASS * model.opt.gravity, six[:3] @ frame, atol=1e-9)


def test_contacts_tell_torques():
    model, data = ball(4, "0.5 0.01 0")
    data.qvel[5] = 3.0
    sim, data = simulated(model, data)
    go(sim, 0.05)
    (touch,) = sim.contacts
    assert abs(touch.torque[0]) == pytest.approx(0.01 * MASS * G, rel=1e-9)
    assert touch.torque[1:].tolist() == [0.0, 0.0]


def test_without_friction_nothing_resists_turning():
    model, data = ball(6, "0.5 0.01 0.002")
    data.qvel[5] = 3.0
    sim, data = simulated(model, data, law=st.Frictionless())
    go(sim, 0.1)
    assert data.qvel[5] == 3.0


@pytest.mark.parametrize("law", [st.Coulomb(facets=8), st.BoxFriction(), st.NoSlip()])
def test_other_laws_refuse_torsion_and_say_what_to_do(law):
    model, data = ball(4, "0.5 0.01 0")
    with pytest.raises(st.InvalidScene, match=r"need the law Coulomb\(\).*set condim to 3, or pass ignore"):
        simulated(model, data, law=law)[0].step()
    simulated(model, data, ignore=("torsion",), law=law)[0].step()


@pytest.mark.parametrize("law", [st.Coulomb(), st.NoSlip(), st.Frictionless()])
def test_events_refuse_torsion_and_say_what_to_do(law):
    model, data = ball(4, "0.5 0.01 0")
    with pytest.raises(st.InvalidScene, match=r"EventDriven takes no torsional.*use TimeStepping"):
        simulated(model, data, stepper=st.EventDriven(), law=law)[0].step()


def test_turning_sets_no_scale_where_nothing_resists_it():
    """Rates of turning are in rad/s: beside them a velocity of a contact would look like rounding."""
    model, data = ball(6, "0 0 0")
    data.qvel[5] = 1e6
    report = st.step(model, data)
    assert not report.solution.problem.rows[:, 3:].any()
    assert report.certificate.scale < 1.0


def test_ignored_torsion_lets_a_ball_spin_on():
    model, data = ball(4, "0.5 0.01 0")
    data.qvel[5] = 3.0
    sim, data = simulated(model, data, ignore=("torsion",))
    go(sim, 0.1)
    assert data.qvel[5] == pytest.approx(3.0, rel=1e-12)


def test_a_saved_run_goes_on_to_the_bit(tmp_path):
    model, data = ball(6, "0.5 0.01 0.002")
    data.qvel[:] = 0.3, -0.1, 0.0, 1.0, 2.0, 3.0
    sim, data = simulated(model, data)
    go(sim, 0.05)
    sim.save(tmp_path / "run.npz")
    other = st.Simulation.restore(tmp_path / "run.npz")
    for each in (sim, other):
        go(each, 0.05)
    assert sim.data.qpos.tobytes() == other.data.qpos.tobytes()

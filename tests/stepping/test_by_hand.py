"""Motions that can be computed by hand."""

import numpy as np
import pytest

import stiction as st

G = 9.81


def run(name, seconds, *, law=None, stepper=None, **parameters):
    sim = st.Simulation(st.Scene.named(name, **parameters), law or st.Coulomb(), stepper=stepper)
    reports = list(sim.run(seconds))
    return sim, reports


@pytest.mark.parametrize(("angle", "mu"), [(0.3, 0.1), (0.5, 0.5), (0.2, 0.0)])
def test_a_block_slides_with_the_acceleration_of_the_textbook(angle, mu):
    sim, reports = run("inclined-plane", 0.5, angle=angle, mu=mu)
    wanted = G * (np.sin(angle) - mu * np.cos(angle))
    speed = np.linalg.norm(sim.data.qvel[:3])
    assert speed / sim.time == pytest.approx(wanted, rel=1e-9)
    assert max(report.certificate.residual for report in reports) <= 1e-8
    assert (reports[-1].solution.mode == st.Mode.SLIDE).all()


def test_a_block_sticks_for_a_minute():
    sim = st.Simulation(st.Scene.named("inclined-plane", angle=0.3, mu=0.32))  # tan 0.3 = 0.309
    place = sim.data.qpos.copy()
    fastest = 0.0
    for report in sim.run(60.0):
        fastest = max(fastest, np.abs(sim.data.qvel).max())
        assert report.certificate.residual <= 1e-8
    assert fastest <= 1e-12
    np.testing.assert_allclose(sim.data.qpos, place, atol=1e-11)


def test_a_sliding_cube_stops_where_it_should():
    speed, mu = 2.0, 0.4
    sim = st.Simulation(st.Scene.named("sliding-cube", speed=speed, mu=mu))
    start, dt = sim.data.qpos[:3].copy(), sim.model.opt.timestep
    lowest = []
    for _ in sim.run(1.0):
        lowest.append(sim.data.qpos[2])
    distance = np.linalg.norm(sim.data.qpos[:3] - start)
    assert distance == pytest.approx(speed**2 / (2 * mu * G), abs=1.01 * speed * dt)
    assert np.abs(sim.data.qvel).max() <= 1e-12
    assert np.ptp(lowest) <= 1e-9  # it does not lift


def test_a_sliding_ball_ends_rolling_at_five_sevenths():
    speed = 2.0
    sim = st.Simulation(st.Scene.named("sliding-ball", speed=speed, mu=0.3))
    for _ in sim.run(1.0):
        pass
    assert np.linalg.norm(sim.data.qvel[:3]) == pytest.approx(5.0 / 7.0 * speed, rel=1e-9)
    report = sim.step()
    assert report.solution.mode.tolist() == [st.Mode.STICK]


def test_ten_blocks_carry_their_weight_and_stand_for_a_minute():
    sim = st.Simulation(st.Scene.named("block-stack", blocks=10))
    place = sim.data.qpos.copy()
    weight = G * sim.model.body_mass.sum()
    for report in sim.run(60.0):
        assert report.certificate.residual <= 1e-8
    np.testing.assert_allclose(sim.data.qpos, place, atol=1e-9)
    ground = [touch for touch in sim.contacts if "world" in touch.bodies]
    assert sum(touch.force[0] for touch in ground) == pytest.approx(weight, rel=1e-9)
    assert sim.net_force("block0")[2] == pytest.approx(G * sim.model.body("block0").mass[0], rel=1e-9)
    above = sim.net_force("block0", "block1")
    assert above[2] == pytest.approx(-0.9 * weight, rel=1e-9)


def test_a_first_overlap_is_recovered_without_a_leap():
    sim = st.Simulation(st.Scene.named("box-on-plane"))
    rest = sim.data.qpos[2]
    sim.data.qpos[2] -= 2e-3
    highest = 0.0
    for _ in sim.run(1.0):
        highest = max(highest, sim.data.qpos[2] - rest)
    assert abs(sim.data.qpos[2] - rest) <= 1e-9
    assert highest <= 1e-3


def test_a_drop_lands_without_penetration():
    sim = st.Simulation(st.Scene.named("box-on-plane", height=0.3))
    deepest = 0.0
    for _ in sim.run(1.0):
        found = sim.engine.gathered
        deepest = min(deepest, found.gap.min(initial=0.0))
    assert deepest >= -1e-9
    assert np.abs(sim.data.qvel).max() <= 1e-12


@pytest.mark.parametrize("impact", ["newton", "poisson"])
@pytest.mark.parametrize("e", [0.5, 1.0])
def test_a_ball_bounces_as_high_as_restitution_says(impact, e):
    scene = st.Scene.from_xml(BALL)
    sim = st.Simulation(scene, stepper=st.TimeStepping(restitution=e, impact=impact))
    down, up = 0.0, 0.0
    for _ in sim.run(0.45):
        speed = sim.data.qvel[2]
        down, up = min(down, speed), max(up, speed)
    assert up == pytest.approx(-e * down, rel=2e-2)


@pytest.mark.parametrize("impact", ["newton", "poisson"])
@pytest.mark.parametrize(
    ("restitution", "wanted"),
    [
        ({"left": 0.8}, [0.8, 0.0, 0.0]),
        ({"left": 0.8, "middle": 0.5}, [0.8, 0.5, 0.0]),
        ({"floor": 0.6}, [0.6, 0.6, 0.6]),
        ({"floor": 0.6, "left": 0.8, "middle": 0.5}, [0.8, 0.6, 0.6]),  # the larger of the two
        ({"floor": 0.6, ("left", "floor"): 0.1, ("floor", "middle"): 1.0}, [0.1, 1.0, 0.6]),  # a pair has its own
        ({"floor": 0.6, ("left", "middle"): 1.0}, [0.6, 0.6, 0.6]),  # which do not meet
    ],
    ids=str,
)
def test_balls_bounce_as_their_own_restitution_says(impact, restitution, wanted):
    sim = st.Simulation(st.Scene.from_xml(BALLS), stepper=st.TimeStepping(restitution=restitution, impact=impact))
    down, up = np.zeros(3), np.zeros(3)
    for _ in sim.run(0.45):
        speed = sim.data.qvel[2::6]
        down, up = np.minimum(down, speed), np.maximum(up, speed)
    np.testing.assert_allclose(up, -np.array(wanted) * down, atol=2e-2 * np.abs(down).max())


def test_no_restitution_by_geoms_is_no_restitution():
    assert st.TimeStepping(restitution={}) == st.TimeStepping()


BALLS = """
<mujoco><option timestep="0.0005"/><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body pos="-0.4 0 0.6"><freejoint/><geom name="left" type="sphere" size="0.1" mass="1"/></body>
  <body pos="0 0 0.6"><freejoint/><geom name="middle" type="sphere" size="0.1" mass="1"/></body>
  <body pos="0.4 0 0.6"><freejoint/><geom name="right" type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>
"""
BALL = """
<mujoco><option timestep="0.0005"/><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.6"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>
"""


def test_free_motion_keeps_momentum_and_energy():
    sim = st.Simulation(st.Scene.from_xml(BALL))
    first = sim.step()
    for report in sim.run(0.2):
        assert report.certificate.residual == 0.0
    # Symplectic Euler: the energy of a falling ball is off by m g² dt t / 2, exactly.
    t, dt = report.time - sim.model.opt.timestep, sim.model.opt.timestep
    assert report.energy - first.energy == pytest.approx(-0.5 * G**2 * dt * t, rel=1e-6)

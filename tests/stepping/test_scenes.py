"""Every named scene, step after step: certified, without overlap, and doing what it is there for."""

import resource
import tracemalloc

import numpy as np
import pytest

import stiction as st
from stiction.contacts.gather import CONTACT
from stiction.scenes import SCENES
from stiction.solvers.contact.cone_newton.tolerances import LARGE
from stiction.stepping.event_rows import speeds
from stiction.stepping.pose import CLOSED

PARAMETERS = {"log-heap": {"logs": 12}}
# Deepest overlap, in m, that the curvature of a step may leave: bodies that turn, and feet that roll. Others have none.
DEEPEST = {
    "quadruped": 2e-6,
    "block-feeder": 2e-4,
    "double-action-jack": 1e-7,
    "dominoes": 3e-5,  # ½ r ω² dt² with r = 48 mm, ω = 26 rad/s, dt = 1 ms is 1.6e-5
    "log-heap": 1e-5,
    "conveyor": 5e-4,  # boxes that fall and tumble: ½ r ω² dt² with r = 87 mm, ω = 20 rad/s, dt = 5 ms is 4e-4
    "four-bar": 1e-5,
    "heap": 5e-3,  # bodies that are hit while they fall: r = 137 mm, ω = 40 rad/s, dt = 4 ms is 2e-3
    "wall": 5e-3,  # bricks that a ball throws: r = 117 mm, ω = 100 rad/s, dt = 2 ms is 2e-3
    "humanoids": 1e-4,
}
NONE = 1e-12  # rounding
LOOSEST = 1e-4  # m, of point-to-point constraints between bodies that turn


def start(name, **parameters):
    return st.Simulation(st.Scene.named(name, **PARAMETERS.get(name, {}) | parameters))


def watch(sim, steps, deepest):
    """Make steps, each of which must be certified, finite, and without overlap but for what counts as closed."""
    for step in range(steps):
        report = sim.step()
        found = sim.engine.gathered
        touching = found.kind == CONTACT
        gap = (found.gap + (found.slack if found.n > LARGE else 0.0))[touching].min(initial=0.0)
        closed = CLOSED * np.abs(speeds(found, found.free)[:, 0]).max(initial=0.0) * sim.model.opt.timestep
        assert report.certificate.residual <= 1e-8, f"step {step}"
        assert gap >= -deepest - 1.1 * closed, f"step {step}: contacts overlap by {-gap:.1e} m"
        assert np.abs(found.joint_gap).max(initial=0.0) <= LOOSEST, f"step {step}: joints come apart"
        assert np.isfinite(sim.data.qpos).all(), f"step {step}"


@pytest.mark.parametrize("name", SCENES)
def test_every_step_is_certified_and_nothing_overlaps(name):
    watch(start(name), 60, DEEPEST.get(name, NONE))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_ten_thousand_steps_without_a_failure(name):
    watch(start(name), 10_000, DEEPEST.get(name, NONE))


# What is held stays, what stands stands, and what cannot stand falls


@pytest.mark.parametrize("law", [st.NoSlip(), st.Coulomb()], ids=str)
def test_a_grasp_holds_for_a_thousand_steps(law):
    sim = st.Simulation(st.Scene.named("force-closure-grasp", mu=0.5), law)
    place = sim.data.qpos.copy()
    watch(sim, 1000, NONE)
    assert len(sim.contacts) == 36
    np.testing.assert_allclose(sim.data.qpos, place, atol=1e-9)
    np.testing.assert_allclose(sim.net_force("left-box") + sim.net_force("right-box"), [0, 0, 2 * 9.81], atol=1e-8)


def test_a_grasp_that_is_too_weak_slips():
    sim = st.Simulation(st.Scene.named("force-closure-grasp", mu=0.5, force=15.0))  # 2 mu F = 15 N < 19.62 N
    watch(sim, 20, NONE)
    wanted = 9.81 - 15.0 / 2.0  # m/s², of both boxes together
    assert -sim.data.body("left-box").cvel[5] / sim.time == pytest.approx(wanted, rel=0.1)


def creep(sim, seconds):
    """Of the capsule, in µm/s, after a tenth of a second."""
    for _ in sim.run(0.1):
        pass
    begin = sim.data.body("capsule").xpos.copy()
    for report in sim.run(seconds):
        assert report.certificate.residual <= 1e-8
    return 1e6 * np.linalg.norm(sim.data.body("capsule").xpos - begin) / seconds


@pytest.mark.parametrize("force", [6.5, 10.0, 30.0])  # 20 to 95 times what friction needs
def test_a_pinched_capsule_does_not_creep(force):
    assert creep(start("pinched-capsule", force=force), 5.0) <= 1e-6


@pytest.mark.slow
def test_a_pinched_capsule_does_not_creep_for_a_minute():
    assert creep(start("pinched-capsule"), 60.0) <= 1e-6


@pytest.mark.parametrize("name", ["mass-ratio", "card-house", "masonry-arch"])
def test_what_should_stand_stands_for_ten_seconds(name):
    sim = start(name)
    place = sim.data.qpos.copy()
    watch(sim, round(10.0 / sim.model.opt.timestep), NONE)
    np.testing.assert_allclose(sim.data.qpos, place, atol=1e-9)


def test_forty_logs_at_rest_stay_at_rest():
    sim = start("log-heap", logs=40, drop=0.0)
    place = sim.data.qpos.copy()
    watch(sim, 100, NONE)
    np.testing.assert_allclose(sim.data.qpos, place, atol=1e-9)


@pytest.mark.slow
def test_forty_logs_fall():
    watch(start("log-heap", logs=40), 150, 5e-3)


@pytest.mark.parametrize(
    "parameters",
    [{"thickness": 0.2}, {"mu": 0.1}],  # thinner than 0.107 of the radius; slipperier than the thrust allows
    ids=["thin", "slippery"],
)
def test_an_arch_that_cannot_stand_falls(parameters):
    sim = start("masonry-arch", **parameters)
    height = sim.data.body("stone4").xpos[2].copy()
    watch(sim, 200, 2e-3)  # stones turn as they fall
    assert sim.data.body("stone4").xpos[2] < height - 0.1


# Machines


@pytest.mark.parametrize("terrain", ["flat", "boxes"])
@pytest.mark.parametrize(("gait", "speed"), [("crawl", 0.1), ("trot", 0.2)])
def test_a_quadruped_walks_for_ten_seconds(gait, speed, terrain):
    sim = start("quadruped", gait=gait, terrain=terrain)
    for _ in range(10):
        watch(sim, 200, DEEPEST["quadruped"])
        trunk = sim.data.body("trunk")
        assert trunk.xmat[8] > 0.97  # upright
        assert 0.3 < trunk.xpos[2] < 0.4
    assert trunk.xpos[0] > 7.0 * speed  # it begins with a second of smaller steps
    assert abs(trunk.xpos[1]) < 0.2


def turns(sim):
    return sim.data.joint("crank-turn").qpos[0] / (2.0 * np.pi)


def test_a_feeder_feeds_a_block_a_turn():
    sim = start("block-feeder")
    heights = [sim.model.joint(f"block{k}-z").qposadr[0] for k in range(6)]
    fed, before = 0, sim.data.qpos[heights].copy()
    for report in sim.run(20.0):
        assert report.certificate.residual <= 1e-8
        now = sim.data.qpos[heights]
        fed += np.count_nonzero(now > before + 0.3)  # taken from below the table and put back above the pile
        before = now.copy()
    assert turns(sim) > 8.0
    assert fed >= turns(sim) - 4.0  # the first ones fill the table


def test_a_jack_lifts_on_the_way_up_and_on_the_way_down():
    sim = start("double-action-jack")
    place = sim.model.joint("rack-z").qposadr[0]
    lifted, before = 0.0, sim.data.qpos[place]
    for report in sim.run(12.0):
        assert report.certificate.residual <= 1e-8
        moved = sim.data.qpos[place] - before
        before = sim.data.qpos[place]
        lifted += moved if moved > -0.1 else moved + 0.2  # set back by two teeth
    assert turns(sim) > 5.0
    assert lifted == pytest.approx(0.1 * turns(sim), abs=0.1)  # a tooth a turn, half of it each way


def test_a_conveyor_hands_a_box_over_to_the_belt_across():
    """It gains mu g, rides at the belt's speed, and is turned by the second belt to its own direction."""
    sim = start("conveyor", boxes=1)
    for _ in sim.run(0.2):
        pass
    assert sim.data.qvel[:2] == pytest.approx([0.5, 0.0], abs=1e-6)
    for _ in sim.run(0.8):
        assert sim.report.certificate.residual <= 1e-8
    assert sim.data.qvel[:2] == pytest.approx([0.0, 0.5], abs=1e-6)


def test_balls_roll_where_the_slope_exceeds_their_rolling_friction():
    sim = start("rolling-balls")
    for _ in sim.run(0.5):
        pass
    speed = np.linalg.norm(sim.data.qvel.reshape(3, 6)[:, :3], axis=1)
    assert speed[0] > speed[1] > 0.1
    assert speed[2] < 1e-8


def test_a_four_bar_linkage_turns_and_pushes_a_box():
    sim = start("four-bar")
    begin = sim.data.body("box").xpos[0]
    for _ in sim.run(1.6):
        assert np.abs(sim.data.efc_pos[: sim.data.ne]).max() <= LOOSEST
    assert sim.data.joint("crank").qpos[0] == pytest.approx(4.0 * 1.6, rel=0.2)
    assert sim.data.body("box").xpos[0] < begin - 0.1


# Memory


@pytest.mark.slow
@pytest.mark.parametrize("name", ["box-on-plane", "quadruped"])
def test_no_memory_is_lost_in_a_hundred_thousand_steps(name):
    scene = st.Scene.named(name)
    data = scene.data()
    tracemalloc.start()
    try:
        used = []
        for _ in range(2):
            for _ in range(50_000):
                if scene.control is not None:
                    scene.control(scene.model, data)
                st.step(scene.model, data)
            used.append((tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    finally:
        tracemalloc.stop()
    (traced, resident), (traced_later, resident_later) = used
    assert data.time == pytest.approx(100_000 * scene.model.opt.timestep)
    assert traced_later - traced <= 20_000  # bytes
    assert resident_later - resident <= 1_000  # kB
    assert not any(warning.number for warning in data.warning)

"""Impulses of the last step as the start of this one."""

import numpy as np
import pytest

import stiction as st
from stiction.contacts.gather import CONTACT
from stiction.contacts.identity import match, turn
from stiction.stepping.event_rows import select

BALL = """
<mujoco><option timestep="0.002"/><worldbody>
  <geom name="globe" type="sphere" size="1" friction="{mu} 0.01 0.002" condim="{condim}"/>
  <body name="ball" pos="0 {y} {z}"><freejoint/>
    <geom name="ball" type="sphere" size="0.1" mass="1" friction="{mu} 0.01 0.002" condim="{condim}"/></body>
</worldbody></mujoco>
"""
ANGLE = np.radians(30.0)  # from the top, towards y: there MuJoCo takes another axis for its first tangent


def rolling(condim=3, mu=0.5):
    """A ball that rolls down a globe, just before its frame jumps."""
    angle = ANGLE - 0.004
    xml = BALL.format(y=1.1 * np.sin(angle), z=1.1 * np.cos(angle), mu=mu, condim=condim)
    sim = st.Simulation(st.Scene.from_xml(xml))
    sim.data.qvel[1:3] = 0.3 * np.cos(angle), -0.3 * np.sin(angle)
    sim.data.qvel[3] = -3.0
    return sim


def tangents(sim):
    return sim.data.contact.frame[0].reshape(3, 3)[1:].copy()


@pytest.mark.parametrize("condim", [3, 6])
def test_friction_is_carried_over_as_a_vector_in_the_world(condim):
    sim = rolling(condim)
    sim.step()
    jumped = 0
    for _ in range(10):
        before, impulse = tangents(sim), sim.engine.impulse[0].copy()
        sim.engine.refresh()
        found = sim.engine.gather()
        after, start = tangents(sim), sim.engine.start(found)[0]
        np.testing.assert_array_equal(found.frame[0], after)
        assert start[0] == impulse[0]
        parts = (slice(1, 3),) if condim == 3 else (slice(1, 3), slice(4, 6))
        for part in parts:
            assert np.hypot(*start[part]) == pytest.approx(np.hypot(*impulse[part]), rel=1e-12)
            np.testing.assert_allclose(
                start[part] @ after, impulse[part] @ before, atol=5e-3 * np.hypot(*impulse[part])
            )
        jumped += (before[0] @ after[0]) < 0.9
        sim.step()
    assert jumped == 1
    assert np.hypot(*impulse[1:3]) > 1e-4  # there is friction


def test_a_start_is_the_same_answer_after_the_frame_has_jumped():
    """As components, the impulse of the last step violated the law as much as none at all."""
    sim = rolling()
    sim.step()
    while True:
        before, last = tangents(sim), sim.engine.impulse.copy()
        report = sim.step()
        if (before[0] @ tangents(sim)[0]) < 0.9:
            break
    problem, found = report.solution.problem, report.solution.impulse
    sim.engine.refresh()
    turned = found.copy()
    turned[0, 1:] = tangents(sim) @ (last[0, 1:] @ before)
    off, off_as_components = (np.abs(found - each).max() / np.abs(found[:, 1:]).max() for each in (turned, last))
    assert off <= 0.05
    assert off_as_components >= 0.9
    assert st.solve(problem, start=turned).iterations <= st.solve(problem, start=last).iterations


def test_impulses_turn_as_tangents_do():
    rng = np.random.default_rng(0)
    normal, old = np.array([0.0, 0.0, 1.0]), np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    for angle in rng.uniform(-np.pi, np.pi, 20):
        new = np.array([[np.cos(angle), np.sin(angle), 0.0], [-np.sin(angle), np.cos(angle), 0.0]])
        p = rng.normal(size=6)
        start = p.copy()
        turn(old, new, start)
        np.testing.assert_allclose(start[1:3] @ new, p[1:3] @ old, atol=1e-14)
        np.testing.assert_allclose(start[4:6] @ new, p[4:6] @ old, atol=1e-14)
        np.testing.assert_array_equal(start[[0, 3]], p[[0, 3]])
    for other in (old, np.zeros((2, 3)), np.array([normal, normal])):
        start = p.copy()
        turn(old, other, start)
        np.testing.assert_array_equal(start, p)


def test_limits_and_dry_friction_have_no_tangents():
    xml = """<mujoco><worldbody><body pos="0 0 1">
        <joint type="hinge" axis="0 1 0" limited="true" range="-10 10" frictionloss="0.1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="1"/></body></worldbody></mujoco>"""
    sim = st.Simulation(st.Scene.from_xml(xml))
    list(sim.run(0.5))
    found = sim.engine.gathered
    assert found.n == 2
    assert (found.kind != CONTACT).all()
    np.testing.assert_array_equal(found.frame, 0.0)


def by_search(radius, old, new):
    """Each new contact looks at all old ones of its pair, in order."""
    previous, taken = [], set()
    for one, two, spot in zip(*new.pair.T, new.spot, strict=True):
        near, found = 0.25 * min(radius[one], radius[two]), -1
        for o in np.flatnonzero((old.pair == (one, two)).all(axis=1)):
            distance = np.linalg.norm(old.spot[o] - spot)
            if o not in taken and distance < near:
                near, found = distance, int(o)
        taken.add(found)
        previous.append(found)
    return previous


@pytest.mark.parametrize("seed", range(5))
def test_matching_finds_what_a_search_of_all_contacts_finds(seed):
    """Pairs come, go, and change their order: the first and the last ones, neighbours, and all of them."""
    sim = st.Simulation(st.Scene.named("heap", bodies=30, seed=seed))
    list(sim.run(0.5))
    found, rng = sim.engine.gathered, np.random.default_rng(seed)
    assert found.n > 40
    radius = np.where(sim.model.geom_rbound > 0.0, sim.model.geom_rbound, np.inf)  # planes have none
    runs = np.split(np.arange(found.n), np.flatnonzero((np.diff(found.pair, axis=0) != 0).any(axis=1)) + 1)
    spot = found.spot + rng.normal(scale=5e-3, size=found.spot.shape)
    for share in (0.0, 0.1, 0.5, 1.0):
        old, new = ([run for run in runs if rng.uniform() >= share] for _ in range(2))
        if share == 0.5:
            rng.shuffle(new)
        before = select(found, np.array([i for run in old for i in run], np.int64))
        now = select(found._replace(spot=spot), np.array([i for run in new for i in run], np.int64))
        assert match(sim.engine.memory, before, now).tolist() == by_search(radius, before, now)

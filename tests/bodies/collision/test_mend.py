"""Contacts that MuJoCo gets wrong, mended."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from stiction.bodies.collision import check
from stiction.bodies.scene import Scene
from stiction.bodies.stages import mended_step1, smooth
from stiction.bodies.structs import memory
from stiction.stepping import Simulation

LOG = '<geom type="cylinder" size=".1 .3" euler="90 0 0"/>'
SHAPES = {
    "box": 'type="box" size=".1 .07 .05"',
    "cylinder": 'type="cylinder" size=".06 .1"',
    "capsule": 'type="capsule" size=".05 .1"',
    "mesh": 'type="mesh" mesh="m"',
}
MESH = '<asset><mesh name="m" vertex="-.1 -.1 -.1 .1 -.1 -.1 0 .1 -.1 0 0 .12 .1 .1 0"/></asset>'


def logs(turned: float = 0.0, z: float = 0.2, y: float = 0.0):
    upper = f'<body pos="0 {y} {z}" euler="0 0 {turned}"><freejoint/>{LOG}</body>'
    scene = Scene.from_xml(f"<mujoco><worldbody>{LOG}{upper}</worldbody></mujoco>", margin=0.002)
    data = scene.data()
    scene.model.geom_margin[:] = scene.model.body_margin[:] = 0.001
    view = memory(scene.model, data)
    assert scene.mends
    smooth(scene.model, data, view)
    return [contact for contact in data.contact if contact.efc_address >= 0]


def test_logs_side_by_side_touch_at_both_ends():
    one, two = logs()
    for contact in (one, two):
        assert abs(contact.dist) <= 1e-15
        assert np.abs(contact.frame.reshape(3, 3)[0] - [0.0, 0.0, 1.0]).max() <= 1e-14
        assert np.abs(contact.frame.reshape(3, 3) @ contact.frame.reshape(3, 3).T - np.eye(3)).max() <= 1e-14
    assert sorted([one.pos[1], two.pos[1]]) == pytest.approx([-0.3, 0.3])


def test_logs_touch_along_the_part_that_they_share():
    assert sorted(c.pos[1] for c in logs(y=0.2)) == pytest.approx([-0.1, 0.3])


def test_logs_a_little_turned_touch_between_their_ends_too():
    contacts = logs(turned=1.0)
    assert len(contacts) == 3
    assert min(c.dist for c in contacts) == pytest.approx(0.0, abs=1e-15)
    ends = sorted(c.dist for c in contacts)[1:]
    half = 0.3 * np.cos(np.radians(0.5)) * 2.0 * np.tan(np.radians(0.5))
    assert ends == pytest.approx([np.hypot(0.2, half) - 0.2] * 2, rel=0.05)


def test_crossed_logs_touch_once():
    (contact,) = logs(turned=30.0, z=0.2005)
    assert contact.dist == pytest.approx(0.0005, abs=1e-15)
    assert contact.pos == pytest.approx([0.0, 0.0, 0.10025], abs=1e-15)


@pytest.mark.parametrize("second", SHAPES)
@pytest.mark.parametrize("first", ["cylinder", "mesh"])
def test_the_nearest_contact_is_as_near_as_the_shapes_are(first, second):
    bodies = f"<geom {SHAPES[first]}/><body><freejoint/><geom {SHAPES[second]}/></body>"
    scene = Scene.from_xml(f"<mujoco>{MESH}<worldbody>{bodies}</worldbody></mujoco>")
    model, data = scene.model, scene.data()
    model.geom_margin[:] = model.body_margin[:] = 0.005
    view = memory(scene.model, data)
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(60):
        turn, direction = rng.normal(size=4), rng.normal(size=3)
        data.qpos[3:] = turn / np.linalg.norm(turn)
        direction /= np.linalg.norm(direction)
        low, high = 0.0, 0.6
        for _ in range(40):
            data.qpos[:3] = 0.5 * (low + high) * direction
            mujoco.mj_kinematics(model, data)
            apart = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)
            low, high = (low, 0.5 * (low + high)) if apart > 1e-3 else (0.5 * (low + high), high)
        if not 5e-4 < apart < 2e-3:
            continue
        seen += 1
        mended_step1(model, data, view)
        contacts = [contact for contact in data.contact if contact.efc_address >= 0]
        assert min(contact.dist for contact in contacts) <= apart + 1e-6 * model.geom_rbound.max()
    assert seen >= 40


def test_a_mended_stage_is_mujocos_own_where_nothing_is_mended():
    xml = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .29"><freejoint/>
    <geom type="box" size=".1 .2 .3"/></body><geom type="cylinder" size=".1 .1" pos="5 0 0"/></worldbody></mujoco>"""
    answers = []
    for mended in (False, True):
        scene = Scene.from_xml(xml)
        data = scene.data()
        view = memory(scene.model, data)
        data.qvel[:] = 0.1
        smooth(scene.model, data, view if mended else None)
        answers.append((data.efc_J.copy(), data.efc_pos.copy(), data.qacc_smooth.copy(), data.qfrc_smooth.copy()))
    for plain, other in zip(*answers, strict=True):
        assert plain.size
        assert np.array_equal(plain, other)


CAPSULES = """
<mujoco><option timestep="0.005"/><worldbody><geom type="capsule" fromto="-.5 0 .1 .5 0 .1" size=".1"/>
<body pos="0 0 .3" euler="0 0 {}"><freejoint/><geom type="capsule" fromto="-.5 0 0 .5 0 0" size=".1"/></body>
</worldbody></mujoco>
"""
COLUMN = """
<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="2 2 1"/>
<body pos="0 0 .2"><freejoint/><geom type="cylinder" size=".1 .2" mass="1"/></body>
<body pos="0 0 {}"><freejoint/><geom type="cylinder" size=".1 .2" mass="1"/></body></worldbody></mujoco>
"""


@pytest.mark.parametrize(("turned", "count"), [(0.0, 2), (1.0, 3)])
def test_capsules_on_each_other_do_not_rock(turned, count):
    sim = Simulation(Scene.from_xml(CAPSULES.format(turned)))
    for _ in sim.run(0.1):
        assert sim.engine.gathered.n == count
        assert sim.engine.gathered.gap.min() >= -1e-9
    assert np.abs(sim.data.qvel).max() <= 1e-9


@pytest.mark.parametrize("height", [0.6, 0.599, 0.59])
def test_cylinders_end_on_end_stand_and_take_back_an_overlap(height):
    sim = Simulation(Scene.from_xml(COLUMN.format(height)))
    for _ in sim.run(1.0):
        assert np.abs(sim.data.qvel).max() <= 0.2
    assert sim.data.qpos[9] == pytest.approx(0.6, abs=1e-9)
    assert np.abs(sim.data.qvel).max() <= 1e-9


def doubtful(poses: int = 40):
    """Contacts of a cylinder and a mesh that are near each other, in random poses."""
    bodies = f"<geom {SHAPES['cylinder']}/><body><freejoint/><geom {SHAPES['mesh']}/></body>"
    scene = Scene.from_xml(f"<mujoco>{MESH}<worldbody>{bodies}</worldbody></mujoco>")
    model, data = scene.model, scene.data()
    model.geom_margin[:] = model.body_margin[:] = 0.02
    view, random, found = memory(model, data), np.random.default_rng(1), []
    for _ in range(poses):
        data.qpos[:] = [*random.uniform(-0.1, 0.1, 3), *random.normal(size=4)]
        mujoco.mj_normalizeQuat(model, data.qpos)
        smooth(model, data, view)
        found += [(contact.dist, *contact.pos, *contact.frame, contact.exclude) for contact in data.contact]
    return np.array(found)


def test_distances_by_address_and_through_the_bindings_are_the_same(monkeypatch):
    expected = doubtful()
    monkeypatch.setattr(check, "addresses_in_mujoco", lambda *names: None)
    asked, distance = [], mujoco.mj_geomDistance
    monkeypatch.setattr(check.mj, "mj_geomDistance", lambda *given: asked.append(given) or distance(*given))
    assert np.array_equal(doubtful(), expected)
    assert asked


def test_an_error_of_mujocos_is_raised_through_the_bindings(monkeypatch):
    def fail(*given):
        raise mujoco.FatalError("no memory")

    monkeypatch.setattr(check, "ROOM", 1 << 60)
    monkeypatch.setattr(check.mj, "mj_geomDistance", fail)
    with pytest.raises(mujoco.FatalError, match="no memory"):
        doubtful()

"""Cylinders on faces: contacts where the shapes are, and nothing that rocks."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from stiction.bodies.collision.cylinders import POINTS
from stiction.bodies.scene import Scene
from stiction.bodies.stages import mended_step1, smooth
from stiction.bodies.structs import memory
from stiction.stepping import Simulation

R, H = 0.08, 0.11
FLOOR = '<geom name="floor" type="plane" size="5 5 1"/>'
CYLINDER = f'<geom type="cylinder" size="{R} {H}" mass="1" friction="0.5"/>'


def scene(world, margin=None, dt=0.005):
    return Scene.from_xml(
        f'<mujoco><compiler angle="radian"/><option timestep="{dt}"/><worldbody>{world}</worldbody></mujoco>',
        margin=margin,
    )


def free(geom, pos, euler=(0.0, 0.0, 0.0)):
    x, y, z = pos
    a, b, c = euler
    return f'<body pos="{x} {y} {z}" euler="{a} {b} {c}"><freejoint/>{geom}</body>'


def touching(of):
    """Contacts of a scene where it stands, and its data; each with the geoms in MuJoCo's order."""
    data = of.data()
    view = memory(of.model, data)
    of.model.geom_margin[:] = of.model.body_margin[:] = 0.5 * (of.margin or 0.002)
    smooth(of.model, data, view)
    return [contact for contact in data.contact if contact.efc_address >= 0], data


def rest(sim, seconds=1.0):
    """The fastest speed at the end."""
    for report in sim.run(seconds):
        assert report.certificate.residual <= 1e-8
    return np.abs(sim.data.qvel).max()


# Where contacts are


def test_an_upright_cylinder_has_points_all_around():
    contacts, _ = touching(scene(FLOOR + free(CYLINDER, (0.3, 0.2, H))))
    assert len(contacts) == POINTS
    around = np.array([contact.pos - [0.3, 0.2, 0.0] for contact in contacts])
    np.testing.assert_allclose(np.linalg.norm(around, axis=1), R, rtol=1e-12)
    np.testing.assert_allclose(around.mean(axis=0), 0.0, atol=1e-12)
    for contact in contacts:
        assert abs(contact.dist) <= 1e-15
        frame = contact.frame.reshape(3, 3)
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)
        np.testing.assert_allclose(frame[0], [0.0, 0.0, 1.0], atol=1e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0)


@pytest.mark.parametrize("lean", [1e-15, 3e-14, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("turn", [0.0, 0.7, 2.0])
def test_a_leaning_cylinder_touches_with_its_lowest_point(lean, turn):
    """MuJoCo divides by the sine of the lean, and loses the contact or errs by a part of the radius."""
    of = scene(FLOOR + free(CYLINDER, (0.0, 0.0, H)), margin=0.01)
    data = of.data()
    data.qpos[3:] = np.cos(lean / 2), np.cos(turn) * np.sin(lean / 2), np.sin(turn) * np.sin(lean / 2), 0.0
    view = memory(of.model, data)
    of.model.geom_margin[:] = of.model.body_margin[:] = 0.005
    mended_step1(of.model, data, view)
    axis = data.geom_xmat[1].reshape(3, 3)[:, 2]
    sine = np.hypot(axis[0], axis[1])
    assert min(contact.dist for contact in data.contact) == pytest.approx(H - H * axis[2] - R * sine, abs=2e-10)
    assert data.ncon >= POINTS


def test_a_lying_cylinder_touches_along_its_line_and_rolls():
    lying = (np.pi / 2, 0.0, 0.0)
    contacts, _ = touching(scene(FLOOR + free(CYLINDER, (0.0, 0.0, R), lying)))
    assert sorted(contact.pos[1] for contact in contacts) == pytest.approx([-H, H])
    sim = Simulation(scene(FLOOR + free(CYLINDER, (0.0, 0.0, R), lying)))
    sim.data.qvel[:] = 0.5, 0.0, 0.0, 0.0, 0.0, -0.5 / R  # rolls along x; turning is given about its own axis
    rest(sim, 2.0)
    assert sim.data.qvel[0] == pytest.approx(0.5, rel=1e-6)
    assert sim.data.qpos[0] == pytest.approx(1.0, rel=1e-6)


def test_a_disc_beyond_the_edge_of_a_box_touches_where_their_outlines_cross():
    table = '<geom type="box" size="0.2 0.2 0.05" pos="0 0 -0.05"/>'
    contacts, _ = touching(scene(table + free(CYLINDER, (0.18, 0.0, H))))
    places = np.array([contact.pos for contact in contacts])
    assert (places[:, 0] <= 0.2 + 1e-12).all()
    half = np.sqrt(R**2 - 0.02**2)
    edge = places[np.abs(places[:, 0] - 0.2) <= 1e-12]
    assert sorted(edge[:, 1]) == pytest.approx([-half, half])


def test_a_small_box_on_a_disc_touches_with_its_corners():
    world = f'<geom type="cylinder" size="{R} {H}" pos="0 0 {-H}"/>'
    box = '<geom type="box" size="0.03 0.02 0.05" mass="1"/>'
    contacts, _ = touching(scene(world + free(box, (0.01, 0.0, 0.05))))
    places = sorted(tuple(np.round(contact.pos, 12)) for contact in contacts)
    assert places == [(-0.02, -0.02, 0.0), (-0.02, 0.02, 0.0), (0.04, -0.02, 0.0), (0.04, 0.02, 0.0)]


@pytest.mark.parametrize(("offset", "radius"), [(0.0, R), (0.03, R), (0.03, 0.05), (0.02, 0.12), (0.12, R)])
def test_two_discs_share_a_lens(offset, radius):
    world = f'<geom type="cylinder" size="{radius} {H}" pos="0 0 {-H}"/>'
    contacts, _ = touching(scene(world + free(CYLINDER, (offset, 0.0, H))))
    assert len(contacts) == POINTS
    places = np.array([contact.pos for contact in contacts])
    from_one, from_two = np.linalg.norm(places, axis=1), np.linalg.norm(places - [offset, 0.0, 0.0], axis=1)
    assert (from_one <= radius + 1e-9).all()
    assert (from_two <= R + 1e-9).all()
    outline = np.minimum(np.abs(from_one - radius), np.abs(from_two - R))
    np.testing.assert_allclose(outline, 0.0, atol=1e-9)


def test_a_cylinder_that_stands_beside_a_box_touches_with_its_side():
    box = '<geom type="box" size="0.1 0.1 0.11" pos="0 0 0"/>'
    contacts, _ = touching(scene(box + free(CYLINDER, (0.1 + R - 1e-5, 0.0, 0.0))))
    assert sorted(contact.pos[2] for contact in contacts) == pytest.approx([-H, H])
    for contact in contacts:
        assert contact.dist == pytest.approx(-1e-5, abs=1e-12)
        np.testing.assert_allclose(np.abs(contact.frame[:3]), [1.0, 0.0, 0.0], atol=1e-12)


OTHERS = {
    "box": '<geom type="box" size=".09 .07 .05"/>',
    "wide box": '<geom type="box" size=".2 .2 .05"/>',
    "cylinder": '<geom type="cylinder" size=".06 .05"/>',
    "capsule": '<geom type="capsule" size=".04 .07"/>',
}


@pytest.mark.parametrize("lying", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_nearly_flat_contacts_are_as_near_as_the_shapes_are(name, lying):
    """Against MuJoCo's distance of the nearest points, which it finds by another way."""
    of = scene(OTHERS[name] + free(CYLINDER, (0, 0, 1)), margin=0.01)
    model, data = of.model, of.data()
    view = memory(of.model, data)
    rng = np.random.default_rng(0)
    seen, error = 0, []
    for _ in range(80):
        lean = 10.0 ** rng.uniform(-6.0, -1.2)
        turn = np.array([np.cos(a := rng.uniform(0, 7)), np.sin(a), 0.0]) * lean
        quat, base = np.empty(4), np.empty(4)
        mujoco.mju_axisAngle2Quat(quat, turn / lean, lean)
        mujoco.mju_axisAngle2Quat(base, np.array([1.0, 0, 0]), 0.5 * np.pi if lying else 0.0)
        mujoco.mju_mulQuat(data.qpos[3:], quat, base)
        data.qpos[:2] = rng.uniform(-0.1, 0.1, 2)
        low, high = 0.0, 0.5
        for _ in range(40):
            data.qpos[2] = 0.5 * (low + high)
            mujoco.mj_kinematics(model, data)
            apart = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)
            low, high = (low, data.qpos[2]) if apart > 1e-3 else (data.qpos[2], high)
        model.geom_margin[:] = model.body_margin[:] = 0.005
        mended_step1(model, data, view)
        contacts = [contact for contact in data.contact if contact.efc_address >= 0]
        if not contacts or not 5e-4 < apart < 2e-3:
            continue
        seen += 1
        nearest = min(contact.dist for contact in contacts)
        error.append((nearest - apart) / (1e-6 + lean**2))
    assert seen >= 40
    error = np.array(error)
    assert error.max() <= 1.0 * R  # of the second order in the lean
    assert error.min() >= -1.0 * R


# What rests rests


@pytest.mark.parametrize("lean", [0.0, 0.01])
def test_a_cylinder_comes_to_stand(lean):
    sim = Simulation(scene(FLOOR + free(CYLINDER, (0.0, 0.0, H + 0.002), (lean, 0.0, 0.0))))
    assert rest(sim) <= 1e-11
    assert sim.data.qpos[2] == pytest.approx(H, abs=1e-9)


@pytest.mark.parametrize(("share", "stands"), [(0.7, True), (0.99, True), (1.01, False)])
@pytest.mark.parametrize("turn", [0.0, 0.3, 0.5])
def test_a_cylinder_stands_while_its_weight_is_above_its_disc(share, turn, stands):
    x, y = share * R * np.cos(turn), share * R * np.sin(turn)
    loaded = f'<inertial mass="1" pos="{x} {y} 0" diaginertia="3e-3 3e-3 3e-3"/><geom type="cylinder" size="{R} {H}"/>'
    sim = Simulation(scene(FLOOR + free(loaded, (0.0, 0.0, H))))
    speed = rest(sim, 0.5)
    if stands:
        assert speed <= 1e-11
    else:
        assert speed > 0.01


def test_ten_cylinders_on_each_other_stand_still():
    rng = np.random.default_rng(0)
    tower = "".join(
        free(CYLINDER, (*rng.uniform(-0.01, 0.01, 2), H + 5e-4 + (2 * H + 1e-3) * k), (0, 0, rng.uniform(0, 6)))
        for k in range(10)
    )
    sim = Simulation(scene(FLOOR + tower))
    assert rest(sim) <= 1e-11
    place = sim.data.qpos.copy()
    rest(sim)
    np.testing.assert_allclose(sim.data.qpos, place, atol=1e-11)
    assert len(sim.contacts) == 10 * POINTS


def test_a_heap_of_boxes_and_cylinders_comes_to_rest():
    rng = np.random.default_rng(0)
    box = '<geom type="box" size="0.1 0.1 0.08" mass="1" friction="0.5"/>'
    heap = "".join(
        free(CYLINDER if k % 2 else box, (0.24 * (k % 4 - 1.5), 0.0, 0.12 + 0.24 * (k // 4)), (0, 0, rng.uniform(0, 1)))
        for k in range(12)
    )
    sim = Simulation(scene(FLOOR + heap))
    assert rest(sim, 2.0) <= 1e-10


def test_a_log_on_the_end_of_a_cylinder_and_on_a_box_lies_still():
    world = f'<geom type="cylinder" size="0.1 {H}" pos="0 0 {-H}"/><geom type="box" size="0.1 0.1 0.1" pos="1 0 -0.1"/>'
    log = '<geom type="cylinder" size="0.05 0.3" mass="1" friction="0.5"/>'
    lying = (0.0, np.pi / 2, 0.0)
    sim = Simulation(scene(world + free(log, (0.02, 0.0, 0.051), lying) + free(log, (1.02, 0.0, 0.051), lying)))
    assert rest(sim) <= 1e-11
    np.testing.assert_allclose(sim.data.qpos[[2, 9]], 0.05, atol=1e-9)

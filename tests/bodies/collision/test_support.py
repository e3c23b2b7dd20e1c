"""Contacts that are taken as they are because their plane separates both geoms."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from stiction.bodies.collision.support import reach, separates
from stiction.bodies.structs import memory

SHAPES = {
    "box": 'type="box" size=".1 .08 .05"',
    "capsule": 'type="capsule" size=".05 .1"',
    "cylinder": 'type="cylinder" size=".06 .1"',
    "mesh": 'type="mesh" mesh="stone"',
}
STONE = np.random.default_rng(3).normal(size=(40, 3)) * [0.1, 0.07, 0.05]


def two(one, other):
    points = " ".join(f"{x:.9g}" for x in STONE.ravel())
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><asset><mesh name="stone" vertex="{points}"/></asset><worldbody>
        <body><freejoint/><geom {SHAPES[one]} mass="1"/></body>
        <body><freejoint/><geom {SHAPES[other]} mass="1"/></body></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    return model, data, memory(model, data)


def turned(rng):
    turn = rng.normal(size=4)
    return turn / np.linalg.norm(turn)


@pytest.mark.parametrize("name", SHAPES)
def test_reach_is_that_of_the_farthest_point(name):
    """Points of the surface, found by rays from the middle outwards, reach no farther, and some nearly as far."""
    model, data, view = two(name, "box")
    rng = np.random.default_rng(0)
    data.qpos[3:7] = turned(rng)
    data.qpos[7:10] = 9.0
    mujoco.mj_kinematics(model, data)
    rays = rng.normal(size=(5_000, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    hit = np.zeros(1, np.int32)
    start = np.array(data.geom_xpos[0])
    for normal in rng.normal(size=(3, 3)):
        normal /= np.linalg.norm(normal)
        near = rays[rays @ normal > 0.5][:1000]
        lengths = [2.0 - mujoco.mj_ray(model, data, start + 2 * r, -r, None, 1, -1, hit) for r in near]
        points = start + near * np.array(lengths)[:, None]
        found = reach(view.model, view.data, 0, *normal)
        assert (points @ normal).max() <= found + 1e-9
        assert (points @ normal).max() >= found - 0.02


@pytest.mark.parametrize(
    ("one", "other"), [("box", "mesh"), ("mesh", "mesh"), ("capsule", "mesh"), ("box", "cylinder")]
)
def test_a_contact_is_right_if_and_only_if_it_shows_the_true_distance(one, other):
    model, data, view = two(one, other)
    rng = np.random.default_rng(1)
    ends = np.zeros(6)
    for _ in range(30):
        data.qpos[3:7], data.qpos[10:14] = turned(rng), turned(rng)
        data.qpos[7:10] = 0.4 * rng.normal(size=3)
        mujoco.mj_kinematics(model, data)
        dist = mujoco.mj_geomDistance(model, data, 0, 1, 5.0, ends)
        if dist < 0.01:
            continue
        normal, middle = (ends[3:] - ends[:3]) / dist, 0.5 * (ends[3:] + ends[:3])
        assert separates(view.model, view.data, 0, 1, dist, middle, normal, 1e-5)
        off = normal + 0.05 * np.cross(normal, [0.3, 0.5, 0.7])
        off /= np.linalg.norm(off)
        assert not separates(view.model, view.data, 0, 1, dist, middle, off, 1e-7)
        assert not separates(view.model, view.data, 0, 1, 1.01 * dist, middle, normal, 1e-7)
        assert not separates(view.model, view.data, 0, 1, dist, middle + 1e-3 * normal, normal, 1e-7)

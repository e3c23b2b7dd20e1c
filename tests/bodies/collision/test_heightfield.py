"""Heightfields: contacts of their surface, none of edges inside it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from stiction.bodies.collision.heightfield import height, is_normal
from stiction.bodies.scene import Scene
from stiction.bodies.stages import mended_step1
from stiction.bodies.structs import memory
from stiction.stepping import Simulation

SLOPE = np.radians(30.0)
SHAPES = {
    "sphere": 'type="sphere" size=".1"',
    "box": 'type="box" size=".1 .08 .05"',
    "capsule": 'type="capsule" size=".05 .1"',
}


def terrain(z, geom="", margin=None, dt=0.005):
    """A heightfield of 2 m with these heights, and a body."""
    low, high = z.min(), z.max()
    data = " ".join(f"{h:.17g}" for h in ((z - low) / (high - low)).ravel())
    field = f'<hfield name="h" nrow="{z.shape[0]}" ncol="{z.shape[1]}" size="1 1 {high - low} .1" elevation="{data}"/>'
    body = f'<body pos="0 0 9"><freejoint/><geom {geom} mass="1"/></body>' if geom else ""
    return Scene.from_xml(
        f'<mujoco><option timestep="{dt}"/><asset>{field}</asset>'
        f'<worldbody><geom type="hfield" hfield="h"/>{body}</worldbody></mujoco>',
        margin=margin,
    )


def ramp():
    x = np.linspace(-1.0, 1.0, 21)
    return np.tan(SLOPE) * np.meshgrid(x, x)[0]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("margin", [0.002, 0.02])
def test_normals_are_those_of_the_slope(name, margin):
    of = terrain(ramp(), SHAPES[name], margin)
    model, data = of.model, of.data()
    view = memory(of.model, data)
    model.geom_margin[:] = model.body_margin[:] = 0.5 * margin
    up = np.array([-np.sin(SLOPE), 0.0, np.cos(SLOPE)])
    rng = np.random.default_rng(0)
    sifted = 0
    for _ in range(60):
        turn = rng.normal(size=4)
        data.qpos[:] = 0.0, 0.0, 0.0, *(turn / np.linalg.norm(turn))
        mujoco.mj_kinematics(model, data)
        across = np.abs(data.geom_xmat[1].reshape(3, 3).T @ up)
        reach = {"sphere": 0.1, "box": across @ [0.1, 0.08, 0.05], "capsule": 0.05 + 0.1 * across[2]}[name]
        x, y = rng.uniform(-0.3, 0.3, 2)
        gap = rng.uniform(0.0, 0.9 * margin)
        # the field begins at height 0, at x = -1
        data.qpos[:3] = np.array([x, y, np.tan(SLOPE) * (x + 1.0)]) + (reach + gap) * up
        mended_step1(model, data, view)
        kept = data.contact.efc_address >= 0
        sifted += np.count_nonzero(~kept)
        assert data.contact.dist[kept].min() == pytest.approx(gap, abs=1e-5)
        assert (data.contact.frame[kept][:, :3] @ up).min() >= np.cos(4e-3)
    assert sifted > 0


def test_ridges_and_valleys_keep_their_contacts():
    z = np.zeros((5, 5))
    z[:, 2] = 0.5  # a ridge along y, at x = 0, with slopes of 45°
    of = terrain(z)
    data = of.data()
    view = memory(of.model, data)
    places = np.array([[0.0, 0.01], [0.0, 0.01], [-0.25, 0.01], [-0.25, 0.01], [-0.5, 0.1]])
    normals = np.array([[0, 0, 1.0], [-1.0, 0, 1], [-1, 0, 1], [0, 0, 1], [-1, 0, 1]])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    found = [is_normal(view.model, 0, *place, *normal) for place, normal in zip(places, normals, strict=True)]
    assert found == [True, True, True, False, True]


def test_heights_are_those_of_mujocos_triangles():
    of = terrain(np.random.default_rng(1).uniform(0.0, 0.3, (6, 6)), 'type="sphere" size="1e-4"')
    model, data = of.model, of.data()
    view = memory(of.model, data)
    rng = np.random.default_rng(0)
    for place in rng.uniform(-0.9, 0.9, (20, 2)):
        low, high = 0.0, 0.5
        for _ in range(30):
            data.qpos[:3] = *place, 0.5 * (low + high)
            model.geom_margin[:] = model.body_margin[:] = 0.0
            mended_step1(model, data, view)
            low, high = (low, data.qpos[2]) if data.ncon == 0 else (data.qpos[2], high)
        assert height(view.model, 0, *place) == pytest.approx(high - 1e-4, abs=1e-4)


def test_a_fast_ball_rolls_down_as_on_a_plane():
    """With wide margins, wrong normals in front of the ball would slow it down."""
    sim = Simulation(terrain(ramp(), 'type="sphere" size=".1" friction="1"', dt=0.005))
    up = np.array([-np.sin(SLOPE), 0.0, np.cos(SLOPE)])
    sim.data.qpos[:3] = np.array([0.9, 0.0, np.tan(SLOPE) * 1.9]) + 0.1 * up
    list(sim.run(0.6))
    assert np.linalg.norm(sim.data.qvel[:3]) == pytest.approx(5.0 / 7.0 * 9.81 * np.sin(SLOPE) * 0.6, rel=1e-6)


@pytest.mark.parametrize("name", ["box", "cylinder"])
def test_a_block_rests_on_a_slope(name):
    shape = {"box": 'type="box" size=".13 .17 .05"', "cylinder": 'type="cylinder" size=".15 .05"'}[name]
    sim = Simulation(terrain(ramp(), f'{shape} friction="1"'))
    up = np.array([-np.sin(SLOPE), 0.0, np.cos(SLOPE)])
    sim.data.qpos[:3] = np.array([0.03, 0.02, np.tan(SLOPE) * 1.03]) + 0.0501 * up
    sim.data.qpos[3:] = np.cos(SLOPE / 2), 0.0, -np.sin(SLOPE / 2), 0.0
    list(sim.run(0.5))
    place = sim.data.qpos[:3].copy()
    list(sim.run(0.5))
    assert np.abs(sim.data.qpos[:3] - place).max() <= 1e-11

"""Named scenes: geometry is exact, what should stand can stand, what should move moves, bad parameters are named."""

from __future__ import annotations

from functools import partial
from math import atan, sqrt

import mujoco
import numpy as np
import pytest
from scipy.optimize import linprog

from stiction.errors import InvalidScene
from stiction.scenes import SCENES, NamedScene
from stiction.scenes.lacoursiere import rows_of
from stiction.scenes.walker import BONE, LEGS, OFFSET, angles

TOUCHING = 1e-9  # m


def begin(scene: NamedScene, margin: float = 5e-5):
    """Model and data at the start; a margin, so that a contact is found whatever the sign of a rounded zero."""
    for geom in scene.spec.geoms:
        geom.margin = margin
    model, data = scene.begin()
    if scene.control is not None:
        scene.control(model, data)
        mujoco.mj_forward(model, data)
    return model, data


def touching(data) -> int:
    return sum(contact.dist < TOUCHING for contact in data.contact)


def run(scene: NamedScene, seconds: float, margin: float = 5e-5):
    model, data = begin(scene, margin)
    while data.time < seconds:
        if scene.control is not None:
            scene.control(model, data)
        mujoco.mj_step(model, data)
    return model, data


# name, parameters, velocities, contacts that touch at the start
STARTS = [
    ("peg-in-hole", {}, 6, 16),
    ("peg-in-hole", {"contacts": 8}, 6, 8),
    ("peg-in-hole", {"contacts": 64}, 6, 64),
    ("block-on-point", {}, 6, 1),
    ("block-on-edge", {}, 6, 2),
    ("block-on-tripod", {}, 6, 3),
    ("block-on-table", {}, 6, 4),
    ("face-on-face", {}, 6, 6),
    ("block-on-octagon", {}, 6, 8),
    ("block-in-groove", {}, 6, 8),
    ("block-in-corner", {}, 6, 12),
    ("ball-in-rim", {}, 6, 16),
    ("ball-in-rim", {"contacts": 3}, 6, 3),
    ("block-in-channel", {}, 6, 16),
    ("block-stack", {}, 60, 40),
    ("block-stack", {"blocks": 4, "per": 8, "edge": 0.1}, 24, 32),
    ("inclined-plane", {"angle": 0.7, "mu": 0.2}, 6, 4),
    ("log-heap", {}, 240, 0),
    ("log-heap", {"logs": 7, "drop": 0.0}, 42, 34),
    ("force-closure-grasp", {}, 14, 36),
    ("force-closure-grasp", {"contacts": 12}, 14, 12),
    ("quadruped", {}, 18, 4),
    ("quadruped", {"gait": "trot", "terrain": "boxes"}, 18, 4),
    ("block-feeder", {}, 27, 28),
    ("double-action-jack", {}, 18, 6),
    ("box-on-plane", {}, 6, 4),
    ("box-on-plane", {"height": 0.3}, 6, 0),
    ("sliding-cube", {}, 6, 4),
    ("sliding-ball", {}, 6, 1),
    ("pinched-capsule", {}, 8, 4),
    ("mass-ratio", {}, 12, 8),
    ("card-house", {"levels": 1}, 12, 6),
    ("card-house", {}, 84, 56),
    ("masonry-arch", {}, 54, 40),
    ("dominoes", {}, 60, 40),
    ("conveyor", {}, 18, 12),
    ("conveyor", {"boxes": 1, "speed": -1.0}, 6, 4),
    ("rolling-balls", {}, 18, 3),
    ("four-bar", {}, 9, 4),
    ("heap", {}, 72, 0),
    ("heap", {"bodies": 1000}, 6000, 0),
    ("wall", {}, 66, 60),
    ("wall", {"rows": 4, "columns": 2, "speed": 0.0}, 60, 56),
    ("humanoids", {}, 22, 0),
    ("humanoids", {"count": 100}, 2200, 0),
    ("granular-column", {}, 180, 0),
    ("granular-column", {"grains": 1000, "aspect": 0.5}, 6000, 0),
]


@pytest.mark.parametrize(("name", "parameters", "velocities", "contacts"), STARTS)
def test_starts_with_these_contacts_and_no_overlap(name, parameters, velocities, contacts):
    model, data = begin(SCENES[name](**parameters))
    assert model.nv == velocities
    assert touching(data) == contacts
    assert all(contact.dist > -TOUCHING for contact in data.contact)
    assert np.isfinite(data.ctrl).all()
    assert np.isfinite(data.qacc_smooth).all()


def test_every_scene_is_among_those_checked():
    assert {name for name, *_ in STARTS} == set(SCENES)


@pytest.mark.parametrize("name", SCENES)
def test_nothing_explodes_in_a_quarter_of_a_second(name):
    _, data = run(SCENES[name](), 0.25)
    assert np.isfinite(data.qpos).all()
    assert np.abs(data.qvel).max() < 60.0
    assert not any(warning.number for warning in data.warning)


@pytest.mark.parametrize("name", SCENES)
def test_says_what_it_is_and_compiles_under_its_name(name):
    scene = SCENES[name]()
    assert scene.spec.modelname == name
    assert scene.description.endswith(".")
    assert scene.spec.option.cone == mujoco.mjtCone.mjCONE_ELLIPTIC


@pytest.mark.parametrize("name", SCENES)
def test_same_parameters_same_scene(name):
    first, second = SCENES[name](), SCENES[name]()
    first.spec.compile()
    second.spec.compile()
    assert first.spec.to_xml() == second.spec.to_xml()


# Statics: forces in the friction pyramids that balance all other forces, found by a linear program


def imbalance(scene: NamedScene, facets: int = 16) -> float:
    """The least force that no contact can balance, relative to the largest that acts."""
    model, data = begin(scene)
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        J[:] = data.efc_J.reshape(J.shape)
    rays = []
    for contact in data.contact:
        normal, first, second = J[contact.efc_address : contact.efc_address + 3]
        for angle in 2.0 * np.pi * np.arange(facets) / facets:
            ray = normal + contact.friction[0] * (np.cos(angle) * first + np.sin(angle) * second)
            rays += [ray] if contact.dist < TOUCHING else []
    load, slack = data.qfrc_smooth, np.eye(model.nv)
    balance = np.hstack([np.array(rays).T, slack, -slack])
    cost = np.concatenate([np.zeros(len(rays)), np.ones(2 * model.nv)])
    return linprog(cost, A_eq=balance, b_eq=-load).fun / np.abs(load).max()


@pytest.mark.parametrize(
    "name",
    [
        "peg-in-hole", "block-on-point", "block-on-edge", "block-on-tripod", "block-on-table", "face-on-face",
        "block-on-octagon", "block-in-groove", "block-in-corner", "ball-in-rim", "block-in-channel", "block-stack",
        "inclined-plane", "force-closure-grasp", "pinched-capsule", "mass-ratio", "card-house", "masonry-arch",
        "box-on-plane",
    ],
)  # fmt: skip
def test_what_should_rest_can(name):
    assert imbalance(SCENES[name]()) < 1e-9


@pytest.mark.parametrize(
    ("standing", "falling"),
    [
        (partial(SCENES["inclined-plane"], mu=0.5, angle=atan(0.5) - 1e-6), {"angle": atan(0.5) + 1e-6}),
        # weight 2 x 9.81 N on two faces of 100 N
        (partial(SCENES["force-closure-grasp"], mu=0.0981 + 1e-6), {"mu": 0.0981 - 1e-6}),
        (partial(SCENES["pinched-capsule"], force=0.045 * 9.81 / 1.4 + 1e-6), {"force": 0.045 * 9.81 / 1.4 - 1e-6}),
        # a round arch needs 0.107 of its mean radius, 2.5 m
        (partial(SCENES["masonry-arch"], stones=31, thickness=0.275), {"thickness": 0.26}),
        (partial(SCENES["masonry-arch"], mu=0.4), {"mu": 0.3}),
        # one pair: thrust is half a card's weight times the tangent
        (partial(SCENES["card-house"], levels=1, lean=0.35, mu=0.5 * np.tan(0.35) + 1e-2), {"mu": 0.17}),
        (partial(SCENES["card-house"], levels=3, mu=0.4), {"mu": 0.2}),
    ],
)
def test_rests_up_to_the_limit_known_by_hand(standing, falling):
    assert imbalance(standing()) < 1e-9
    assert imbalance(standing(**falling)) > 1e-9


def test_settled_logs_touch_all_their_neighbours():
    assert rows_of(40, 6) == [6, 5, 6, 5, 6, 5, 6, 1]
    scene = SCENES["log-heap"](drop=0.0)
    _, data = begin(scene)
    in_rows, between_rows, ground, stakes = 32, 6 * 10 + 2, 6, 4 * 4
    assert touching(data) == 2 * (in_rows + between_rows + ground) + stakes


# Motion


def test_sliding_starts_at_its_speed():
    _, data = begin(SCENES["sliding-cube"](speed=1.5))
    assert data.qvel[0] == 1.5
    _, data = begin(SCENES["sliding-ball"](speed=0.5))
    assert data.qvel[0] == 0.5


def test_the_pushed_domino_turns_about_its_lower_edge():
    model, data = begin(SCENES["dominoes"](push=2.0))
    edge = data.body("domino0").xpos + np.array([0.00375, 0.0, -0.024])
    jacobian = np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, jacobian, None, edge, model.body("domino0").id)
    assert np.abs(jacobian @ data.qvel).max() < 1e-15
    assert np.linalg.norm(data.qvel[3:6]) == 2.0


def test_the_last_domino_falls():
    _, data = run(SCENES["dominoes"](count=4), 0.8, margin=1e-4)
    assert data.body("domino3").xmat[8] < 0.5


def test_a_wrench_acts_on_the_named_body():
    wrench = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    _, data = begin(SCENES["block-stack"](blocks=3, wrench=wrench))
    assert data.body("block2").xfrc_applied.tolist() == wrench
    assert not data.body("block1").xfrc_applied.any()


def test_the_foot_goes_where_inverse_kinematics_sends_it():
    model, data = begin(SCENES["quadruped"]())
    rest = {leg: data.geom(f"{leg}-foot").xpos.copy() for leg in LEGS}
    move = np.array([0.05, -0.03, 0.04])
    stance = 0.32
    for leg, (_, left) in LEGS.items():
        hip, thigh, shank = angles(left, move[0], left * OFFSET + move[1], move[2] - stance)
        _, thigh0, shank0 = angles(left, 0.0, left * OFFSET, -stance)
        joints = (hip, thigh - thigh0, shank - thigh - (shank0 - thigh0))
        for name, angle in zip(("hip", "thigh", "shank"), joints, strict=True):
            data.joint(f"{leg}-{name}").qpos[0] = angle
    mujoco.mj_kinematics(model, data)
    for leg in LEGS:
        np.testing.assert_allclose(data.geom(f"{leg}-foot").xpos - rest[leg], move, atol=1e-14)
    assert stance < 2.0 * BONE


@pytest.mark.parametrize(
    ("gait", "terrain", "seconds"),
    [
        ("crawl", "flat", 3.0),
        pytest.param("crawl", "flat", 12.0, marks=pytest.mark.slow),
        pytest.param("crawl", "boxes", 12.0, marks=pytest.mark.slow),
        pytest.param("trot", "flat", 12.0, marks=pytest.mark.slow),
        pytest.param("trot", "boxes", 12.0, marks=pytest.mark.slow),
    ],
)
def test_the_robot_walks_upright(gait, terrain, seconds):
    _, data = run(SCENES["quadruped"](gait=gait, terrain=terrain), seconds, margin=1e-3)
    speed = {"crawl": 0.06, "trot": 0.15}[gait]
    assert data.body("trunk").xpos[0] > speed * seconds
    assert data.body("trunk").xpos[2] > 0.3
    assert data.body("trunk").xmat[8] > 0.95


def test_the_feeder_feeds_one_block_a_turn_and_takes_them_back():
    _, data = run(SCENES["block-feeder"](), 6.0, margin=1e-3)
    places = sorted(data.body(f"block{k}").xpos[0] for k in range(6))
    assert sum(abs(x) < 0.02 for x in places) >= 4  # in the shaft
    assert places[-1] > 0.05  # being fed
    assert abs(data.body("block0").xpos[0]) < 0.02  # fed first, dropped, taken back
    assert data.body("block0").xpos[2] > data.body("block4").xpos[2]


def test_the_jack_lifts_one_tooth_a_turn_and_starts_over():
    scene = SCENES["double-action-jack"]()
    model, data = begin(scene)
    heights = []
    while data.time < 6.0:
        scene.control(model, data)
        mujoco.mj_step(model, data)
        heights.append(data.joint("rack-z").qpos[0])
    turn = int(2.0 * np.pi / 2.9 / model.opt.timestep)
    assert 0.08 < heights[2 * turn] - heights[turn] < 0.12
    assert min(np.diff(heights)) < -0.19  # set back by two teeth of 0.1 m


def test_pins_of_the_mechanisms_are_closed_at_the_start():
    for name in ("block-feeder", "double-action-jack"):
        _, data = begin(SCENES[name]())
        assert np.abs(data.efc_pos[: data.ne]).max() < 1e-12


# Bad parameters


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("peg-in-hole", {"contacts": 7}, "contacts must be a multiple of 2 from 6 to 128, got 7"),
        ("peg-in-hole", {"contacts": 16.0}, "contacts must be a multiple of 2"),
        ("peg-in-hole", {"wrench": [1.0, 2.0]}, "wrench must be six finite numbers"),
        ("block-on-table", {"mu": -0.1}, "mu must be a number from 0 to 1000, got -0.1"),
        ("block-on-table", {"mu": float("nan")}, "mu must be a number"),
        ("block-on-table", {"mu": "rough"}, "mu must be a number"),
        ("ball-in-rim", {"contacts": 2}, "contacts must be a whole number from 3 to 128"),
        ("block-stack", {"blocks": 0}, "blocks must be a whole number from 1 to 1000, got 0"),
        ("block-stack", {"blocks": True}, "blocks must be a whole number"),
        ("block-stack", {"per": 5}, "per must be one of 4, 8, got 5"),
        ("block-stack", {"edge": 0.0}, "edge must be a number from 0.0001 to 10000 m, got 0.0"),
        ("inclined-plane", {"angle": 2.0}, "angle must be a number from 0 to 1.5708 rad"),
        ("log-heap", {"logs": 0}, "logs must be a whole number from 1 to 2000"),
        ("log-heap", {"radius": 0.2, "length": 0.3}, "length must be a number from 0.4"),
        ("force-closure-grasp", {"contacts": 24}, "contacts must be one of 36, 12"),
        ("force-closure-grasp", {"force": -1.0}, "force must be a number from 0"),
        ("quadruped", {"gait": "gallop"}, "gait must be one of 'crawl', 'trot', got 'gallop'"),
        ("quadruped", {"terrain": "moon"}, "terrain must be one of 'flat', 'boxes'"),
        ("block-feeder", {"blocks": 2}, "blocks must be a whole number from 3 to 50"),
        ("double-action-jack", {"load": 1e3}, "load must be a number from 0 to 50 kg"),
        ("sliding-cube", {"speed": float("inf")}, "speed must be a number from 0 to 1000 m/s"),
        ("pinched-capsule", {"mass": 0.0}, "mass must be a number from"),
        ("mass-ratio", {"ratio": 0.0}, "ratio must be a number from"),
        ("card-house", {"levels": 13}, "levels must be a whole number from 1 to 12"),
        ("card-house", {"lean": 1.0}, "lean must be a number from 0.05 to 0.6 rad"),
        ("masonry-arch", {"stones": 2}, "stones must be a whole number from 3 to 101"),
        ("dominoes", {"spacing": 0.001}, "spacing must be a number from"),
    ],
)
def test_bad_parameters_are_named(name, parameters, message):
    with pytest.raises(InvalidScene) as failure:
        SCENES[name](**parameters)
    assert message in str(failure.value)


def test_planes_lie_where_their_normals_say():
    """The quaternions that turn z to a direction, tested through the groove, the channel and a steep plane."""
    model, data = begin(SCENES["block-in-channel"]())
    for geom, normal in {"left": [0, 1, 0], "right": [0, -1, 0], "bottom": [0, 0, 1], "top": [0, 0, -1]}.items():
        np.testing.assert_allclose(data.geom(geom).xmat.reshape(3, 3)[:, 2], normal, atol=1e-15)
    model, data = begin(SCENES["block-in-groove"]())
    np.testing.assert_allclose(data.geom("left").xmat.reshape(3, 3)[:, 2], [sqrt(0.5), 0.0, sqrt(0.5)], atol=1e-15)
    assert model.nv == 6

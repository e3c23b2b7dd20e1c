"""A walking robot with four legs and twelve hinges, on flat ground or on uneven ground made of boxes.

Feet follow a path in the robot's own frame, which repeats with each stride; inverse kinematics turns it into angles,
which position servos follow. There is no balance controller: a crawl keeps three feet down and leans away from the one
that swings, a trot is quick enough not to fall. The walking robot of [Drumwright2013, fig. 2] is another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import acos, atan2, hypot, pi, sin, sqrt
from typing import TYPE_CHECKING

import numpy as np

from stiction.scenes.parts import (
    BOX,
    CAPSULE,
    HINGE,
    ORANGE,
    RED,
    SPHERE,
    STONE,
    NamedScene,
    check_choice,
    check_count,
    check_friction,
    check_number,
    empty,
    free_box,
    ground,
    mj,
    turned,
)

if TYPE_CHECKING:
    import mujoco


TRUNK = (0.5, 0.16, 0.08)  # m
HIP = (0.2, 0.08)  # m, from the trunk's centre, along x and y
OFFSET = 0.05  # m, from the hip's axis to the plane of the leg
BONE = 0.2  # m, thigh and shank
FOOT = 0.02  # m, radius
STANCE = 0.32  # m, from hip to foot
STIFFNESS, DAMPING = 300.0, 6.0  # N m/rad, N m s/rad; damping is that of the hinges, hence implicit
X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class Gait:
    """When each foot swings, and how far the trunk moves meanwhile."""

    period: float  # s
    duty: float  # part of the period that a foot is down
    phase: dict[str, float]  # when a foot starts to swing, in periods
    step: float  # m, that a foot moves back while it is down
    lift: float  # m
    sway: float  # m, to the side of the feet that stay


GAITS = {
    "crawl": Gait(
        period=2.0, duty=0.8, phase={"LH": 0.0, "LF": 0.25, "RH": 0.5, "RF": 0.75}, step=0.16, lift=0.05, sway=0.04
    ),
    "trot": Gait(
        period=0.5, duty=0.6, phase={"LH": 0.0, "LF": 0.5, "RH": 0.5, "RF": 0.0}, step=0.08, lift=0.04, sway=0.0
    ),
}
LEGS = {"LF": (1.0, 1.0), "RF": (1.0, -1.0), "LH": (-1.0, 1.0), "RH": (-1.0, -1.0)}  # front or hind, left or right


def quadruped(
    gait: str = "crawl", terrain: str = "flat", roughness: float = 0.02, mu: float = 0.8, seed: int = 0
) -> NamedScene:
    """A robot (12 kg, 0.5 m long) that walks along x.

    gait: crawl (0.1 m/s) or trot (0.2 m/s)
    terrain: flat, or boxes of random height up to `roughness` (m)
    """
    check_choice("gait", gait, tuple(GAITS))
    check_choice("terrain", terrain, ("flat", "boxes"))
    check_number("roughness", roughness, 0.0, 0.03, "m")
    check_count("seed", seed, 0, 2**63 - 1)
    spec = empty("quadruped", check_friction(mu), timestep=0.005, size=1.0)
    ground(spec)
    if terrain == "boxes":
        add_terrain(spec, roughness, seed)
    trunk = free_box(spec, "trunk", TRUNK, (0.0, 0.0, STANCE + FOOT), 8.0)
    for leg in LEGS:
        add_leg(spec, trunk, leg)
    where = "flat ground" if terrain == "flat" else "boxes"
    return NamedScene(spec, partial(walk, GAITS[gait]), f"A robot with four legs, {gait} on {where}.")


def add_leg(spec: mujoco.MjSpec, trunk: mujoco.MjsBody, leg: str) -> None:
    """Hip (about x), thigh and shank (about y); all angles are zero as it stands."""
    front, left = LEGS[leg]
    _, thigh_angle, shank_angle = angles(left, 0.0, left * OFFSET, -STANCE)
    hip = trunk.add_body(name=f"{leg}-hip", pos=[front * HIP[0], left * HIP[1], 0.0])
    hip.add_geom(name=f"{leg}-hip", type=SPHERE, size=[0.03, 0.0, 0.0], mass=0.2, rgba=STONE)
    thigh = hip.add_body(name=f"{leg}-thigh", pos=[0.0, left * OFFSET, 0.0], quat=turned(Y, thigh_angle))
    shank = thigh.add_body(name=f"{leg}-shank", pos=[0.0, 0.0, -BONE], quat=turned(Y, shank_angle - thigh_angle))
    for body, name, mass, thick in ((thigh, "thigh", 0.5, 0.02), (shank, "shank", 0.25, 0.012)):
        body.add_geom(
            name=f"{leg}-{name}", type=CAPSULE, size=[thick, 0.5 * BONE - thick, 0.0], pos=[0.0, 0.0, -0.5 * BONE],
            mass=mass, rgba=ORANGE,
        )  # fmt: skip
    shank.add_geom(name=f"{leg}-foot", type=SPHERE, size=[FOOT, 0.0, 0.0], pos=[0.0, 0.0, -BONE], mass=0.05, rgba=RED)
    for body, name, axis in ((hip, "hip", X), (thigh, "thigh", Y), (shank, "shank", Y)):
        body.add_joint(name=f"{leg}-{name}", type=HINGE, axis=axis, damping=[DAMPING, 0.0, 0.0], armature=0.02)
        spec.add_actuator(
            name=f"{leg}-{name}", target=f"{leg}-{name}", trntype=mj.mjtTrn.mjTRN_JOINT,
            gainprm=[STIFFNESS] + [0.0] * 9, biastype=mj.mjtBias.mjBIAS_AFFINE,
            biasprm=[0.0, -STIFFNESS] + [0.0] * 8,
        )  # fmt: skip


def add_terrain(spec: mujoco.MjSpec, roughness: float, seed: int) -> None:
    """A field of square tiles of random height, 2.8 x 1.2 m, that begins in front of the robot."""
    rng = np.random.default_rng(seed)
    edge = 0.2
    for i in range(14):
        for j in range(6):
            height = max(roughness * rng.uniform(), 1e-3)
            spec.worldbody.add_geom(
                name=f"tile{i}-{j}", type=BOX, size=[0.5 * edge, 0.5 * edge, 0.5 * height],
                pos=[0.4 + edge * i, edge * (j - 2.5), 0.5 * height], rgba=(*STONE[:2], 0.3 + 0.5 * rng.uniform(), 1.0),
            )  # fmt: skip


# Motion


def walk(gait: Gait, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Angles that make the feet follow the gait, from rest to full steps within a second."""
    _, thigh_rest, shank_rest = angles(1.0, 0.0, OFFSET, -STANCE)
    share = min(data.time, 1.0)
    targets = []
    for leg, (_, left) in LEGS.items():
        forward, sideways, up = (share * part for part in foot(gait, leg, data.time))
        hip, thigh, shank = angles(left, forward, left * OFFSET + sideways, up - STANCE)
        targets += [hip, thigh - thigh_rest, shank - thigh - (shank_rest - thigh_rest)]
    data.ctrl[:] = targets


def foot(gait: Gait, leg: str, time: float) -> tuple[float, float, float]:
    """Where a foot is, from where it stands at rest: forward, to the left, up (m)."""
    cycle = time / gait.period
    sideways = gait.sway * sin(2.0 * pi * (cycle + 0.05))  # the trunk goes to the right while left feet swing
    since = (cycle - gait.phase[leg]) % 1.0
    swing = 1.0 - gait.duty
    if since < swing:
        part = since / swing
        return gait.step * (part - sin(2.0 * pi * part) / (2.0 * pi) - 0.5), sideways, gait.lift * sin(pi * part) ** 2
    return gait.step * (0.5 - (since - swing) / gait.duty), sideways, 0.0


def angles(left: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Hip's roll, pitch of thigh and pitch of shank that bring a foot to this place from its hip; knees point back."""
    offset = left * OFFSET
    down = sqrt(y * y + z * z - offset * offset)
    roll = atan2(z, y) - atan2(-down, offset)
    line = atan2(-x, down)
    bend = acos(min(1.0, hypot(x, down) / (2.0 * BONE)))
    return roll, line + bend, line - bend

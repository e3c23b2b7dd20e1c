"""Scenes that grow: heaps, walls, ragdolls and grains, few bodies unless more are asked for."""

from __future__ import annotations

from math import ceil, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from stiction.scenes.parts import (
    BOX,
    CAPSULE,
    COLOURS,
    CYLINDER,
    HINGE,
    PLANE,
    RED,
    SPHERE,
    NamedScene,
    check_count,
    check_friction,
    check_number,
    empty,
    free_box,
    free_geom,
    ground,
    start_moving,
    turned,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mujoco

    Place = tuple[float, float, float]
    Part = tuple[str, str, Place, Place, float, float, tuple[tuple[Place, float, float], ...]]

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
SHAPES = (
    (BOX, (0.1, 0.08, 0.05)), (CYLINDER, (0.05, 0.08, 0.0)), (CAPSULE, (0.05, 0.06, 0.0)), (SPHERE, (0.08, 0.0, 0.0))
)  # fmt: skip
PITCH, LAYER = 0.3, 0.29  # m, of bodies beside and above each other at first
PER_BODY = 100_000  # bytes of MuJoCo's memory
SEEDS = 2**63 - 1


def heap(bodies: int = 12, seed: int = 0) -> NamedScene:
    """Boxes, cylinders, capsules and spheres of 1 to 10 kg that fall between four walls.

    mu is 1 at walls and ground, and from 0.3 to 1 between bodies.
    """
    rng = np.random.default_rng(check_count("seed", seed, 0, SEEDS))
    across = max(2, round(sqrt(check_count("bodies", bodies, 1, 100_000) / 6)))
    spec = empty("heap", 1.0, timestep=0.004, size=PITCH * across)
    spec.memory = max(1 << 24, PER_BODY * bodies)
    ground(spec)
    middle = 0.5 * PITCH * (across - 1)
    wall = middle + 0.2
    spec.add_material(name="glass", rgba=[0.0, 0.0, 0.0, 0.0])
    for name, pos, angle, axis in (
        ("left", (-wall, 0.0, 0.0), 0.5 * pi, Y), ("right", (wall, 0.0, 0.0), -0.5 * pi, Y),
        ("front", (0.0, -wall, 0.0), -0.5 * pi, X), ("back", (0.0, wall, 0.0), 0.5 * pi, X),
    ):  # fmt: skip
        spec.worldbody.add_geom(
            name=name, type=PLANE, size=[wall, wall, 0.1], pos=pos, quat=turned(axis, angle), material="glass"
        )
    for k in range(bodies):
        shape = int(rng.integers(len(SHAPES)))
        kind, size = SHAPES[shape]
        x, y = (PITCH * at - middle + rng.uniform(-0.02, 0.02) for at in (k % across, k // across % across))
        tilt, turn = rng.uniform(0.0, 40.0), rng.uniform(0.0, 90.0)
        place = (x, y, 0.15 + LAYER * (k // across**2))
        quat = times(turned(X, np.radians(tilt)), turned(Z, np.radians(turn)))
        mass, mu = 10.0 ** rng.uniform(0.0, 1.0), rng.uniform(0.3, 1.0)
        free_geom(
            spec, f"body{k}", place, quat, type=kind, size=size, mass=mass, friction=[mu, 0.0, 0.0],
            rgba=COLOURS[shape],
        )  # fmt: skip
    return NamedScene(spec, None, f"A heap of {bodies} bodies that falls between walls.")


def times(one: Sequence[float], two: Sequence[float]) -> list[float]:
    """Product of two quaternions."""
    a, b, c, d = one
    e, f, g, h = two
    return [
        a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
        a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e,
    ]  # fmt: skip


def wall(rows: int = 3, columns: int = 3, speed: float = 6.0, mu: float = 0.7) -> NamedScene:
    """A dry wall of bricks (200 × 100 × 65 mm, 2.6 kg) in running bond, hit by a ball of 5 kg in its middle.

    speed: of the ball, 0.3 m away at first (m/s); 0: there is none, and the wall stands
    """
    long, deep, tall, joint = 0.2, 0.1, 0.065, 0.001
    check_count("rows", rows, 1, 100)
    check_count("columns", columns, 1, 100)
    check_number("speed", speed, 0.0, 100.0, "m/s")
    spec = empty("wall", check_friction(mu), timestep=0.002, size=max(0.5, long * columns, tall * rows))
    spec.memory = max(1 << 24, PER_BODY * rows * columns)
    ground(spec)
    qpos: list[float] = []
    for row in range(rows):
        # Every second row begins and ends with half a brick.
        halved = row % 2 == 1
        lengths = [0.5 * long, *[long] * (columns - 1), 0.5 * long] if halved else [long] * columns
        edge = -0.5 * long * columns
        for k, length in enumerate(lengths):
            centre = (edge + 0.5 * length, 0.0, (row + 0.5) * tall)
            edges = (length - joint, deep, tall)
            free_box(spec, f"brick{row}-{k}", edges, centre, 2.6 * length / long, rgba=COLOURS[(row + k) % 3])
            qpos += [*centre, 1.0, 0.0, 0.0, 0.0]
            edge += length
    moving = [0.0] * (6 * (len(qpos) // 7))
    if speed > 0.0:
        radius = 0.08
        centre = (0.03, -0.5 * deep - 0.3 - radius, max(radius, 0.5 * tall * rows))
        free_geom(spec, "ball", centre, type=SPHERE, size=[radius, 0.0, 0.0], mass=5.0, rgba=RED)
        qpos += [*centre, 1.0, 0.0, 0.0, 0.0]
        moving += [0.0, speed, 0.0, 0.0, 0.0, 0.0]
    start_moving(spec, qpos, moving)
    return NamedScene(spec, None, f"A wall of {rows} rows of {columns} bricks{', hit by a ball' * (speed > 0.0)}.")


# A ragdoll of 70 kg: part, parent, place of its joint in the parent (m), end from there, radius, mass (kg), axes and
# range of its hinges (rad). Sides are mirrored in y.
TRUNK: tuple[Part, ...] = (
    ("chest", "pelvis", (0.0, 0.0, 0.10), (0.0, 0.0, 0.26), 0.11, 20.0, ((Y, -0.5, 1.0),)),
    ("head", "chest", (0.0, 0.0, 0.40), (0.0, 0.0, 0.10), 0.09, 5.0, ((Y, -0.6, 0.8),)),
)
LIMBS: tuple[Part, ...] = (
    ("upper-arm", "chest", (0.0, 0.22, 0.25), (0.0, 0.0, -0.26), 0.045, 2.5, ((Y, -2.5, 1.0), (X, -0.2, 2.0))),
    ("lower-arm", "upper-arm", (0.0, 0.0, -0.28), (0.0, 0.0, -0.26), 0.035, 2.0, ((Y, -2.4, 0.0),)),
    ("thigh", "pelvis", (0.0, 0.10, -0.05), (0.0, 0.0, -0.38), 0.07, 8.5, ((Y, -1.8, 0.5), (X, -0.2, 0.7))),
    ("shin", "thigh", (0.0, 0.0, -0.40), (0.0, 0.0, -0.36), 0.05, 4.0, ((Y, 0.0, 2.4),)),
    ("foot", "shin", (0.0, 0.0, -0.40), (0.16, 0.0, 0.0), 0.035, 1.0, ((Y, -0.6, 0.6),)),
)


def humanoids(count: int = 1, seed: int = 0, mu: float = 0.6) -> NamedScene:
    """Ragdolls of 70 kg, 22 velocities each, with limits in their joints, that fall on each other."""
    rng = np.random.default_rng(check_count("seed", seed, 0, SEEDS))
    across = max(1, ceil((check_count("count", count, 1, 10_000) / 4) ** 0.5))
    spec = empty("humanoids", check_friction(mu), timestep=0.004, size=max(2.0, 1.3 * across))
    spec.memory = max(1 << 24, 20 * PER_BODY * count)
    ground(spec)
    for k in range(count):
        x, y = (1.3 * (place - 0.5 * (across - 1)) for place in (k % across, k // across % across))
        pelvis = spec.worldbody.add_body(name=f"pelvis{k}", pos=[x, y, 1.1 + 1.9 * (k // across**2)])
        pelvis.quat = times(turned(Z, rng.uniform(-pi, pi)), turned(Y, rng.uniform(0.1, 0.5)))
        pelvis.add_freejoint(name=f"root{k}")
        colour = COLOURS[k % len(COLOURS)]
        pelvis.add_geom(
            name=f"pelvis{k}", type=CAPSULE, size=[0.09, 0.0, 0.0], fromto=[0.0, -0.07, 0.0, 0.0, 0.07, 0.0],
            mass=9.0, rgba=colour,
        )  # fmt: skip
        made = {"pelvis": pelvis}
        for part in TRUNK:
            add_part(made, part, str(k), 1.0, colour)
        for side, mirror in (("left", 1.0), ("right", -1.0)):
            limbs = dict(made)
            for part in LIMBS:
                add_part(limbs, part, f"{k}-{side}", mirror, colour)
    return NamedScene(spec, None, f"{count} ragdoll{'s' * (count > 1)} that fall.")


def add_part(made: dict[str, mujoco.MjsBody], part: Part, ending: str, mirror: float, colour: Sequence[float]) -> None:
    """A capsule on hinges; made: the parts so far, by name."""
    name, parent, place, end, radius, mass, hinges = part
    body = made[name] = made[parent].add_body(name=name + ending, pos=[place[0], mirror * place[1], place[2]])
    for k, (axis, low, high) in enumerate(hinges):
        turns = mirror if axis == X else 1.0
        body.add_joint(
            name=f"{name}{ending}-{'yx'[k]}", type=HINGE, axis=[turns * each for each in axis], limited=1,
            range=[low, high], damping=[1.0, 0.0, 0.0],
        )  # fmt: skip
    body.add_geom(
        name=name + ending, type=CAPSULE, size=[radius, 0.0, 0.0], fromto=[0.0, 0.0, 0.0, *end], mass=mass, rgba=colour
    )


def granular_column(grains: int = 30, aspect: float = 2.0, mu: float = 0.5, seed: int = 0) -> NamedScene:
    """A column of spheres of 16 to 20 mm, 2500 kg/m³, that collapses and spreads when it is let go.

    aspect: height over radius of the column
    """
    rng = np.random.default_rng(check_count("seed", seed, 0, SEEDS))
    check_count("grains", grains, 1, 100_000)
    check_number("aspect", aspect, 0.2, 20.0)
    least, most, density = 0.008, 0.01, 2500.0
    pitch = 2.05 * most

    # Layers are squares turned by turns, cut to discs; as many as the aspect asks for.
    wide = max(1.0, (grains / (pi * aspect)) ** (1.0 / 3.0))
    reach = ceil(wide) + 1
    spots = sorted(
        ((i * i + j * j, i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)),
        key=lambda spot: (spot[0], spot[1], spot[2]),
    )
    layer = [(i, j) for square, i, j in spots if square <= wide * wide]
    spec = empty("granular-column", check_friction(mu), timestep=0.002, size=max(0.1, 3.0 * wide * pitch))
    spec.memory = max(1 << 24, PER_BODY * grains)
    ground(spec)
    for k in range(grains):
        level, place = divmod(k, len(layer))
        i, j = layer[place]
        shift = 0.25 * pitch * (level % 2)
        x, y = (pitch * each + shift + rng.uniform(-0.02, 0.02) * most for each in (i, j))
        radius = rng.uniform(least, most)
        free_geom(
            spec, f"grain{k}", (x, y, most + level * pitch), type=SPHERE, size=[radius, 0.0, 0.0],
            mass=density * 4.0 / 3.0 * pi * radius**3, rgba=COLOURS[level % len(COLOURS)],
        )  # fmt: skip
    return NamedScene(spec, None, f"A column of {grains} grains that collapses.")

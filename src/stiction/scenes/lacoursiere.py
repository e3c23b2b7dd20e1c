"""A block on an inclined plane, and a heap of logs [Lacoursiere2003, fig. 4]."""

from __future__ import annotations

from itertools import product
from math import cos, pi, sin, sqrt

import numpy as np

from stiction.scenes.parts import (
    CAPSULE,
    COLOURS,
    STONE,
    NamedScene,
    check_count,
    check_friction,
    check_number,
    empty,
    free_box,
    free_geom,
    ground,
    turned,
    turning_z_to,
)

BLOCK = (0.4, 0.3, 0.2)  # m
DENSITY = 600.0  # kg/m³, of wood


def inclined_plane(angle: float = 0.3, mu: float = 0.5, mass: float = 1.0) -> NamedScene:
    """A block on a plane that falls towards +x by `angle`: from rest it slides iff tan(angle) > mu.

    Then with a = g (sin(angle) - mu cos(angle)). It tips over its lower edge, 0.4 m long and 0.2 m high, if both angle
    and friction angle exceed atan 2.
    """
    check_number("angle", angle, 0.0, 0.5 * pi, "rad")
    check_number("mass", mass, 1e-6, 1e9, "kg")
    spec = empty("inclined-plane", check_friction(mu), size=1.0)
    normal = (sin(angle), 0.0, cos(angle))
    ground(spec, normal, "plane")
    centre = [0.5 * BLOCK[2] * component for component in normal]
    free_box(spec, "block", BLOCK, centre, mass, turned((0.0, 1.0, 0.0), angle))
    return NamedScene(spec, None, f"A block on a plane of {angle:g} rad, mu = {mu:g}.")


def log_heap(
    logs: int = 40,
    drop: float = 0.05,
    radius: float = 0.1,
    length: float = 2.0,
    mu: float = 0.5,
    skew: float = 0.0,
    seed: int = 0,
) -> NamedScene:
    """Identical logs that fall on each other between four stakes, as on a truck: degenerate problems.

    Logs lie in rows, each in the valleys of the one below, and are round at their ends: of two parallel ones MuJoCo
    finds two contacts then, of two cylinders one.

    drop: free height between rows (m), with some play between the logs of a row, which lie at random in it; 0: the heap
        is at rest, and every log touches its neighbours
    skew: angle by which logs may lie askew (rad); of two that are nearly parallel, MuJoCo finds one contact only
    """
    check_count("logs", logs, 1, 2000)
    check_number("radius", radius, 1e-3, 10.0, "m")
    check_number("length", length, 2.0 * radius, 1e3, "m")
    check_number("drop", drop, 0.0, 10.0 * radius, "m")
    check_number("skew", skew, 0.0, 0.1 if drop else 0.0, "rad")
    rng = np.random.default_rng(check_count("seed", seed, 0, 2**63 - 1))
    wide = max(2, round(sqrt(logs)))
    rows = rows_of(logs, wide)
    spec = empty("log-heap", check_friction(mu), size=2.0 * radius * wide)
    ground(spec)
    play = 0.1 * drop
    pitch = 2.0 * (radius + play + 0.5 * length * sin(skew))
    tall = 2.0 * radius * (len(rows) + 1) + drop * len(rows)
    for side, end in product((-1.0, 1.0), (-1.0, 1.0)):
        spec.worldbody.add_geom(
            name=f"stake-{'left' if side < 0.0 else 'right'}-{'front' if end < 0.0 else 'back'}", type=CAPSULE,
            size=[0.5 * radius, 0.5 * tall, 0.0],
            pos=[side * 0.5 * (pitch * wide + radius), end * 0.3 * length, 0.5 * tall],
            rgba=STONE,
        )  # fmt: skip
    half = 0.5 * length - radius
    mass = DENSITY * pi * radius**2 * (2.0 * half + 4.0 / 3.0 * radius)
    rise = sqrt(4.0 * radius**2 - (0.5 * pitch) ** 2) if drop == 0.0 else 2.0 * radius
    number = 0
    for row, count in enumerate(rows):
        z = radius + drop + row * (rise + drop) if drop else radius + row * rise
        first = -0.5 * pitch * ((wide - 1) - row % 2)
        for k in range(count):
            yaw = rng.uniform(-skew, skew)
            x = first + pitch * k + rng.uniform(-play, play)
            free_geom(
                spec, f"log{number}", (x, 0.0, z), turning_z_to((-sin(yaw), cos(yaw), 0.0)), type=CAPSULE,
                size=[radius, half, 0.0], mass=mass, rgba=COLOURS[number % len(COLOURS)],
            )  # fmt: skip
            number += 1
    return NamedScene(spec, None, f"A heap of {logs} logs [Lacoursiere2003, fig. 4].")


def rows_of(logs: int, wide: int) -> list[int]:
    """How many logs lie in each row: `wide` and `wide` - 1 in turn, the rest on top."""
    rows: list[int] = []
    while logs > 0:
        rows.append(min(logs, wide - len(rows) % 2))
        logs -= rows[-1]
    return rows

"""Buildings that stand by friction, or fall in a row: a house of cards, an arch, dominoes."""

from __future__ import annotations

from math import cos, pi, sin
from typing import TYPE_CHECKING

from stiction.scenes.parts import (
    BLUE,
    BOX,
    CAPSULE,
    COLOURS,
    ORANGE,
    RED,
    NamedScene,
    check_count,
    check_friction,
    check_number,
    empty,
    free_box,
    ground,
    start_moving,
    turned,
    turning_z_to,
)

if TYPE_CHECKING:
    import mujoco
Y = (0.0, 1.0, 0.0)


def card_house(levels: int = 3, lean: float = 0.35, mu: float = 0.6) -> NamedScene:
    """A house of cards: pairs that lean on each other by `lean` from the vertical, a flat card across each level.

    A card (88 x 63 mm, 1 mm of cardboard, 4 g) has round edges, so that contacts have a normal: two cards
    meet along a line, at two points. The thrust of a pair is at most (load) tan(lean), so it stands if mu > tan(lean).
    """
    check_count("levels", levels, 1, 12)
    check_number("lean", lean, 0.05, 0.6, "rad")
    check_friction(mu)
    spec = empty("card-house", mu, timestep=0.002, size=0.15 * levels)
    ground(spec)
    radius, tall = 0.0005, 0.087  # between the axes of the two round edges
    span, rise = tall * sin(lean), tall * cos(lean)  # of one card
    pitch = 2.0 * (span + radius) + 0.008  # of neighbouring pairs: their feet stand 8 mm apart, less the edges
    floor = 0.0
    for level in range(levels):
        pairs = levels - level
        for k in range(pairs):
            x = pitch * (k - 0.5 * (pairs - 1))
            for side, name in ((-1.0, "left"), (1.0, "right")):
                centre = (x + side * (radius + 0.5 * span), 0.0, floor + radius + 0.5 * rise)
                add_card(spec, f"{name}{level}-{k}", centre, -side * lean, radius, tall, width=0.063)
        floor += rise + 2.0 * radius
        if pairs > 1:
            edges = (pitch * (pairs - 1) + 0.02, 0.07, 2.0 * radius)
            free_box(
                spec, f"floor{level}", edges, (0.0, 0.0, floor + radius), 0.004 * edges[0] / 0.088, rgba=COLOURS[2]
            )
            floor += 2.0 * radius
    return NamedScene(spec, None, f"A house of cards of {levels} levels.")


def add_card(
    spec: mujoco.MjSpec,
    name: str,
    centre: tuple[float, float, float],
    lean: float,
    radius: float,
    tall: float,
    width: float,
) -> None:
    """A card that stands on its round lower edge, turned about y by `lean`."""
    colour = BLUE if lean > 0.0 else ORANGE
    card = free_box(spec, name, (2.0 * radius, width, tall), centre, 0.004, turned(Y, lean), colour)
    for end, z in (("bottom", -0.5 * tall), ("top", 0.5 * tall)):
        card.add_geom(
            name=f"{name}-{end}", type=CAPSULE, size=[radius, 0.5 * width - radius, 0.0], pos=[0.0, 0.0, z],
            quat=turning_z_to(Y), mass=0.0, rgba=RED,
        )  # fmt: skip


def masonry_arch(stones: int = 9, thickness: float = 1.0, mu: float = 0.7) -> NamedScene:
    """A round arch of wedge-shaped stones without mortar (mean radius 2.5 m, 1 m deep, 2000 kg/m³).

    It stands by thrust alone, if thicker than 0.107 of its mean radius and if friction holds (Heyman 1969). A stone
    is two boxes whose outer faces are the joints, four contacts a joint; mass and inertia are the wedge's.
    """
    check_count("stones", stones, 3, 101)
    check_number("thickness", thickness, 0.05, 2.0, "m")
    mean, depth, density = 2.5, 1.0, 2000.0
    spec = empty("masonry-arch", check_friction(mu), size=3.0)
    ground(spec)
    half = 0.5 * pi / stones  # of a stone's angle
    inner, outer = mean - 0.5 * thickness, mean + 0.5 * thickness
    mass, centroid, inertia = wedge(inner, outer, half, depth, density)
    wide = min(inner * sin(half), 0.5 * thickness)  # of each box, across its joint
    for k in range(stones):
        angle = pi - (2 * k + 1) * half  # from the left foot to the right one
        stone = spec.worldbody.add_body(
            name=f"stone{k}", pos=[centroid * cos(angle), 0.0, centroid * sin(angle)], quat=turned(Y, 0.5 * pi - angle)
        )
        stone.add_freejoint(name=f"stone{k}")
        stone.mass, stone.inertia, stone.explicitinertial = mass, inertia, True
        stone.ipos, stone.iquat = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]  # not where the body is, MuJoCo's default
        for side, name in ((-1.0, "left"), (1.0, "right")):
            # In the stone's frame the arch's centre lies `centroid` below; the joint leans by `half` to this side.
            radial, inward = (side * sin(half), cos(half)), (-side * cos(half), sin(half))
            x = mean * radial[0] + 0.5 * wide * inward[0]
            z = mean * radial[1] + 0.5 * wide * inward[1] - centroid
            stone.add_geom(
                name=f"stone{k}-{name}", type=BOX, size=[0.5 * wide, 0.5 * depth, 0.5 * thickness], pos=[x, 0.0, z],
                quat=turned(Y, side * half), mass=0.0, rgba=COLOURS[k % len(COLOURS)],
            )  # fmt: skip
    return NamedScene(spec, None, f"An arch of {stones} stones.")


def wedge(inner: float, outer: float, half: float, depth: float, density: float) -> tuple[float, float, list[float]]:
    """Mass, distance of the centroid from the arch's centre, and inertia of a stone with flat joints and round faces.

    Integrals over the sector r in [inner, outer], |angle| <= half; z is radial, y along the depth.
    """
    mass = density * depth * half * (outer**2 - inner**2)
    centroid = density * depth * 2.0 * sin(half) * (outer**3 - inner**3) / 3.0 / mass
    fourth = density * depth * (outer**4 - inner**4) / 4.0
    xx = fourth * (half - 0.5 * sin(2.0 * half))  # integral of x²
    zz = fourth * (half + 0.5 * sin(2.0 * half)) - mass * centroid**2
    yy = mass * depth**2 / 12.0
    return mass, centroid, [yy + zz, xx + zz, xx + yy]


def dominoes(count: int = 10, spacing: float = 0.025, push: float = 3.0, mu: float = 0.4) -> NamedScene:
    """A row of dominoes (48 x 24 x 7.5 mm, 10 g); the first starts to tip about its lower edge at `push` rad/s.

    spacing: from one domino's middle to the next one's (m)
    """
    tall, wide, thin = 0.048, 0.024, 0.0075
    check_count("count", count, 1, 1000)
    check_number("spacing", spacing, 1.05 * thin, 0.9 * tall, "m")
    check_number("push", push, 0.0, 100.0, "rad/s")
    spec = empty("dominoes", check_friction(mu), timestep=0.001, size=max(0.1, count * spacing))
    ground(spec)
    qpos: list[float] = []
    for k in range(count):
        centre = ((k - 0.5 * (count - 1)) * spacing, 0.0, 0.5 * tall)
        free_box(spec, f"domino{k}", (thin, wide, tall), centre, 0.01, rgba=COLOURS[k % len(COLOURS)])
        qpos += [*centre, 1.0, 0.0, 0.0, 0.0]
    # The lower edge towards the next one rests: the centre moves with push x (centre - edge).
    first = [0.5 * tall * push, 0.0, 0.5 * thin * push, 0.0, push, 0.0]
    start_moving(spec, qpos, first + [0.0] * (6 * (count - 1)))
    return NamedScene(spec, None, f"A row of {count} dominoes.")

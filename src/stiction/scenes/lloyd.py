"""Situations of one body, and a stack [Lloyd2004, fig. 1, 4, 7 and 9].

Four of the ten single-body cases have names in the paper (block in corner, ball in the rim of a hole, block in groove,
face on surface); the others are those of `stiction.problems.zoo.contact_families`. Contacts number 1 to 16. The paper
applies a random wrench for one instant; here a constant one may be given, and gravity always acts.
"""

from __future__ import annotations

from math import acos, atan2, cos, pi, sin, sqrt, tan
from typing import TYPE_CHECKING

from stiction.scenes.parts import (
    BLUE,
    CAPSULE,
    COLOURS,
    PLANE,
    SPHERE,
    STONE,
    NamedScene,
    around,
    check_choice,
    check_count,
    check_friction,
    check_number,
    empty,
    free_box,
    free_geom,
    ground,
    turned,
    turning_z_to,
    wrench_on,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mujoco

    Wrench = Sequence[float] | None

CUBE = (1.0, 1.0, 1.0)  # m
FOOT = 0.05  # radius of a foot, in units of the cube's edge
Z = (0.0, 0.0, 1.0)
# Turns the direction (1, 1, 1) upwards.
UPRIGHT = turned((sqrt(0.5), -sqrt(0.5), 0.0), acos(sqrt(1.0 / 3.0)))


def peg_in_hole(contacts: int = 16, mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A round peg (radius 0.5 m, 1 kg) in a hole of contacts / 2 flat sides, which touches each at two points.

    The hole lies along x, so that the peg rests in it. Its sides are planes, and the contacts lie at the ends of the
    peg's straight part, 2 m apart; a box and a longer parallel capsule would lose contacts to rounding.
    """
    sides = check_count("contacts", contacts, 6, 128, multiple=2) // 2
    spec = empty("peg-in-hole", check_friction(mu), size=2.0)
    radius = 0.5
    half = min(radius, radius * tan(pi / sides))  # of a side's width, as drawn
    for k, (y, z) in enumerate(around(sides, 1.0, phase=-0.5 * pi)):
        spec.worldbody.add_geom(
            name=f"side{k}", type=PLANE, size=[half, 1.0, 0.1], pos=[0.0, radius * y, radius * z],
            quat=turning_y_to_minus_x(-y, -z), rgba=(*STONE[:3], 0.5),
        )  # fmt: skip
    peg = spec.worldbody.add_body(name="peg")
    peg.add_freejoint(name="peg")
    peg.add_geom(
        name="peg", type=CAPSULE, size=[radius, 1.0, 0.0], quat=turning_z_to((1.0, 0.0, 0.0)), mass=1.0, rgba=BLUE
    )
    return NamedScene(spec, wrench_on("peg", wrench), f"A peg in a hole, {2 * sides} contacts [Lloyd2004, fig. 4].")


def turning_y_to_minus_x(y: float, z: float) -> list[float]:
    """The quaternion that turns the y axis to -x and the z axis to the unit vector (0, y, z)."""
    half = 0.5 * atan2(-y, z)
    return [sqrt(0.5) * cos(half), sqrt(0.5) * sin(half), -sqrt(0.5) * sin(half), sqrt(0.5) * cos(half)]


# Ten single bodies


def block_on_point(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube on one round foot: it topples as soon as anything disturbs it."""
    return on_feet("block-on-point", [(0.0, 0.0)], mu, wrench)


def block_on_edge(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube on two round feet."""
    return on_feet("block-on-edge", [(-0.5, 0.0), (0.5, 0.0)], mu, wrench)


def block_on_tripod(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube on three round feet: contact forces are unique but for friction."""
    return on_feet("block-on-tripod", around(3, 0.5), mu, wrench)


def face_on_face(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube on a hexagon of round feet, as two faces that share one: six contacts for three motions."""
    return on_feet("face-on-face", around(6, 0.5), mu, wrench)


def block_on_octagon(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube on an octagon of round feet."""
    return on_feet("block-on-octagon", around(8, 0.5), mu, wrench)


def on_feet(name: str, feet: list[tuple[float, float]], mu: float, wrench: Wrench) -> NamedScene:
    spec = empty(name, check_friction(mu), size=2.0)
    ground(spec)
    footed_cube(spec, "block", 1.0, 0.0, 1.0, feet, BLUE)
    return NamedScene(spec, wrench_on("block", wrench), f"A block on {len(feet)} round feet [Lloyd2004, fig. 7].")


def footed_cube(
    spec: mujoco.MjSpec,
    name: str,
    edge: float,
    bottom: float,
    mass: float,
    feet: list[tuple[float, float]],
    rgba: Sequence[float],
) -> None:
    """A cube that stands on the lower halves of balls at these points, in units of its edge.

    Of two boxes whose edges cross, MuJoCo finds one contact or all, as rounding decides; balls are found always.
    """
    foot = FOOT * edge
    body = free_box(spec, name, (edge, edge, edge - foot), (0.0, 0.0, bottom + 0.5 * (edge + foot)), mass, rgba=rgba)
    for k, (x, y) in enumerate(feet):
        place = [edge * x, edge * y, -0.5 * (edge - foot)]
        body.add_geom(name=f"{name}-foot{k}", type=SPHERE, size=[foot, 0.0, 0.0], pos=place, mass=0.0, rgba=STONE)


def block_on_table(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube on a plane: four contacts for the three motions that they resist."""
    spec = empty("block-on-table", check_friction(mu), size=2.0)
    ground(spec)
    free_box(spec, "block", CUBE, (0.0, 0.0, 0.5), mass=1.0)
    return NamedScene(spec, wrench_on("block", wrench), "A block on a table, 4 contacts [Lloyd2004, fig. 7].")


def block_in_groove(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube in a groove of two planes at 45 degrees, four contacts each."""
    spec = empty("block-in-groove", check_friction(mu), size=2.0)
    ground(spec, (1.0, 0.0, 1.0), "left")
    ground(spec, (-1.0, 0.0, 1.0), "right")
    free_box(spec, "block", CUBE, (0.0, 0.0, sqrt(0.5)), mass=1.0, quat=turned((0.0, 1.0, 0.0), 0.25 * pi))
    return NamedScene(spec, wrench_on("block", wrench), "A block in a groove, 8 contacts [Lloyd2004, fig. 7].")


def block_in_corner(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A cube in a corner of three planes that stands on its point, four contacts each."""
    spec = empty("block-in-corner", check_friction(mu), size=2.0)
    corner = spec.worldbody.add_body(name="corner", quat=UPRIGHT)
    for axis, name in enumerate(("wall-x", "wall-y", "wall-z")):
        normal = [float(k == axis) for k in range(3)]
        corner.add_geom(name=name, type=PLANE, size=[4.0, 4.0, 0.4], quat=turning_z_to(normal), rgba=(*STONE[:3], 0.5))
    free_box(spec, "block", CUBE, (0.0, 0.0, 0.5 * sqrt(3.0)), mass=1.0, quat=UPRIGHT)
    return NamedScene(spec, wrench_on("block", wrench), "A block in a corner, 12 contacts [Lloyd2004, fig. 1].")


def ball_in_rim(contacts: int = 16, mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A ball (radius 1 m, 1 kg) in a round hole, whose rim is a polygon of rods that touch the ball in one point each.

    The points lie on a circle of radius 0.6 m.
    """
    sides = check_count("contacts", contacts, 3, 128)
    spec = empty("ball-in-rim", check_friction(mu), size=2.0)
    rod = 0.05  # m, radius
    # Ball and rods touch where the line from the ball's centre to a rod's is divided as the two radii.
    ring, depth = 0.6 * (1.0 + rod), 0.8 * (1.0 + rod)
    half = ring * min(0.5, tan(pi / sides))
    for k, (x, y) in enumerate(around(sides, ring)):
        spec.worldbody.add_geom(
            name=f"rim{k}",
            type=CAPSULE,
            size=[rod, half, 0.0],
            pos=[x, y, 0.0],
            quat=turning_z_to((-y, x, 0.0)),
            rgba=STONE,
        )
    free_geom(spec, "ball", (0.0, 0.0, depth), type=SPHERE, size=[1.0, 0.0, 0.0], mass=1.0, rgba=BLUE)
    return NamedScene(
        spec, wrench_on("ball", wrench), f"A ball in the rim of a hole, {sides} contacts [Lloyd2004, fig. 7]."
    )


def block_in_channel(mu: float = 0.25, wrench: Wrench = None) -> NamedScene:
    """A beam (4 x 2 x 2 m, 1 kg) in a channel of four planes along x: a sliding joint made of 16 contacts."""
    spec = empty("block-in-channel", check_friction(mu), size=4.0)
    for name, (y, z) in {"left": (1.0, 0.0), "right": (-1.0, 0.0), "bottom": (0.0, 1.0), "top": (0.0, -1.0)}.items():
        wall = ground(spec, (0.0, y, z), name)
        wall.pos = [0.0, -y, -z]
        wall.rgba = (*STONE[:3], 0.3)
        wall.size = [4.0, 1.0, 0.4] if not y else [1.0, 4.0, 0.4]
    free_box(spec, "block", (4.0, 2.0, 2.0), (0.0, 0.0, 0.0), mass=1.0)
    return NamedScene(spec, wrench_on("block", wrench), "A block in a channel, 16 contacts [Lloyd2004, fig. 7].")


# A stack


def block_stack(
    blocks: int = 10, per: int = 4, edge: float = 1.0, mass: float = 1.0, mu: float = 0.5, wrench: Wrench = None
) -> NamedScene:
    """Cubes on each other on a plane, and a wrench on the top one.

    per: contacts between two cubes: 4, or 8 if each stands on an octagon of round feet
    """
    check_count("blocks", blocks, 1, 1000)
    check_choice("per", per, (4, 8))
    check_number("edge", edge, 1e-4, 1e4, "m")
    check_number("mass", mass, 1e-6, 1e9, "kg")
    spec = empty("block-stack", check_friction(mu), size=edge * blocks)
    ground(spec)
    for b in range(blocks):
        name, bottom, rgba = f"block{b}", edge * b, COLOURS[b % len(COLOURS)]
        if per == 8:
            footed_cube(spec, name, edge, bottom, mass, around(8, 0.45), rgba)
        else:
            free_box(spec, name, [edge] * 3, (0.0, 0.0, bottom + 0.5 * edge), mass, rgba=rgba)
    top = f"block{blocks - 1}"
    return NamedScene(spec, wrench_on(top, wrench), f"A stack of {blocks} blocks [Lloyd2004, fig. 9].")

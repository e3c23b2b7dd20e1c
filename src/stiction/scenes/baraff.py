"""Two mechanisms in the plane, driven and running without end [Baraff1994, fig. 1 and 2].

The paper shows pictures of a block feeder and of a double-action jack; sizes are ours. Bodies move in the x-z plane
(two slides and a turn each) and are joined by point-to-point constraints, whose rows along y are zero. Those on
different levels do not collide: links lie behind what they move. A face has two contacts at the front and two at the
back, of which one pair is redundant.
"""

from __future__ import annotations

from functools import partial
from math import asin, atan2, cos, hypot, sin
from typing import TYPE_CHECKING

import numpy as np

from stiction.scenes.parts import (
    BOX,
    CAPSULE,
    COLOURS,
    GREEN,
    HINGE,
    ORANGE,
    PURPLE,
    RED,
    SLIDE,
    STONE,
    NamedScene,
    check_count,
    check_friction,
    check_number,
    empty,
    mj,
    turned,
    turning_z_to,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mujoco


DEPTH = 0.05  # m, half of what collides, along y
WORK, GUIDES, LINKS = 1, 2, 4  # levels
SLIPPERY = 0.05  # mu of guides
DAMPING = 10.0  # N m s/rad, of a motor
Y = (0.0, 1.0, 0.0)
Point = tuple[float, float]


def block_feeder(blocks: int = 6, speed: float = 3.0, mu: float = 0.3) -> NamedScene:
    """A crank (speed in rad/s) moves a pusher that feeds blocks from the bottom of a pile, one a turn.

    The pusher returns, the pile sinks by one block, the row of those fed is pushed along the table and drops off its
    end. There the control takes a block and puts it back above the pile, so that the machine never runs empty.
    """
    check_count("blocks", blocks, 3, 50)
    check_number("speed", speed, 0.1, 6.0, "rad/s")
    spec = empty("block-feeder", check_friction(mu), timestep=0.005, size=1.0)
    wide, tall, slot = 0.2, 0.1, 0.003  # m, of a block, and of the play in the shaft
    top = tall * (blocks + 3)
    fixed(spec, "table", (-0.6, -0.1), (0.4, 0.0))
    fixed(spec, "guide", (-0.5, 0.0985), (-0.5 * wide - slot, 0.125))
    fixed(spec, "left-wall", (-0.15, 0.125), (-0.5 * wide - slot, top))
    fixed(spec, "right-wall", (0.5 * wide + slot, 0.125), (0.15, top))
    # The crank starts where the pusher is drawn back behind the pile.
    radius, rod, length, high = 0.12, 0.35, 0.3, 0.098
    pin = (-0.40, 0.5 * high)
    axle = (pin[0] - rod + radius, pin[1])
    elbow = (axle[0] - radius, axle[1])
    pusher = moving(spec, "pusher", (-0.12 - 0.5 * length, 0.5 * high))
    block(pusher, "pusher", length, high, mass=2.0, rgba=ORANGE, level=WORK, mu=SLIPPERY)
    link(spec, "rod", elbow, pin, mass=0.5, rgba=GREEN)
    crank(spec, "crank", axle, elbow, mass=5.0)
    pin_together(spec, "crank", None, axle)
    pin_together(spec, "crank", "rod", elbow)
    pin_together(spec, "rod", "pusher", pin)
    for k in range(blocks):
        body = moving(spec, f"block{k}", (0.0, tall * (k + 0.5)))
        block(body, f"block{k}", wide, tall, 1.0, COLOURS[k % len(COLOURS)], WORK, mu)
    return NamedScene(spec, partial(feed, speed, blocks, tall), f"A feeder of {blocks} blocks [Baraff1994, fig. 1].")


def feed(speed: float, blocks: int, tall: float, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Turn the crank, and put blocks that have left back above the pile."""
    turn("crank", speed, model, data)
    drop = tall * (blocks + 0.5)
    for k in range(blocks):
        start = tall * (k + 0.5)  # from where its coordinates count
        if data.joint(f"block{k}-z").qpos[0] < -0.5 - start:
            for axis, place in (("x", 0.0), ("z", drop - start), ("turn", 0.0)):
                joint = data.joint(f"block{k}-{axis}")
                joint.qpos[0], joint.qvel[0] = place, 0.0


def double_action_jack(load: float = 6.0, speed: float = 3.0, mu: float = 0.2) -> NamedScene:
    """A lever with two pawls lifts a toothed rack and its load (kg) on the way up and on the way down.

    While one pawl lifts, the other slides down over the next tooth and falls under it. A crank (speed in rad/s) rocks
    the lever. Teeth repeat: when the rack has risen by two, the control sets it back by two, which changes no contact.
    """
    check_number("load", load, 0.0, 50.0, "kg")
    check_number("speed", speed, 0.1, 6.0, "rad/s")
    spec = empty("double-action-jack", check_friction(mu), timestep=0.002, size=1.0)
    pitch, stroke, teeth = 0.10, 0.08, 10  # m: a stroke is well over half a tooth, since a pawl also swings out
    arm, handle = 0.16, 0.40  # m, from the lever's pivot to the pins of the pawls and of the rod
    tip, reach = 0.008, 0.2  # m, radius of a pawl's tip, and its height over the pin
    side = 0.05  # m, half the width of the rack without teeth
    swing = asin(0.5 * stroke / arm)
    pivot = (0.0, 0.2)

    def on_lever(distance: float) -> Point:
        """The start: the left pawl is up and carries the rack, the right one is down."""
        return distance * cos(swing), pivot[1] - distance * sin(swing)

    left, right, end = on_lever(-arm), on_lever(arm), on_lever(handle)
    seat = left[1] + reach + tip  # the lower side of the tooth that the left pawl carries
    bottom = seat - 4.0 * pitch
    middle = (0.0, bottom + 0.5 * teeth * pitch)
    rack = moving(spec, "rack", middle)
    block(rack, "rack", 2.0 * side, teeth * pitch, 3.0, ORANGE, WORK, mu)
    for k in range(teeth):
        add_tooth(rack, f"tooth-left{k}", -1.0, side, bottom + k * pitch - middle[1], pitch, mu)
        add_tooth(rack, f"tooth-right{k}", 1.0, side, bottom + (k + 0.5) * pitch - middle[1], pitch, mu)
    block(rack, "spine", 0.03, 1.8, 1.0, PURPLE, GUIDES, SLIPPERY)
    block(rack, "load", 0.3, 0.1, load, RED, LINKS, mu, (0.0, 0.5 * teeth * pitch + 0.05))
    for name, z in (("lower", 0.1), ("upper", 0.8)):
        fixed(spec, f"{name}-guide-left", (-0.06, z), (-0.0155, z + 0.1), GUIDES, SLIPPERY)
        fixed(spec, f"{name}-guide-right", (0.0155, z), (0.06, z + 0.1), GUIDES, SLIPPERY)
    # The right tip is down by a stroke; its tooth is half a pitch off, which leaves it stroke - pitch / 2 below.
    add_pawl(spec, "left-pawl", left, (-(side + tip), left[1] + reach), tip, mu)
    add_pawl(spec, "right-pawl", right, (side + tip, right[1] + reach), tip, mu)
    link(spec, "lever", on_lever(-arm - 0.03), end, mass=2.0, rgba=PURPLE)
    throw = handle * sin(swing)
    rod = 0.45
    axle = (end[0], end[1] - rod + throw)
    elbow = (end[0], end[1] - rod)
    link(spec, "rod", elbow, end, mass=0.5, rgba=GREEN)
    crank(spec, "crank", axle, elbow, mass=5.0)
    for first, second, point in (
        ("lever", None, pivot),
        ("left-pawl", "lever", left),
        ("right-pawl", "lever", right),
        ("rod", "lever", end),
        ("crank", "rod", elbow),
        ("crank", None, axle),
    ):
        pin_together(spec, first, second, point)
    return NamedScene(
        spec, partial(rock, speed, pitch), f"A jack that lifts {load:g} kg at every stroke [Baraff1994, fig. 2]."
    )


def rock(speed: float, pitch: float, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Turn the crank, and set the rack back by two teeth when it has risen by two."""
    turn("crank", speed, model, data)
    height = data.joint("rack-z").qpos
    if height[0] >= 2.0 * pitch:
        height[0] -= 2.0 * pitch


# Parts in the plane; points are (x, z)


def moving(spec: mujoco.MjSpec, name: str, at: Point, angle: float = 0.0) -> mujoco.MjsBody:
    """A body that moves in the plane: along x, along z, and about y."""
    body = spec.worldbody.add_body(name=name, pos=[at[0], 0.0, at[1]], quat=turned(Y, angle))
    back = turned(Y, -angle)
    for axis, direction in (("x", (1.0, 0.0, 0.0)), ("z", (0.0, 0.0, 1.0))):
        body.add_joint(name=f"{name}-{axis}", type=SLIDE, axis=rotated(back, direction))
    body.add_joint(name=f"{name}-turn", type=HINGE, axis=Y)
    return body


def rotated(quat: Sequence[float], vector: Sequence[float]) -> list[float]:
    result = np.zeros(3)
    mj.mju_rotVecQuat(result, np.array(vector), np.array(quat))
    return [float(component) for component in result]


def block(
    body: mujoco.MjsBody, name: str, wide: float, tall: float, mass: float, rgba: Sequence[float], level: int,
    mu: float, at: Point = (0.0, 0.0), angle: float = 0.0,
) -> None:  # fmt: skip
    """A box of a body; level LINKS: it collides with nothing and lies behind the others."""
    collides = 0 if level == LINKS else level
    y = {WORK: 0.0, GUIDES: -2.0 * DEPTH, LINKS: 2.0 * DEPTH}[level]
    body.add_geom(
        name=name, type=BOX, size=[0.5 * wide, DEPTH if level == WORK else 0.2 * DEPTH, 0.5 * tall], mass=mass,
        pos=[at[0], y, at[1]], quat=turned(Y, angle), rgba=rgba,
        contype=collides, conaffinity=collides, friction=[mu, 0.0, 0.0],
    )  # fmt: skip


def fixed(spec: mujoco.MjSpec, name: str, low: Point, high: Point, level: int = WORK, mu: float = SLIPPERY) -> None:
    """A fixed box between two corners, deeper than what moves, so that no edges coincide."""
    depth, y = (1.2 * DEPTH, 0.0) if level == WORK else (0.3 * DEPTH, -2.0 * DEPTH)
    spec.worldbody.add_geom(
        name=name, type=BOX, size=[0.5 * (high[0] - low[0]), depth, 0.5 * (high[1] - low[1])],
        pos=[0.5 * (low[0] + high[0]), y, 0.5 * (low[1] + high[1])], rgba=STONE,
        contype=level, conaffinity=level, friction=[mu, 0.0, 0.0],
    )  # fmt: skip


def link(spec: mujoco.MjSpec, name: str, start: Point, end: Point, mass: float, rgba: Sequence[float]) -> None:
    """A thin bar between two points, behind the others."""
    along = (end[0] - start[0], end[1] - start[1])
    middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]))
    body = moving(spec, name, middle, atan2(along[0], along[1]))
    block(body, name, 0.02, hypot(*along), mass, rgba, LINKS, 0.0)


def crank(spec: mujoco.MjSpec, name: str, axle: Point, elbow: Point, mass: float) -> None:
    """A disc about its axle, with a motor that turns it: a constant torque against a damping, which is implicit."""
    body = moving(spec, name, axle)
    radius = 1.2 * hypot(elbow[0] - axle[0], elbow[1] - axle[1])
    body.add_geom(
        name=name, type=mj.mjtGeom.mjGEOM_CYLINDER, size=[radius, 0.01, 0.0], pos=[0.0, 0.1, 0.0],
        quat=turning_z_to(Y), mass=mass, rgba=(*GREEN[:3], 0.6), contype=0, conaffinity=0,
    )  # fmt: skip
    spec.joint(f"{name}-turn").damping = [DAMPING, 0.0, 0.0]
    spec.add_actuator(name=name, target=f"{name}-turn", trntype=mj.mjtTrn.mjTRN_JOINT)


def turn(name: str, speed: float, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """A motor that turns a crank at this speed (rad/s), less what its load takes."""
    data.actuator(name).ctrl[0] = DAMPING * speed


def pin_together(spec: mujoco.MjSpec, first: str, second: str | None, point: Point) -> None:
    """The point of the first body that is here now stays with that of the second, or with the world."""
    body = spec.body(first)
    away = np.array([point[0], 0.0, point[1]]) - body.pos
    anchor = rotated([body.quat[0], *(-body.quat[1:])], away)
    joint = spec.add_equality(
        type=mj.mjtEq.mjEQ_CONNECT, objtype=mj.mjtObj.mjOBJ_BODY, name1=first, name2=second or "world"
    )
    joint.data[:3] = anchor


def add_tooth(rack: mujoco.MjsBody, name: str, way: float, side: float, low: float, pitch: float, mu: float) -> None:
    """A ledge whose lower side is at `low`, and a ramp down to its outer edge."""
    out, thick, plank = 0.022, 0.012, 0.01
    block(rack, name, out, thick, 0.0, ORANGE, WORK, mu, (way * (side + 0.5 * out), low + 0.5 * thick))
    down = pitch - 0.05 - thick  # height of the ramp: a pawl's tip fits under the tooth above it
    angle = atan2(out, down)
    x = side + 0.5 * out - 0.5 * plank * cos(angle)
    z = low + thick + 0.5 * down - 0.5 * plank * sin(angle)
    block(rack, f"{name}-ramp", plank, hypot(out, down), 0.0, ORANGE, WORK, mu, (way * x, z), -way * angle)


def add_pawl(spec: mujoco.MjSpec, name: str, pin: Point, end: Point, tip: float, mu: float) -> None:
    """A strut from its pin up to a round tip, which its weight leans on the rack."""
    along = (end[0] - pin[0], end[1] - pin[1])
    angle, length = atan2(along[0], along[1]), hypot(*along)
    body = moving(spec, name, (0.5 * (pin[0] + end[0]), 0.5 * (pin[1] + end[1])), angle)
    block(body, name, 1.8 * tip, length, 0.3, GREEN, WORK, mu)
    body.add_geom(
        name=f"{name}-tip", type=CAPSULE, size=[tip, DEPTH - 2.0 * tip, 0.0], pos=[0.0, 0.0, 0.5 * length],
        quat=turning_z_to(Y), mass=0.0, rgba=RED, contype=WORK, conaffinity=WORK, friction=[mu, 0.0, 0.0],
    )  # fmt: skip

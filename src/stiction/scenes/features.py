"""Small models, one for each of what people build robots and machines with: belts, rolling resistance, closed loops."""

from __future__ import annotations

from math import cos, sin
from typing import TYPE_CHECKING

from stiction.scenes.parts import (
    BLUE,
    BOX,
    CAPSULE,
    COLOURS,
    GREEN,
    HINGE,
    ORANGE,
    RED,
    SPHERE,
    STONE,
    NamedScene,
    check_count,
    check_friction,
    check_number,
    constant,
    empty,
    free_box,
    free_geom,
    ground,
    mj,
)

if TYPE_CHECKING:
    import mujoco

EDGE = 0.1  # m, of a box on a belt


def conveyor(boxes: int = 3, speed: float = 0.5, mu: float = 0.4) -> NamedScene:
    """Boxes on a belt along x, which hands them down to one along y: each gains mu g until it rides along."""
    check_count("boxes", boxes, 1, 12)
    check_number("speed", speed, -10.0, 10.0, "m/s")
    length = max(1.0, 0.2 * boxes)
    spec = empty("conveyor", check_friction(mu), timestep=0.005, size=1.2 * length)
    ground(spec).pos = [0.0, 0.0, -0.2]  # what falls off the second belt comes to rest there
    for name, pos, half, surface in (
        ("belt", (-0.5 * length, 0.0, -0.02), (0.5 * length, 0.1), (speed, 0.0)),
        ("cross-belt", (0.12, 0.4, -0.024), (0.12, 0.5), (0.0, speed)),
    ):
        spec.worldbody.add_geom(
            name=name, type=BOX, pos=pos, size=[*half, 0.02], surfacevel=[*surface, 0.0, 0.0, 0.0, 0.0],
            rgba=STONE,
        )  # fmt: skip
    for b in range(boxes):
        free_box(spec, f"box{b}", [EDGE] * 3, (-0.1 - 0.18 * b, 0.0, 0.5 * EDGE), 0.5, rgba=COLOURS[b % len(COLOURS)])
    return NamedScene(spec, None, f"Boxes on two belts that run at {speed:g} m/s.")


def rolling_balls(angle: float = 0.1, radius: float = 0.05, mu: float = 0.5) -> NamedScene:
    """Three balls on a slope, with rolling friction (condim 6) of a fiftieth, a sixteenth and a fifth of their radius.

    A ball rolls where tan(angle) exceeds that part: with 0.1, the first two do, and the third stays.
    """
    check_number("angle", angle, 0.0, 1.0, "rad")
    check_number("radius", radius, 1e-3, 10.0, "m")
    spec = empty("rolling-balls", check_friction(mu), size=10.0 * radius)
    normal = (0.0, -sin(angle), cos(angle))
    plane = ground(spec, normal)
    plane.friction = [mu, 0.0, 0.0]
    for k, part in enumerate((0.02, 0.0625, 0.2)):
        across = 4.0 * radius * (k - 1)
        free_geom(
            spec, f"ball{k}", (across, radius * normal[1], radius * normal[2]), type=SPHERE, size=[radius, 0.0, 0.0],
            mass=1.0, condim=6, rgba=COLOURS[k], friction=[mu, 0.1 * part * radius, part * radius],
        )  # fmt: skip
    return NamedScene(spec, None, f"Balls with rolling friction on a slope of {angle:g} rad.")


def four_bar(speed: float = 4.0, mu: float = 0.5) -> NamedScene:
    """A crank that a servo turns swings a rocker, which pushes a box: a closed loop, held by a `connect`."""
    check_number("speed", speed, -20.0, 20.0, "rad/s")
    spec = empty("four-bar", check_friction(mu), timestep=0.005, size=0.8)
    ground(spec)
    # Pivots A and D; crank AB and rocker DC hang down, the coupler BC closes the loop in the plane y = 0.
    high, apart, crank, rocker, foot = 0.5, 0.4, 0.12, 0.3, 0.04
    ghost = {"type": CAPSULE, "contype": 0, "conaffinity": 0}

    def bar(body: mujoco.MjsBody, name: str, end: tuple[float, float], rgba: tuple[float, ...]) -> None:
        body.add_joint(name=name, type=HINGE, axis=[0.0, 1.0, 0.0], armature=0.02 if name == "crank" else 0.0)
        body.add_geom(
            name=name, fromto=[0.0, 0.0, 0.0, end[0], 0.0, end[1]], size=[0.012, 0.0, 0.0], mass=0.2, rgba=rgba, **ghost
        )

    turning = spec.worldbody.add_body(name="crank", pos=[0.0, 0.0, high])
    bar(turning, "crank", (0.0, -crank), ORANGE)
    coupler = turning.add_body(name="coupler", pos=[0.0, 0.0, -crank])
    bar(coupler, "coupler", (apart, crank - rocker), GREEN)
    swinging = spec.worldbody.add_body(name="rocker", pos=[apart, 0.0, high])
    bar(swinging, "rocker", (0.0, -rocker), BLUE)
    swinging.add_geom(
        name="foot", type=SPHERE, pos=[0.0, 0.0, -(high - foot - 0.02)], size=[foot, 0.0, 0.0], mass=0.1, rgba=BLUE
    )
    spec.add_equality(
        type=mj.mjtEq.mjEQ_CONNECT, objtype=mj.mjtObj.mjOBJ_BODY, name1="rocker", name2="coupler",
        data=[0.0, 0.0, -rocker, *[0.0] * 9],
    )  # fmt: skip
    spec.add_actuator(
        name="crank", target="crank", trntype=mj.mjtTrn.mjTRN_JOINT, gainprm=[2.0, *[0.0] * 9],
        biastype=mj.mjtBias.mjBIAS_AFFINE, biasprm=[0.0, 0.0, -2.0, *[0.0] * 7],
    )  # fmt: skip
    free_box(spec, "box", [EDGE] * 3, (apart - foot - 0.5 * EDGE - 0.02, 0.0, 0.5 * EDGE), 0.5, rgba=RED)
    return NamedScene(spec, constant(speed), f"A four-bar linkage, turned at {speed:g} rad/s, pushes a box.")

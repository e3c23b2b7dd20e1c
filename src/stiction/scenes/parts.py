"""Parts of which the named scenes are made: a `NamedScene`, boxes and feet and planes, and checks of parameters.

Lengths in m, masses in kg, angles in radians, z upwards. Geometry is exact: what touches has a gap of zero up to
rounding, and nothing overlaps. Every geom of a scene has the same friction unless a scene sets another, because
MuJoCo takes the larger one of two.
"""

from __future__ import annotations

from functools import partial
from math import cos, isfinite, pi, sin, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction import optional
from stiction.bodies.state import reset
from stiction.errors import InvalidScene, is_number, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import mujoco
    from numpy.typing import NDArray

    Control = Callable[[mujoco.MjModel, mujoco.MjData], None]

mj = optional.mujoco()

BOX = mj.mjtGeom.mjGEOM_BOX
CAPSULE = mj.mjtGeom.mjGEOM_CAPSULE
CYLINDER = mj.mjtGeom.mjGEOM_CYLINDER
PLANE = mj.mjtGeom.mjGEOM_PLANE
SPHERE = mj.mjtGeom.mjGEOM_SPHERE
HINGE = mj.mjtJoint.mjJNT_HINGE
SLIDE = mj.mjtJoint.mjJNT_SLIDE

GRAVITY = 9.81  # m/s²
TIME_STEP = 0.01  # s
START = "start"  # the keyframe of scenes that do not start at rest

STONE = (0.55, 0.55, 0.58, 1.0)  # what is fixed
ORANGE = (0.90, 0.55, 0.20, 1.0)
BLUE = (0.30, 0.50, 0.80, 1.0)
GREEN = (0.40, 0.70, 0.40, 1.0)
PURPLE = (0.60, 0.40, 0.70, 1.0)
RED = (0.80, 0.30, 0.25, 1.0)
COLOURS = (ORANGE, BLUE, GREEN, PURPLE)


class NamedScene(NamedTuple):
    """A scene as a specification that can still be changed, what drives it, and what it shows."""

    spec: mujoco.MjSpec
    control: Control | None  # called before each step
    description: str

    def begin(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """The compiled model and its data at the start: the keyframe `start` if there is one, else rest at qpos0."""
        model = self.spec.compile()
        data = mj.MjData(model)
        reset(model, data, START)
        mj.mj_forward(model, data)
        return model, data


def empty(name: str, mu: float, timestep: float = TIME_STEP, size: float = 1.0) -> mujoco.MjSpec:
    """A specification with gravity, a light, and nothing in it; size (m): about how large it will be, for viewers."""
    spec = mj.MjSpec()
    spec.modelname = name
    spec.compiler.degree = False
    spec.option.timestep = timestep
    spec.option.gravity = [0.0, 0.0, -GRAVITY]
    spec.option.cone = mj.mjtCone.mjCONE_ELLIPTIC
    spec.default.geom.condim = 3
    spec.default.geom.friction = [mu, 0.0, 0.0]
    spec.stat.extent = size
    spec.worldbody.add_light(pos=[0.0, -size, 3.0 * size], dir=[0.0, 0.3, -1.0])
    return spec


def ground(spec: mujoco.MjSpec, normal: Sequence[float] = (0.0, 0.0, 1.0), name: str = "ground") -> mujoco.MjsGeom:
    """An infinite plane through the origin."""
    side = 4.0 * spec.stat.extent
    return spec.worldbody.add_geom(
        name=name, type=PLANE, size=[side, side, 0.1 * side], quat=turning_z_to(normal), rgba=STONE
    )


def free_box(
    spec: mujoco.MjSpec,
    name: str,
    edges: Sequence[float],
    pos: Sequence[float],
    mass: float,
    quat: Sequence[float] = (1, 0, 0, 0),
    rgba: Sequence[float] = BLUE,
) -> mujoco.MjsBody:
    """A free body with one box of these edges."""
    return free_geom(spec, name, pos, quat, type=BOX, size=halves(edges), mass=mass, rgba=rgba)


def free_geom(
    spec: mujoco.MjSpec, name: str, pos: Sequence[float], quat: Sequence[float] = (1, 0, 0, 0), **geom: Any
) -> mujoco.MjsBody:
    """A free body with one geom; body, joint and geom have the same name."""
    body = spec.worldbody.add_body(name=name, pos=pos, quat=quat)
    body.add_freejoint(name=name)
    body.add_geom(name=name, **geom)
    return body


def halves(edges: Sequence[float]) -> list[float]:
    return [0.5 * edge for edge in edges]


# Rotations


def turned(axis: Sequence[float], angle: float) -> list[float]:
    """The quaternion of a rotation about a unit axis."""
    return [cos(0.5 * angle), *(sin(0.5 * angle) * component for component in axis)]


def turning_z_to(direction: Sequence[float]) -> list[float]:
    """The quaternion of a rotation of the z axis to a direction: the shortest, unless it points downwards."""
    x, y, z = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    if z < -0.5:  # the same through x, which stays exact at -z
        w = sqrt(0.5 * (1.0 - z))
        return [0.5 * x / w, 0.0, w, 0.5 * y / w]
    w = sqrt(0.5 * (1.0 + z))
    return [w, -0.5 * y / w, 0.5 * x / w, 0.0]


def around(count: int, radius: float, phase: float = 0.0) -> list[tuple[float, float]]:
    """Corners of a regular polygon."""
    angles = [phase + 2.0 * pi * k / count for k in range(count)]
    return [(radius * cos(a), radius * sin(a)) for a in angles]


# What drives


def start_moving(spec: mujoco.MjSpec, qpos: Sequence[float], qvel: Sequence[float]) -> None:
    """The keyframe that `NamedScene.begin` starts from."""
    spec.add_key(name=START, qpos=qpos, qvel=qvel)


def wrench_on(body: str, wrench: Sequence[float] | None) -> Control | None:
    """A constant force (N) and torque (N m) on the centre of a body, in the frame of the world; None: nothing."""
    if wrench is None:
        return None
    load = np.array(wrench, dtype=float)
    if load.shape != (6,) or not np.isfinite(load).all():
        raise InvalidScene(f"wrench must be six finite numbers (force in N, torque in N m), got {wrench!r}")

    return partial(push, body, load)


def push(body: str, load: NDArray[np.float64], model: mujoco.MjModel, data: mujoco.MjData) -> None:
    data.body(body).xfrc_applied[:] = load


def constant(*values: float) -> Control:
    """Actuators at constant values."""
    return partial(hold, values)


def hold(values: tuple[float, ...], model: mujoco.MjModel, data: mujoco.MjData) -> None:
    data.ctrl[:] = values


# Checks


def check_count(name: str, value: int, low: int, high: int, multiple: int = 1) -> int:
    """A whole number in [low, high], a multiple of `multiple`."""
    if not is_whole(value, low) or value > high or value % multiple:
        kind = "a whole number" if multiple == 1 else f"a multiple of {multiple}"
        raise InvalidScene(f"{name} must be {kind} from {low} to {high}, got {value!r}")
    return int(value)


def check_number(name: str, value: float, low: float, high: float, unit: str = "") -> float:
    """A number in [low, high]."""
    if not is_number(value) or not isfinite(value) or not low <= value <= high:
        raise InvalidScene(f"{name} must be a number from {low:g} to {high:g}{unit and ' ' + unit}, got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise InvalidScene(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_friction(mu: float) -> float:
    return check_number("mu", mu, 0.0, 1000.0)

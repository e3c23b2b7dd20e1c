"""Contact problems posed from geometry: bodies, where they touch, and the impulse that acts on each.

    v_free = velocity + M⁻¹ impulse,      row of a direction d at a point p: (d, (p - centre) x d)

Velocities of a body are those of its centre (m/s) and its angular velocity (rad/s), in world axes; in the plane (x, z),
two and one. A normal points from the first body to the second; -1 is the world. Units are SI throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.problems.contact import ContactProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

DRAG = 0.1  # viscosity of a contact, N s / (m/s), in units of the lighter body's mass over 1 s


class Body(NamedTuple):
    mass: float  # kg
    inertia: Array  # (3, 3) about the centre, kg m²
    centre: Array  # (3,) m


class Touch(NamedTuple):
    point: Array | tuple[float, ...]  # (3,) m; (2,) in the plane
    normal: Array | tuple[float, ...]  # (3,) from the first body to the second; any length
    first: int
    second: int


class PlaneBody(NamedTuple):
    mass: float  # kg
    inertia: float  # kg m²
    centre: Array  # (2,) m


def block(size: ArrayLike, centre: ArrayLike, mass: float = 1.0, axes: ArrayLike | None = None) -> Body:
    """A box of this size (m) and mass (kg); columns of `axes` are its edges' directions."""
    sides = np.asarray(size, np.float64)
    inertia = mass / 12.0 * np.diag((sides**2).sum() - sides**2)
    if axes is not None:
        turn = np.asarray(axes, np.float64)
        inertia = turn @ inertia @ turn.T
    return Body(mass, inertia, np.asarray(centre, np.float64))


def ball(radius: float, centre: ArrayLike, mass: float = 1.0) -> Body:
    return Body(mass, 0.4 * mass * radius**2 * np.eye(3), np.asarray(centre, np.float64))


def rod(length: float, radius: float, axis: ArrayLike, centre: ArrayLike, mass: float = 1.0) -> Body:
    """A slender cylinder along `axis`, a unit vector."""
    a = np.asarray(axis, np.float64)
    along, across = 0.5 * mass * radius**2, mass * (3.0 * radius**2 + length**2) / 12.0
    return Body(mass, across * (np.eye(3) - np.outer(a, a)) + along * np.outer(a, a), np.asarray(centre, np.float64))


def posed(
    bodies: Sequence[Body],
    touches: Sequence[Touch],
    impulse: ArrayLike,
    friction: ArrayLike,
    *,
    velocity: Array | float = 0.0,
    gap_rate: ArrayLike | None = None,
    joints: ArrayLike | None = None,
    joint_rate: ArrayLike | None = None,
) -> ContactProblem:
    """The problem in the form of bodies; impulse and velocity are (b, 6) or can be spread to it."""
    count, n = len(bodies), len(touches)
    mass = np.zeros((count, 6, 6))
    for b, body in enumerate(bodies):
        mass[b, :3, :3], mass[b, 3:, 3:] = body.mass * np.eye(3), body.inertia
    centre = np.array([body.centre for body in bodies]).reshape(count, 3)
    pairs = np.array([(t.first, t.second) for t in touches], np.int64).reshape(n, 2)
    point = np.array([t.point for t in touches], np.float64).reshape(n, 3)
    directions = frames(np.array([t.normal for t in touches], np.float64).reshape(n, 3))
    rows = np.zeros((n, 3, 2, 6))
    for side, sign in ((0, -1.0), (1, 1.0)):
        rows[:, :, side] = sign * wrenches(directions, point - centre[pairs[:, side]])
    push = np.asarray(impulse, np.float64) * np.ones((count, 6))
    start = velocity + np.linalg.solve(mass, push[:, :, None])[:, :, 0]
    masses = np.array([*(body.mass for body in bodies), np.inf])  # the world is last: index -1
    return ContactProblem.from_bodies(
        mass, start, pairs, rows[:, 0], rows[:, 1:], friction,
        gap_rate=gap_rate, joints=joints, joint_rate=joint_rate, viscosity=DRAG * masses[pairs].min(axis=1),
    )  # fmt: skip


def posed_in_plane(
    bodies: Sequence[PlaneBody],
    touches: Sequence[Touch],
    impulse: ArrayLike,
    friction: ArrayLike,
    slip: ArrayLike | None = None,
) -> ContactProblem:
    """The same in two dimensions, dense: impulse (b, 3), points and normals (2,), the tangent is (n_z, -n_x)."""
    count, n = len(bodies), len(touches)
    diagonal = np.array([(b.mass, b.mass, b.inertia) for b in bodies]).reshape(-1)
    normals, tangents = np.zeros((n, count, 3)), np.zeros((n, count, 3))
    for i, touch in enumerate(touches):
        normal = np.asarray(touch.normal, np.float64)
        normal = normal / np.linalg.norm(normal)
        tangent = np.array([normal[1], -normal[0]])
        for b, sign in ((touch.first, -1.0), (touch.second, 1.0)):
            if b >= 0:
                arm = np.asarray(touch.point, np.float64) - bodies[b].centre
                normals[i, b] = sign * np.array([*normal, arm[0] * normal[1] - arm[1] * normal[0]])
                tangents[i, b] = sign * np.array([*tangent, arm[0] * tangent[1] - arm[1] * tangent[0]])
    push = np.asarray(impulse, np.float64) * np.ones((count, 3))
    start = push.reshape(-1) / diagonal
    masses = np.array([*(body.mass for body in bodies), np.inf])
    pairs = np.array([(t.first, t.second) for t in touches], np.int64).reshape(n, 2)
    return ContactProblem(
        np.diag(diagonal), start, normals.reshape(n, -1), tangents.reshape(n, 1, -1), friction,
        viscosity=DRAG * masses[pairs].min(axis=1), slip=slip,
    )  # fmt: skip


def frames(normal: Array) -> Array:
    """(n, 3, 3) unit normals and two tangents: t1 = n x e_x (e_y where n is near e_x), t2 = n x t1."""
    unit = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    aside = np.where(np.abs(unit[:, :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    first = np.cross(unit, aside)
    first = first / np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([unit, first, np.cross(unit, first)], axis=1)


def wrenches(directions: Array, arm: Array) -> Array:
    """(n, 3, 6) rows (d, arm x d)."""
    return np.concatenate([directions, np.cross(arm[:, None], directions)], axis=2)


def ball_joint(bodies: Sequence[Body], point: Array, first: int, second: int) -> Array:
    """(3, 6 b) rows of a point that two bodies share: its velocity on the second less that on the first."""
    rows = np.zeros((3, len(bodies), 6))
    for b, sign in ((first, -1.0), (second, 1.0)):
        if b >= 0:
            rows[:, b] = sign * wrenches(np.eye(3)[None], (point - bodies[b].centre)[None])[0]
    return rows.reshape(3, -1)

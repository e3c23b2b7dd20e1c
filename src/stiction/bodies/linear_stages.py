"""MuJoCo's stages beside the present state, for `linearize`: entries changed one by one, and only what follows anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.bodies.stages import acceleration, actuation, body_forces, control_callback, euler, forces_of_velocity
from stiction.bodies.stages import sensors as sensors_of_acceleration
from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

mj = mujoco()
FREE, BALL = int(mj.mjtJoint.mjJNT_FREE), int(mj.mjtJoint.mjJNT_BALL)
SERIES = 1e-8  # square of an angle, below which its functions are taken from their series


def columns(model: Any) -> tuple[tuple[str, int], ...]:
    """Entries of state and control, in the order of `mjd_transitionFD`."""
    return ("qpos", int(model.nv)), ("qvel", int(model.nv)), ("act", int(model.na)), ("ctrl", int(model.nu))


def nudge(model: Any, data: Any, what: str, k: int, step: float) -> None:
    """Change one entry; a position along its tangent."""
    if what == "qpos":
        way = np.zeros(model.nv)
        way[k] = 1.0
        mj.mj_integratePos(model, data.qpos, way, step)
    else:
        getattr(data, what)[k] += step


def depends_on_velocity(model: Any) -> bool:
    """Whether mass (by dampers that are no straight lines) or controls (by a callback) may change with velocities."""
    return bool(model.dof_dampingpoly.any() or model.actuator_dampingpoly.any()) or control_callback() is not None


def after_positions(model: Any, data: Any) -> None:
    """Forces and accelerations anew; what follows from positions alone must be there."""
    forces_of_velocity(model, data)
    actuation(model, data)
    acceleration(model, data)


def moved_tangent(model: Any, velocity: Array, change: Array, dt: float) -> Array:
    """(nv, columns) how positions after a step change, by their tangents; the first nv columns change positions too.

    A rotation q⁺ = q exp(dt w) changes by exp(-dt w) dq + dt J dw, J the right Jacobian of the exponential.
    """
    position = np.ascontiguousarray(dt * change)
    turning = np.flatnonzero(model.jnt_type <= BALL)
    places = model.jnt_dofadr[turning] + np.where(model.jnt_type[turning] == FREE, 3, 0)
    turn_columns(np.ascontiguousarray(velocity), dt, places, position)
    return position


@kernel
def turn_columns(velocity, dt, places, position):
    """Add the identity to the first columns of dt dv; where a rotation begins, its own parts take their place."""
    for i in range(len(velocity)):
        position[i, i] += 1.0
    for k in range(len(places)):
        at = places[k]
        for i in range(3):
            position[at + i, at + i] -= 1.0

        # J = I - b [w] + c [w]² and exp(-w) = I - a [w] + b [w]², w = dt times the angular velocity.
        x, y, z = dt * velocity[at], dt * velocity[at + 1], dt * velocity[at + 2]
        square = x * x + y * y + z * z
        if square < SERIES:  # what is left out is of the order of the fourth power of the angle
            a, b, c = 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
        else:
            angle = square**0.5
            a, b = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square
            c = (angle - np.sin(angle)) / (square * angle)
        for column in range(position.shape[1]):
            p, q, r = position[at, column], position[at + 1, column], position[at + 2, column]
            position[at, column], position[at + 1, column], position[at + 2, column] = turned(b, c, x, y, z, p, q, r)
        for column in range(3):
            p, q, r = (1.0 if column == 0 else 0.0), (1.0 if column == 1 else 0.0), (1.0 if column == 2 else 0.0)
            p, q, r = turned(a, b, x, y, z, p, q, r)
            position[at, at + column] += p
            position[at + 1, at + column] += q
            position[at + 2, at + column] += r


@kernel
def turned(a, b, x, y, z, p, q, r):
    """(I - a [w] + b [w]²) v for w = (x, y, z) and v = (p, q, r)."""
    i, j, k = y * r - z * q, z * p - x * r, x * q - y * p
    return p - a * i + b * (y * k - z * j), q - a * j + b * (z * i - x * k), r - a * k + b * (x * j - y * i)


def sense(model: Any, data: Any, joined: bool) -> None:
    """Sensors of force and acceleration."""
    if joined:
        body_forces(model, data)
    sensors_of_acceleration(model, data)


def euler_end(model: Any, data: Any, velocity: Array, act_dot: Array, dt: float) -> tuple[Array, ...]:
    """Positions, velocities and activations after a step that ends at this velocity."""
    data.qacc[:] = (velocity[: model.nv] - data.qvel) / dt
    data.act_dot[:] = act_dot
    euler(model, data)
    return np.array(data.qpos), np.array(data.qvel), np.array(data.act)


def difference(model: Any, before: tuple[Array, ...], after: tuple[Array, ...]) -> Array:
    """(2 nv + na,) from one state to another, positions by their tangent."""
    tangent = np.zeros(model.nv)
    mj.mj_differentiatePos(model, tangent, 1.0, before[0], after[0])
    return np.concatenate([tangent, after[1] - before[1], after[2] - before[2]])

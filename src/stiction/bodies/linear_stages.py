"""MuJoCo's stages beside the present state, for `linearize`: entries changed one by one, and only what follows anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.stages import acceleration, actuation, body_forces, control_callback, euler, forces_of_velocity
from stiction.bodies.stages import sensors as sensors_of_acceleration
from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

mj = mujoco()
EVERYTHING = int(mj.mjtState.mjSTATE_INTEGRATION)


def columns(model: Any) -> tuple[tuple[str, int], ...]:
    """Entries of state and control, in the order of `mjd_transitionFD`."""
    return ("qpos", int(model.nv)), ("qvel", int(model.nv)), ("act", int(model.na)), ("ctrl", int(model.nu))


def state_of(model: Any, data: Any) -> Array:
    """All that the next step depends on."""
    vector = np.empty(mj.mj_stateSize(model, EVERYTHING))
    mj.mj_getState(model, data, vector, EVERYTHING)
    return vector


def restore(model: Any, data: Any, state: Array) -> None:
    mj.mj_setState(model, data, state, EVERYTHING)


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
    nv = model.nv
    position = dt * change
    position[np.arange(nv), np.arange(nv)] += 1.0
    for joint in np.flatnonzero(model.jnt_type <= int(mj.mjtJoint.mjJNT_BALL)):
        start = model.jnt_dofadr[joint] + (3 if model.jnt_type[joint] == int(mj.mjtJoint.mjJNT_FREE) else 0)
        three = slice(start, start + 3)
        carried, turned = rotation_parts(dt * velocity[three])
        position[three] = dt * turned @ change[three]
        position[three, three] += carried
    return np.asarray(position)


def rotation_parts(turn: Array) -> tuple[Array, Array]:
    """exp(-turn) and the right Jacobian of the exponential, for a rotation vector."""
    angle = float(np.sqrt(turn @ turn))
    cross = np.array([[0.0, -turn[2], turn[1]], [turn[2], 0.0, -turn[0]], [-turn[1], turn[0], 0.0]])
    square = cross @ cross
    if angle < 1e-4:  # series: what is left out is of the order of angle⁴
        a, b, c = 1.0 - angle**2 / 6.0, 0.5 - angle**2 / 24.0, 1.0 / 6.0 - angle**2 / 120.0
    else:
        a, b = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle**2
        c = (angle - np.sin(angle)) / angle**3
    return np.eye(3) - a * cross + b * square, np.eye(3) - b * cross + c * square


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

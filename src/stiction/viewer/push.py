"""A body pulled by hand: a damped spring from a point of it to the mouse, with a bounded force.

    f = m (w² (target - x) - 2 w v),    |f| <= strength · m g

m is the mass of all that moves with the body, and w is as stiff as the scene asks: stretched over its extent the spring
pulls with ten times the weight. It is never so stiff that a step of length dt would overshoot: w dt <= 1/4.

In a first-order world, m v = τ f, there is nothing to be damped, and a spring would hang through by g τ / w. There the
point is to go towards the target at w (target - x), and the force changes until it does,

    f += m (w (target - x) - v) / (3 τ),    w dt <= 1/10

whatever weight and friction it takes, up to the same bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

EARTH = 9.81  # m/s², where a scene has no gravity of its own


class Grip:
    """A hold on a body, at a point of the world; `target` is where that point is to go."""

    def __init__(self, model: Any, data: Any, body: int, point: NDArray[np.float64], strength: float = 10.0) -> None:
        self.body, self.strength = body, strength
        self.target = np.array(point, float)
        self.local = data.xmat[body].reshape(3, 3).T @ (self.target - data.xpos[body])
        self.mass = float(model.body_subtreemass[model.body_rootid[body]])
        gravity = float(np.linalg.norm(model.opt.gravity)) or EARTH
        self.most = strength * self.mass * gravity
        self.rate = min(math.sqrt(10.0 * gravity / model.stat.extent), 0.25 / model.opt.timestep)
        self.given = np.array(data.xfrc_applied[body])
        self._row = np.zeros((3, model.nv))

    def point(self, data: Any) -> NDArray[np.float64]:
        """Where the hold is now."""
        return np.asarray(data.xpos[self.body] + data.xmat[self.body].reshape(3, 3) @ self.local)

    def force(self, model: Any, data: Any) -> NDArray[np.float64]:
        """In N, in the world's axes."""
        at = self.point(data)
        mujoco().mj_jac(model, data, self._row, None, at, self.body)
        velocity = self._row @ data.qvel
        force = self.mass * (self.rate**2 * (self.target - at) - 2.0 * self.rate * velocity)
        size = float(np.linalg.norm(force))
        return np.asarray(force * min(1.0, self.most / size) if size else force)

    def pull(self, model: Any, data: Any) -> None:
        """Apply the force, on top of what others apply to the body."""
        force = self.force(model, data)
        turn = np.cross(self.point(data) - data.xipos[self.body], force)
        data.xfrc_applied[self.body] = self.given + np.concatenate([force, turn])

    def release(self, data: Any) -> None:
        data.xfrc_applied[self.body] = self.given


class SteadyGrip(Grip):
    """A grip in a first-order world with this τ, in s."""

    def __init__(self, model: Any, data: Any, body: int, point: NDArray[np.float64], time: float) -> None:
        super().__init__(model, data, body, point)
        self.time, self.rate = time, min(self.rate, 0.1 / model.opt.timestep)
        self.now: NDArray[np.float64] = np.zeros(3)  # the force, in N
        self.last: NDArray[np.float64] | None = None

    def force(self, model: Any, data: Any) -> NDArray[np.float64]:
        at = self.point(data)
        moved = 0.0 if self.last is None else (at - self.last) / model.opt.timestep
        self.last = at
        felt = felt_mass(model, data, self.body, at, self.mass)
        self.now += felt / (3.0 * self.time) * (self.rate * (self.target - at) - moved)
        size = float(np.linalg.norm(self.now))
        if size > self.most:
            self.now *= self.most / size
        return self.now


def felt_mass(model: Any, data: Any, body: int, point: NDArray[np.float64], whole: float) -> float:
    """The least mass, in kg, that a push at a point of a body may feel, in any direction; at most `whole`."""
    rows, pushed = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco().mj_jac(model, data, rows, None, point, body)
    mujoco().mj_solveM(model, data, pushed, rows)
    light = float(np.linalg.eigvalsh(rows @ pushed.T).max()) if np.isfinite(pushed).all() else 0.0
    return 1.0 / max(light, 1.0 / whole)


def can_be_pulled(model: Any, body: int) -> bool:
    """Whether a body moves: it is not welded to the world, and has mass to move."""
    return bool(model.body_weldid[body] != 0 and model.body_subtreemass[model.body_rootid[body]] > 0.0)

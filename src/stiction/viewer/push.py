"""A body pulled by hand: a damped spring from a point of it to the mouse, with a bounded force.

    f = m (w² (target - x) - 2 w v),    |f| <= strength · m g

m is the mass of all that moves with the body, and w is as stiff as the scene asks: stretched over its extent the spring
pulls with ten times the weight. It is never so stiff that a step of length dt would overshoot: w dt <= 1/4.
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


def can_be_pulled(model: Any, body: int) -> bool:
    """Whether a body moves: it is not welded to the world, and has mass to move."""
    return bool(model.body_weldid[body] != 0 and model.body_subtreemass[model.body_rootid[body]] > 0.0)

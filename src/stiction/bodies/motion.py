"""Looking at a model where it is not: contacts, rows and forces at other positions and velocities.

A `Probe` is a second MjData of the same model, so that the simulation's own stays as it is until a step is decided. It
sees the margins of the simulation, by its shadow of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.collision.mend import collide, needs_mending
from stiction.bodies.shadow import own
from stiction.bodies.stages import smooth
from stiction.bodies.state import EVERYTHING, place_bodies
from stiction.bodies.structs import memory
from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

mj = mujoco()


def moved(model: Any, position: NDArray[np.float64], velocity: NDArray[np.float64], time: float) -> NDArray[np.float64]:
    """(nq,) where positions come with constant velocities; quaternions turn as they should."""
    place = np.array(position)
    mj.mj_integratePos(model, place, velocity, time)
    return place


class Probe:
    """A second data, to look ahead with; the model is a `Shadow`."""

    def __init__(self, model: Any) -> None:
        self.model, self.data = model, mj.MjData(own(model))
        place_bodies(model, self.data)
        self.memory = memory(model, self.data)
        self.mended = self.memory if needs_mending(model) else None

    def follow(self, data: Any) -> None:
        """Take over the whole state of another data: controls, applied forces, activations, time."""
        mj.mj_copyState(self.model, data, self.data, EVERYTHING)

    def place(self, position: NDArray[np.float64], velocity: NDArray[np.float64]) -> None:
        """Kinematics, inertia, contacts and rows at these positions, but no forces."""
        model, data = self.model, self.data
        data.qpos[:], data.qvel[:] = position, velocity
        mj.mj_fwdKinematics(model, data)
        mj.mj_makeM(model, data)
        if self.mended is None:
            mj.mj_collision(model, data)
        else:
            collide(model, data, self.mended)
        mj.mj_makeConstraint(model, data)

    def press(self, position: NDArray[np.float64], velocity: NDArray[np.float64], time: float) -> None:
        """Kinematics, and all forces but those of constraints."""
        self.data.qpos[:], self.data.qvel[:], self.data.time = position, velocity, time
        smooth(self.model, self.data, self.mended)

"""A push that slides a puck to a target and stops it there, found by gradient descent through contact.

The force of the first 0.2 s is to be found; then friction alone stops the puck. Gradients go back through every step by
its `A` and `B` (`st.linearize`), exact in sliding, in stopping, and at rest. Beside it, the same descent by differences
of `mj_step`, whose puck creeps at the end.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

import stiction as st

STEPS, PUSHED, TARGET = 100, 20, np.array([0.4, 0.3])
XML = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="0 0 1" friction=".3"/><site name="world"/>
<body name="puck" pos="0 0 .02"><freejoint/><geom type="box" size=".05 .05 .02" mass=".5" friction=".3"/>
<site name="low" pos="0 0 -.02"/></body></worldbody>
<actuator><general site="low" refsite="world" gear="1 0 0 0 0 0"/>
<general site="low" refsite="world" gear="0 1 0 0 0 0"/></actuator></mujoco>"""


def rolled(force: Any, step: Any, linear: bool = False) -> tuple[Any, Any]:
    """Where the puck ends, and how that changes with the force."""
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    maps = []
    for k in range(STEPS):
        data.ctrl[:] = force if k < PUSHED else 0.0
        if linear:
            maps.append(st.linearize(model, data))
        step(model, data)
    by, gradient = np.eye(2, 12), np.zeros((2, 2))
    for k, (A, B) in reversed(list(enumerate(maps))):
        gradient += by @ B if k < PUSHED else 0.0
        by = by @ A
    return data.qpos[:2].copy(), gradient if linear else data.qvel[:2].copy()


def differenced(force: Any) -> tuple[Any, Any]:
    """The same by differences of soft simulations."""
    end = [rolled(force + way, mujoco.mj_step)[0] for way in 1e-4 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])]
    return rolled(force, mujoco.mj_step)[0], np.array([end[0] - end[1], end[2] - end[3]]).T / 2e-4


def descent(answer: Any) -> tuple[Any, int]:
    """Gradient descent on half the squared distance, with Polyak's step; and how many were made."""
    force, count, off = np.array([3.0, 3.0]), 0, np.ones(2)
    while np.abs(off).max() > 1e-6 and count < 40:
        place, J = answer(force)
        off, count = place - TARGET, count + 1
        gradient = J.T @ off
        force = force - gradient * (off @ off) / (gradient @ gradient)
    return force, count


def main() -> None:
    exact = descent(lambda force: rolled(force, st.step, True))
    soft = descent(differenced)
    for name, (force, count), step in (("exact", exact, st.step), ("soft", soft, mujoco.mj_step)):
        place, speed = rolled(force, step)
        off, drift = np.abs(place - TARGET).max(), np.abs(speed).max()
        print(f"{name} contact: {force.round(4)} N after {count if name == 'exact' else 5 * count} simulations")
        print(f"  misses by {off:.0e} m, moves at {drift:.0e} m/s at the end")


if __name__ == "__main__":
    main()

"""A robot that stands on its foot, balanced by an LQR whose A and B come from `st.linearize`.

The foot lies on four contacts that share the load in many ways; motions differentiate all the same. The linear map of
one step is that of the contact that holds the foot. Beside it the same weights with A and B of MuJoCo's differences,
on MuJoCo's own soft steps: there the foot rocks, and gains that leave it out do not hold the robot upright.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from scipy.linalg import solve_discrete_are

import stiction as st

XML = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
<body name="foot" pos="0 0 .02"><freejoint/><geom type="box" size=".15 .1 .02" mass="2"/>
<body pos="0 0 .02"><joint name="ankle" axis="0 1 0"/><geom type="capsule" fromto="0 0 .1 0 0 .4" size=".04" mass="4"/>
<body pos="0 0 .4"><joint name="hip" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .4" size=".05" mass="8"/>
</body></body></body></worldbody>
<actuator><motor joint="ankle"/><motor joint="hip"/></actuator></mujoco>"""
JOINTS = [6, 7]  # velocities of ankle and hip


def gains(A: Any, B: Any) -> Any:
    """Of ankle and hip: the foot stands still."""
    places = [*JOINTS, *(8 + k for k in JOINTS)]
    A, B = A[np.ix_(places, places)], B[places]
    P = solve_discrete_are(A, B, np.diag([100.0, 100.0, 1.0, 1.0]), 0.01 * np.eye(2))
    return np.linalg.solve(0.01 * np.eye(2) + B.T @ P @ B, B.T @ P @ A)


def balanced(model: Any, K: Any, step: Any) -> tuple[float, float]:
    """The largest angle in two seconds after a kick, and at their end."""
    data = mujoco.MjData(model)
    data.qvel[JOINTS] = 0.15, -0.1
    angles = []
    for _ in range(1000):
        data.ctrl[:] = -K @ np.concatenate([data.qpos[7:], data.qvel[JOINTS]])
        step(model, data)
        angles.append(np.abs(data.qpos[7:]).max())
    return max(angles), angles[-1]


def main() -> None:
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    for _ in range(5):
        st.step(model, data)
        data.qpos[7:], data.qvel[:] = 0.0, 0.0  # upright, at rest
    found = st.linearize(model, data)
    print(f"linearized: {found.reason or 'smooth'}, 1 contact solve")
    A, B = np.zeros((16, 16)), np.zeros((16, 2))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None)
    for name, K, step in (
        ("st.linearize and st.step", gains(*found), st.step),
        ("mjd_transitionFD and mj_step", gains(A, B), mujoco.mj_step),
    ):
        most, last = balanced(model, K, step)
        print(f"{name}: leans by at most {most:.4f} rad, at the end by {last:.0e} rad")


if __name__ == "__main__":
    main()

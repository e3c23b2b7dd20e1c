"""Friction and mass of a box, from how it slides and tips: Gauss–Newton with exact derivatives of every step.

A known force pushes a box until it slides, tips, and falls on its side. Each step is linearized (`st.linearize`), and
what friction and mass change in it (`derivatives.jvp`) adds up along the trajectory. Without noise both are found to
1e-6; beside it, the same by differences of whole soft simulations, which explain the hard trajectory less well.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

import stiction as st

STEPS, DT, TRUE = 100, 0.005, np.array([0.45, 2.0])  # mu, kg
XML = """<mujoco><option timestep="{dt}"/><worldbody><geom type="plane" size="0 0 1" friction="{mu}"/>
<body name="box" pos="0 0 .15"><freejoint/><geom type="box" size=".08 .1 .15" mass="{mass}" friction="{mu}"/></body>
</worldbody></mujoco>"""


def observed(theta: Any, hard: bool = True) -> tuple[Any, Any]:
    """Where the box is after every step, and (with hard contact) how that changes with mu and mass."""
    model = mujoco.MjModel.from_xml_string(XML.format(dt=DT, mu=theta[0], mass=theta[1]))
    data = mujoco.MjData(model)
    S, places, slopes = np.zeros((12, 2)), [], []
    for k in range(STEPS):
        data.xfrc_applied[1, [0, 4]] = (14.0, 0.6) if k < 40 else 0.0  # N, N m: pushed above its centre
        if hard:
            found = st.linearize(model, data)
            ways = found.derivatives
            mass, n = ways.problem.mass_blocks[0], ways.problem.n
            free = -DT * np.linalg.solve(mass, data.xfrc_applied[1]) / theta[1]  # what the push does less
            by_mu = ways.jvp({"friction": np.ones(n), "free": np.zeros(6)}).velocity
            by_mass = ways.jvp({"mass": ways.problem.mass / theta[1], "free": free}).velocity
            by = np.array([by_mu, by_mass]).T
            S = found[0] @ S + np.vstack([DT * by, by])
            st.step(model, data)
        else:
            mujoco.mj_step(model, data)
        places.append([data.qpos[0], data.qpos[2], 2.0 * np.arcsin(data.qpos[5])])
        slopes.append(S[[0, 2, 4]])
    return np.array(places), np.array(slopes)


def fitted(wanted: Any, hard: bool) -> tuple[Any, int]:
    """Gauss–Newton from a guess; and how many simulations it took."""
    theta, runs = np.array([0.4, 1.8]), 0
    for _ in range(8):
        places, S = observed(theta, hard)
        runs += 1
        if not hard:
            ways = [observed(theta + way, False)[0] - observed(theta - way, False)[0] for way in 1e-5 * np.eye(2)]
            S, runs = np.stack(ways, axis=-1) / 2e-5, runs + 4
        theta = theta - np.linalg.lstsq(S.reshape(-1, 2), (places - wanted).ravel(), rcond=None)[0]
    return theta, runs


def main() -> None:
    seen, rng = observed(TRUE)[0], np.random.default_rng(0)
    for noise, hard in ((0.0, True), (1e-4, True), (0.0, False)):
        theta, runs = fitted(seen + noise * rng.normal(size=seen.shape), hard)
        how = "exact derivatives" if hard else "differences of mj_step"
        print(f"{how}, noise {noise:g} m: mu = {theta[0]:.7f}, mass = {theta[1]:.7f} kg after {runs} simulations")


if __name__ == "__main__":
    main()

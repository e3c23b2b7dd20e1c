"""A cube that slides must not lift, and stops where the textbook says; a ball ends up rolling at 5/7 of its speed.

Convex relaxations of friction make sliding bodies float by mu · speed · dt. Here the true cone is solved, so the cube
stays down and stops after v²/(2 mu g), up to the length of a step.
"""

from __future__ import annotations

import stiction as st

SPEED, MU, G = 2.0, 0.3, 9.81


def main() -> None:
    sim = st.Simulation(st.Scene.named("sliding-cube", speed=SPEED, mu=MU))
    rest, lifted = sim.data.body("cube").xpos[2], 0.0
    for _ in sim.run(1.5):
        lifted = max(lifted, sim.data.body("cube").xpos[2] - rest)
    expected, step = SPEED**2 / (2.0 * MU * G), SPEED * sim.model.opt.timestep
    print(
        f"cube: stopped after {sim.data.body('cube').xpos[0]:.4f} m, textbook {expected:.4f} m, a step is {step:.4f} m"
    )
    print(f"      lifted by at most {lifted:.0e} m; a relaxed cone lifts by {MU * step:.0e} m")

    sim = st.Simulation(st.Scene.named("sliding-ball", speed=SPEED, mu=MU))
    for _ in sim.run(1.5):
        pass
    print(f"ball: rolls at {sim.data.qvel[0] / SPEED:.9f} of its speed, textbook {5 / 7:.9f}")


if __name__ == "__main__":
    main()

"""A robot with four legs walks on rough ground: every step of 2 ms is a contact problem, solved and certified.

Twelve motors follow an open-loop gait; what moves the robot is friction under its feet.
"""

from __future__ import annotations

import stiction as st

SECONDS = 2.0


def main() -> None:
    for law in (st.Coulomb(), st.NoSlip()):
        sim = st.Simulation(st.Scene.named("quadruped", terrain="boxes"), law)
        begin, worst, sliding, closed = sim.data.qpos[0], 0.0, 0, 0
        for report in sim.run(SECONDS):
            worst = max(worst, report.certificate.residual)
            modes = [touch.mode.name for touch in sim.contacts]
            sliding, closed = sliding + modes.count("SLIDE"), closed + len(modes) - modes.count("OPEN")
        walked = 100.0 * (sim.data.qpos[0] - begin)
        share = 100.0 * sliding / max(1, closed)
        name = type(law).__name__
        print(f"{name:8} walked {walked:5.1f} cm, {share:4.1f} % of contacts slid, worst residual {worst:.0e}")


if __name__ == "__main__":
    main()

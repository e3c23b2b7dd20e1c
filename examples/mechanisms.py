"""A jack that lifts on both strokes, and a feeder that pushes one block a turn: mechanisms of contacts and joints.

Baraff (1994) ran both interactively, at more than 30 steps a second. Pawls catch teeth, blocks slide on blocks; nothing
but contact forces with friction moves the load.
"""

from __future__ import annotations

import time

import stiction as st

SECONDS = 2.0


def main() -> None:
    print(f"  {'mechanism':<22}{'contacts':>9}{'lifted or fed':>16}{'worst residual':>16}{'steps a second':>16}")
    for name, part, axis in (("double-action-jack", "rack", 2), ("block-feeder", "block0", 0)):
        sim = st.Simulation(st.Scene.named(name))
        sim.step()  # compiles
        before = sim.data.body(part).xpos[axis]
        begin, worst, steps, most = time.perf_counter(), 0.0, 0, 0
        for report in sim.run(SECONDS):
            worst, steps, most = max(worst, report.certificate.residual), steps + 1, max(most, len(sim.contacts))
        rate = steps / (time.perf_counter() - begin)
        moved = 100.0 * abs(sim.data.body(part).xpos[axis] - before)
        print(f"  {name:<22}{most:>9}{moved:>13.1f} cm{worst:>16.0e}{rate:>16.0f}")


if __name__ == "__main__":
    main()

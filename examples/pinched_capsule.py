"""A capsule of 45 g between two pads that push 31 times as hard as friction needs: who lets it sink, and how fast?

`python pinched_capsule.py slip.svg` also draws how far it sinks, `... slip.svg dark` on dark paper.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import stiction as st
from stiction.scenes import SCENES
from stiction.viewer import plots

SETTLE, SECONDS = 0.5, 4.0
ROUNDING = 1e-12 * 60e3  # µm: a part in 1e12 of the capsule's length
OPTIONS: dict[str, dict[str, float]] = {
    "mj_step as it comes": {"cone": 0},
    "mj_step, elliptic cone, impratio 10": {"cone": 1, "impratio": 10.0},
    "mj_step, elliptic cone, impratio 100": {"cone": 1, "impratio": 100.0},
    "mj_step, elliptic cone, impratio 10, noslip 10": {"cone": 1, "impratio": 10.0, "noslip_iterations": 10},
}


def main() -> None:
    sim = st.Simulation(st.Scene.named("pinched-capsule"))
    runs = {"stiction as it comes": (sim.model, sim.data, sim.step)} | {n: rival(o) for n, o in OPTIONS.items()}
    print(f"Mean creep over {SECONDS:g} s.\n\n  {'engine':<48}{'creep':>16}{'a step':>12}")
    curves: dict[str, Any] = {}
    for name, (model, data, step) in runs.items():
        for _ in range(round(SETTLE / model.opt.timestep)):
            step()
        heights, begin = [data.body("capsule").xpos[2]], time.process_time()
        for _ in range(round(SECONDS / model.opt.timestep)):
            step()
            heights.append(data.body("capsule").xpos[2])
        cost = (time.process_time() - begin) / (len(heights) - 1)
        curves[name] = 1e6 * np.abs(heights[0] - np.array(heights))
        print(f"  {name:<48}{curves[name][-1] / SECONDS:>11.2g} µm/s{1e6 * cost:>9.1f} µs")
    if sys.argv[1:]:
        times = np.linspace(0.0, SECONDS, len(heights))
        title = "How far a pinched capsule sinks"
        figure = plots.curves(times, curves, title, "time [s]", "sunk by [µm]", ROUNDING, *sys.argv[2:])
        plots.save(figure, Path(sys.argv[1]))
    print(f"\nOne more of our steps: {sim.step().certificate}. Who holds the capsule:\n\n{sim.contacts}")


def rival(options: dict[str, float]) -> tuple[Any, Any, Any]:
    """The same scene, stepped by MuJoCo."""
    scene = SCENES["pinched-capsule"]()
    model, data = scene.begin()
    for name, value in options.items():
        setattr(model.opt, name, value)

    def step() -> None:
        assert scene.control is not None
        scene.control(model, data)
        mujoco.mj_step(model, data)

    return model, data, step


if __name__ == "__main__":
    main()

"""A capsule of 45 g between two pads that push 31 times as hard as friction needs: who lets it sink, and how fast?

`python pinched_capsule.py slip.svg` also draws how far it sinks, `... slip.svg dark` on dark paper.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import mujoco

import stiction as st
from stiction.bodies.named import SCENES
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
    figure, theme = plots.blank(7.0, 4.5, *sys.argv[2:]) if sys.argv[1:] else (None, None)
    ax: Any = None if figure is None else figure.subplots()
    print(f"Mean creep over {SECONDS:g} s.\n\n  {'engine':<48}{'creep':>16}{'a step':>12}")
    for k, (name, (model, data, step)) in enumerate(runs.items()):
        settle, steps = (round(seconds / model.opt.timestep) for seconds in (SETTLE, SECONDS))
        for _ in range(settle):
            step()
        heights, begin = [data.body("capsule").xpos[2]], time.process_time()
        for _ in range(steps):
            step()
            heights.append(data.body("capsule").xpos[2])
        cost = (time.process_time() - begin) / steps
        sunk = [1e6 * abs(heights[0] - height) for height in heights]
        print(f"  {name:<48}{sunk[-1] / SECONDS:>11.2g} µm/s{1e6 * cost:>9.1f} µs")
        if theme is not None:
            times, shown = (model.opt.timestep * i for i in range(steps + 1)), [max(ROUNDING, each) for each in sunk]
            ax.plot(list(times), shown, label=name, **plots.line_style(k, steps, theme))
    if figure is not None and theme is not None:
        ax.set(yscale="log", xlabel="time [s]", ylabel="sunk by [µm]", ylim=(0.1 * ROUNDING, 1e10))
        ax.set_title("How far a pinched capsule sinks; at the bottom, nothing but rounding", fontsize=10)
        ax.legend(fontsize=8, loc="upper left", ncols=1)
        plots.ink(ax, theme)
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

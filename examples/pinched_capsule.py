"""A capsule of 45 g between two pads that push 31 times as hard as friction needs: who lets it sink, and how fast?

`python pinched_capsule.py slip.svg` also draws how far it sinks.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import mujoco

import stiction as st
from stiction import optional
from stiction.bodies.named import SCENES

SETTLE, SECONDS = 0.5, 4.0
OPTIONS: dict[str, dict[str, float]] = {
    "mj_step as it comes": {"cone": 0},
    "mj_step, elliptic cone, impratio 10": {"cone": 1, "impratio": 10.0},
    "mj_step, elliptic cone, impratio 100": {"cone": 1, "impratio": 100.0},
    "mj_step, elliptic cone, impratio 10, noslip 10": {"cone": 1, "impratio": 10.0, "noslip_iterations": 10},
}


def main() -> None:
    sim = st.Simulation(st.Scene.named("pinched-capsule"))
    runs = {"stiction as it comes": (sim.model, sim.data, sim.step)} | {n: rival(o) for n, o in OPTIONS.items()}
    figure = optional.matplotlib().figure.Figure(figsize=(7.0, 4.0), layout="constrained") if sys.argv[1:] else None
    ax: Any = None if figure is None else figure.subplots()
    print(f"Mean creep over {SECONDS:g} s.\n\n  {'engine':<48}{'creep':>16}{'a step':>12}")
    for (name, (model, data, step)), line in zip(runs.items(), ("-", "--", "-.", ":", (0, (1, 3))), strict=True):
        settle, steps = (round(seconds / model.opt.timestep) for seconds in (SETTLE, SECONDS))
        for _ in range(settle):
            step()
        heights, begin = [data.body("capsule").xpos[2]], time.process_time()
        for _ in range(steps):
            step()
            heights.append(data.body("capsule").xpos[2])
        cost = (time.process_time() - begin) / steps
        sunk = [max(1e-12, 1e6 * abs(heights[0] - height)) for height in heights]
        print(f"  {name:<48}{sunk[-1] / SECONDS:>11.2g} µm/s{1e6 * cost:>9.1f} µs")
        if figure is not None:
            ax.plot([model.opt.timestep * k for k in range(steps + 1)], sunk, color="k", ls=line, lw=1.2, label=name)
    if figure is not None:
        ax.set(yscale="log", xlabel="s", ylabel="sunk by [µm]", ylim=(1e-12, 1e8))
        ax.legend(fontsize=8, loc="upper left", ncols=2)
        figure.savefig(sys.argv[1])
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

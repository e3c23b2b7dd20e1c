"""A capsule of 45 g between two pads that push 31 times as hard as friction needs: who lets it sink, and how fast?"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mujoco

import stiction as st
from stiction.bodies.named import SCENES

SETTLE, SECONDS = 0.5, 4.0
OPTIONS: dict[str, dict[str, float]] = {
    "mj_step as it comes": {"cone": 0},
    "mj_step, elliptic cone, impratio 10": {"cone": 1, "impratio": 10.0},
    "mj_step, elliptic cone, impratio 100": {"cone": 1, "impratio": 100.0},
    "mj_step, elliptic cone, impratio 10, noslip 10": {"cone": 1, "impratio": 10.0, "noslip_iterations": 10},
}


def main() -> None:
    print(f"Mean creep over {SECONDS:g} s.\n\n  {'engine':<48}{'creep':>16}{'a step':>12}")
    sim = st.Simulation(st.Scene.named("pinched-capsule"))
    row("stiction as it comes", sim.model, sim.data, sim.step)
    for name, options in OPTIONS.items():
        row(name, *rival(options))
    print(f"\nOne more of our steps: {sim.step().certificate}. Who holds the capsule:\n\n{sim.contacts}")


def rival(options: dict[str, float]) -> tuple[Any, Any, Callable[[], None]]:
    """The same scene, stepped by MuJoCo."""
    scene = SCENES["pinched-capsule"]()
    model, data = scene.begin()
    for name, value in options.items():
        setattr(model.opt, name, value)

    def step() -> None:
        if scene.control is not None:
            scene.control(model, data)
        mujoco.mj_step(model, data)

    return model, data, step


def row(name: str, model: Any, data: Any, step: Callable[[], object]) -> None:
    settle, steps = (round(seconds / model.opt.timestep) for seconds in (SETTLE, SECONDS))
    for _ in range(settle):
        step()
    height, begin = data.body("capsule").xpos[2], time.process_time()
    for _ in range(steps):
        step()
    cost = (time.process_time() - begin) / steps
    creep = abs(data.body("capsule").xpos[2] - height) / SECONDS
    print(f"  {name:<48}{1e6 * creep:>11.2g} µm/s{1e6 * cost:>9.1f} µs")


if __name__ == "__main__":
    main()

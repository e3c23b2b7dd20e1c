"""MuJoCo's own window, with our steps in place of its own: bodies are pushed with Ctrl and the mouse."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from stiction.errors import MissingDependency
from stiction.optional import mujoco, viewer_of_mujoco

if TYPE_CHECKING:
    from stiction.stepping.simulation import Simulation


def view(simulation: Simulation) -> None:
    """Show a simulation in a window until it is closed; contact forces are ours, drawn by MuJoCo."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise MissingDependency(
            "there is no display for a window (DISPLAY is not set): look in a browser instead, or record a film"
        )
    mj, model, data = mujoco(), simulation.model, simulation.data
    with viewer_of_mujoco().launch_passive(model, data) as window:
        with window.lock():
            for flag in (mj.mjtVisFlag.mjVIS_CONTACTPOINT, mj.mjtVisFlag.mjVIS_CONTACTFORCE):
                window.opt.flags[flag] = True
        ahead = time.perf_counter() - simulation.time
        while window.is_running():
            with window.lock():
                simulation.step()
            window.sync()
            late = time.perf_counter() - ahead - simulation.time
            if late < 0.0:
                time.sleep(-late)
            elif late > 0.1:  # slower than real time: do not try to catch up
                ahead += late

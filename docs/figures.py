"""Figures and tables of "Why exact contact" and "Accuracy and speed": `python docs/figures.py`, then look at them.

Times are CPU times of this process and depend on the machine; everything else repeats.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import mujoco
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

import stiction as st
from stiction.scenes import SCENES

DOCS = Path(__file__).parent
OUT = DOCS / "images" / "pages"
INK, BLUE, VERMILION, GREEN, PURPLE = "#1a1a1a", "#0072b2", "#d55e00", "#009e73", "#cc79a7"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stiction",
    "font.size": 10,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}

SETTLE, SECONDS = 0.5, 4.0
FLOOR = 1e-6  # µm: what moves by less is drawn as this
BODIES = {"pinched-capsule": "capsule", "inclined-plane": "block"}
ENGINES: dict[str, dict[str, float] | None] = {
    "mj_step, default": {"cone": 0},
    "mj_step, elliptic cone": {"cone": 1},
    "mj_step, elliptic, impratio 10": {"cone": 1, "impratio": 10.0},
    "mj_step, elliptic, impratio 100": {"cone": 1, "impratio": 100.0},
    "mj_step, impratio 10, noslip 10": {"cone": 1, "impratio": 10.0, "noslip_iterations": 10},
    "st.step": None,
}
LINES = ((VERMILION, "-"), (PURPLE, "--"), (GREEN, "-."), (INK, ":"), ("#777777", (0, (1, 3))), (BLUE, "-"))

TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)
DIALLED: dict[str, tuple[dict[str, Any], float, float]] = {  # parameters, seconds to settle, seconds measured
    "pinched-capsule": ({}, 0.5, 4.0),
    "force-closure-grasp": ({}, 0.2, 2.0),
    "card-house": ({}, 0.2, 1.0),
    "log-heap": ({"logs": 12}, 0.0, 1.0),
}
RESTING = ("pinched-capsule", "force-closure-grasp", "card-house")  # scenes in which every motion is creep
ROUNDS = 3  # the fastest counts


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        slid = {scene: {name: path(scene, options) for name, options in ENGINES.items()} for scene in BODIES}
        save(creep_figure(slid), "creep")
        renew("why-exact-contact.md", creep_table(slid))
        save(sharing_figure(), "sharing")
        found = dial()
        save(dial_figure(found), "dial")
        renew("accuracy-and-speed.md", dial_table(found))


def save(figure: Any, name: str) -> None:
    figure.savefig(OUT / f"{name}.svg", metadata={"Date": None})


def renew(page: str, table: str) -> None:
    """Put a table between the marks of its page."""
    path = DOCS / page
    marks = re.compile(r"(<!-- measured -->\n).*?(<!-- end -->)", re.DOTALL)
    path.write_text(marks.sub(rf"\g<1>\n{table}\n\g<2>", path.read_text(encoding="utf-8")), encoding="utf-8")


# Creep


def path(scene: str, options: dict[str, float] | None) -> tuple[np.ndarray, np.ndarray]:
    """Seconds, and µm that the body has moved since it settled."""
    if options is None:
        sim = st.Simulation(st.Scene.named(scene))
        model, data, step = sim.model, sim.data, sim.step
    else:
        named = SCENES[scene]()
        model, data = named.begin()
        for option, value in options.items():
            setattr(model.opt, option, value)

        def step() -> None:
            if named.control is not None:
                named.control(model, data)
            mujoco.mj_step(model, data)

    place = data.body(BODIES[scene]).xpos
    for _ in range(round(SETTLE / model.opt.timestep)):
        step()
    begin, moved = place.copy(), [0.0]
    for _ in range(round(SECONDS / model.opt.timestep)):
        step()
        moved.append(1e6 * float(np.linalg.norm(place - begin)))
    return model.opt.timestep * np.arange(len(moved)), np.array(moved)


def creep_figure(slid: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]) -> Figure:
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    titles = ("A capsule of 45 g, pinched with 2 × 10 N", "A block of 1 kg on a slope of 17°")
    for ax, title, runs in zip(axes, titles, slid.values(), strict=True):
        for (name, (seconds, moved)), (colour, dash) in zip(runs.items(), LINES, strict=True):
            thin = slice(None, None, len(seconds) // 100)
            ax.plot(seconds[thin], np.maximum(moved[thin], FLOOR), color=colour, ls=dash, lw=1.6, label=name)
        ax.set(yscale="log", ylim=(0.5 * FLOOR, 1e5), xlabel="time [s]")
        ax.set_title(title, fontsize=10)
    axes[0].set_ylabel("moved since it settled [µm]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def creep_table(slid: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]) -> str:
    lines = ["| Engine | Pinched capsule, µm/s | Block on a slope, µm/s |", "|---|---:|---:|"]
    for name in ENGINES:
        speeds = [float(runs[name][1][-1]) / SECONDS for runs in slid.values()]
        lines.append(f"| `{name.replace(',', '`,', 1)} | " + " | ".join(rounded(speed) for speed in speeds) + " |")
    return "\n".join(lines).replace("`st.step |", "`st.step` |") + "\n"


def rounded(speed: float) -> str:
    if speed < 1e-8:
        return "below 1e-8"
    return f"{speed:.2g}" if speed < 100.0 else f"{round(speed, -1):.0f}"


# Which forces are determined


def sharing_figure() -> Figure:
    """Three answers for a box of 1 kg that stands on four contacts: what its corners carry, seen from above."""
    model_weight = 9.81
    shares = {
        "each corner a quarter": [0.25, 0.25, 0.25, 0.25],
        "one diagonal more": [0.40, 0.10, 0.40, 0.10],
        "two corners alone": [0.50, 0.0, 0.50, 0.0],
    }
    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    for ax, (title, parts) in zip(figure.subplots(1, 3), shares.items(), strict=True):
        ax.add_patch(Rectangle((-1, -1), 2, 2, facecolor="#eeeeee", edgecolor=INK))
        for (x, y), part in zip([(-1, -1), (1, -1), (1, 1), (-1, 1)], parts, strict=True):
            ax.add_patch(Circle((0.72 * x, 0.72 * y), 0.42 * np.sqrt(part), facecolor=BLUE, alpha=0.85))
            ax.text(0.72 * x, 0.22 * y, f"{part * model_weight:.2f} N", ha="center", va="center", fontsize=9)
        ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
        ax.set_axis_off()
        ax.set_title(f"{title}\nsum {sum(parts) * model_weight:.2f} N", fontsize=10)
    return figure


# The tolerance dial


class Measured(tuple[float, float, float]):
    """µs of CPU time a step, worst residual, creep in µm/s."""


def dial() -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for scene, (parameters, settle, seconds) in DIALLED.items():
        rounds = [
            [measured(scene, parameters, settle, seconds, tolerance) for tolerance in TOLERANCES] for _ in range(ROUNDS)
        ]
        found[scene] = [min(column) for column in zip(*rounds, strict=True)]  # all but the time are equal
    return found


def measured(scene: str, parameters: dict[str, Any], settle: float, seconds: float, tolerance: float) -> Measured:
    sim = st.Simulation(st.Scene.named(scene, **parameters), stepper=st.TimeStepping(tolerance=tolerance))
    for _ in sim.run(settle):
        pass
    begin, residuals, clock = sim.data.xpos.copy(), [], time.process_time()
    for report in sim.run(seconds):
        residuals.append(report.certificate.residual)
    cost = 1e6 * (time.process_time() - clock) / len(residuals)
    return Measured((cost, max(residuals), 1e6 * float(np.abs(sim.data.xpos - begin).max()) / seconds))


def dial_figure(found: dict[str, list[Measured]]) -> Figure:
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (scene, rows), (colour, dash), marker in zip(found.items(), LINES, "osD^", strict=False):
        options: dict[str, Any] = {"color": colour, "ls": dash, "marker": marker, "lw": 1.4, "label": scene}
        left.plot(TOLERANCES, [row[0] for row in rows], **options)
        if scene in RESTING:
            right.plot(TOLERANCES, [max(FLOOR * 1e-3, row[2]) for row in rows], **options)
    for ax, label in ((left, "CPU time a step [µs]"), (right, "creep [µm/s]")):
        ax.set(xscale="log", yscale="log", xlabel="tolerance", ylabel=label)
        ax.invert_xaxis()
    left.set_ylim(10.0, 1e4)
    right.set_ylim(1e-10, 1e4)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure


def dial_table(found: dict[str, list[Measured]]) -> str:
    lines = ["| Scene | Tolerance | CPU time a step | Worst residual | Creep, µm/s |", "|---|---:|---:|---:|---:|"]
    for scene, rows in found.items():
        for tolerance, (cost, residual, creep) in zip(TOLERANCES, rows, strict=True):
            crept = rounded(creep) if scene in RESTING else "moves"
            lines.append(f"| {scene} | {tolerance:.0e} | {float(f'{cost:.2g}'):.0f} µs | {residual:.0e} | {crept} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

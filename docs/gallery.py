"""Clips and pictures of the gallery, from the examples' own scenes: `make gallery`, then look at them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

import stiction as st
from stiction.problems.zoo.contact_families import stack
from stiction.viewer import plots
from stiction.viewer.record import Recorder

OUT = Path(__file__).parent / "images" / "gallery"
EXAMPLES = Path(__file__).parent.parent / "examples"


class Clip(NamedTuple):
    """A scene and its parameters, seconds of it, seconds of it in a second of film, and from where it is seen."""

    scene: str
    parameters: dict[str, Any]
    seconds: float
    speed: float = 1.0
    camera: tuple[float, float] | None = None


CLIPS = {
    "pinched_capsule": Clip("pinched-capsule", {}, 0.5, 0.25, (96.0, -10.0)),
    "arch": Clip("masonry-arch", {"stones": 21, "thickness": 0.26}, 2.0),
    "mechanisms": Clip("block-feeder", {}, 4.0, 2.0),
    "slide": Clip("sliding-cube", {}, 0.8, 0.4),
    "walk": Clip("quadruped", {"terrain": "boxes"}, 2.0),
}


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name, clip in CLIPS.items():
        sim = st.Simulation(st.Scene.named(clip.scene, **clip.parameters))
        look: dict[str, Any] = {"fps": 25, "speed": clip.speed, "width": 480, "height": 270, "camera": clip.camera}
        with Recorder(sim, OUT / f"{name}.mp4", **look) as film:
            for _ in sim.run(clip.seconds):
                film.frame()
    solution = st.solve(stack(5, seed=3))
    plots.save(plots.problem(solution, 0), OUT / "laws.svg")
    for name, draw in (("identify", draw_identify), ("push", draw_push), ("balance", draw_balance)):
        plots.save(draw(runpy.run_path(str(EXAMPLES / f"{name}.py"))), OUT / f"{name}.svg")


def axes(count: int) -> tuple[Any, Any]:
    """A figure with axes side by side."""
    figure, theme = plots.blank(7.0, 2.8)
    made = np.atleast_1d(figure.subplots(1, count))
    for ax in made:
        plots.ink(ax, theme)
    return figure, made


def draw_identify(example: dict[str, Any]) -> Any:
    """What was seen, what the guess says, and what was found."""
    figure, (slid, leaned) = axes(2)
    time = example["DT"] * np.arange(example["STEPS"])
    seen = example["observed"](example["TRUE"])[0]
    found = example["observed"](example["fitted"](seen, True)[0])[0]
    guess = example["observed"](np.array([0.4, 1.8]))[0]
    for ax, k, label in ((slid, 0, "place, m"), (leaned, 2, "angle, rad")):
        ax.plot(time, guess[:, k], ":", label="first guess")
        ax.plot(time, found[:, k], label="found")
        ax.plot(time[::8], seen[::8, k], "k.", markersize=4, label="seen")
        ax.set_xlabel("time, s")
        ax.set_ylabel(label)
    slid.legend()
    return figure


def draw_push(example: dict[str, Any]) -> Any:
    """Where pushes end, from the first to the last."""
    figure, (ax,) = axes(1)
    ends: list[Any] = []

    def answer(force: Any) -> Any:
        found = example["rolled"](force, st.step, True)
        ends.append(found[0])
        return found

    example["descent"](answer)
    places = np.array(ends)
    ax.plot(places[:, 0], places[:, 1], ".-", label="end of each try")
    ax.plot(*example["TARGET"], "k+", markersize=12, label="target")
    ax.set_xlabel("x, m")
    ax.set_ylabel("y, m")
    ax.legend()
    return figure


def draw_balance(example: dict[str, Any]) -> Any:
    """Angles of ankle and hip after a kick."""
    figure, (ax,) = axes(1)
    model = mujoco.MjModel.from_xml_string(example["XML"])
    data = mujoco.MjData(model)
    K = example["gains"](*st.linearize(model, data))
    angles: list[Any] = []

    def step(model: Any, data: Any) -> None:
        st.step(model, data)
        angles.append(data.qpos[7:].copy())

    example["balanced"](model, K, step)
    ax.plot(model.opt.timestep * np.arange(len(angles)), angles, label=["ankle", "hip"])
    ax.set_xlabel("time, s")
    ax.set_ylabel("angle, rad")
    ax.legend()
    return figure


if __name__ == "__main__":
    main()

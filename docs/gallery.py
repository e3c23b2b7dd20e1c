"""Clips and pictures of the gallery, from the examples' own scenes: `make gallery`, then look at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import stiction as st
from stiction.problems.zoo.contact_families import stack
from stiction.viewer import plots
from stiction.viewer.record import Recorder

OUT = Path(__file__).parent / "images" / "gallery"


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


if __name__ == "__main__":
    main()

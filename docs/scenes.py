"""A picture of every named scene, into the package, for gallery and viewer: `make gallery`, then look at them."""

from __future__ import annotations

import argparse
from pathlib import Path

import stiction as st
from stiction.bodies.named import SCENES
from stiction.optional import pillow
from stiction.viewer.pictures import Pictures
from stiction.viewer.start import GALLERY

WIDTH, HEIGHT, QUALITY = 480, 320, 80
SECONDS = {  # until something is to be seen; 0.2 elsewhere
    "dominoes": 0.5, "quadruped": 1.0, "log-heap": 0.5, "block-feeder": 1.0, "double-action-jack": 0.6,
    "sliding-ball": 0.3,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of the named scenes.")
    parser.add_argument("scene", nargs="*", help="all if none is named")
    parser.add_argument("--out", type=Path, default=GALLERY)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.scene or SCENES:
        simulation = st.Simulation(st.Scene.named(name))
        pictures = Pictures(simulation, WIDTH, HEIGHT, words=False)
        for _ in simulation.run(SECONDS.get(name, 0.2)):
            pictures.follower.look(simulation.data)
        image = pillow().Image.fromarray(pictures.take())
        image.save(options.out / f"{name}.webp", quality=QUALITY, method=6)
        pictures.close()


if __name__ == "__main__":
    main()

"""Pictures of every named scene, into the package, for gallery and viewer, and of the tutorial: `make gallery`.

Look at them before they are kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import stiction as st
from stiction.optional import pillow
from stiction.scenes import SCENES
from stiction.viewer.pictures import Pictures
from stiction.viewer.start import GALLERY

WIDTH, HEIGHT, QUALITY = 480, 320, 80
SECONDS = {  # until something is to be seen; 0.2 elsewhere
    "dominoes": 0.5, "quadruped": 1.0, "log-heap": 0.5, "block-feeder": 1.0, "double-action-jack": 0.6,
    "sliding-ball": 0.3, "conveyor": 0.6, "rolling-balls": 0.4, "heap": 0.8, "wall": 0.25, "humanoids": 1.0,
    "granular-column": 0.35,
}  # fmt: skip
LARGER = {  # than they are unless more is asked for
    "heap": {"bodies": 100}, "wall": {"rows": 8, "columns": 6}, "humanoids": {"count": 8},
    "granular-column": {"grains": 200},
}  # fmt: skip


def tutorial(out: Path) -> None:
    """The gripper of the tutorial, which the page itself defines: held, and slipping."""
    out.mkdir(parents=True, exist_ok=True)
    text = (Path(__file__).parent / "tutorial.md").read_text(encoding="utf-8")
    scene = text.partition('write_text("""\n')[2].partition('""")')[0]
    for name, force, seconds in (("grip", 10.0, 0.3), ("slip", 4.0, 0.45)):
        simulation = st.Simulation(st.Scene.from_xml(scene))
        simulation.data.ctrl[:] = force
        pictures = Pictures(simulation, 720, 406)
        for _ in simulation.run(seconds):
            pass
        words = f"gripper · {force:g} N a pad · stiction · {simulation.time:.2f} s"
        pillow().Image.fromarray(pictures.take([words])).save(out / f"{name}.webp", quality=QUALITY, method=6)
        pictures.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of the named scenes.")
    parser.add_argument("scene", nargs="*", help="all if none is named")
    parser.add_argument("--out", type=Path, default=GALLERY)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.scene or SCENES:
        simulation = st.Simulation(st.Scene.named(name, **LARGER.get(name, {})))
        pictures = Pictures(simulation, WIDTH, HEIGHT, words=False)
        for _ in simulation.run(SECONDS.get(name, 0.2)):
            pictures.follower.look(simulation.data)
        image = pillow().Image.fromarray(pictures.take())
        image.save(options.out / f"{name}.webp", quality=QUALITY, method=6)
        pictures.close()
    if not options.scene:
        tutorial(Path(__file__).parent / "images" / "tutorial")


if __name__ == "__main__":
    main()

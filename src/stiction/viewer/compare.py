"""Several engines on one scene, next to each other: one film, one replay, one plot, one table."""

from __future__ import annotations

from math import radians, tan
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.viewer.backdrop import floor_of
from stiction.viewer.camera import AZIMUTH, ELEVATION, FOV, axes_of, first_camera, subject
from stiction.viewer.caption import law_words, title_of
from stiction.viewer.record import Recorder
from stiction.viewer.replay import WIDE, Replay
from stiction.viewer.rivals import COMPILING, Numbers, in_units
from stiction.viewer.stage import Stage

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from stiction.viewer.rivals import Run

PANEL = (480, 540)  # pixels of one engine's picture
ABREAST = 3  # panels in a row
LINE = np.array([255, 255, 255], np.uint8)


class Comparison:
    """Engines stepped side by side, and the history of their numbers."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        self.history: list[list[Numbers]] = [[] for _ in runs]

    def advance(self, moment: float) -> None:
        """All engines to this time."""
        for run in self.runs:
            while run.time < moment - 0.5 * float(run.model.opt.timestep):
                run.step()

    def look(self) -> None:
        """Keep the numbers of this moment."""
        for kept, run in zip(self.history, self.runs, strict=True):
            if run.steps:
                kept.append(run.numbers())

    def lines(self, place: int) -> list[str]:
        """The caption of an engine's picture."""
        run = self.runs[place]
        name = run.engine_words if run.law is None else f"{run.engine_words}, {law_words(run.law)}"
        if not self.history[place]:
            return [name, f"{run.time:.2f} s"]
        now = self.history[place][-1]
        return [
            name,
            f"slip {in_units(now.slip, 'm/s')} · residual {now.residual:.0e}",
            f"moved {in_units(now.moved, 'm')} in {now.time:.2f} s",
        ]

    def table(self) -> list[list[str]]:
        """Engine, slip now, how far it has moved, the largest residual, time of a step in µs."""
        rows = []
        for run, kept in zip(self.runs, self.history, strict=True):
            worst = max((each.residual for each in kept), default=0.0)
            cost = 1e6 * run.seconds / max(run.steps - COMPILING, 1)
            last = kept[-1] if kept else Numbers(run.time, 0.0, 0.0, 0.0)
            rows.append(
                [run.engine_words, in_units(last.slip, "m/s"), in_units(last.moved, "m"), f"{worst:.1e}", f"{cost:.1f}"]
            )
        return rows


HEAD = ("engine", "slip", "moved", "worst residual", "a step [µs]")


class ComparisonRecorder(Recorder):
    """A `Recorder` of all engines at once; `width` and `height` are those of one engine's picture."""

    def __init__(self, comparison: Comparison, path: str | os.PathLike[str], **options: Any) -> None:
        self.comparison = comparison
        size = dict(zip(("width", "height"), PANEL, strict=True))
        first: Any = comparison.runs[0]
        super().__init__(first, path, **(size | options))

    def _open(self, fps: float, width: int, height: int, camera: Any, forces: bool) -> Any:
        if self.path.suffix == ".html":
            return SharedReplay(self.comparison, self._part.path, fps, forces)
        from stiction.viewer.film import Film

        made: Any = SideBySide(self.comparison, width, height, camera, forces)
        return Film(made, self._part.path, fps, *made.size)


class SideBySide:
    """One picture of all engines."""

    def __init__(
        self, comparison: Comparison, width: int, height: int, camera: Any = None, forces: bool = True
    ) -> None:
        from stiction.viewer.pictures import Pictures

        self.comparison = comparison
        count = len(comparison.runs)
        self.columns = count if count <= ABREAST else -(-count // 2)
        self.rows = -(-count // self.columns)
        self.size = self.columns * width, self.rows * height
        self.panels = [Pictures(run, width, height, camera, forces) for run in comparison.runs]
        for panel in self.panels[1:]:
            panel.leader = self.panels[0]  # one point of view, so that differences are those of the engines

    def take(self) -> NDArray[np.uint8]:
        shown = []
        for k, panel in enumerate(self.panels):
            name, *numbers = self.comparison.lines(k)
            shown.append(panel.caption.write(panel.take(numbers), [name], corner="upper"))
        blank = np.full_like(shown[0], 255)
        shown += [blank] * (self.rows * self.columns - len(shown))
        for picture in shown:
            picture[:, -2:] = picture[-2:] = LINE
        rows = [np.hstack(shown[r * self.columns : (r + 1) * self.columns]) for r in range(self.rows)]
        return np.ascontiguousarray(np.vstack(rows))

    def close(self) -> None:
        for panel in self.panels:
            panel.close()


class SharedReplay(Replay):
    """One page in which all engines stand next to each other, each with its numbers above it."""

    def __init__(self, comparison: Comparison, path: Path, fps: float, forces: bool = True) -> None:
        self.comparison = comparison
        first: Any = comparison.runs[0]
        super().__init__(first, path, fps, forces)
        self.title = f"{title_of(first)}, compared"

    def set_up(self, forces: bool, cones: bool) -> None:
        comparison, first = self.comparison, self.comparison.runs[0]
        right = axes_of(AZIMUTH, ELEVATION)[0]
        across = np.concatenate([box.corners for box in subject(first.model, first.data)]) @ right
        wide, camera = float(across.max() - across.min()), first_camera(first.model, first.data, aspect=1.0)
        apart = max(1.5 * wide, 0.6 * camera.distance)  # room for the words above
        middle = 0.5 * (len(comparison.runs) - 1)
        floor = floor_of(first.model)
        level = floor is None or bool(np.allclose(np.array(first.data.geom_xmat[floor])[[2, 5]], 0.0))
        self.stages = [
            Stage(self.server, run, f"/engine{k}", (k - middle) * apart * right, floor=not level or k == round(middle))
            for k, run in enumerate(comparison.runs)
        ]
        for stage in self.stages:
            stage.show_forces, stage.follows = forces, False
        row = apart * (len(self.stages) - 1) + max(wide, 0.5 * apart)
        camera = camera._replace(distance=max(camera.distance, row / (2.0 * WIDE * tan(0.5 * radians(FOV)))))
        self.server.initial_camera.position = tuple(camera.position)
        self.server.initial_camera.look_at = tuple(camera.centre)

    def draw(self) -> None:
        for k, (stage, run) in enumerate(zip(self.stages, self.comparison.runs, strict=True)):
            stage.lines = [part for line in self.comparison.lines(k) for part in line.split(" · ")]
            stage.draw(None if run.report is None else run.contacts)

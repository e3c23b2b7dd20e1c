"""A simulation kept: as a film (mp4, gif) or as a page that replays itself (html)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiction.disk import Part, unwritable
from stiction.errors import InvalidScene

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from stiction.stepping.simulation import Simulation
    from stiction.viewer.film import Film
    from stiction.viewer.replay import Replay

KINDS = (".mp4", ".gif", ".html")


class Recorder:
    """Call `frame` after each step; a picture is added when it is due, and `close` puts the file where it belongs.

        with Recorder(simulation, "grasp.mp4") as film:
            for _ in simulation.run(seconds=2.0):
                film.frame()

    The file has its name only when it is whole; whatever was recorded before an error or Ctrl-C is kept, at least one
    picture.

    fps: pictures in a second of the film
    speed: seconds of simulation in a second of the film
    width, height: even numbers of pixels, of a film
    camera: of a film: the name of one in the scene, an MjvCamera, or azimuth and elevation in degrees from which what
        moves is followed; None for angles that suit most scenes
    forces: draw contact forces as arrows, thick where a contact sticks, thin with a broad head where it slides
    cones: draw the friction cones of contacts that press, in the same colours
    """

    def __init__(
        self,
        simulation: Simulation,
        path: str | os.PathLike[str],
        fps: float = 30.0,
        speed: float = 1.0,
        width: int = 1280,
        height: int = 720,
        camera: Any = None,
        forces: bool = True,
        cones: bool = False,
    ) -> None:
        self.simulation, self.path, self.cones = simulation, Path(path), cones
        if self.path.suffix.lower() not in KINDS:
            raise InvalidScene(f"record: {self.path} must end in {', '.join(KINDS)}")
        for name, value in (("fps", fps), ("speed", speed)):
            if not (isinstance(value, (int, float)) and 0.0 < value < math.inf):
                raise InvalidScene(f"record: {name} must be a positive number, got {value!r}")
        for name, pixels in (("width", width), ("height", height)):
            if not (isinstance(pixels, int) and 2 <= pixels <= 8192 and pixels % 2 == 0):
                raise InvalidScene(f"record: {name} must be an even number from 2 to 8192, got {pixels!r}")
        self.frames = 0
        self._spacing = speed / fps
        self._start = simulation.time
        self.closed = self._broken = False
        try:
            self._part = Part(self.path)
        except OSError as error:
            raise InvalidScene(unwritable(self.path, "record", error)) from None
        try:
            self._film = self._open(fps, width, height, camera, forces)
        except BaseException as error:
            self._part.discard()
            if isinstance(error, OSError):
                raise InvalidScene(unwritable(self.path, "record", error)) from None
            raise

    def _open(self, fps: float, width: int, height: int, camera: Any, forces: bool) -> Film | Replay:
        if self.path.suffix.lower() == ".html":
            from stiction.viewer.replay import Replay

            return Replay(self.simulation, self._part.path, fps, forces, self.cones)
        from stiction.viewer.film import Film
        from stiction.viewer.pictures import Pictures

        pictures = Pictures(self.simulation, width, height, camera, forces, cones=self.cones)
        return Film(pictures, self._part.path, fps, width, height)

    def frame(self) -> bool:
        """Add the pictures that are due by now; whether there were any."""
        due = 0
        # Half a picture early, so that n seconds make n · fps pictures whatever the rounding of the clock.
        while self.simulation.time - self._start >= (self.frames + 0.5) * self._spacing:
            self._add()
            due += 1
        return due > 0

    def _add(self) -> None:
        try:
            self._film.add()
        except OSError as error:
            self._broken = True
            raise InvalidScene(unwritable(self.path, "record", error)) from error
        self.frames += 1

    def close(self) -> Path | None:
        """Finish the file and give it its name; None if it could not be written, which has been reported already."""
        if self.closed:
            return None if self._broken else self.path
        self.closed = True
        try:
            if not self.frames and not self._broken:
                self._add_only()
        finally:
            self._finish()
        return None if self._broken else self.path

    def _add_only(self) -> None:
        """A run too short for a picture still gets one; without it there is no film."""
        try:
            self._add()
        except BaseException:
            self._broken = True
            raise

    def _finish(self) -> None:
        try:
            self._film.close()
            if not self._broken:
                self._part.finish()
        except OSError as error:
            if not self._broken:  # else it has been reported
                self._broken = True
                raise InvalidScene(unwritable(self.path, "record", error)) from error
        finally:
            self._part.discard()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

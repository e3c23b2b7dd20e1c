"""A page that replays a simulation: one file with everything in it, which opens without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stiction.viewer.brand import branded
from stiction.viewer.server import close_server, open_server
from stiction.viewer.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from stiction.stepping.simulation import Simulation

WIDE = 1.5  # how much wider than high the page is taken to be


class Replay:
    """Viser's messages with the times at which they were sent, and viser's page around them.

    Viser records messages of a server only; this one listens on this machine only, and nobody looks.
    """

    def __init__(
        self, simulation: Simulation, path: Path, fps: float, forces: bool = True, cones: bool = False
    ) -> None:
        self.simulation, self.path, self.pause = simulation, path, 1.0 / fps
        self.title = simulation.scene.description
        self.server = open_server("127.0.0.1", 0, self.title)
        self.set_up(forces, cones)
        self.serializer = self.server.get_scene_serializer()

    def set_up(self, forces: bool, cones: bool) -> None:
        """Prepare the server's scene."""
        self.stage = Stage(self.server, self.simulation, aspect=WIDE)
        self.stage.show_forces, self.stage.show_cones = forces, cones

    def draw(self) -> None:
        """The present state."""
        self.stage.draw(None if self.simulation.report is None else self.simulation.contacts)

    def add(self) -> None:
        self.draw()
        self.serializer.insert_sleep(self.pause)

    def close(self) -> None:
        try:
            self.path.write_text(branded(self.serializer.as_html(), self.title), encoding="utf-8")
        finally:
            close_server(self.server)

"""The page of `stiction view` without a scene: pictures of all named scenes, and a button below each."""

from __future__ import annotations

import inspect
import queue
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.optional import pillow
from stiction.viewer import backdrop
from stiction.viewer.browser import Viewer, address
from stiction.viewer.server import close_server, open_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from stiction.stepping.simulation import Simulation

GALLERY = Path(__file__).parent / "gallery"
TITLE = "Scenes"


def picture_of(name: str) -> NDArray[np.uint8] | None:
    """(height, width, 3) of a named scene; None where there is no picture of it."""
    path = GALLERY / f"{name}.webp"
    return np.array(pillow().Image.open(path).convert("RGB")) if path.is_file() else None


class Start:
    """A page with pictures of all scenes, and a viewer of the one that is chosen.

    make: a simulation of the scene with this name
    """

    def __init__(
        self,
        make: Callable[[str], Simulation],
        host: str = "127.0.0.1",
        port: int = 8080,
        allow_origins: Sequence[str] = (),
    ) -> None:
        self.make = make
        self.server = open_server(host, port, TITLE, allow_origins)
        self.chosen: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.viewer: Viewer | None = None
        self.closing = False
        self._offer()

    @property
    def url(self) -> str:
        return address(self.server)

    def _offer(self) -> None:
        """The page of pictures."""
        from stiction.scenes import SCENES

        gui, scene = self.server.gui, self.server.scene
        gui.reset()
        scene.reset()
        gui.set_panel_label("Choose a scene")
        scene.set_background_image(backdrop.sky(64, 256), format="png")
        listed = gui.add_dropdown("Scene", tuple(SCENES))
        gui.add_button("Open").on_click(lambda _: self.chosen.put(listed.value))
        for name, make in SCENES.items():
            picture = picture_of(name)
            if picture is not None:
                gui.add_image(picture, format="jpeg")
            button = gui.add_button(name, hint=(inspect.getdoc(make) or "").split("\n\n")[0])
            button.on_click(lambda _, name=name: self.chosen.put(name))

    def show(self, name: str) -> None:
        """One scene, until it is left."""
        self.server.gui.reset()
        self.server.scene.reset()
        self.viewer = Viewer(self.make(name), server=self.server, others=True)
        self.viewer.run()
        self.viewer = None

    def run(self) -> None:
        """Until Ctrl-C."""
        try:
            while not self.closing:
                try:
                    self.show(self.chosen.get(timeout=0.2))
                except queue.Empty:
                    continue
                if not self.closing:
                    self._offer()
        except KeyboardInterrupt:
            pass
        finally:
            self.closing = True
            close_server(self.server)

    def close(self) -> None:
        """Ask `run` to end."""
        self.closing = True
        if self.viewer is not None:
            self.viewer.leave()


def view(
    make: Callable[[str], Any],
    host: str,
    port: int,
    opened: Callable[[str], None] | None = None,
    allow_origins: Sequence[str] = (),
) -> None:
    """Show all scenes until Ctrl-C."""
    start = Start(make, host, port, allow_origins)
    if opened is not None:
        opened(start.url)
    start.run()

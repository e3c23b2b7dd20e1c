"""Films made from moments that were kept, in a thread of their own, while the simulation goes on."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from stiction.viewer.caption import title_of
from stiction.viewer.history import Shown
from stiction.viewer.record import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stiction.stepping.simulation import Simulation
    from stiction.viewer.history import Moment

FPS = 30.0


class Take:
    """One film on its way to a file, from its first moment to its last; `words` is how far it has come.

    done: called with the file when it is whole, in the thread that made it
    """

    def __init__(
        self,
        simulation: Simulation,
        moments: Sequence[Moment],
        path: Path,
        forces: bool = True,
        cones: bool = False,
        done: Callable[[Path], None] | None = None,
    ) -> None:
        self.path, self.forces, self.cones = path, forces, cones
        self.running = True
        self.words = f"making {path.name} …"
        self._simulation, self._moments, self._done = simulation, moments, done
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._make, name="stiction-take", daemon=True)
        self._thread.start()

    def _make(self) -> None:
        try:
            pictures = self._film()
        except Exception as error:  # whatever is missing to make films, the page must outlive it
            self.words = f"{self.path.name} was not made: {error}"
        else:
            self.words = f"saved {self.path.resolve()} ({pictures} pictures)"
            if self._done is not None:
                self._done(self.path)
        finally:
            self.running = False

    def _film(self) -> int:
        shown = Shown(self._simulation, self._moments[0])
        # Anything with a simulation's model, data, time, report and contacts can be filmed.
        options = {"fps": FPS, "forces": self.forces, "cones": self.cones}
        with Recorder(shown, self.path, **options) as film:  # type: ignore[arg-type]
            for k, moment in enumerate(self._moments):
                if self._stop.is_set():
                    break
                shown.show(moment)
                film.frame()
                self.words = f"making {self.path.name}: {100 * (k + 1) // len(self._moments)} %"
        return film.frames

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def stop(self) -> None:
        """End the film with the pictures that are made, within some seconds."""
        self._stop.set()
        self.wait(5.0)


def free_path(simulation: Simulation, kind: str, folder: Path | None = None) -> Path:
    """A name after the scene that no file in the folder has; the working folder if None."""
    scene = re.sub(r"[^a-z0-9]+", "-", title_of(simulation).lower()).strip("-")[:40].strip("-") or "scene"
    folder = Path() if folder is None else folder
    number = 1
    while (path := folder / f"{scene}-{number}.{kind}").exists():
        number += 1
    return path

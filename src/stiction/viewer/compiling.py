"""Whether kernels are being compiled just now, so that people who wait know for what."""

from __future__ import annotations

import threading
import time
from functools import cache
from typing import Any

from numba.core import event

PAUSE = 1.0  # s: kernels that begin within this time of the last one's end count as one compilation


class Compiling(event.Listener):  # type: ignore[misc]
    """Notified of every kernel that Numba begins and ends to compile, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._began = self._ended = -float("inf")
        self.kernels = 0

    def on_start(self, event: Any) -> None:
        with self._lock:
            now = time.monotonic()
            if not self._open and now - self._ended > PAUSE:
                self._began, self.kernels = now, 0
            self._open += 1
            self.kernels += 1

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._open -= 1
            self._ended = time.monotonic()

    @property
    def seconds(self) -> float:
        """For how long it has been going on; 0 if nothing is compiled."""
        with self._lock:
            now = time.monotonic()
            return now - self._began if self._open or now - self._ended < PAUSE else 0.0


@cache
def compiling() -> Compiling:
    """The one of this process."""
    made = Compiling()
    event.register("numba:compile", made)
    return made

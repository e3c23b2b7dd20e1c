"""Whether other threads run while something is done."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def counts_of_another_thread(do: Callable[[], Any]) -> int:
    """How often another thread, which counts every half millisecond, did so while `do` ran."""
    ticks, stop = [], threading.Event()

    def count() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    other = threading.Thread(target=count)
    other.start()
    begin = time.perf_counter()
    do()
    end = time.perf_counter()
    stop.set()
    other.join()
    return sum(begin < tick < end for tick in ticks)

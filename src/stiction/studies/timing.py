"""Time of solves, side by side, and how it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

FINE = 1e-6  # s, of a clock that can time a solve


def side_by_side(solves: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """The least processor time of each, in seconds.

    Processor time, because other processes do not count in it; wall time where the system measures it only coarsely.
    """
    clock = time.thread_time if time.get_clock_info("thread_time").resolution <= FINE else time.perf_counter
    return in_turn([partial(partial, solve) for solve in solves], repeats, clock)  # there is nothing to prepare


def in_turn(
    prepare: Sequence[Callable[[], Callable[[], Any]]], repeats: int, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """The least time of what each prepares anew, in seconds; they take turns, so that whatever slows one slows all."""
    least = [inf] * len(prepare)
    for _ in range(repeats):
        for k, ready in enumerate(prepare):
            solve, begin = ready(), clock()
            solve()
            least[k] = min(least[k], clock() - begin)
    return least


def exponent(sizes: Any, values: Any) -> float:
    """Power of the sizes with which values grow, by least squares; of several values for a size, the median counts."""
    middle = np.median(np.reshape(values, (len(sizes), -1)), axis=1)
    return float(np.polyfit(np.log(sizes), np.log(middle), 1)[0])

"""Threads that solve the islands of one step at the same time, to the same bits as one after the other.

The step is opened (gathered, posed, whitened) by one thread, its islands are solved by all of them, and it is closed
(judged, written) by one again: three calls of the machine code that makes it in one call. An island is solved by one
thread from beginning to end, so that who does it changes no bit. The largest ones are begun first; the small ones are
handed out in shares, so that nobody waits long for the last.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.contacts.gather import CONTACTS, COUNTS, WAIT
from stiction.solvers.contact.cone_newton.parts import (
    bench_sizes,
    islands_sizes,
    islands_views,
    solve_share,
    survey_islands,
)
from stiction.stepping.fused import CLOSE, CYCLES, OPEN, OPENED, STEPS, Opened, given_by, work_lengths, work_views
from stiction.stepping.record import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.stepping.engine import Engine
    from stiction.stepping.fused import Settings

ENOUGH = 100  # contacts of the last step from which on threads are worth waking: fewer are solved in less time
SHARES = 8  # shares for each thread: more are balanced better, and each costs some 10 µs


def crew_for(engine: Engine, workers: int) -> Crew | None:
    """The threads for the next step of an engine; None if one is enough, or steps begin with nothing taken back."""
    last = engine.last
    if last is None or last.ints[CONTACTS] < ENOUGH or last.ints[WAIT] > 0 or engine.fused is None:
        return None
    crew: Crew = engine.crew if engine.crew is not None and engine.crew.workers == workers else Crew(workers)
    crew.make = engine.fused
    return crew


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads that all steps of this process share; they sleep while there is nothing to do."""
    return ThreadPoolExecutor(threads, "stiction-islands")


class Crew:
    """The threads of one engine, each with a workspace of its own."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.make: Any = None  # the compiled `make_step`
        self.benches = [(np.empty(0), np.empty(0, np.int64))] * workers

    def make_step(self, model: Any, data: Any, where: Any, *given: Any) -> Any:
        """As `fused.make_step`."""
        *records, settings, zero = given
        _, old_ints, new_floats, new_ints, floats, ints, _ = records
        found = self.make(model, data, where, *records, settings._replace(part=OPEN), zero)
        if found[0] != OPENED:
            return found
        _, rank, tau, *_ = found
        steps = -1
        if tau > 0.0:
            before, present = int(old_ints[CONTACTS]), int(data[0]["ncon"])
            work = work_views(*work_lengths(new_ints[:COUNTS], before, present), floats, ints)
            steps = self.solve(record(new_floats, new_ints), work, float(tau), settings, zero)
        opened = Opened(float(tau), int(rank), steps)
        return self.make(model, data, where, *records, settings._replace(part=CLOSE, opened=opened), zero)

    def solve(self, step: Any, work: Any, tau: float, settings: Settings, zero: tuple[float, ...]) -> int:
        """Solve all islands; returns Newton steps, or -1 if there are not two islands, and nothing has been done."""
        white, n, m = work.white, len(step.impulse), len(step.velocity)
        names, loads = np.empty((2, m), np.int64)
        chains = islands_views(n, m, np.empty(0), np.empty(islands_sizes(n, m)[1], np.int64))
        count = survey_islands(white.runs, chains, names, loads)
        if count < 2:
            return -1
        given = given_by(white, step.constraints.friction, step.lift, settings.apart)
        step.impulse[:] = 0.0  # contacts that touch nothing that moves belong to no island
        shares = shares_of(names[:count], loads[:count], SHARES * self.workers)
        size = bench_sizes(n, len(zero), m, white.rows.shape[2])

        def take(k: int) -> int:
            """Solve shares while there are any."""
            bench, steps = self.bench(k, size), 0
            while True:
                try:
                    share = shares.popleft()
                except IndexError:
                    return steps
                steps += solve_share(
                    given, tau, work.start, (CYCLES, STEPS, np.inf, settings.aim), chains, share, *bench, step.impulse,
                    zero,
                )  # fmt: skip

        others = [pool(self.workers - 1).submit(take, k) for k in range(1, min(self.workers, len(shares)))]
        return take(0) + sum(each.result() for each in others)

    def bench(self, k: int, size: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The k-th workspace, at least this large."""
        floats, ints = self.benches[k]
        if floats.size < size[0] or ints.size < size[1]:
            self.benches[k] = np.empty(size[0] * 5 // 4), np.empty(size[1] * 5 // 4, np.int64)
        return self.benches[k]


def shares_of(names: NDArray[np.int64], loads: NDArray[np.int64], count: int) -> deque[NDArray[np.int64]]:
    """Islands in about so many shares of equal load, those with the most contacts first."""
    order = np.argsort(-loads, kind="stable")
    begins = np.cumsum(loads[order]) - loads[order]
    cuts = np.flatnonzero(np.diff(begins * count // loads.sum())) + 1
    return deque(np.ascontiguousarray(share) for share in np.split(names[order], cuts))

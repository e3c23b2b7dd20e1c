"""`solve_many` on a GPU: one thread a problem, from the kernels that a CPU runs.

One launch whitens, solves and judges. A thread's workspace is local memory, whose words the GPU interleaves, so that
threads which do the same read and write side by side; its size is compiled in, so that problems go into `BINS` by
their sizes, one kernel each. Within a bin problems are sorted, so that threads of a warp have equal work.

A batch goes through in chunks on two streams: while one is solved, the answers of the last come back and the data of
the next go out. Newton's method is started once; a problem that needs more is left to the CPU.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import cuda, float64, int64

from stiction.arrays.compiled import read_only
from stiction.arrays.gpu import array_type, launchable
from stiction.arrays.layout import cut
from stiction.arrays.vectors import ZEROS
from stiction.problems.normal_form import Posed
from stiction.solvers.solve_many import LEFT, Settings, room, solve_case, work_views

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

BINS = (4096, 9216, 24576)  # floats of a thread's workspace; a problem that needs more is left to the CPU
INTS = 8  # floats for each int: problems need one for 13 to 15
THREADS = 64  # of a block: 255 registers each
CHUNK = 1 << 17  # problems of a launch: four times what an H200 has in work at once
CHUNK_BYTES = 1 << 28  # of the data of a launch, unless one problem has more
STREAMS = 2
STARTS = 1  # of Newton's method, so that no thread waits long for another
# Columns of the table of geometries: lengths, then places in `numbers` and `indices`; and of the table of cases.
N, M, TREES, JOINTS, GIVEN, ENTRIES, MASS, ROWS, JOINT_ROWS, JOINT_RATE, TREE_STARTS, SEGMENTS = range(12)
GEOMETRY, VELOCITY, FRICTION, GAP_RATE = range(4)


def made(floats: int, d: int) -> Any:
    """The kernel for workspaces of this size and contacts of d directions, not compiled."""
    ints, zero = floats // INTS, ZEROS[d]

    def solve_cases_on_gpu(
        shapes, cases, numbers, indices, velocities, frictions, gap_rates, aim, tolerance, impulse, velocity, residual,
        status,
    ):  # fmt: skip
        k = cuda.grid(1)
        if k >= len(status):
            return

        # The problem: views of what all problems of the launch have in common arrays.
        g = cases[k, GEOMETRY]
        n, m, j, given, entries = shapes[g, N], shapes[g, M], shapes[g, JOINTS], shapes[g, GIVEN], shapes[g, ENTRIES]
        posed = Posed(
            read_only(cut(numbers, shapes[g, MASS], (entries,))),
            read_only(cut(indices, shapes[g, TREE_STARTS], (shapes[g, TREES],))),
            read_only(cut(velocities, cases[k, VELOCITY], (m,))),
            read_only(cut(numbers, shapes[g, ROWS], (n, d, given))),
            read_only(cut(indices, shapes[g, SEGMENTS], (n, 4))),
            read_only(cut(frictions, cases[k, FRICTION], (n,))),
            read_only(cut(gap_rates, cases[k, GAP_RATE], (n,))),
            read_only(cut(numbers, shapes[g, JOINT_ROWS], (j, m))),
            read_only(cut(numbers, shapes[g, JOINT_RATE], (j,))),
        )

        # Solve it in the thread's own memory.
        own, own_ints = cuda.local.array(floats, float64), cuda.local.array(ints, int64)
        p, v = cut(own, 0, (n, d)), cut(own, n * d, (m,))
        rest = cut(own, n * d + m, (floats - n * d - m,))
        work = work_views(n, d, m, j, m if j > 0 else given, entries, given, rest, own_ints)
        found = solve_case(posed, Settings(aim, tolerance, STARTS), work, p, v, zero)

        # Hand out what is certified.
        if found <= tolerance:
            residual[k], status[k] = found, 0
            for i in range(impulse.shape[1]):
                for a in range(d):
                    impulse[k, i, a] = p[i, a] if i < n else 0.0
            for i in range(velocity.shape[1]):
                velocity[k, i] = v[i] if i < m else 0.0

    return solve_cases_on_gpu


@cache
def compiled(floats: int, d: int) -> Any:
    """The kernel as it is launched: compiled in minutes, or read from disk."""
    numbers, indices, table = array_type(float64, 1), array_type(int64, 1), array_type(int64, 2)
    return launchable(
        made(floats, d),
        (
            table, table, numbers, indices, numbers, numbers, numbers, float64, float64, array_type(float64, 3),
            array_type(float64, 2), numbers, indices,
        ),
    )  # fmt: skip


class Batch(NamedTuple):
    """Problems as the kernel reads them, of one bin and one number of directions."""

    shapes: NDArray[np.int64]  # (g, 12) of each geometry
    cases: NDArray[np.int64]  # (c, 4) of each problem: its geometry, and where its loads begin
    numbers: NDArray[np.float64]  # of all geometries
    indices: NDArray[np.int64]
    velocities: NDArray[np.float64]  # of all problems
    frictions: NDArray[np.float64]
    gap_rates: NDArray[np.float64]


def bin_of(problem: ContactProblem) -> int:
    """The smallest workspace that a problem fits, 0 if there is none or nothing to solve."""
    if not (problem.n and problem.m):
        return 0
    floats, ints = room(problem.posed)
    floats += problem.rows.shape[0] * problem.rows.shape[1] + problem.m
    return next((size for size in BINS if floats <= size and ints <= size // INTS), 0)


def gathered(problems: Sequence[ContactProblem]) -> tuple[Any, Any, Any, list[int]]:
    """shapes, numbers, indices of the geometries that problems have, and which each has; equal ones only once."""
    known: dict[tuple[int, ...], int] = {}
    which, firsts = [], []
    for problem in problems:
        key = id(problem.mass), id(problem.rows), id(problem.segments), id(problem.joints), id(problem.joint_rate)
        if key not in known:
            known[key] = len(firsts)
            firsts.append(problem.posed)
        which.append(known[key])
    lengths = np.array(
        [
            (len(p.rows), len(p.velocity), len(p.trees), len(p.joints), p.rows.shape[2], len(p.mass), p.rows.shape[1])
            for p in firsts
        ],
        np.int64,
    ).reshape(-1, 7)
    n, m, trees, j, given, entries, d = lengths.T
    shapes = np.zeros((len(firsts), 12), np.int64)
    shapes[:, :6] = lengths[:, :6]
    at = 0
    for column, sizes in ((MASS, entries), (ROWS, n * d * given), (JOINT_ROWS, j * m), (JOINT_RATE, j)):
        shapes[:, column] = at + starts(sizes)
        at += int(sizes.sum())
    shapes[:, TREE_STARTS] = starts(trees)
    shapes[:, SEGMENTS] = int(trees.sum()) + starts(4 * n)
    floats = [getattr(p, name).reshape(-1) for name in ("mass", "rows", "joints", "joint_rate") for p in firsts]
    ints = [getattr(p, name).reshape(-1) for name in ("trees", "segments") for p in firsts]
    return shapes, np.concatenate([*floats, np.zeros(1)]), np.concatenate([*ints, np.zeros(1, np.int64)]), which


def starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each begins if they are laid one after the other."""
    return np.cumsum(sizes) - sizes


def batch_of(problems: Sequence[ContactProblem]) -> Batch:
    """Problems of a list, packed."""
    shapes, numbers, indices, which = gathered(problems)
    cases = np.empty((len(problems), 4), np.int64)
    cases[:, GEOMETRY] = which
    n, m = shapes[which, N], shapes[which, M]
    cases[:, VELOCITY], cases[:, FRICTION], cases[:, GAP_RATE] = starts(m), starts(n), starts(n)
    loads = [
        np.concatenate([getattr(problem, name) for problem in problems])
        for name in ("velocity", "friction", "gap_rate")
    ]
    return Batch(shapes, cases, numbers, indices, *loads)


class Answers(NamedTuple):
    """What comes back of a chunk; where the status is LEFT, the rest means nothing."""

    impulse: NDArray[np.float64]
    velocity: NDArray[np.float64]
    residual: NDArray[np.float64]
    status: NDArray[np.int64]


class Lane:
    """A stream, and memory of the GPU that its chunks take in turn; it grows to the largest."""

    def __init__(self) -> None:
        self.stream = cuda.stream()
        self.held: dict[str, Any] = {}
        self.sent: dict[str, Any] = {}

    def room(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of the GPU."""
        size = max(int(np.prod(shape)), 1)
        if name not in self.held or self.held[name].size < size:
            self.held.pop(name, None)
            self.held[name] = cuda.device_array(size, dtype)
        return self.held[name][: int(np.prod(shape))].reshape(shape)

    def send(self, name: str, array: NDArray[Any]) -> Any:
        """An array of the GPU with these numbers; the same array is not sent twice."""
        if self.sent.get(name) is not None and self.sent[name][0] is array:
            return self.sent[name][1]
        there = self.room(name, array.shape, array.dtype)
        if array.size:
            there.copy_to_device(array, stream=self.stream)
        self.sent[name] = array, there
        return there

    def launch(self, kernel: Any, batch: Batch, settings: Settings, n: int, d: int, m: int) -> tuple[Any, ...]:
        """Send a chunk and begin to solve it; returns where its answers will be."""
        count = len(batch.cases)
        given = [self.send(name, array) for name, array in batch._asdict().items()]
        status = self.send("status", left(count))
        self.sent.pop("status")  # the kernel overwrites it
        answers = (
            self.room("impulse", (count, n, d), np.float64), self.room("velocity_after", (count, m), np.float64),
            self.room("residual", (count,), np.float64), status,
        )  # fmt: skip
        blocks = -(-count // THREADS)
        kernel[blocks, THREADS, self.stream](*given, settings.aim, settings.tolerance, *answers)
        return answers

    def receive(self, answers: tuple[Any, ...], to: Answers) -> None:
        """Wait for a chunk's answers."""
        for there, here in zip(answers, to, strict=True):
            if here.size:
                there.copy_to_host(here, stream=self.stream)
        self.stream.synchronize()


@cache
def left(count: int) -> NDArray[np.int64]:
    """The statuses of so many problems before they are solved."""
    return np.full(count, LEFT)


@cache
def lanes() -> tuple[Lane, ...]:
    """Kept between calls: to allocate memory of a GPU takes longer than to solve a small batch."""
    return tuple(Lane() for _ in range(STREAMS))


def run(chunks: Iterator[tuple[Batch, Answers]], floats: int, d: int, settings: Settings) -> Iterator[Answers]:
    """Solve chunks of one bin; yields the answers of each when they are there, while the next is being solved."""
    kernel = compiled(floats, d)
    under_way: list[tuple[Lane, tuple[Any, ...], Answers]] = []
    for number, (batch, answers) in enumerate(chunks):
        lane = lanes()[number % STREAMS]
        n, m = answers.impulse.shape[1], answers.velocity.shape[1]
        under_way.append((lane, lane.launch(kernel, batch, settings, n, d, m), answers))
        if len(under_way) == STREAMS:
            yield received(under_way.pop(0))
    while under_way:
        yield received(under_way.pop(0))
    for lane in lanes():
        lane.sent.clear()


def received(chunk: tuple[Lane, tuple[Any, ...], Answers]) -> Answers:
    lane, there, answers = chunk
    lane.receive(there, answers)
    return answers


def solve_loads(problem: ContactProblem, loads: Sequence[NDArray[np.float64]], settings: Settings, to: Answers) -> None:
    """One geometry; loads: velocity, friction and gap_rate, one row for each case or one for all."""
    floats = bin_of(problem)
    if not floats:
        return
    d, count = problem.rows.shape[1], len(to.status)
    shapes, numbers, indices, _ = gathered([problem])
    cases = np.zeros((min(CHUNK, count), 4), np.int64)
    for column, rows in zip((VELOCITY, FRICTION, GAP_RATE), loads, strict=True):
        if len(rows) > 1:
            cases[:, column] = rows.shape[1] * np.arange(len(cases))
    whole = [np.ascontiguousarray(rows).reshape(-1) for rows in loads]

    def chunks() -> Iterator[tuple[Batch, Answers]]:
        for begin in range(0, count, CHUNK):
            end = min(begin + CHUNK, count)
            part = [
                flat[begin * rows.shape[1] : end * rows.shape[1]] if len(rows) > 1 else flat
                for flat, rows in zip(whole, loads, strict=True)
            ]
            ours = cases if end - begin == len(cases) else cases[: end - begin]
            yield Batch(shapes, ours, numbers, indices, *part), Answers(*(each[begin:end] for each in to))

    for _ in run(chunks(), floats, d, settings):
        pass


def solve_listed(problems: Sequence[ContactProblem], which: Sequence[int], settings: Settings, to: Answers) -> None:
    """Problems that have nothing in common; which: those that the kernel takes."""
    bins: dict[tuple[int, int], list[int]] = {}
    for k in which:
        floats = bin_of(problems[k])
        if floats:
            bins.setdefault((floats, problems[k].rows.shape[1]), []).append(k)
    for (floats, d), members in bins.items():
        members.sort(key=lambda k: (problems[k].n, problems[k].m))
        places: list[list[int]] = []

        def chunks(
            members: list[int] = members, d: int = d, places: list[list[int]] = places
        ) -> Iterator[tuple[Batch, Answers]]:
            for chunk in chunks_of(problems, members):
                places.append(chunk)
                n, m = (max(getattr(problems[k], name) for k in chunk) for name in ("n", "m"))
                count = len(chunk)
                answers = Answers(
                    np.empty((count, n, d)), np.empty((count, m)), np.empty(count), np.empty(count, np.int64)
                )
                yield batch_of([problems[k] for k in chunk]), answers

        for number, found in enumerate(run(chunks(), floats, d, settings)):
            good = found.status != LEFT
            at = np.array(places[number])[good]
            to.impulse[at, : found.impulse.shape[1], :d] = found.impulse[good]
            to.velocity[at, : found.velocity.shape[1]] = found.velocity[good]
            to.residual[at], to.status[at] = found.residual[good], found.status[good]


def chunks_of(problems: Sequence[ContactProblem], members: list[int]) -> Iterator[list[int]]:
    """Cut into chunks of at most CHUNK problems and about CHUNK_BYTES of data."""
    chunk: list[int] = []
    taken = 0
    for k in members:
        chunk.append(k)
        taken += problems[k].rows.nbytes
        if len(chunk) == CHUNK or taken > CHUNK_BYTES:
            yield chunk
            chunk, taken = [], 0
    if chunk:
        yield chunk

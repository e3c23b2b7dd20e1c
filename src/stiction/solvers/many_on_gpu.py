"""`solve_many` on a GPU: one thread a problem, from the kernels that a CPU runs.

One launch whitens, solves and judges. A thread's workspace is local memory, whose words the GPU interleaves, so that
threads which do the same read and write side by side; its size is compiled in, so that problems go into `BINS` by
their sizes, one kernel each. Within a bin problems are sorted, so that threads of a warp have equal work.

A warp waits for the slowest of its threads. So the first launch gives a problem few Newton steps, and if its contacts
are crowded (`working_set`) it tries their working set alone. What is left of a chunk is solved in a second launch, with
as many steps as a CPU makes, from data that is on the GPU already; what is left then, or too little to launch, by the
CPU.

A batch goes through in chunks, by threads of the CPU that have a stream each: while one is solved, the answers of the
last come back and the data of the next go out.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import cuda, float64, int64

from stiction.arrays.gpu import SIMULATED, array_type, launchable, launched
from stiction.arrays.layout import cut
from stiction.arrays.vectors import ZEROS
from stiction.problems.normal_form import Posed
from stiction.solvers.contact.cone_newton.cone_newton import sizes
from stiction.solvers.contact.cone_newton.working_set import group
from stiction.solvers.solve_many import LEFT, Settings, in_threads, put, solve_case, work_sizes, work_views

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

BINS = (4096, 9216, 24576)  # floats of a thread's workspace; a problem that needs more is left to the CPU
INTS = 4  # floats for each int: small problems need one for 5 to 8, others one for 4 to 5
REGISTERS = 64  # of a thread, and the rest in its memory: what counts is how many threads wait for memory at once
THREADS = 1024  # of a block: its warps run the same code at the same time, which is far larger than any cache
FEW = 1 << 16  # a smaller batch has blocks of 64 threads, to occupy all of the GPU
CHUNK = 1 << 17  # problems of a launch: about what an H200 has in work at once
CHUNK_BYTES = 1 << 27  # of the data of a launch, unless one problem has more
STREAMS = 8  # and threads of the CPU, each with a chunk: some are solved while others are copied
SHORT = (6, 16)  # Newton steps in the first launch, by starts: of a working set, and of all contacts
AIM = 1e-2  # part of the tolerance at which a solve stops: last digits take more steps of some threads in each warp
MANY = 256  # problems that the first launch left of a chunk, worth a second one; fewer are solved by the CPU
# Columns of the table of geometries: lengths, then places in `numbers` and `indices`; and of the table of cases.
N, M, TREES, JOINTS, GIVEN, ENTRIES, MASS, ROWS, JOINT_ROWS, JOINT_RATE, TREE_STARTS, SEGMENTS = range(12)
GEOMETRY, VELOCITY, FRICTION, GAP_RATE = range(4)


class Kind(NamedTuple):
    """Which kernel: numbers that are compiled in."""

    floats: int  # of the workspace
    d: int  # directions of a contact
    starts: int  # of Newton's method on all contacts: 0 or 1


def made(kind: Kind) -> Any:
    """The kernel of a kind, not compiled."""
    floats, d, starts = kind
    ints, zero = floats // INTS, ZEROS[d]

    def solve_cases_on_gpu(
        shapes: Any, cases: Any, numbers: Any, indices: Any, velocities: Any, frictions: Any, gap_rates: Any, aim: Any,
        tolerance: Any, steps: Any, impulse: Any, velocity: Any, residual: Any, status: Any,
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k >= len(status):
            return

        # The problem: views of what all problems of the launch have in common arrays.
        g = cases[k, GEOMETRY]
        n, m, j, given, entries = shapes[g, N], shapes[g, M], shapes[g, JOINTS], shapes[g, GIVEN], shapes[g, ENTRIES]
        posed = Posed(
            cut(numbers, shapes[g, MASS], (entries,)),
            cut(indices, shapes[g, TREE_STARTS], (shapes[g, TREES],)),
            cut(velocities, cases[k, VELOCITY], (m,)),
            cut(numbers, shapes[g, ROWS], (n, d, given)),
            cut(indices, shapes[g, SEGMENTS], (n, 4)),
            cut(frictions, cases[k, FRICTION], (n,)),
            cut(gap_rates, cases[k, GAP_RATE], (n,)),
            cut(numbers, shapes[g, JOINT_ROWS], (j, m)),
            cut(numbers, shapes[g, JOINT_RATE], (j,)),
            cut(numbers, 0, (0, d)),  # no surface moves
        )

        # Solve it in the thread's own memory.
        own, own_ints = cuda.local.array(floats, float64), cuda.local.array(ints, int64)
        p, v = cut(own, 0, (n, d)), cut(own, n * d, (m,))
        rest = cut(own, n * d + m, (floats - n * d - m,))
        work = work_views(n, d, m, j, m if j > 0 else given, entries, given, rest, own_ints)
        found = solve_case(posed, Settings(aim, tolerance, starts, steps), work, p, v, zero)

        # Hand out what is certified.
        if found <= tolerance:
            residual[k], status[k] = found, 0
            for i in range(impulse.shape[1]):
                for a in range(d):
                    impulse[k, i, a] = p[i, a] if i < n else 0.0
            for i in range(velocity.shape[1]):
                velocity[k, i] = v[i] if i < m else 0.0

    return solve_cases_on_gpu


_compiling = Lock()


def compiled(kind: Kind) -> Any:
    """The kernel as it is launched: compiled in minutes, by one thread, or read from disk."""
    with _compiling:
        return compiled_once(kind)


@cache
def compiled_once(kind: Kind) -> Any:
    numbers, indices, table = array_type(float64, 1), array_type(int64, 1), array_type(int64, 2)
    return launchable(
        made(kind),
        (
            table, table, numbers, indices, numbers, numbers, numbers, float64, float64, int64, array_type(float64, 3),
            array_type(float64, 2), numbers, indices,
        ),
        REGISTERS,
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


def shape_of(problem: ContactProblem) -> tuple[int, ...]:
    """Lengths of a problem, in the order of the table, and the directions of a contact."""
    n, d, _ = problem.rows.shape
    used = int((problem.segments[:, 1] + problem.segments[:, 3]).max(initial=0))  # entries of a row; the rest is zero
    assert problem.mass is not None
    return n, problem.m, len(problem.trees), len(problem.joints), used, problem.mass.size, d


@cache
def bin_of(shape: tuple[int, ...]) -> int:
    """The smallest workspace that problems of a shape fit, 0 if there is none or nothing to solve."""
    n, m, _, j, given, entries, d = shape
    if not (n and m):
        return 0
    width = m if j else given
    own, inner = work_sizes(n, d, m, j, width, entries, given), sizes(n, d, m, width)
    floats, ints = own[0] + inner[0] + n * d + m, own[1] + inner[1]
    return next((size for size in BINS if floats <= size and ints <= size // INTS), 0)


def starts_of(problem: ContactProblem) -> int:
    """0 if contacts are crowded, so that Newton's method on a working set is tried first, else 1."""
    _, crowded = group(problem.segments, np.empty(problem.n + 1, np.int64))
    return 0 if 2 * crowded > problem.n else 1


class Geometries(NamedTuple):
    """Data that problems share which differ in their loads alone, one after the other."""

    shapes: NDArray[np.int64]
    numbers: NDArray[np.float64]
    indices: NDArray[np.int64]


def geometries(problems: Sequence[ContactProblem], shapes: Sequence[tuple[int, ...]]) -> Geometries:
    """Of each problem, in their order; shapes: theirs."""
    lengths = np.array(shapes, np.int64).reshape(-1, 7)
    n, m, trees, j, given, entries, d = lengths.T
    table = np.zeros((len(problems), 12), np.int64)
    table[:, :6] = lengths[:, :6]

    # Where each array of each problem will be.
    at = 0
    for column, lines in ((MASS, entries), (ROWS, n * d * given), (JOINT_ROWS, j * m), (JOINT_RATE, j)):
        table[:, column] = at + starts(lines)
        at += int(lines.sum())
    table[:, TREE_STARTS] = starts(trees)
    table[:, SEGMENTS] = int(trees.sum()) + starts(4 * n)

    # The arrays; an empty list of them is none.
    floats = [problem.posed.mass for problem in problems]
    floats += [problem.rows[:, :, : shape[4]].reshape(-1) for problem, shape in zip(problems, shapes, strict=True)]
    if j.any():
        floats += [problem.joints.reshape(-1) for problem in problems] + [problem.joint_rate for problem in problems]
    ints = [problem.trees for problem in problems] + [problem.segments.reshape(-1) for problem in problems]
    return Geometries(table, np.concatenate(floats), np.concatenate(ints))


def starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each begins if they are laid one after the other."""
    return np.cumsum(lengths) - lengths


def batch_of(problems: Sequence[ContactProblem], shapes: Sequence[tuple[int, ...]]) -> Batch:
    """Problems of a list, packed; those that share a geometry share its data."""
    known: dict[tuple[int, ...], int] = {}
    which: list[int] = []
    firsts: list[int] = []
    for k, problem in enumerate(problems):
        key = id(problem.mass), id(problem.rows), id(problem.segments), id(problem.joints), id(problem.joint_rate)
        if key not in known:
            known[key] = len(firsts)
            firsts.append(k)
        which.append(known[key])
    table, numbers, indices = geometries([problems[k] for k in firsts], [shapes[k] for k in firsts])
    cases = np.empty((len(problems), 4), np.int64)
    cases[:, GEOMETRY] = which
    n, m = table[which, N], table[which, M]
    cases[:, VELOCITY], cases[:, FRICTION], cases[:, GAP_RATE] = starts(m), starts(n), starts(n)
    return Batch(
        table, cases, numbers, indices, np.concatenate([problem.velocity for problem in problems]),
        np.concatenate([problem.friction for problem in problems]),
        np.concatenate([problem.gap_rate for problem in problems]),
    )  # fmt: skip


class Answers(NamedTuple):
    """The results of a chunk; where the status is LEFT, the rest means nothing."""

    impulse: NDArray[np.float64]
    velocity: NDArray[np.float64]
    residual: NDArray[np.float64]
    status: NDArray[np.int64]


class Lane:
    """A stream, and memory that its chunks take in turn; it grows to the largest.

    A GPU copies from and to memory that cannot be paged out by itself, and several times as fast as from any other. So
    data go through pages of that kind here, which is one more copy by a thread of the CPU.
    """

    def __init__(self) -> None:
        self.stream = cuda.stream()
        self.held: dict[str, Any] = {}
        self.pages: dict[str, NDArray[Any]] = {}
        self.sent: dict[str, Any] = {}

    def room(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of the GPU."""
        size = int(np.prod(shape))
        if name not in self.held or self.held[name].size < size:
            self.held.pop(name, None)
            self.held[name] = cuda.device_array(size, dtype)
        return self.held[name][:size].reshape(shape)

    def page(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array of the CPU that stays where it is."""
        size = int(np.prod(shape))
        if name not in self.pages or self.pages[name].size < size:
            self.pages[name] = np.empty(size, dtype) if SIMULATED else cuda.pinned_array(size, dtype)
        return self.pages[name][:size].reshape(shape)

    def send(self, name: str, array: NDArray[Any]) -> Any:
        """An array of the GPU with these numbers; the same array is not sent twice."""
        if name not in self.sent or self.sent[name][0] is not array:
            there, here = self.room(name, array.shape, array.dtype), self.page(name, array.shape, array.dtype)
            np.copyto(here, array)
            there.copy_to_device(here, stream=self.stream)
            self.sent[name] = array, there
        return self.sent[name][1]

    def solve(self, kind: Kind, batch: Batch, settings: Settings, answers: Answers) -> None:
        """Solve a chunk; what takes longer than most, by itself."""
        short = settings._replace(steps=SHORT[kind.starts])
        self.receive(self.launch(compiled(kind), batch, short, answers), answers)
        left = np.flatnonzero(answers.status == LEFT)
        if len(left) >= MANY:
            few = batch._replace(cases=batch.cases[left])
            again = empty(len(left), answers.impulse.shape[1:], answers.velocity.shape[1])
            self.receive(self.launch(compiled(kind._replace(starts=1)), few, settings, again), again)
            put(again, left, answers)

    def launch(self, kernel: Any, batch: Batch, settings: Settings, answers: Answers) -> list[Any]:
        """Send a chunk and begin to solve it; returns where its answers will be."""
        given = [self.send(name, array) for name, array in batch._asdict().items()]
        there = [self.room(f"{name} after", array.shape, array.dtype) for name, array in answers._asdict().items()]
        count = len(batch.cases)
        nothing_yet = self.page("status before", (count,), np.int64)
        nothing_yet.fill(LEFT)
        there[-1].copy_to_device(nothing_yet, stream=self.stream)
        threads = THREADS if count >= FEW else 64
        launch = launched(kernel, -(-count // threads), threads, self.stream)
        launch(*given, AIM * settings.tolerance, settings.tolerance, settings.steps, *there)
        return there

    def receive(self, there: list[Any], answers: Answers) -> None:
        """Wait for a chunk's answers."""
        names = (f"{name} after" for name in answers._fields)
        here = [self.page(name, each.shape, each.dtype) for name, each in zip(names, answers, strict=True)]
        for each, page in zip(there, here, strict=True):
            each.copy_to_host(page, stream=self.stream)
        self.stream.synchronize()
        for page, to in zip(here, answers, strict=True):
            np.copyto(to, page)


_lanes: list[Lane] = []  # those that nobody uses: to allocate memory of a GPU takes longer than to solve a small batch


def run(
    chunks: Sequence[Any], take: Callable[[Any], tuple[Batch, Answers, Any]], kind: Kind, settings: Settings
) -> None:
    """Solve chunks, several at a time; take: makes a chunk's data, memory for answers, and what to do with these."""
    compiled(kind)
    used: list[Lane] = []

    def one(number: int) -> None:
        batch, answers, then = take(chunks[number])
        try:
            lane = _lanes.pop()
        except IndexError:
            lane = Lane()
        used.append(lane)
        lane.solve(kind, batch, settings, answers)
        _lanes.append(lane)
        then()

    try:
        in_threads(one, range(len(chunks)), 1 if SIMULATED else STREAMS)
    finally:
        for lane in used:
            lane.sent.clear()  # the caller's arrays are not ours to keep


def solve_loads(problem: ContactProblem, loads: Sequence[NDArray[np.float64]], settings: Settings, to: Answers) -> None:
    """One geometry; loads: velocity, friction and gap_rate, one row for each case or one for all."""
    shape = shape_of(problem)
    floats, count = bin_of(shape), len(to.status)
    if not floats:
        return
    table, numbers, indices = geometries([problem], [shape])
    whole = [np.ascontiguousarray(rows) for rows in loads]
    alike = [rows.reshape(-1) if len(rows) == 1 else None for rows in whole]
    cases = np.zeros((min(CHUNK, count), 4), np.int64)
    for column, rows in zip((VELOCITY, FRICTION, GAP_RATE), whole, strict=True):
        cases[:, column] = rows.shape[1] * np.arange(len(cases)) if len(rows) > 1 else 0

    def take(begin: int) -> tuple[Batch, Answers, Any]:
        part = slice(begin, min(begin + CHUNK, count))
        parts = [each if each is not None else rows[part].reshape(-1) for each, rows in zip(alike, whole, strict=True)]
        ours = cases if begin + CHUNK <= count else cases[: count - begin]
        answers = Answers(to.impulse[part], to.velocity[part], to.residual[part], to.status[part])
        return Batch(table, ours, numbers, indices, *parts), answers, lambda: None

    run(range(0, count, CHUNK), take, Kind(floats, shape[-1], starts_of(problem)), settings)


def empty(count: int, size: tuple[int, ...], m: int) -> Answers:
    """Memory for answers."""
    return Answers(np.empty((count, *size)), np.empty((count, m)), np.empty(count), np.empty(count, np.int64))


def solve_listed(problems: Sequence[ContactProblem], which: Sequence[int], settings: Settings, to: Answers) -> None:
    """Problems that have nothing in common; which: those that the kernel takes."""
    shapes = {k: shape_of(problems[k]) for k in which}
    bins: dict[Kind, list[int]] = {}
    for k in which:
        floats = bin_of(shapes[k])
        if floats:
            bins.setdefault(Kind(floats, shapes[k][-1], starts_of(problems[k])), []).append(k)

    def take(chunk: list[int]) -> tuple[Batch, Answers, Any]:
        mine = [shapes[k] for k in chunk]
        n, m = max(shape[N] for shape in mine), max(shape[M] for shape in mine)
        answers = empty(len(chunk), (n, mine[0][-1]), m)
        return batch_of([problems[k] for k in chunk], mine), answers, lambda: put(answers, np.array(chunk), to)

    # Alike problems side by side, so that threads of a warp have equal work.
    for kind, members in bins.items():
        run(chunks_of(sorted(members, key=shapes.__getitem__), shapes), take, kind, settings)


def chunks_of(members: list[int], shapes: dict[int, tuple[int, ...]]) -> list[list[int]]:
    """Cut into chunks of at most CHUNK problems and about CHUNK_BYTES of data."""
    chunks: list[list[int]] = [[]]
    taken = 0
    for k in members:
        if len(chunks[-1]) == CHUNK or taken > CHUNK_BYTES:
            chunks.append([])
            taken = 0
        chunks[-1].append(k)
        n, _, _, _, given, _, d = shapes[k]
        taken += 8 * n * d * given
    return chunks

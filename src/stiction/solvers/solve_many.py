"""`solve_many`: many contact problems at once, each certified as `solve` certifies one.

Whitening, Newton's method on the cone, the response and the judge are one compiled call for a share of the problems,
which holds no lock of the interpreter, so that threads run side by side. What is not certified there (a harder problem,
redundant joints) or has another form or law goes through `solve`, one by one, and is counted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, without_lock
from stiction.arrays.layout import Floats, Ints, cut, layout
from stiction.arrays.vectors import ZEROS
from stiction.errors import InvalidProblem, is_whole
from stiction.optional import numba_cuda
from stiction.problems.contact import ContactProblem
from stiction.problems.islands import islands
from stiction.problems.joints import DEPENDENT
from stiction.problems.laws import Coulomb
from stiction.problems.normal_form import Posed, White, trim, whiten_posed
from stiction.problems.response import Scratch, respond
from stiction.solutions.contact_laws import TRUE_CONE, Judging, judge_problem
from stiction.solutions.status import Status
from stiction.solvers.auto import Auto
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton, Given, cone_newton, sizes
from stiction.solvers.solve import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

SHARE = 256  # problems of one call at most, so that Ctrl-C is answered soon
SHARES = 4  # calls for each thread at least, so that none waits long for the others
PART = 1 << 22  # numbers of an array that a thread looks at
LEFT = -1  # in place of a status: to be solved by `solve`
CYCLES, STEPS = ConeNewton().max_cycles, ConeNewton().max_steps
PLACES = ("cpu", "cuda")
AUTO, CONE = Auto(), Coulomb()


class Solutions(NamedTuple):
    """Answers to c problems, of at most n contacts and m velocities; what is beyond a smaller problem's own is zero.

    impulse: (c, n, 3) n, t1, t2 of each contact, in N s
    velocity: (c, m) generalized velocities
    residual: (c,) of each certificate
    status: (c,) a `Status` each, SOLVED (0) where the certificate passes
    one_by_one: how many were solved by `solve`
    left_by_gpu: how many a GPU left to the CPU; 0 if none was asked
    """

    impulse: NDArray[np.float64]
    velocity: NDArray[np.float64]
    residual: NDArray[np.float64]
    status: NDArray[np.int64]
    one_by_one: int
    left_by_gpu: int

    @property
    def ok(self) -> bool:
        """Whether all answers are certified."""
        return bool((self.status == Status.SOLVED).all())

    def __repr__(self) -> str:
        solved, all_of_them = int((self.status == Status.SOLVED).sum()), len(self.status)
        worst = float(self.residual.max(initial=0.0))
        return f"<Solutions: {solved} of {all_of_them} certified, worst residual {worst:.1e}>"


def solve_many(
    problems: ContactProblem | Sequence[ContactProblem],
    *,
    velocity: ArrayLike | None = None,
    friction: ArrayLike | None = None,
    gap_rate: ArrayLike | None = None,
    on: str = "cpu",
    workers: int | None = None,
    tolerance: float = 1e-8,
) -> Solutions:
    """Solve many contact problems and certify each answer.

    problems: a list, or one problem, which is solved for each row of the arrays that follow
    velocity, friction, gap_rate: (c, m), (c, n), (c, n), or one row for all; where nothing is given, the problem's own
    on: "cpu", or "cuda": an NVIDIA GPU, one thread a problem (extra `cuda`); what it does not certify, the CPU solves
    workers: threads of the CPU, by default one for each processor
    tolerance: largest residual of the certificate that counts as solved

    Nothing is raised for a problem that is not solved: see its status. Threads speed up problems in coordinates
    under Coulomb's law on the cone; all others are solved one by one.
    """
    if on not in PLACES:
        raise InvalidProblem(f"solve_many: on must be one of {', '.join(map(repr, PLACES))}, got {on!r}")
    if workers is not None and not is_whole(workers, 1):
        raise InvalidProblem(f"solve_many: workers must be a whole number of at least 1, got {workers!r}")
    if not (isinstance(tolerance, (int, float)) and 0.0 < tolerance < math.inf):
        raise InvalidProblem(f"solve_many: tolerance must be a positive number, got {tolerance!r}")
    gpu = cuda_solvers() if on == "cuda" else None
    threads = workers or os.cpu_count() or 1
    given = {"velocity": velocity, "friction": friction, "gap_rate": gap_rate}
    if isinstance(problems, ContactProblem):
        loads = {name: checked(problems, name, value) for name, value in given.items()}
        return of_one_geometry(problems, loads, common_count(loads), threads, tolerance, gpu)
    for name, value in given.items():
        if value is not None:
            raise InvalidProblem(f"solve_many: {name} is for one problem; problems of a list have their own")
    return of_list(listed(problems), threads, tolerance, gpu)


def cuda_solvers() -> Any:
    """The module that solves on a GPU, or MissingDependency that names what is missing."""
    numba_cuda()
    from stiction.solvers import many_on_gpu

    return many_on_gpu


def listed(problems: Any) -> list[ContactProblem]:
    """A list of problems, or InvalidProblem that names what is not one."""
    if not isinstance(problems, (list, tuple)):
        kind = type(problems).__name__
        raise InvalidProblem(f"solve_many: problems must be a ContactProblem or a list of them, got {kind}")
    for index, problem in enumerate(problems):
        if not isinstance(problem, ContactProblem):
            kind = type(problem).__name__
            raise InvalidProblem(f"solve_many: problems[{index}] must be a ContactProblem, got {kind}")
    return list(problems)


def common_count(loads: dict[str, NDArray[np.float64]]) -> int:
    """How many cases arrays of loads are for, or InvalidProblem."""
    counts = {name: len(rows) for name, rows in loads.items() if len(rows) != 1}
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InvalidProblem(f"solve_many: arrays must have the same number of rows, or one; they have {sizes}")
    return next(iter(counts.values()), 1)


def of_one_geometry(
    problem: ContactProblem, loads: dict[str, NDArray[np.float64]], count: int, threads: int, tolerance: float, gpu: Any
) -> Solutions:
    """One geometry under many loads; no object is made for each."""
    answers = unsolved(count, problem.rows.shape[:2], problem.m)
    kept = Scratches(tolerance)
    if gpu is not None and kernel_takes(problem) and problem.tangent_rate is None:
        gpu.solve_loads(problem, list(loads.values()), kept.settings, gpu.Answers(*answers[:4]))

        def again(left: NDArray[np.int64]) -> Solutions:
            few = {name: rows[left] if len(rows) > 1 else rows for name, rows in loads.items()}
            return of_one_geometry(problem, few, len(left), threads, tolerance, None)

        return completed(answers, again)
    every = [np.ascontiguousarray(np.broadcast_to(rows, (count, rows.shape[1]))) for rows in loads.values()]
    if kernel_takes(problem):
        one = Posed(*(each[None] for each in problem.posed))._replace(**dict(zip(loads, every, strict=True)))
        kept.solve_stacks([(one, answers)], threads)
    found = rest(answers, lambda k: problem.replace(**{name: every[i][k] for i, name in enumerate(loads)}), tolerance)
    return found._replace(left_by_gpu=0 if gpu is None else count)


def of_list(problems: Sequence[ContactProblem], threads: int, tolerance: float, gpu: Any) -> Solutions:
    """Problems that have nothing in common."""
    count = len(problems)
    n, m = (max((getattr(problem, name) for problem in problems), default=0) for name in ("n", "m"))
    d = max((problem.rows.shape[1] for problem in problems), default=3)
    answers = unsolved(count, (n, d), m)
    kept = Scratches(tolerance)
    if gpu is not None:
        taken = [k for k in range(count) if kernel_takes(problems[k]) and problems[k].tangent_rate is None]
        gpu.solve_listed(problems, taken, kept.settings, gpu.Answers(*answers[:4]))
        return completed(answers, lambda left: of_list([problems[k] for k in left], threads, tolerance, None))
    stacks = []
    for which in alike(problems).values():
        few = [problems[k].posed for k in which]
        own = unsolved(len(which), problems[which[0]].rows.shape[:2], problems[which[0]].m)
        stacks.append((which, own, Posed(*map(np.array, zip(*few, strict=True)))))
    kept.solve_stacks([(stack, own) for _, own, stack in stacks], threads)
    for which, own, _ in stacks:
        put(own, np.array(which), answers)
    return rest(answers, lambda k: problems[k], tolerance)


def alike(problems: Sequence[ContactProblem]) -> dict[tuple[int, ...], list[int]]:
    """Those that the kernel takes, by the sizes of what it reads."""
    found: dict[tuple[int, ...], list[int]] = {}
    for k, problem in enumerate(problems):
        if kernel_takes(problem):
            assert problem.mass is not None
            sizes = *problem.rows.shape, len(problem.velocity), len(problem.joints), len(problem.trees)
            found.setdefault((*sizes, problem.mass.size, problem.tangent_rate is None), []).append(k)
    return found


def unsolved(count: int, size: tuple[int, ...], m: int) -> Solutions:
    """Answers before any problem is solved; size: contacts and their directions."""
    return Solutions(np.zeros((count, *size)), np.zeros((count, m)), np.full(count, np.nan), np.full(count, LEFT), 0, 0)


def put(answers: Any, places: NDArray[np.int64], to: Any) -> None:
    """Put answers, but for those that were left, where they belong; those of smaller problems are shorter."""
    good = answers.status != LEFT
    at, (n, d), m = places[good], answers.impulse.shape[1:], answers.velocity.shape[1]
    to.impulse[at, :n, :d], to.velocity[at, :m] = answers.impulse[good], answers.velocity[good]
    to.residual[at], to.status[at] = answers.residual[good], answers.status[good]


def completed(answers: Solutions, again: Callable[[NDArray[np.int64]], Solutions]) -> Solutions:
    """With what a GPU has left solved by the CPU."""
    left = np.flatnonzero(answers.status == LEFT)
    if not len(left):
        return answers
    found = again(left)
    put(found, left, answers)
    return answers._replace(one_by_one=found.one_by_one, left_by_gpu=len(left))


def kernel_takes(problem: ContactProblem) -> bool:
    """Whether the kernel takes a problem; a dense mass that falls apart is judged island by island, by `solve`."""
    if problem.mass is None or problem.law != CONE or problem.slip is not None:
        return False
    return problem.mass.ndim != 2 or len(islands(problem)) <= 1


def checked(problem: ContactProblem, name: str, value: Any) -> NDArray[np.float64]:
    """(c, size) rows of a load, or InvalidProblem that names what is wrong."""
    own = getattr(problem, name)
    if value is None:
        return own[None]  # type: ignore[no-any-return]
    try:
        rows = np.atleast_2d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InvalidProblem(f"solve_many: {name} must be an array of numbers ({error})") from error
    if problem.mass is None and name != "friction":
        raise InvalidProblem(f"solve_many: a problem in Delassus form has no {name}; give a list of problems")
    if rows.ndim != 2 or rows.shape[1] != own.size or not len(rows):
        raise InvalidProblem(
            f"solve_many: {name} must have shape (c, {own.size}) to match the problem, got {rows.shape}"
        )
    least, total = least_and_total(rows)
    if math.isfinite(total) and (name != "friction" or least >= 0.0):  # a sum is not finite if any number is not
        return rows
    bad = ~np.isfinite(rows) if name != "friction" else ~(np.isfinite(rows) & (rows >= 0.0))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        rule = "finite" if name != "friction" else "finite and not negative"
        raise InvalidProblem(f"solve_many: {name} must be {rule}, but {name}{list(place)} = {rows[place]}")
    return rows


def least_and_total(rows: NDArray[np.float64]) -> tuple[float, float]:
    """Of all numbers and zero; parts of large arrays side by side, and much faster than a look at each number."""
    parts = np.array_split(rows, -(-rows.size // PART))
    found = np.empty((2, len(parts)))

    def look(k: int) -> None:
        with np.errstate(all="ignore"):
            found[:, k] = parts[k].min(initial=0.0), parts[k].sum()

    in_threads(look, range(len(parts)), os.cpu_count() or 1)
    with np.errstate(all="ignore"):
        return found[0].min(initial=0.0), found[1].sum()


def in_threads(run: Callable[[int], None], places: Sequence[int], threads: int) -> None:
    """Call `run` for every place; an error, or Ctrl-C, ends what has not begun."""
    if threads == 1 or len(places) <= 1:
        for place in places:
            run(place)
        return
    with ThreadPoolExecutor(min(threads, len(places))) as pool:
        waiting = [pool.submit(run, place) for place in places]
        try:
            for each in waiting:
                each.result()
        finally:
            for each in waiting:
                each.cancel()


def rest(answers: Solutions, problem: Callable[[int], ContactProblem], tolerance: float) -> Solutions:
    """Solve the problems that the kernel has left, one by one."""
    left = np.flatnonzero(answers.status == LEFT).tolist()
    for k in left:
        found = solve(problem(k), tolerance=tolerance, throw=False)
        answers.impulse[k], answers.velocity[k] = 0.0, 0.0
        n, d = found.impulse.shape
        answers.impulse[k, :n, :d], answers.velocity[k, : len(found.velocity)] = found.impulse, found.velocity
        answers.residual[k], answers.status[k] = found.certificate.residual, found.status
    return answers._replace(one_by_one=len(left))


class Settings(NamedTuple):
    """How a problem is solved and judged."""

    aim: float
    tolerance: float
    starts: int  # of Newton's method on all contacts
    steps: int  # of each


class Scratches:
    """Memory of the kernel, which each call takes and gives back."""

    def __init__(self, tolerance: float) -> None:
        self.settings = Settings(AUTO.aim_of(tolerance), tolerance, CYCLES, STEPS)
        self.free: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []

    def solve_stacks(self, stacks: list[tuple[Posed, Solutions]], threads: int) -> None:
        """Problems of equal sizes, stack by stack, in threads."""
        shares = []
        for posed, answers in stacks:
            for each in posed:
                each.flags.writeable = False  # as a problem's own, so that the kernel is compiled once
            count = len(answers.status)
            length = max(1, min(SHARE, -(-count // (SHARES * threads))))
            shares += [(posed, begin, min(begin + length, count), answers) for begin in range(0, count, length)]
        in_threads(lambda number: self.solve(*shares[number]), range(len(shares)), threads)

    def solve(self, posed: Posed, begin: int, end: int, answers: Solutions) -> None:
        """A share of a stack."""
        for work in self.taken(*room(posed)):
            call: Any = solve_cases
            call(posed, begin, end, self.settings, *work, *answers[:4], ZEROS[posed.rows.shape[2]])

    def taken(self, floats: int, ints: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Buffers that nobody else uses meanwhile, at least this large."""
        try:
            work = self.free.pop()
        except IndexError:
            work = (np.empty(0), np.empty(0, np.int64))
        if work[0].size < floats or work[1].size < ints:
            work = np.empty(max(floats, work[0].size)), np.empty(max(ints, work[1].size), np.int64)
        yield work
        self.free.append(work)


class Work(NamedTuple):
    """The workspace: n contacts with d rows of `width` entries in normal form, m velocities, j bilateral rows."""

    white: White
    response: Scratch
    judging: Judging
    joint_impulse: Array[Floats, "j"]
    contact_velocity: Array[Floats, "n", "d"]
    mode: Array[Ints, "n"]
    floats: Array[Floats, ...]  # for the solver
    ints: Array[Ints, ...]


work_sizes, work_views = layout(Work, "n", "d", "m", "j", "width", "entries", "given")


def room(posed: Posed) -> tuple[int, int]:
    """Floats and ints that one of a stack of problems takes."""
    (n, d, given), m, j = posed.rows.shape[1:], posed.velocity.shape[1], posed.joints.shape[1]
    width = m if j else given
    own, inner = work_sizes(n, d, m, j, width, posed.mass.shape[1], given), sizes(n, d, m, width)
    return own[0] + inner[0], own[1] + inner[1]


@without_lock
def solve_cases(stack, begin, end, settings, floats, ints, impulse, velocity, residual, status, zero):
    """Solve the cases from `begin` to `end`; the status of one that is not certified stays as it is.

    stack: a `Posed` of arrays with the case first; what all of them share has one
    """
    n, given, j, m = stack.rows.shape[1], stack.rows.shape[3], stack.joints.shape[1], stack.velocity.shape[1]
    width = m if j > 0 else given
    work = work_views(n, len(zero), m, j, width, stack.mass.shape[1], given, floats, ints)
    for k in range(begin, end):
        # What all cases share is the first.
        g = k if len(stack.mass) > 1 else 0
        case = Posed(
            stack.mass[g], stack.trees[g], stack.velocity[k], stack.rows[g], stack.segments[g], stack.friction[k],
            stack.gap_rate[k], stack.joints[g], stack.joint_rate[g], stack.tangent_rate[g],
        )  # fmt: skip
        found = solve_case(case, settings, work, impulse[k], velocity[k], zero)
        if found <= settings.tolerance:
            residual[k], status[k] = found, 0


@kernel
def solve_case(posed, settings, work, impulse, velocity, zero):
    """Return the residual of the answer, infinite if there is none; impulse and velocity receive it."""
    # Whiten: the normal form. Redundant joints may contradict each other, which is left to `solve`.
    white = work.white
    tau, rank = whiten_posed(posed, white, DEPENDENT, zero, False, False)
    if tau < 0.0 or rank < len(posed.joints):
        return np.inf
    if len(posed.joints) == 0:
        trim(white.rows, white.runs)

    # Propose: impulses from nothing, and the velocities that they cause.
    given = Given(
        white.rows, white.runs, white.free, white.bias, posed.friction, white.scale, white.pace, posed.friction[:0],
        False, False,
    )  # fmt: skip
    nothing = work.contact_velocity[:0]
    cone_newton(
        given, tau, nothing, settings.starts, settings.steps, np.inf, settings.aim, work.floats, work.ints, impulse,
        zero,
    )  # fmt: skip
    respond(posed, white, tau, rank, impulse, work.response, velocity, work.joint_impulse, zero)

    # Judge, as `solve` does.
    judged = judge_problem(
        TRUE_CONE, posed.friction, cut(work.floats, 0, (0, 2)), posed, white, work.judging, velocity,
        impulse, work.joint_impulse, work.contact_velocity, work.mode, zero,
    )  # fmt: skip
    return judged[0]

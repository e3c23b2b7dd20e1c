"""A whole step between two calls of MuJoCo in one compiled call, for what most steps are.

Contacts under Coulomb's law on the cone, nothing that hits with restitution: constraints are read, matched with the
last step's, posed, whitened, solved by Newton's method from the last impulses, judged, and written back, by the very
kernels that `gather`, `match`, `pose`, `solve` and `write_back` call one by one. What is not certified here is not
written, and the step is made that other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.compiled import built, kernel, shared
from stiction.contacts.gather import (
    CONTACTS,
    ENTRIES,
    FLOATS,
    INTS,
    JOINT_WIDTH,
    JOINTS,
    VELOCITIES,
    WIDTH,
    fill,
    float_ends,
    int_ends,
    measure,
)
from stiction.contacts.identity import match_contacts
from stiction.contacts.write_back import WRITTEN, write
from stiction.linear import dot
from stiction.problems.laws import Coulomb
from stiction.problems.normal_form import (
    add_rows,
    leave_redundant,
    move,
    move_unheld,
    rows_dot,
    unwhiten_velocity,
    whiten_free,
    whiten_jointed,
)
from stiction.solutions.contact import ContactCertificate, ContactSolution
from stiction.solutions.contact_laws import CONE, judge_problem
from stiction.solutions.status import Status
from stiction.solvers.cone_newton.cone_newton import ConeNewton, cone_newton, sizes
from stiction.solvers.cone_newton.one_contact import alart_curnier
from stiction.stepping.engine import carry, direct, pose, set_joints, set_rates
from stiction.stepping.report import Report
from stiction.stepping.sheet import COUNTS, EMPTY, Sheet, ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.stepping.engine import Engine

SMALL = 6  # velocities up to which a run is not cut
CYCLES = 4  # of Newton's method; more belong to the other way
FAR = 1e-9  # violation of the law, in units of the normal form, of impulses that are no answer yet
DONE, ANOTHER_WAY, MORE_ROOM = range(3)


empty, INTEGER = np.empty, np.dtype(np.int64)


class Quick(Sheet):
    """What a step made in one call has found; the solution is put together when it is asked for."""

    __slots__ = ("aim", "dt", "judged", "recovery", "steps", "tolerance")

    def __init__(
        self, floats: NDArray[np.float64], ints: NDArray[np.int64], judged: tuple[Any, ...], steps: int, dt: float,
        recovery: float, tolerance: float, aim: float,
    ) -> None:  # fmt: skip
        self.floats, self.ints, self.judged, self.steps = floats, ints, judged, steps
        self.dt, self.recovery, self.tolerance, self.aim = dt, recovery, tolerance, aim

    @property
    def certificate(self) -> ContactCertificate:
        return ContactCertificate._make(self.judged)

    @property
    def answer(self) -> tuple[Any, Any, Any, Any]:
        """Impulses, velocities, velocities of the contacts, modes."""
        return self.impulse, self.velocity, self.contact_velocity, self.mode

    def solution(self) -> ContactSolution:
        problem = pose(self.found, Coulomb(), self.dt, self.recovery)
        certificate = self.certificate
        trace = (f"ConeNewton: solved, residual {certificate.residual:.1e}",)
        return ContactSolution(
            Status.SOLVED, self.velocity, self.impulse, self.joint_impulse, self.mode, self.contact_velocity,
            certificate, self.steps, ConeNewton(tolerance=self.aim), self.tolerance, None, trace, None, problem,
        )  # fmt: skip


def quick_step(engine: Engine, recovery: float, tolerance: float, aim: float, warm: bool) -> Report | None:
    """Pose, solve, judge and write back the step that MuJoCo has prepared; None if it must be made another way."""
    model, data, where = engine.memory
    old = engine.last if warm and engine.last is not None else EMPTY
    while True:
        floats, ints = empty(engine.sizes[0]), empty(engine.sizes[1], INTEGER)
        if engine.one_call is None:
            arrays = (model, data, where, old.floats, old.ints, floats, ints, engine.floats, engine.ints, engine.need)
            engine.one_call = direct(one_call, *arrays, 0.0, 0.0, 0.0)
        status, steps, dt, time, potential, kinetic, judged = engine.one_call(
            model, data, where, old.floats, old.ints, floats, ints, engine.floats, engine.ints, engine.need,
            recovery, tolerance, aim,
        )  # fmt: skip
        if status != MORE_ROOM:
            break
        engine.make_room()
    if status != DONE:
        return None
    quick = Quick(floats, ints, judged, steps, dt, recovery, tolerance, aim)
    engine.problem, engine.last = None, quick
    return Report(time, potential, kinetic, quick)


@shared
def room(n: int, m: int, j: int, width: int, counts: Any, before: int, found: int) -> tuple[int, int]:
    """Scratch of `one_call`: that of the solver, and what the normal form and the matching need."""
    floats, ints = sizes(n, m, width)
    held = min(j, m)
    joints = (2 * j + held + 2) * m + 4 * j + held * held + 2 * held + 3 * counts[WIDTH]
    return floats + counts[ENTRIES] + 11 * m + (
        3 * width + 10
    ) * n + joints, ints + found + 2 * m + 5 * n + before + held


def as_fixed(typing: Any, array: Any) -> Any:
    """The same array as read-only, so that kernels are compiled once for both."""
    return array.copy(readonly=True)(array), lambda context, builder, signature, arguments: arguments[0]


def make_fixed() -> Any:
    from numba.extending import intrinsic

    return intrinsic(as_fixed)


fixed = built(make_fixed, lambda array: array)


@kernel
def one_call(
    model, data, where, old_floats, old_ints, new_floats, new_ints, floats, ints, need, recovery, tolerance, aim
):
    """Returns (status, Newton steps, dt, time after the step, energies before it, the numbers of a ContactCertificate).

    need: sizes of new_floats, new_ints, floats and ints, written where they are too small
    """
    d = data[0]
    dt = model[0].timestep
    none = (np.nan, -1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if len(ints) < d.ncon:
        need[3] = d.ncon
        return MORE_ROOM, 0, dt, 0.0, 0.0, 0.0, none
    counts, kept = new_ints[:COUNTS], ints[: d.ncon]
    if measure(model, data, where, counts, kept) != 0:
        return ANOTHER_WAY, 0, dt, 0.0, 0.0, 0.0, none
    n, m, j = counts[CONTACTS], counts[VELOCITIES], counts[JOINTS]
    width = m if j > 0 else counts[WIDTH]  # joints spread what a contact touches
    old_counts = old_ints[:COUNTS]
    before = old_counts[CONTACTS]
    to, old = ends(counts), ends(old_counts)
    scratch, places_of_scratch = room(n, m, j, width, counts, before, d.ncon)
    if (
        len(new_floats) < to[3] + counts[FLOATS] or len(new_ints) < to[5] + counts[INTS]
        or len(floats) < scratch or len(ints) < places_of_scratch
    ):  # fmt: skip
        need[0], need[1], need[2], need[3] = to[3] + counts[FLOATS], to[5] + counts[INTS], scratch, places_of_scratch
        return MORE_ROOM, 0, dt, 0.0, 0.0, 0.0, none
    numbers, places = new_floats[to[3] :], new_ints[to[5] :]
    fill(model, data, where, counts, kept, numbers, places)
    f, g = float_ends(counts), int_ends(counts)
    rows = numbers[f[2] : f[3]].reshape((n, 3, counts[WIDTH]))
    segments = places[g[1] : g[2]].reshape((n, 4))

    end, used = counts[ENTRIES], d.ncon
    factor, free, x = floats[:end], floats[end : end + m], floats[end + m : end + 2 * m]
    by_island = floats[end + 2 * m : end + 11 * m].reshape((9, m))
    end += 11 * m
    white = floats[end : end + 3 * width * n].reshape((n, 3, width))
    end += 3 * width * n
    bias, start = floats[end : end + 3 * n].reshape((n, 3)), floats[end + 3 * n : end + 6 * n].reshape((n, 3))
    scale, rate = floats[end + 6 * n : end + 7 * n], floats[end + 7 * n : end + 8 * n]
    pace, heavy = floats[end + 8 * n : end + 9 * n], floats[end + 9 * n : end + 10 * n]
    end += 10 * n
    joints, joint_rate = floats[end : end + j * m].reshape((j, m)), floats[end + j * m : end + j * m + j]
    end += j * m + j
    held = min(j, m)
    whitened, basis = floats[end : end + j * m].reshape((j, m)), floats[end + j * m : end + (j + held) * m]
    end += (j + held) * m
    triangle, wanted = floats[end : end + held * held].reshape((held, held)), floats[end + held * held :][:held]
    end += held * held + held
    along, alone = floats[end : end + held], floats[end + held : end + held + m]
    end += held + m
    joint_size, v_held = floats[end : end + 3 * j].reshape((3, j)), floats[end + 3 * j : end + 3 * j + m]
    end += 3 * j + m
    three = floats[end : end + 3 * counts[WIDTH]].reshape((3, counts[WIDTH]))
    end += 3 * counts[WIDTH]
    place, island, previous = ints[used : used + m], ints[used + m : used + 2 * m], ints[used + 2 * m :][:n]
    used += 2 * m + n
    runs, taken = ints[used : used + 4 * n].reshape((n, 4)), ints[used + 4 * n : used + 4 * n + before]
    used += 4 * n + before
    chosen = ints[used : used + held]
    used += held

    for i in range(before):
        taken[i] = 0
    match_contacts(
        model, old_counts, old_floats[old[3] :], old_ints[old[5] :], counts, numbers, places, taken, previous
    )
    for i in range(n):
        start[i, 0], start[i, 1], start[i, 2] = 0.0, 0.0, 0.0
    if before > 0:
        carry(previous, old_floats[: old[0]].reshape((before, 3)), start)
    nothing = floats[:0]
    set_rates(numbers[f[4] : f[5]], rows, segments, dt, recovery, nothing, nothing, numbers[f[1] : f[2]], rate)

    mass, trees, v_free = fixed(numbers[: f[1]]), fixed(places[: g[1]]), fixed(numbers[f[1] : f[2]])
    friction, rows, segments = fixed(numbers[f[3] : f[4]]), fixed(rows), fixed(segments)
    impulse, u = new_floats[: to[0]].reshape((n, 3)), new_floats[to[0] : to[1]].reshape((n, 3))
    velocity, joint_impulse, mode = new_floats[to[1] : to[2]], new_floats[to[2] : to[3]], new_ints[to[4] : to[5]]
    rank = 0
    if j == 0:
        v_held = v_held[:0]
        tau = whiten_free(
            mass, trees, v_free, rows, segments, fixed(rate), factor, place, white, free, bias, scale, pace, heavy,
            island, by_island,
        )  # fmt: skip
        for i in range(n):
            cut_runs(segments[i], white[i], runs[i])
    else:
        for i in range(j):
            for k in range(m):
                joints[i, k] = 0.0
        set_joints(
            numbers[f[6] : f[7]].reshape((j, counts[JOINT_WIDTH])), places[g[2] : g[3]].reshape((j, 4)),
            numbers[f[7] : f[8]], dt, recovery, joints, joint_rate,
        )  # fmt: skip
        tau, rank = whiten_jointed(
            mass, trees, v_free, rows, segments, fixed(rate), fixed(joints), fixed(joint_rate), factor, place,
            whitened, basis.reshape((held, m)), chosen, triangle, wanted, white, runs, free, bias, scale, pace, heavy,
            joint_size, island, by_island,
        )  # fmt: skip
        leave_redundant(whitened, basis.reshape((held, m)), chosen, wanted, rank, joints, joint_rate, joint_size[2])
    if tau < 0.0:
        return ANOTHER_WAY, 0, dt, 0.0, 0.0, 0.0, none
    if j > 0:
        for i in range(m):
            x[i] = tau * free[i]
        unwhiten_velocity(factor, trees, x, v_held)
    steps = 0
    if not settled(white, runs, free, bias, friction, scale, tau, pace, start, aim, x, impulse):
        _, steps, _ = cone_newton(
            white, fixed(runs), free, bias, friction, scale, tau, pace, start, CYCLES, 80, aim,
            floats[end:], ints[used:], impulse,
        )  # fmt: skip
    move(white, fixed(runs), free, tau, scale, impulse, factor, trees, x, velocity)
    if j > 0:
        move_unheld(rows, segments, v_free, impulse, factor, place, trees, three, alone)
        hold(x, alone, basis.reshape((held, m)), chosen, triangle, rank, along, joint_impulse)
    found = judge_problem(
        CONE, 0, 0.0, False, 1.0, friction, friction, fixed(nothing.reshape((0, 2))), scale, heavy, joint_size,
        mass, trees, factor, rows, segments, fixed(rate), v_free, v_held, fixed(joints), fixed(joint_rate),
        velocity, impulse, joint_impulse, island, by_island, u, mode,
    )  # fmt: skip
    if not found[0] <= tolerance:
        return ANOTHER_WAY, steps, dt, 0.0, 0.0, 0.0, found
    if write(model, data, where, counts, numbers, places, velocity, impulse, joint_impulse) != WRITTEN:
        return ANOTHER_WAY, steps, dt, 0.0, 0.0, 0.0, found
    return DONE, steps, dt, d.time + dt, d.energy[0], d.energy[1], found


@kernel
def cut_runs(segment, rows, runs):
    """The runs of velocities that whitened rows touch: one is cut where nothing moves it, two are kept."""
    for a in range(4):
        runs[a] = segment[a]
    length = segment[1]
    if segment[3] > 0 or length <= SMALL:
        return
    first, end = -1, 0  # the longest part between two velocities that are touched
    last, begin = -1, 0
    for j in range(length):
        if rows[0, j] != 0.0 or rows[1, j] != 0.0 or rows[2, j] != 0.0:
            if last >= 0 and j - last > end - first:
                first, end = last, j
            if last < 0:
                begin = j
            last = j
    if last < 0:
        return
    if end - first <= 1:
        first, end = last, last + 1
    runs[0], runs[1] = segment[0] + begin, first + 1 - begin
    runs[2], runs[3] = segment[0] + end, last + 1 - end
    if runs[3] == 0:
        runs[2] = 0
    for c in range(3):
        row = rows[c]
        for j in range(runs[1]):
            row[j] = row[begin + j]
        for j in range(last + 1 - end):
            row[runs[1] + j] = row[end + j]
        for j in range(runs[1] + last + 1 - end, length):
            row[j] = 0.0


@kernel
def settled(rows, runs, free, bias, friction, scale, tau, pace, start, aim, x, impulse):
    """Whether the impulses to begin with are an answer already, as they are of things at rest; then they are taken."""
    for k in range(len(free)):
        x[k] = free[k]
    for i in range(len(start)):
        unit = 1.0 / (scale[i] * tau)
        add_rows(rows[i], runs[i], unit * start[i, 0], unit * start[i, 1], unit * start[i, 2], x)
    for i in range(len(start)):
        unit = 1.0 / (scale[i] * tau)
        u0, u1, u2 = rows_dot(rows[i], runs[i], x)
        off, _ = alart_curnier(
            unit * start[i, 0], unit * start[i, 1], unit * start[i, 2], u0 + bias[i, 0], u1 + bias[i, 1],
            u2 + bias[i, 2], friction[i],
        )  # fmt: skip
        if not (off <= FAR and off * tau <= aim * scale[i] * pace[i]):
            return False
    for i in range(len(start)):
        impulse[i, 0], impulse[i, 1], impulse[i, 2] = start[i, 0], start[i, 1], start[i, 2]
    return True


@kernel
def hold(x, alone, basis, chosen, triangle, rank, along, joint_impulse):
    """Impulses of the bilateral rows: what x has beyond the free velocity and the contacts' own rows."""
    m = len(x)
    for i in range(len(joint_impulse)):
        joint_impulse[i] = 0.0
    for u in range(rank - 1, -1, -1):
        total = dot(basis[u], x, m) - dot(basis[u], alone, m)
        for w in range(u + 1, rank):
            total -= triangle[w, u] * along[w]
        along[u] = total / triangle[u, u]
        joint_impulse[chosen[u]] = along[u]

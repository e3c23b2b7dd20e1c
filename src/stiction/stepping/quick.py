"""A whole step between two calls of MuJoCo in one compiled call, for what most steps are.

Contacts under Coulomb's law on the cone, nothing that hits with restitution: constraints are read, matched with the
last step's, posed, whitened, solved by Newton's method from the last impulses, judged, and written back, by the very
kernels that `gather`, `match`, `pose`, `solve` and `write_back` call one by one. What is not certified here is not
written, and the step is made that other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.compiled import built, kernel
from stiction.contacts.gather import CONTACTS, ENTRIES, JOINTS, VELOCITIES, WIDTH, fill_constraints, measure
from stiction.contacts.identity import match_contacts
from stiction.contacts.write_back import WRITTEN, write_constraints
from stiction.layout import Floats, Ints, layout
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
from stiction.stepping.sheet import COUNTS, EMPTY, Sheet, record, room_of_record

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


class Work(NamedTuple):
    """The workspace of a step.

    n, m, j: contacts, velocities, bilateral rows; width: of a contact's rows in normal form, and `given` as they come;
    before, found: contacts of the last step, and those that MuJoCo has found; entries: of the mass
    """

    kept: Array[
        Ints, "found"
    ]  # those of MuJoCo's contacts that count; first, since it is filled before the rest is known
    factor: Array[Floats, "entries"]
    free: Array[Floats, "m"]
    x: Array[Floats, "m"]
    by_island: Array[Floats, 9, "m"]
    white: Array[Floats, "n", 3, "width"]  # rows in normal form
    bias: Array[Floats, "n", 3]
    start: Array[Floats, "n", 3]  # impulses of the last step
    scale: Array[Floats, "n"]
    rate: Array[Floats, "n"]
    pace: Array[Floats, "n"]
    heavy: Array[Floats, "n"]
    joints: Array[Floats, "j", "m"]
    joint_rate: Array[Floats, "j"]
    whitened: Array[Floats, "j", "m"]  # bilateral rows in normal form
    basis: Array[Floats, "held", "m"]  # of those that are independent
    triangle: Array[Floats, "held", "held"]
    wanted: Array[Floats, "held"]
    along: Array[Floats, "held"]
    alone: Array[Floats, "m"]  # x without bilateral rows
    joint_size: Array[Floats, 3, "j"]
    v_held: Array[Floats, "m if j > 0 else 0"]  # velocities without contacts
    three: Array[Floats, 3, "given"]  # rows of one contact
    place: Array[Ints, "m"]
    island: Array[Ints, "m"]
    previous: Array[Ints, "n"]  # the same contact in the last step, -1 if there is none
    runs: Array[Ints, "n", 4]
    taken: Array[Ints, "before"]
    chosen: Array[Ints, "held"]
    floats: Array[Floats, ...]  # for the solver
    ints: Array[Ints, ...]


own_sizes, views = layout(Work, "n", "m", "j", "width", "given", "before", "found", "entries", held="min(j, m)")


@kernel
def room(n, m, j, width, given, before, found, entries):
    """Floats and ints of the workspace, that of the solver included."""
    own, inner = own_sizes(n, m, j, width, given, before, found, entries), sizes(n, m, width)
    return own[0] + inner[0], own[1] + inner[1]


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
    before = old_ints[CONTACTS]
    given, entries = counts[WIDTH], counts[ENTRIES]
    scratch, places_of_scratch = room(n, m, j, width, given, before, d.ncon, entries)
    room_floats, room_ints = room_of_record(counts)
    if (
        len(new_floats) < room_floats or len(new_ints) < room_ints
        or len(floats) < scratch or len(ints) < places_of_scratch
    ):  # fmt: skip
        need[0], need[1], need[2], need[3] = room_floats, room_ints, scratch, places_of_scratch
        return MORE_ROOM, 0, dt, 0.0, 0.0, 0.0, none
    new, last = record(new_floats, new_ints), record(old_floats, old_ints)
    c = new.constraints
    fill_constraints(model, data, where, kept, c)

    t = views(n, m, j, width, given, before, d.ncon, entries, floats, ints)
    for i in range(before):
        t.taken[i] = 0
    match_contacts(model, last.constraints.spot, last.constraints.pair, c.spot, c.pair, t.taken, t.previous)
    for i in range(n):
        t.start[i, 0], t.start[i, 1], t.start[i, 2] = 0.0, 0.0, 0.0
    if before > 0:
        carry(t.previous, last.impulse, t.start)
    nothing = t.floats[:0]
    set_rates(c.gap, c.rows, c.segments, dt, recovery, nothing, nothing, c.free, t.rate)

    mass, trees, v_free, friction = fixed(c.mass), fixed(c.starts), fixed(c.free), fixed(c.friction)
    rows, segments, impulse, velocity = fixed(c.rows), fixed(c.segments), new.impulse, new.velocity
    rank = 0
    if j == 0:
        tau = whiten_free(
            mass, trees, v_free, rows, segments, fixed(t.rate), t.factor, t.place, t.white, t.free, t.bias, t.scale,
            t.pace, t.heavy, t.island, t.by_island,
        )  # fmt: skip
        for i in range(n):
            cut_runs(segments[i], t.white[i], t.runs[i])
    else:
        for i in range(j):
            for k in range(m):
                t.joints[i, k] = 0.0
        set_joints(c.joints, c.joint_segments, c.joint_gap, dt, recovery, t.joints, t.joint_rate)
        tau, rank = whiten_jointed(
            mass, trees, v_free, rows, segments, fixed(t.rate), fixed(t.joints), fixed(t.joint_rate), t.factor, t.place,
            t.whitened, t.basis, t.chosen, t.triangle, t.wanted, t.white, t.runs, t.free, t.bias, t.scale, t.pace,
            t.heavy, t.joint_size, t.island, t.by_island,
        )  # fmt: skip
        leave_redundant(t.whitened, t.basis, t.chosen, t.wanted, rank, t.joints, t.joint_rate, t.joint_size[2])
    if tau < 0.0:
        return ANOTHER_WAY, 0, dt, 0.0, 0.0, 0.0, none
    if j > 0:
        for i in range(m):
            t.x[i] = tau * t.free[i]
        unwhiten_velocity(t.factor, trees, t.x, t.v_held)
    steps = 0
    if not settled(t.white, t.runs, t.free, t.bias, friction, t.scale, tau, t.pace, t.start, aim, t.x, impulse):
        _, steps, _ = cone_newton(
            t.white, fixed(t.runs), t.free, t.bias, friction, t.scale, tau, t.pace, t.start, CYCLES, 80, aim,
            t.floats, t.ints, impulse,
        )  # fmt: skip
    move(t.white, fixed(t.runs), t.free, tau, t.scale, impulse, t.factor, trees, t.x, velocity)
    if j > 0:
        move_unheld(rows, segments, v_free, impulse, t.factor, t.place, trees, t.three, t.alone)
        hold(t.x, t.alone, t.basis, t.chosen, t.triangle, rank, t.along, new.joint_impulse)
    found = judge_problem(
        CONE, 0, 0.0, False, 1.0, friction, friction, fixed(nothing.reshape((0, 2))), t.scale, t.heavy, t.joint_size,
        mass, trees, t.factor, rows, segments, fixed(t.rate), v_free, t.v_held, fixed(t.joints), fixed(t.joint_rate),
        velocity, impulse, new.joint_impulse, t.island, t.by_island, new.contact_velocity, new.mode,
    )  # fmt: skip
    if not found[0] <= tolerance:
        return ANOTHER_WAY, steps, dt, 0.0, 0.0, 0.0, found
    if write_constraints(model, data, where, c, velocity, impulse, new.joint_impulse) != WRITTEN:
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

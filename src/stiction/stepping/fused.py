"""A whole step between two calls of MuJoCo in one compiled call, for the most common kind of step.

Coulomb's law on the cone, no restitution: constraints are gathered, matched with the last step's, posed, whitened,
solved by Newton's method from the last impulses, judged, and written back, by the same kernels that `gather`, `match`,
`pose`, `solve` and `write_back` call one by one. An answer that is not certified is not written: the record of the step
is handed on, with the best impulses found.

Where overlaps or joint errors are to be taken back and that fails, the same is tried with nothing taken back; what is
left is to be moved apart from the velocities (`contradictions`). The next steps begin with this, eight times as many
after each failure, and a quarter as many after each success: what fails now and then is seldom tried. A record also
keeps how many Newton steps a step takes, as a running median: attempts that fail are bounded by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.ahead import ahead
from stiction.arrays.compiled import kernel, shared
from stiction.arrays.dense import dot
from stiction.arrays.layout import Floats, Ints, cut, layout
from stiction.arrays.vectors import ZEROS
from stiction.bodies.dynamics import Damping
from stiction.bodies.pointers import floats as numbers_at
from stiction.contacts.gather import (
    CONTACTS,
    COUNTS,
    DIRECTIONS,
    ENTRIES,
    JOINTS,
    PACE,
    SCRATCH,
    VELOCITIES,
    WAIT,
    WIDTH,
    fill,
    measure,
)
from stiction.contacts.identity import carry
from stiction.contacts.write_back import WRITTEN, write
from stiction.problems.joints import LOOSELY, make_consistent
from stiction.problems.laws import CONE, Coulomb, LawNumbers
from stiction.problems.mass_factor import whiten_velocity
from stiction.problems.normal_form import Posed, White, trim, whiten_posed
from stiction.problems.response import Scratch, respond
from stiction.solutions.contact import ContactCertificate, ContactSolution
from stiction.solutions.contact_laws import Judging, judge_problem
from stiction.solutions.contact_laws import sample as judging_sample
from stiction.solutions.status import Status
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton, Given, cone_newton, sample
from stiction.solvers.contact.cone_newton.parts import sizes, solve_parts
from stiction.solvers.contact.cone_newton.tolerances import MANY
from stiction.stepping.engine import direct
from stiction.stepping.pose import RECOVERY, set_joints, set_rates
from stiction.stepping.record import EMPTY, Step, record, room
from stiction.stepping.report import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.stepping.engine import Engine
    from stiction.stepping.record import Record

CYCLES = 4  # Newton restarts tried here; harder problems go through `solve`
STEPS = 80  # Newton steps in each
MEDIANS = 200  # steps of a run, in the median, that attempts at one may take
# What all else of a step is worth, kinematics, collisions, whitening and judging, in Newton steps of the same problem:
# so many, and one more for so many contacts.
REST, CONTACTS_A_STEP = 4, 8
PART = 0.25  # of all that attempts at a step may take, for each that is made here
AMPLIFIED = 3.0  # speed, over the one asked for, at which what is taken back throws bodies away
PATIENCE = 6  # what contradicts is not tried for 2^6 - 1 steps at most
# Powers of two by which these steps become more after a failure, and fewer after a success. Where both take turns they
# must become more: what succeeds every third time costs more than what is not tried.
WORSE, BETTER = 3, 2
OFTEN, SELDOM = 4 << PATIENCE, 4  # what a record keeps after three failures in a row; steps from then on
DONE, UNCERTIFIED, UNFIT, MORE_ROOM, TOO_WIDE, STILL, OPENED = range(7)
WHOLE, OPEN, CLOSE = range(3)  # what a call does: all; or until impulses are to be proposed; or from then on
NO_CERTIFICATE = (np.nan, -1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
# Of a trace.
APART = "overlaps and joint errors are taken back apart from velocities"
LIFTS = "contacts lift as they slide, at {:.1e} m/s at most"
empty, INTEGER = np.empty, np.dtype(np.int64)


class Opened(NamedTuple):
    """How far an attempt has come: what `whiten_posed` returned, and Newton steps of impulses that are there."""

    tau: float = 0.0  # not whitened yet
    rank: int = 0
    steps: int = -1  # no impulses yet


class Settings(NamedTuple):
    """How a step is posed, solved and judged."""

    recovery: float  # of overlaps
    joint_recovery: float  # of joint errors; infinite: as the model's reference asks
    tolerance: float
    aim: float
    apart: bool = False  # whether sliding, spin and rolling are bounded apart
    lift: bool = True  # whether contacts may lift as they slide where nothing else helps (`cone_newton.lifting`)
    part: int = WHOLE
    opened: Opened = Opened()


class Fused(Step):
    """A step that was made in one call; builds its `ContactSolution` when asked. still: with nothing taken back."""

    __slots__ = ("judged", "settings", "steps", "still")

    def __init__(
        self, floats: NDArray[np.float64], ints: NDArray[np.int64], judged: tuple[Any, ...], steps: int,
        settings: Settings, still: bool = False,
    ) -> None:  # fmt: skip
        self.floats, self.ints, self.judged, self.steps, self.settings = floats, ints, judged, steps, settings
        self.still = still

    @property
    def certificate(self) -> ContactCertificate:
        return ContactCertificate._make(self.judged)

    @property
    def answer(self) -> tuple[Any, Any, Any, Any]:
        """Impulses, velocities, velocities of the contacts, modes."""
        step = self.arrays
        return step.impulse, step.velocity, step.contact_velocity, step.mode

    @property
    def lift(self) -> float:
        """The largest speed, in m/s, at which contacts lift as they slide."""
        return float(self.arrays.lift.max(initial=0.0))

    def solution(self, arrays: Record | None = None) -> ContactSolution:
        """With the problem that was solved; arrays: these, if they are at hand."""
        step, certificate = self.arrays if arrays is None else arrays, self.certificate
        trace: tuple[str, ...] = (f"ConeNewton: solved, residual {certificate.residual:.1e}",)
        if self.still:
            trace += (APART,)
        if step.lift.any():
            trace += (LIFTS.format(step.lift.max()),)
        return ContactSolution(
            Status.SOLVED, step.velocity, step.impulse, step.joint_impulse, step.mode, step.contact_velocity,
            certificate, self.steps, ConeNewton(tolerance=self.settings.aim), self.settings.tolerance, None, trace,
            None, self.problem(Coulomb(joint=not self.settings.apart), step),
        )  # fmt: skip


def fused_step(engine: Engine, settings: Settings, warm: bool, tried: Any = None) -> tuple[Report | None, Step | None]:
    """Make the step that MuJoCo has prepared, all but the integration; or hand on what there is of it.

    A step with nothing taken back (`Fused.still`) comes without a report, and is not remembered yet.

    tried: record and result of `make_step`, if it has been tried already (`one_call`)
    """
    model, data, where = engine.memory
    old = engine.last if warm and engine.last is not None else EMPTY
    while True:
        if tried is not None:
            (floats, ints, found), tried = tried, None
        else:
            floats, ints = empty(engine.sizes[0]), empty(engine.sizes[1], INTEGER)
            records = (old.floats, old.ints, floats, ints, engine.floats, engine.ints, engine.need)
            if engine.fused is None:
                ahead((cone_newton, sample(engine.zero)), (judge_problem, judging_sample(engine.zero)))
                engine.fused = direct(make_step, model, data, where, *records, settings, engine.zero)
            make = engine.fused if engine.crew is None else engine.crew.make_step
            found = make(model, data, where, *records, settings, engine.zero)
        status, steps, time, potential, kinetic, judged = found
        if status == TOO_WIDE:
            engine.zero, engine.fused, engine.one_call = ZEROS[int(engine.need[0])], None, None
        elif status == MORE_ROOM:
            engine.make_room()
        else:
            break
    engine.spent = steps
    if status == UNCERTIFIED:
        return None, Step(floats, ints)
    if status == UNFIT:
        return None, None
    made = Fused(floats, ints, judged, steps, settings, status == STILL)
    if status == STILL:
        return None, made
    engine.problem, engine.last = None, made
    return Report(time, potential, kinetic, made), made


class Work(NamedTuple):
    """The workspace of a step.

    n, d, m, j: contacts and their directions, velocities, bilateral rows; width: of a contact's rows in normal form,
    and `given` as they come; before, found: contacts of the last step, and those that MuJoCo has found; entries: of
    the mass
    """

    kept: Array[Ints, "found"]  # those of MuJoCo's contacts that count; first, as it is filled before the rest is known
    white: White
    response: Scratch
    judging: Judging
    start: Array[Floats, "n", "d"]  # impulses of the last step
    slopes: Array[Floats, "spare"]  # scratch of `gather.fill`
    previous: Array[Ints, "n"]  # the same contact in the last step, -1 if there is none
    taken: Array[Ints, "3 * before"]  # scratch of `match_contacts`
    floats: Array[Floats, ...]  # for the solver
    ints: Array[Ints, ...]


own_sizes, work_views = layout(Work, "n", "d", "m", "j", "width", "entries", "given", "before", "found", "spare")


@kernel
def work_lengths(counts, before, found):
    """Lengths of the workspace in the order of its layout."""
    m, j, given = counts[VELOCITIES], counts[JOINTS], counts[WIDTH]
    width = m if j > 0 else given  # with joints, rows extend over all velocities
    return counts[CONTACTS], counts[DIRECTIONS], m, j, width, counts[ENTRIES], given, before, found, counts[SCRATCH]


@kernel
def has_room(counts, before, found, new_floats, new_ints, floats, ints, need):
    """Whether record and workspace are large enough; `need` receives the sizes."""
    n, d, m, j, width, entries, given, _, _, spare = work_lengths(counts, before, found)
    own, inner = own_sizes(n, d, m, j, width, entries, given, before, found, spare), sizes(n, d, m, width)
    of_record = room(counts)
    need[0], need[1], need[2], need[3] = of_record[0], of_record[1], own[0] + inner[0], own[1] + inner[1]
    return (
        len(new_floats) >= need[0] and len(new_ints) >= need[1] and len(floats) >= need[2] and len(ints) >= need[3]
    )  # fmt: skip


@kernel
def make_step(model, data, where, old_floats, old_ints, new_floats, new_ints, floats, ints, need, settings, zero):
    """Return (status, Newton steps, time after the step, energies before it, the numbers of a ContactCertificate).

    If only its first part is asked for (OPEN): (OPENED, rank, tau, ...), as `whiten_posed` returned them.

    old, new: the records of the last step and of this one; floats, ints: workspace; need: sizes of the last four
    zero: of as many numbers as contacts may have directions
    """
    d, dt, before = data[0], model[0].timestep, old_ints[CONTACTS]

    # Gather: the constraints of this step.
    if settings.part != CLOSE:
        status = find_constraints(model, data, where, before, new_floats, new_ints, floats, ints, need, zero)
        if status != DONE:
            return status, 0, 0.0, 0.0, 0.0, NO_CERTIFICATE

    # Lay out workspace and records, fill them, and match the contacts with those of the last step.
    counts, found = new_ints[:COUNTS], d.ncon
    n, directions, m, j, width, entries, as_given, _, _, spare = work_lengths(counts, before, found)
    work = work_views(n, directions, m, j, width, entries, as_given, before, found, spare, floats, ints)
    step = record(new_floats, new_ints)
    constraints = step.constraints
    if settings.part != CLOSE:
        last = record(old_floats, old_ints)
        fill(model, data, where, work.kept, constraints, Damping(work.slopes, work.white.factor))
        carry(model, last.constraints, last.impulse, constraints, work.taken, work.previous, work.start)
    if settings.part == OPEN:
        tau, rank = set_up(model, settings, step, work, False, zero)
        return OPENED, rank, tau, 0.0, 0.0, NO_CERTIFICATE

    # Whole first, unless it has contradicted itself in the last steps.
    failures, wait = old_ints[WAIT] >> PATIENCE, old_ints[WAIT] & ((1 << PATIENCE) - 1)
    still, total, opened = wait > 0, 0, settings.opened
    most = np.inf if n > MANY else PART * allowance(old_ints[PACE], n)
    while True:
        cycles = 1 if failures > 0 and not still else CYCLES
        steps, judged, asked, thrown = attempt(model, settings, step, work, still, cycles, most, opened, zero)
        total += steps
        if judged[0] <= settings.tolerance and not thrown:
            break
        if still or steps < 0:
            return UNFIT, total, 0.0, 0.0, 0.0, judged
        if asked == 0.0 or (n > MANY and not thrown):  # large heaps seldom contradict: they are hard
            return UNCERTIFIED, total, 0.0, 0.0, 0.0, judged
        still, failures = True, min(failures + WORSE, PATIENCE)
        wait, opened = 1 << failures, Opened(0.0, 0, -1)

    # What the next step is to know: how long nothing is taken back, and the running median of Newton steps.
    still = still and needs_correction(constraints)
    new_ints[WAIT] = (failures << PATIENCE) + wait - 1 if still else max(failures - BETTER, 0) << PATIENCE
    new_ints[PACE] = old_ints[PACE] + (1 if total > old_ints[PACE] else -1 if total < old_ints[PACE] else 0)

    # Write: forces and velocities, into MuJoCo's own arrays.
    if write(model, data, where, constraints, step.velocity, step.impulse, step.joint_impulse) != WRITTEN:
        return UNFIT, total, 0.0, 0.0, 0.0, judged
    return STILL if still else DONE, total, d.time + dt, d.energy[0], d.energy[1], judged


@kernel
def find_constraints(model, data, where, before, new_floats, new_ints, floats, ints, need, zero):
    """Count the constraints of a step; returns DONE if there is room for them, and what there is not otherwise."""
    # MuJoCo's contacts are the first thing that needs room.
    found = data[0].ncon
    if len(ints) < found:
        need[3] = found
        return MORE_ROOM

    counts = new_ints[:COUNTS]
    if measure(model, data, where, counts, ints[:found], True) != 0:
        return UNFIT
    if counts[DIRECTIONS] > len(zero):
        need[0] = counts[DIRECTIONS]
        return TOO_WIDE
    counts[DIRECTIONS] = len(zero)
    if not has_room(counts, before, found, new_floats, new_ints, floats, ints, need):
        return MORE_ROOM
    return DONE


@kernel
def attempt(model, settings, step, work, still, cycles, most, opened, zero):
    """Solve a step that is gathered, and judge the answer; still: with nothing taken back; most: Newton steps.

    Returns Newton steps, negative if the mass is not positive; the certificate's numbers; the speed at which something
    was to be taken back; and whether that throws bodies away.
    """
    white, nothing = work.white, work.floats[:0]

    # Pose and whiten, unless that has been done.
    tau, rank, steps = opened
    if tau == 0.0:
        tau, rank = set_up(model, settings, step, work, still, zero)
    if tau < 0.0:
        return -1, NO_CERTIFICATE, 0.0, False

    # Propose: impulses, and the velocities that they cause.
    posed = posed_by(step)
    if steps < 0:
        given = given_by(white, posed.friction, step.lift, settings.apart)
        _, steps, _ = solve_parts(
            given, tau, work.start, cycles, STEPS, most, settings.aim, work.floats, work.ints, step.impulse, zero
        )
    open_gaps(step.lift, step.gap_rate)
    respond(posed, white, tau, rank, step.impulse, work.response, step.velocity, step.joint_impulse, zero)

    # Judge: an answer that is not certified is not written.
    law, unknown = LawNumbers(CONE, 0, 0.0, False, 1.0, settings.apart), cut(nothing, 0, (0, 2))
    judged = judge_problem(
        law, posed.friction, unknown, posed, white, work.judging, step.velocity, step.impulse, step.joint_impulse,
        step.contact_velocity, step.mode, zero,
    )  # fmt: skip
    asked = takes_back(step.gap_rate, step.joint_rate)
    thrown = asked > 0.0 and not still and is_amplified(model, posed, white, asked, step, work.response.x)
    return steps, judged, asked, thrown


@kernel
def set_up(model, settings, step, work, still, zero):
    """Pose and whiten the problem of a step; returns tau, negative if the mass is not positive, and the rank of joints.

    still: with nothing taken back
    """
    constraints, white, dt, nothing = step.constraints, work.white, model[0].timestep, work.floats[:0]

    # Pose: the rates at which gaps may close and joint errors are corrected.
    set_rates(constraints, dt, 0.0 if still else settings.recovery, nothing, nothing, step.gap_rate)
    set_joints(constraints, dt, 0.0 if still else settings.joint_recovery, step.joint_rows, step.joint_rate)

    # Whiten: the normal form; redundant joints follow the independent ones.
    tau, rank = whiten_posed(posed_by(step), white, LOOSELY, zero, True, True)
    if tau >= 0.0:
        if len(step.joint_rate) > 0:
            make_consistent(white, rank, step.joint_rows, step.joint_rate)
        trim(white.rows, white.runs)
    allow_lifts(constraints, settings.lift and not settings.apart, step.lift)
    return tau, rank


@shared
def given_by(white, friction, lift, apart):
    """The normal form as the solver reads it."""
    return Given(
        white.rows, white.runs, white.free, white.bias, friction, white.scale, white.pace, lift, apart, True
    )  # fmt: skip


@kernel
def allow_lifts(constraints, allowed, lift):
    """Say which contacts may lift as they slide (`Given.lift`): those of bodies, but no friction in joints."""
    for i in range(len(lift)):
        lift[i] = 0.0 if allowed and constraints.pair[i, 0] >= 0 else -1.0


@kernel
def open_gaps(lift, gap_rate):
    """Open gaps at the speeds at which contacts lift."""
    for i in range(len(lift)):
        lift[i] = max(lift[i], 0.0)
        gap_rate[i] -= lift[i]


@kernel
def posed_by(step):
    """The problem that a step has posed."""
    constraints = step.constraints
    return Posed(
        constraints.mass, constraints.starts, constraints.free,
        constraints.rows, constraints.segments, constraints.friction,
        step.gap_rate, step.joint_rows, step.joint_rate, constraints.surface,
    )  # fmt: skip


@shared
def allowance(pace, n):
    """Newton steps, of n contacts, that take as long as MEDIANS steps of a run; pace: Newton steps of one of them.

    Counted, not measured, so that a step ends in the same way on every machine.
    """
    return MEDIANS * (pace + REST + n / CONTACTS_A_STEP)


@shared
def leaves_positions(wait):
    """Whether positions are left as they are in a step with nothing taken back, by what its record keeps.

    Where contradictions have gone on for long, positions are put right in every fourth step, by as much.
    """
    return wait >= OFTEN and wait % SELDOM != 0


@kernel
def takes_back(gap_rate, joint_rate):
    """The largest speed at which anything is to be taken back, or moved; 0 if nothing is."""
    most = 0.0
    for i in range(len(gap_rate)):
        most = max(most, -gap_rate[i])
    for i in range(len(joint_rate)):
        most = max(most, abs(joint_rate[i]))
    return most


@kernel
def is_amplified(model, posed, white, asked, step, x):
    """Whether velocities have far more energy than without contact, and than if all bodies moved at the speed asked.

    Overlaps that nearly contradict each other, and arms that are nearly stretched, ask for that: in a step, what is to
    be taken back would throw bodies away. x: (m,) scratch
    """
    m = model[0]
    before = speed_of(posed, white, posed.velocity, m.nv, x)
    after = speed_of(posed, white, step.velocity, m.nv, x)
    return after > before + AMPLIFIED * max(asked, RECOVERY) * numbers_at(m.body_subtreemass)[0] ** 0.5


@kernel
def speed_of(posed, white, velocity, count, x):
    """The square root of twice the kinetic energy of the first velocities."""
    whiten_velocity(white.factor, posed.trees, velocity, x)
    return dot(x, x, count) ** 0.5


@kernel
def needs_correction(constraints):
    """Whether anything overlaps, or a joint has an error."""
    for i in range(len(constraints.gap)):
        if constraints.gap[i] < 0.0:
            return True
    for i in range(len(constraints.joint_gap)):
        if constraints.joint_gap[i] != 0.0:
            return True
    return False

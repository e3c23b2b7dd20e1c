"""The forces of a moment, and the impulses of an impact, in one compiled call each.

Whiten, propose, judge: the same kernels that `solve` calls one by one for `Baraff`, or for `Auto` on the cone, without
the objects in between. The `ContactSolution` is built lazily. An answer that is not certified is discarded: `solve`
then starts afresh, with all of its fallbacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.layout import Floats, Ints, layout
from stiction.problems.joints import DEPENDENT
from stiction.problems.normal_form import White, trim, whiten_posed
from stiction.problems.response import Scratch, mark_contradictions, respond
from stiction.solutions.contact import UNKNOWN, ContactCertificate, ContactSolution
from stiction.solutions.contact_laws import Judging, judge_problem
from stiction.solutions.status import Status
from stiction.solvers.contact.baraff.baraff import STEPS, Baraff, compute_forces, summary
from stiction.solvers.contact.baraff.sets import Given as Driven
from stiction.solvers.contact.baraff.sets import sizes as driving_sizes
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.cone_newton.parts import sizes as newton_sizes
from stiction.solvers.contact.cone_newton.parts import solve_parts
from stiction.solvers.contract import SOLVED, STALLED
from stiction.solvers.tolerances import pivot_limit
from stiction.stepping.fused import NO_CERTIFICATE, given_by

if TYPE_CHECKING:
    from stiction.problems.contact import ContactProblem

COUNTED = 5  # entries of the counts that `compute_forces` makes


class Answer(NamedTuple):
    """Impulses at n contacts, or forces, with velocities, or accelerations."""

    impulse: Array[Floats, "n", 3]
    velocity: Array[Floats, "m"]
    joint_impulse: Array[Floats, "j"]
    contact_velocity: Array[Floats, "n", 3]
    mode: Array[Ints, "n"]
    counts: Array[Ints, "counted"]  # of the solver's steps


class Work(NamedTuple):
    """The workspace of one call."""

    white: White
    response: Scratch
    judging: Judging
    p: Array[Floats, "n", 3]  # impulses of the normal form
    ray: Array[Floats, "n", 3]
    wrong: Array[Ints, "j"]  # bilateral rows that contradict others
    floats: Array[Floats, ...]  # for the solver
    ints: Array[Ints, ...]


answer_sizes, answer_views = layout(Answer, "n", "m", "j", counted=f"{COUNTED}")
work_sizes, work_views = layout(Work, "n", "d", "m", "j", "width", "entries")


class Solved:
    """A certified answer; `solution` builds the `ContactSolution` lazily."""

    __slots__ = ("answer", "certificate", "problem", "solver", "tolerance")

    def __init__(
        self, problem: ContactProblem, solver: Any, tolerance: float, answer: Answer, certificate: ContactCertificate
    ) -> None:
        self.problem, self.solver, self.tolerance = problem, solver, tolerance
        self.answer, self.certificate = answer, certificate

    @property
    def solution(self) -> ContactSolution:
        found, counts = self.answer, self.answer.counts
        drives = isinstance(self.solver, Baraff)
        trace = summary(counts) if drives else f"ConeNewton: solved, residual {self.certificate.residual:.1e}"
        return ContactSolution(
            Status.SOLVED, found.velocity, found.impulse, found.joint_impulse, found.mode, found.contact_velocity,
            self.certificate, int(counts[STEPS]), self.solver, self.tolerance, None, (trace,), None, self.problem,
        )  # fmt: skip


def forces_by_baraff(problem: ContactProblem, solver: Baraff, tolerance: float) -> Solved | None:
    """The forces that `Baraff` finds, certified; None if they are not."""
    n = problem.n
    slip = np.full((n, 2), np.nan) if problem.slip is None else problem.slip
    frictionless = problem.law.kind == "frictionless" or not problem.friction.any()
    limit = pivot_limit(n) if solver.max_steps is None else solver.max_steps
    options = (1 if frictionless else 3, solver.realign, solver.tries, limit)
    answer, (floats, ints) = room(problem, driving_sizes)
    known, law = problem.slip is not None, problem.law.numbers
    status, judged = run_baraff(problem.posed, slip, known, law, options, floats, ints, answer, problem.zero)
    return certified(problem, solver, tolerance, status, answer, judged)


def impulses_by_newton(problem: ContactProblem, solver: ConeNewton, tolerance: float) -> Solved | None:
    """The impulses that `ConeNewton` finds, island by island, certified; None if they are not."""
    answer, (floats, ints) = room(problem, newton_sizes_of)
    options = (solver.max_cycles, solver.max_steps, float(solver.max_work), solver.tolerance)
    status, judged = run_newton(
        problem.posed, problem.law.numbers, UNKNOWN, options, floats, ints, answer, problem.zero
    )
    return certified(problem, solver, tolerance, status, answer, judged)


def newton_sizes_of(n: int, m: int, width: int) -> tuple[int, int]:
    return newton_sizes(n, 3, m, width)


def room(problem: ContactProblem, inner: Any) -> tuple[Answer, Any]:
    """Arrays for an answer, and a workspace; inner: sizes that the solver needs."""
    n, m, j, mass = problem.n, problem.m, len(problem.joints), problem.posed.mass
    width = m if j else problem.rows.shape[2]  # with joints, rows extend over all velocities
    floats, ints = answer_sizes(n, m, j)
    answer = answer_views(n, m, j, np.empty(floats), np.empty(ints, np.int64))
    (floats, ints), (more, places) = work_sizes(n, 3, m, j, width, mass.size), inner(n, m, width)
    return answer, workspace(floats + more, ints + places)


def certified(
    problem: ContactProblem, solver: Any, tolerance: float, status: int, answer: Answer, judged: tuple[Any, ...]
) -> Solved | None:
    if status != SOLVED or not judged[0] <= tolerance:
        return None
    return Solved(problem, solver, tolerance, answer, ContactCertificate._make(judged))


@kernel
def run_baraff(posed, slip, known, law, options, floats, ints, answer, zero):
    """Forces by Baraff's method. Return a status, and the numbers of a ContactCertificate.

    slip: (n, 2) known directions of sliding, NaN where they are not; known: whether any is
    options: 1 without friction or 3, and `realign`, `tries` and the limit of steps of `Baraff`
    """
    parts, realign, tries, limit = options
    n, work = len(posed.rows), views_for(posed, floats, ints)
    tau, rank = whiten_posed(posed, work.white, DEPENDENT, zero, False, False)
    if tau < 0.0 or mark_contradictions(posed, work.white, rank, work.wrong) > 0:
        return STALLED, NO_CERTIFICATE

    # Forces of the normal form, then in N.
    for c in range(len(answer.counts)):
        answer.counts[c] = 0
    white = work.white
    driven = Driven(white.rows, white.runs, white.bias, posed.friction, white.free, slip)
    for i in range(n):
        for c in range(3):
            work.p[i, c] = 0.0
    status = compute_forces(
        driven, parts, realign, tries, limit, work.floats, work.ints, work.p, work.ray, answer.counts
    )  # fmt: skip
    for i in range(n):
        for c in range(3):
            answer.impulse[i, c] = work.p[i, c] * (white.scale[i] * tau)
    respond(
        posed, white, tau, rank, answer.impulse, work.response, answer.velocity, answer.joint_impulse, zero
    )  # fmt: skip
    return status, judge(law, slip if known else slip[:0], posed, work, answer, zero)


@kernel
def run_newton(posed, law, slip, options, floats, ints, answer, zero):
    """Impulses by Newton's method, island by island. Return a status, and the numbers of a ContactCertificate.

    slip: none is known; options: `max_cycles`, `max_steps`, `max_work` and `tolerance` of `ConeNewton`
    """
    cycles, steps, most, aim = options
    work = views_for(posed, floats, ints)
    white = work.white
    tau, rank = whiten_posed(posed, white, DEPENDENT, zero, False, False)
    if tau < 0.0 or mark_contradictions(posed, white, rank, work.wrong) > 0:
        return STALLED, NO_CERTIFICATE

    # From no impulses at all.
    for i in range(len(work.p)):
        for c in range(3):
            work.p[i, c] = 0.0
    trim(white.rows, white.runs)
    status, count, _ = solve_parts(
        given_by(white, posed.friction, posed.friction[:0], law.apart), tau, work.p, cycles, steps, most, aim,
        work.floats, work.ints, answer.impulse, zero,
    )  # fmt: skip
    answer.counts[STEPS] = count
    respond(
        posed, white, tau, rank, answer.impulse, work.response, answer.velocity, answer.joint_impulse, zero
    )  # fmt: skip
    return status, judge(law, slip, posed, work, answer, zero)


@kernel
def views_for(posed, floats, ints):
    """The workspace of a problem."""
    n, m, j = len(posed.rows), len(posed.velocity), len(posed.joints)
    width = m if j > 0 else posed.rows.shape[2]
    return work_views(n, 3, m, j, width, len(posed.mass), floats, ints)


@kernel
def judge(law, slip, posed, work, answer, zero):
    """The numbers of the certificate; velocities and modes of the contacts are filled."""
    return judge_problem(
        law, posed.friction, slip, posed, work.white, work.judging, answer.velocity, answer.impulse,
        answer.joint_impulse, answer.contact_velocity, answer.mode, zero,
    )  # fmt: skip

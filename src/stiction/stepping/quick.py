"""A whole step between two calls of MuJoCo in one compiled call, for what most steps are.

Contacts under Coulomb's law on the cone, no bilateral rows, nothing that hits with restitution: constraints are read,
matched with the last step's, posed, whitened, solved by Newton's method from the last impulses, judged, and written
back, by the very kernels that `gather`, `match`, `pose`, `solve` and `write_back` call one by one. What is not
certified here is not written, and the step is made that other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.extending import intrinsic, register_jitable

from stiction.compiled import kernel, workspace
from stiction.contacts.gather import (
    CONTACTS,
    ENTRIES,
    FLOATS,
    INTS,
    JOINTS,
    VELOCITIES,
    WIDTH,
    Gathered,
    fill,
    float_ends,
    int_ends,
    measure,
)
from stiction.contacts.identity import match_contacts
from stiction.contacts.write_back import write
from stiction.problems.laws import Coulomb
from stiction.problems.normal_form import move, whiten_free
from stiction.solutions.contact import UNKNOWN, ContactCertificate, ContactSolution
from stiction.solutions.contact_laws import CONE, judge_problem
from stiction.solutions.status import Status
from stiction.solvers.cone_newton.cone_newton import ConeNewton, cone_newton, sizes
from stiction.stepping.engine import carry, pose, set_rates

if TYPE_CHECKING:
    from stiction.stepping.engine import Engine

CYCLES = 4  # of Newton's method; more belong to the other way
DONE, ANOTHER_WAY, MORE_ROOM = range(3)
NOTHING = np.zeros(0)
NO_JOINTS, NO_RATES = np.zeros((0, 0)), np.zeros(0)
for each in (NO_JOINTS, NO_RATES):
    each.flags.writeable = False


class Quick:
    """What a step made in one call has found; the solution is put together when it is asked for."""

    __slots__ = ("aim", "answer", "certificate", "dt", "found", "recovery", "steps", "tolerance")

    def __init__(
        self, found: Gathered, answer: Any, certificate: ContactCertificate, steps: int, dt: float, recovery: float,
        tolerance: float, aim: float,
    ) -> None:  # fmt: skip
        self.found, self.answer, self.certificate, self.steps = found, answer, certificate, steps
        self.dt, self.recovery, self.tolerance, self.aim = dt, recovery, tolerance, aim

    def solution(self) -> ContactSolution:
        n, m = self.found.n, int(self.found.counts[VELOCITIES])
        impulse, velocity, u, mode = self.answer
        problem = pose(self.found, Coulomb(), self.dt, self.recovery)
        trace = (f"ConeNewton: solved, residual {self.certificate.residual:.1e}",)
        return ContactSolution(
            Status.SOLVED, velocity[:m], impulse[:n], np.zeros(0), mode[:n], u[:n], self.certificate,
            self.steps, ConeNewton(tolerance=self.aim), self.tolerance, None, trace, None, problem,
        )  # fmt: skip


def quick_step(
    engine: Engine, dt: float, recovery: float, tolerance: float, aim: float, warm: bool
) -> tuple[Gathered, Quick] | None:
    """Pose, solve, judge and write back the step that MuJoCo has prepared; None if it must be made another way."""
    memory, old = engine.memory, engine.gathered
    if old is None or not warm:
        old = EMPTY
    n, m = engine.room
    counts = np.empty(10, np.int64)
    while True:
        impulse, u, mode, velocity = np.empty((n, 3)), np.empty((n, 3)), np.empty(n, np.int64), np.empty(m)
        numbers, places = np.empty(engine.sizes[0]), np.empty(engine.sizes[1], np.int64)
        work = workspace(*engine.scratch_room)
        status, steps, certificate = one_call(
            memory.model, memory.data, memory.where, old.counts, old.floats, old.ints, engine.impulse,
            counts, numbers, places, work.floats, work.ints, dt, recovery, tolerance, aim,
            NO_JOINTS, NO_RATES, UNKNOWN, NOTHING, impulse, velocity, u, mode,
        )  # fmt: skip
        if status != MORE_ROOM:
            break
        n, m = engine.make_room(counts, room(
            int(counts[CONTACTS]), int(counts[VELOCITIES]), int(counts[WIDTH]), int(counts[ENTRIES]), old.n
        ))  # fmt: skip
    if status != DONE:
        return None
    found = Gathered(counts, numbers, places)
    judgement = ContactCertificate(*certificate)
    quick = Quick(found, (impulse, velocity, u, mode), judgement, steps, dt, recovery, tolerance, aim)
    return found, quick


EMPTY = Gathered(np.zeros(10, np.int64), np.zeros(0), np.zeros(1, np.int64))


@register_jitable  # type: ignore[untyped-decorator]
def room(n: int, m: int, width: int, entries: int, before: int) -> tuple[int, int]:
    """Scratch of `one_call`: that of the solver, and what the normal form and the matching need."""
    floats, ints = sizes(n, m, width)
    return floats + entries + 3 * m + (3 * width + 8) * n, ints + m + n + before


@intrinsic  # type: ignore[untyped-decorator]
def fixed(typing: Any, array: Any) -> Any:
    """The same array as read-only, so that kernels are compiled once for both."""
    return array.copy(readonly=True)(array), lambda context, builder, signature, arguments: arguments[0]


@kernel
def one_call(
    model, data, where, old_counts, old_numbers, old_places, old_impulse, counts, numbers, places, floats, ints,
    dt, recovery, tolerance, aim, no_joints, no_rates, unknown, nothing, impulse, velocity, u, mode,
):  # fmt: skip
    """Returns (status, Newton steps, the numbers of a ContactCertificate)."""
    none = (np.nan, -1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    if measure(model, data, where, counts) != 0 or counts[JOINTS] > 0:
        return ANOTHER_WAY, 0, none
    n, m, width = counts[CONTACTS], counts[VELOCITIES], counts[WIDTH]
    before = old_counts[CONTACTS]
    if len(numbers) < counts[FLOATS] or len(places) < counts[INTS] or len(impulse) < n or len(velocity) < m:
        return MORE_ROOM, 0, none
    more_floats, more_ints = room(n, m, width, counts[ENTRIES], before)
    if len(floats) < more_floats or len(ints) < more_ints:
        return MORE_ROOM, 0, none
    fill(model, data, where, counts, numbers, places)
    f, g = float_ends(counts), int_ends(counts)
    rows, segments = numbers[f[2] : f[3]].reshape((n, 3, width)), places[g[1] : g[2]].reshape((n, 4))

    end = counts[ENTRIES]
    factor, free, x = floats[:end], floats[end : end + m], floats[end + m : end + 2 * m]
    unbalanced = floats[end + 2 * m : end + 3 * m]
    end += 3 * m
    white = floats[end : end + 3 * width * n].reshape((n, 3, width))
    end += 3 * width * n
    bias, start = floats[end : end + 3 * n].reshape((n, 3)), floats[end + 3 * n : end + 6 * n].reshape((n, 3))
    scale, rate = floats[end + 6 * n : end + 7 * n], floats[end + 7 * n : end + 8 * n]
    end += 8 * n
    place, previous, taken = ints[:m], ints[m : m + n], ints[m + n : m + n + before]

    for i in range(before):
        taken[i] = 0
    match_contacts(model, old_counts, old_numbers, old_places, counts, numbers, places, taken, previous)
    for i in range(n):
        for c in range(3):
            start[i, c] = 0.0
    if before > 0:
        carry(previous, old_impulse, start)
    set_rates(numbers[f[4] : f[5]], rows, segments, dt, recovery, 0.0, nothing, numbers[f[1] : f[2]], rate)

    mass, trees, v_free = fixed(numbers[: f[1]]), fixed(places[: g[1]]), fixed(numbers[f[1] : f[2]])
    friction, fixed_rows, fixed_segments = fixed(numbers[f[3] : f[4]]), fixed(rows), fixed(segments)
    tau = whiten_free(
        mass, trees, v_free, fixed_rows, fixed_segments, fixed(rate), factor, place, white, free, bias, scale
    )
    if tau < 0.0:
        return ANOTHER_WAY, 0, none
    used = m + n + before
    _, steps, _ = cone_newton(
        white, fixed_segments, free, bias, friction, scale, tau, start, CYCLES, 80, aim,
        floats[end:], ints[used:], impulse[:n],
    )  # fmt: skip
    move(white, fixed_segments, free, tau, scale, impulse[:n], factor, trees, x, velocity[:m])
    found = judge_problem(
        CONE, 0, 0.0, False, 1.0, friction, friction, unknown, scale,
        mass, trees, factor, fixed_rows, fixed_segments, fixed(rate), v_free, no_joints, no_rates,
        velocity[:m], impulse[:n], nothing, unbalanced, u[:n], mode[:n],
    )  # fmt: skip
    if not found[0] <= tolerance:
        return ANOTHER_WAY, steps, found
    write(model, data, where, counts, numbers, places, velocity[:m], impulse[:n], nothing)
    return DONE, steps, found

"""Islands of a problem in normal form, each solved by itself: contacts that share no velocity, not even indirectly.

With the mass one, two contacts act on each other only through velocities that both have rows at. So contacts fall into
islands by a union of the runs of velocities that they touch. A Newton step is shortened by the worst contact of its
problem, and a problem is as hard as its hardest part: apart from each other islands need fewer steps, smaller systems,
and none where the impulses of the last step are the answer.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel, shared, without_lock
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.vectors import at, put
from stiction.problems.islands import flatten, unite
from stiction.solvers.contact.cone_newton.cone_newton import Given, cone_newton
from stiction.solvers.contact.cone_newton.cone_newton import sizes as solver_sizes
from stiction.solvers.contract import MAX_ITERATIONS, SOLVED


class Islands(NamedTuple):
    """How the n contacts and m velocities of a problem fall apart; an island is called by its first velocity."""

    first: Array[Ints, "m"]  # of each velocity: the first of its island
    after: Array[Ints, "m"]  # of each velocity: the next of its island, or -1
    last: Array[Ints, "m"]  # the last contact of the island of this name, or -1
    before: Array[Ints, "n"]  # of each contact: the one before of the same island, or -1


class Part(NamedTuple):
    """One island of a problem of n contacts and m velocities, which it may all be, and where they were."""

    rows: Array[Floats, "n", "d", "width"]
    free: Array[Floats, "m"]
    bias: Array[Floats, "n", "d"]
    friction: Array[Floats, "n"]
    scale: Array[Floats, "n"]
    pace: Array[Floats, "n"]
    lift: Array[Floats, "n"]
    start: Array[Floats, "n", "d"]
    p: Array[Floats, "n", "d"]
    segments: Array[Ints, "n", 4]
    contacts: Array[Ints, "n"]  # numbers in the whole
    place: Array[Ints, "m"]  # of the whole: where a velocity of this island has gone


class Bench(NamedTuple):
    """What one thread works on."""

    part: Part
    floats: Array[Floats, ...]  # of the solver
    ints: Array[Ints, ...]


class Work(NamedTuple):
    """The workspace."""

    islands: Islands
    bench: Bench


LENGTHS = "n", "d", "m", "width"
layout(Part, *LENGTHS)
islands_sizes, islands_views = layout(Islands, "n", "m")
own_sizes, bench_views = layout(Bench, *LENGTHS)
_, views = layout(Work, *LENGTHS)


@shared
def bench_sizes(n: int, d: int, m: int, width: int) -> tuple[int, int]:
    """Floats and ints of a bench."""
    own, inner = own_sizes(n, d, m, width), solver_sizes(n, d, m, width)
    return own[0] + inner[0], own[1] + inner[1]


@shared
def sizes(n: int, d: int, m: int, width: int) -> tuple[int, int]:
    """Floats and ints of the workspace."""
    own, inner = islands_sizes(n, m), bench_sizes(n, d, m, width)
    return own[0] + inner[0], own[1] + inner[1]


@kernel
def solve_parts(given, tau, start, max_cycles, max_steps, most, tolerance, floats, ints, p, zero):
    """As `cone_newton`, island by island; Newton steps are summed."""
    n, m = len(p), len(given.free)
    work = views(n, len(zero), m, given.rows.shape[2], floats, ints)
    islands, bench = work.islands, work.bench
    if n == 0 or chain(given.segments, islands) <= 1:
        return cone_newton(
            given, tau, start, max_cycles, max_steps, most, tolerance, bench.floats, bench.ints, p, zero
        )  # fmt: skip

    # Contacts that touch nothing that moves carry no impulse.
    for i in range(n):
        put(p, i, zero)

    # Each island where it begins, in the order of velocities.
    status, steps, violation = SOLVED, 0, 0.0
    for first in range(m):
        if islands.last[first] >= 0:
            answer, count, worst = solve_part(
                given, tau, start, (max_cycles, max_steps, most, tolerance), islands, first, bench, p, zero
            )
            steps += count
            status = MAX_ITERATIONS if answer != SOLVED else status
            if not worst <= violation:
                violation = worst
    return status, steps, violation


@kernel
def solve_part(given, tau, start, limits, islands, first, bench, p, zero):
    """Solve the island of this name; returns as `cone_newton`. limits: cycles, steps of each, of all, tolerance."""
    part, warm, (max_cycles, max_steps, most, tolerance) = bench.part, len(start) == len(p), limits
    lifting = len(given.lift) > 0
    k, size = cut_out(given, start, warm, islands, first, part, zero)
    some = Given(
        part.rows[:k], part.segments[:k], part.free[:size], part.bias[:k], part.friction[:k], part.scale[:k],
        part.pace[:k], part.lift[: k if lifting else 0], given.apart, given.brief,
    )  # fmt: skip
    found = cone_newton(
        some, tau, part.start[: k if warm else 0], max_cycles, max_steps, most, tolerance, bench.floats, bench.ints,
        part.p[:k], zero,
    )  # fmt: skip
    for i in range(k):
        put(p, part.contacts[i], at(part.p, i, zero))
        if lifting:
            given.lift[part.contacts[i]] = part.lift[i]
    return found


@without_lock
def solve_share(given, tau, start, limits, islands, share, floats, ints, p, zero):
    """Solve the islands that `share` names, on a bench of its own; returns their Newton steps.

    Threads may do so at the same time for different islands: each writes to the impulses of its own contacts alone.
    """
    bench, steps = bench_views(len(p), len(zero), len(given.free), given.rows.shape[2], floats, ints), 0
    for k in range(len(share)):
        _, count, _ = solve_part(given, tau, start, limits, islands, share[k], bench, p, zero)
        steps += count
    return steps


@kernel
def chain(segments, islands):
    """Find the islands, and chain the velocities and contacts of each; returns how many have contacts."""
    # Contacts join the velocities of a run: `after` counts the runs that go on from one velocity to the next.
    first, after, last, before = islands
    for j in range(len(first)):
        after[j] = 0
    for i in range(len(segments)):
        for s in range(0, 4, 2):
            if segments[i, s + 1] > 1:
                after[segments[i, s]] += 1
                after[segments[i, s] + segments[i, s + 1] - 1] -= 1
    going_on = 0
    for j in range(len(first)):
        first[j] = first[j - 1] if going_on > 0 else j
        going_on += after[j]

    # And both of their runs.
    for i in range(len(segments)):
        if segments[i, 1] > 0 and segments[i, 3] > 0:
            unite(first, segments[i, 0], segments[i, 2])
    flatten(first)

    # The velocities of each, from the first on; meanwhile `last` has the latest.
    for j in range(len(first)):
        after[j] = -1
        if first[j] != j:
            after[last[first[j]]] = j
        last[first[j]] = j

    # The contacts of each, from the last on.
    count = 0
    for j in range(len(last)):
        last[j] = -1
    for i in range(len(segments)):
        before[i] = -1
        if segments[i, 1] + segments[i, 3] > 0:
            name = first[segments[i, 0] if segments[i, 1] > 0 else segments[i, 2]]
            count += 1 if last[name] < 0 else 0
            before[i], last[name] = last[name], i
    return count


@kernel
def survey_islands(segments, islands, names, loads):
    """Find the islands that have contacts: their names, and how many contacts each has; returns how many there are."""
    chain(segments, islands)
    count = 0
    for name in range(len(islands.last)):
        if islands.last[name] >= 0:
            names[count], loads[count], i = name, 0, islands.last[name]
            while i >= 0:
                loads[count], i = loads[count] + 1, islands.before[i]
            count += 1
    return count


@kernel
def cut_out(given, start, warm, islands, first, part, zero):
    """Copy the island of this name; returns how many contacts and velocities it has."""
    # Its velocities keep their order, so that runs stay runs.
    size, j = 0, first
    while j >= 0:
        part.place[j], part.free[size] = size, given.free[j]
        size, j = size + 1, islands.after[j]

    # Its contacts, in their order: chained from the last to the first.
    k, i = 0, islands.last[first]
    while i >= 0:
        k, i = k + 1, islands.before[i]
    to, i = k, islands.last[first]
    while i >= 0:
        to -= 1
        part.contacts[to] = i
        copy_contact(given, i, part, to, zero)
        put(part.start, to, at(start, i, zero) if warm else zero)
        i = islands.before[i]
    return k, size


@kernel
def copy_contact(given, i, part, to, zero):
    """Copy contact i of the whole to place `to` of the island."""
    put(part.bias, to, at(given.bias, i, zero))
    part.friction[to], part.scale[to], part.pace[to] = given.friction[i], given.scale[i], given.pace[i]
    if len(given.lift) > 0:
        part.lift[to] = given.lift[i]
    for a in range(given.rows.shape[1]):
        for j in range(given.rows.shape[2]):
            part.rows[to, a, j] = given.rows[i, a, j]
    for s in range(0, 4, 2):
        length = given.segments[i, s + 1]
        part.segments[to, s], part.segments[to, s + 1] = part.place[given.segments[i, s]] if length > 0 else 0, length

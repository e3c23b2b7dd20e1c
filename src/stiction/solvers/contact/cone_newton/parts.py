"""Islands of a problem in normal form, each solved by itself: contacts that share no velocity, not even indirectly.

With the mass one, two contacts act on each other only through velocities that both have rows at. So contacts fall into
islands by a union of the runs of velocities that they touch. A Newton step is shortened by the worst contact of its
problem, and a problem is as hard as its hardest part: apart from each other islands need fewer steps, smaller systems,
and none where the impulses of the last step are the answer.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel, shared
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.vectors import at, put
from stiction.problems.islands import flatten, unite
from stiction.solvers.contact.cone_newton.cone_newton import Given, cone_newton
from stiction.solvers.contact.cone_newton.cone_newton import sizes as solver_sizes
from stiction.solvers.contract import MAX_ITERATIONS, SOLVED


class Part(NamedTuple):
    """One island of a problem of n contacts and m velocities, which it may all be, and where they were."""

    rows: Array[Floats, "n", "d", "width"]
    free: Array[Floats, "m"]
    bias: Array[Floats, "n", "d"]
    friction: Array[Floats, "n"]
    scale: Array[Floats, "n"]
    pace: Array[Floats, "n"]
    start: Array[Floats, "n", "d"]
    p: Array[Floats, "n", "d"]
    segments: Array[Ints, "n", 4]
    contacts: Array[Ints, "n"]  # numbers in the whole
    island: Array[Ints, "m"]  # of the whole: the first velocity of each one's island
    place: Array[Ints, "m"]  # of the whole: where a velocity of this island has gone
    last: Array[Ints, "m"]  # of the whole: the last contact of the island that begins with this velocity, or -1
    before: Array[Ints, "n"]  # of the whole: the contact before of the same island, or -1


class Work(NamedTuple):
    """The workspace."""

    part: Part
    floats: Array[Floats, ...]  # of the solver
    ints: Array[Ints, ...]


layout(Part, "n", "d", "m", "width")
own_sizes, views = layout(Work, "n", "d", "m", "width")


@shared
def sizes(n: int, d: int, m: int, width: int) -> tuple[int, int]:
    """Floats and ints of the workspace."""
    own, inner = own_sizes(n, d, m, width), solver_sizes(n, d, m, width)
    return own[0] + inner[0], own[1] + inner[1]


@kernel
def solve_parts(given, tau, start, max_cycles, max_steps, tolerance, floats, ints, p, zero):
    """As `cone_newton`, island by island; Newton steps are summed."""
    n, m, warm = len(p), len(given.free), len(start) == len(p)
    work = views(n, len(zero), m, given.rows.shape[2], floats, ints)
    part = work.part
    if n == 0 or chain(given.segments, part.island, part.last, part.before) <= 1:
        return cone_newton(
            given, tau, start, max_cycles, max_steps, tolerance, work.floats, work.ints, p, zero
        )  # fmt: skip

    # Contacts that touch nothing that moves carry no impulse.
    for i in range(n):
        put(p, i, zero)

    # Each island where it begins, in the order of velocities.
    status, steps, violation = SOLVED, 0, 0.0
    for first in range(m):
        if part.last[first] < 0:
            continue
        k, size = cut_out(given, start, warm, first, part, zero)
        some = Given(
            part.rows[:k], part.segments[:k], part.free[:size], part.bias[:k], part.friction[:k], part.scale[:k],
            part.pace[:k], given.apart, given.brief,
        )  # fmt: skip
        answer, count, worst = cone_newton(
            some, tau, part.start[: k if warm else 0], max_cycles, max_steps, tolerance, work.floats, work.ints,
            part.p[:k], zero,
        )  # fmt: skip
        for i in range(k):
            put(p, part.contacts[i], at(part.p, i, zero))
        steps += count
        status = MAX_ITERATIONS if answer != SOLVED else status
        if not worst <= violation:
            violation = worst
    return status, steps, violation


@kernel
def chain(segments, island, last, before):
    """Find the islands, and chain the contacts of each from the last to the first; returns how many there are."""
    # At first every velocity is an island of its own; a contact joins all that it touches.
    for j in range(len(island)):
        island[j], last[j] = j, -1
    for i in range(len(segments)):
        start, length, other, more = segments[i, 0], segments[i, 1], segments[i, 2], segments[i, 3]
        for j in range(start + 1, start + length):
            unite(island, start, j)
        for j in range(other + 1, other + more):
            unite(island, other, j)
        if length > 0 and more > 0:
            unite(island, start, other)
    flatten(island)

    # The contacts of each.
    count = 0
    for i in range(len(segments)):
        before[i] = -1
        if segments[i, 1] + segments[i, 3] > 0:
            first = island[segments[i, 0] if segments[i, 1] > 0 else segments[i, 2]]
            count += 1 if last[first] < 0 else 0
            before[i], last[first] = last[first], i
    return count


@kernel
def cut_out(given, start, warm, first, part, zero):
    """Copy the island that begins with velocity `first`; returns how many contacts and velocities it has."""
    # Its velocities keep their order, so that runs stay runs.
    size = 0
    for j in range(first, len(part.island)):
        if part.island[j] == first:
            part.place[j] = size
            part.free[size] = given.free[j]
            size += 1

    # Its contacts, in their order: chained from the last to the first.
    k, i = 0, part.last[first]
    while i >= 0:
        k, i = k + 1, part.before[i]
    to, i = k, part.last[first]
    while i >= 0:
        to -= 1
        part.contacts[to] = i
        copy_contact(given, i, part, to, zero)
        put(part.start, to, at(start, i, zero) if warm else zero)
        i = part.before[i]
    return k, size


@kernel
def copy_contact(given, i, part, to, zero):
    """Copy contact i of the whole to place `to` of the island."""
    put(part.bias, to, at(given.bias, i, zero))
    part.friction[to], part.scale[to], part.pace[to] = given.friction[i], given.scale[i], given.pace[i]
    for a in range(given.rows.shape[1]):
        for j in range(given.rows.shape[2]):
            part.rows[to, a, j] = given.rows[i, a, j]
    for s in range(0, 4, 2):
        length = given.segments[i, s + 1]
        part.segments[to, s], part.segments[to, s + 1] = part.place[given.segments[i, s]] if length > 0 else 0, length

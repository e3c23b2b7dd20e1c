"""How contacts share a load: other impulses of the same motion, further within their bounds."""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.derivatives.factors import find_loops, without_exchange, write_exchanges, write_shared
from stiction.derivatives.modes import HELD, OPEN, STICK, length_of, part_of, parts, set_margins
from stiction.derivatives.reduced import ALIKE, NEAR, count_near, room_of, work_of
from stiction.derivatives.tolerances import BETWEEN, PARTS, PROJECTIONS
from stiction.problems.laws import VISCOUS


@kernel
def spread_load(given, N, more, memory):
    """Move impulses further inside their bounds without changing the motion; returns how many kinks are left.

    By alternating projections onto the impulses of the same motion, p₀ + null space, and onto cones that are smaller by
    a part of the mean load; more: times as many of them
    """
    work, room = work_of(given, memory), room_of(given, memory)
    n, d = given.impulse.shape
    modes, bases, groups, scale = work.modes, work.bases, work.groups, given.scale
    side = work.zero if work.flags[ALIKE] != 0 else work.may
    a, smallest, small, extra = room.a[0], room.a[1], room.a[2], room.a[3]

    # The smallest impulses.
    for i in range(n):
        for k in range(bases.count[i]):
            total = 0.0
            for c in range(d):
                total += bases.may[i, c, k] * given.impulse[i, c] / scale[i]
            smallest[groups.row[i] + k] = total
    without_exchange(side, groups, N, smallest, small, extra)
    for r in range(groups.count[1]):
        a[r] = smallest[r]
    set_impulses(given, work, a)

    # The mean load of contacts that press.
    load, pressing = 0.0, 0
    for i in range(n):
        if modes.mode[i] != OPEN and modes.mode[i] != HELD:
            load += work.impulse[i, 0] / scale[i]
            pressing += 1
    load = load / pressing if pressing > 0 else 0.0

    # Back and forth; margins are looked at now and then.
    for part in PARTS:
        for count in range(more * PROJECTIONS):
            if count % BETWEEN == 0:
                set_margins(given.law, given.shape, modes, work.impulse, scale, given.rows, work.margin)
                work.flags[NEAR] = count_near(work.margin, given.small)
                if work.flags[NEAR] == 0:
                    return 0

            # Each contact into its cone ...
            for i in range(n):
                if bases.count[i] > 0:
                    into_cone(given.law, modes, i, given.shape.reach, part * load, scale[i], work.impulse[i])
                    for k in range(bases.count[i]):
                        total = 0.0
                        for c in range(d):
                            total += bases.may[i, c, k] * work.impulse[i, c] / scale[i]
                        a[groups.row[i] + k] = total

            # ... then back to the same motion, by what the change moves.
            for r in range(groups.count[1]):
                room.a[4, r] = a[r]
            without_exchange(side, groups, N, room.a[4], small, extra)
            for r in range(groups.count[1]):
                a[r] += smallest[r] - room.a[4, r]
            set_impulses(given, work, a)
    set_margins(given.law, given.shape, modes, work.impulse, scale, given.rows, work.margin)
    work.flags[NEAR] = count_near(work.margin, given.small)
    return work.flags[NEAR]


@kernel
def set_impulses(given, work, a):
    """Impulses, in N s, of the rows that push; viscous friction stays as it is."""
    n, d, bases = len(work.impulse), work.impulse.shape[1], work.bases
    viscous = given.law.kind == VISCOUS
    for i in range(n):
        for c in range(d):
            total = 0.0
            for k in range(bases.count[i]):
                total += bases.may[i, c, k] * a[work.groups.row[i] + k]
            work.impulse[i, c] = total * given.scale[i] + (given.impulse[i, c] if viscous and c > 0 else 0.0)


@kernel
def into_cone(law, modes, i, reach, shift, scale, p):
    """Project onto a contact's cone, moved inwards; for a polygon, onto the largest round cone inside it.

    Where sliding, spin and rolling are bounded apart, each is projected by itself.
    """
    # Pressing at least; friction of a contact that slides stays where it is.
    d = len(p)
    shift = shift * scale
    p[0] = max(p[0], shift)
    if modes.mu[i] <= 0.0 or (modes.mode[i] != STICK and parts(law.apart, d) == 1):
        return
    mu = reach * modes.mu[i]
    for k in range(parts(law.apart, d)):
        first, end = part_of(k, law.apart, d)
        if modes.mode[i] != STICK and length_of(modes.g[i], first - 1, end - 1) > 0.0:
            continue

        # The nearest point of the round cone whose tip is moved inwards.
        inwards = shift * max(1.0, 1.0 / mu)
        normal, size = p[0] - inwards, length_of(p, first, end)
        if size > mu * normal:
            along = max((normal + mu * size) / (1.0 + mu * mu), 0.0)
            p[0] = along + inwards
            for c in range(first, end):
                p[c] *= mu * along / size if size > 0.0 else 0.0


@kernel
def write_loops(given, of_may, N, memory):
    """Fill N, of B or of F."""
    work, room = work_of(given, memory), room_of(given, memory)
    find_loops(work.may if of_may else work.zero, work.groups, given.runs, N, room.x[0])


@kernel
def write_sharing(given, of_may, N, shared, memory):
    """(n,) the largest part of a contact's unit impulses, or rates, that can be exchanged for others."""
    work, room = work_of(given, memory), room_of(given, memory)
    of_rows = room.a[0]
    write_shared(work.may if of_may else work.zero, work.groups, N, of_rows)
    for i in range(len(shared)):
        shared[i] = 0.0
        for k in range(work.bases.count[i]):
            shared[i] = max(shared[i], of_rows[work.groups.row[i] + k])


@kernel
def exchanges_of(given, of_may, N, out, spread, memory):
    """(k, n, d) impulses that move nothing, each of unit size in the normal form; out: (k, rows) scratch."""
    work = work_of(given, memory)
    groups, bases, d = work.groups, work.bases, spread.shape[2]
    count = write_exchanges(work.may if of_may else work.zero, groups, N, out)
    for number in range(count):
        for i in range(spread.shape[1]):
            for c in range(d):
                total = 0.0
                for k in range(bases.count[i]):
                    total += bases.may[i, c, k] * out[number, groups.row[i] + k]
                spread[number, i, c] = total * given.scale[i]

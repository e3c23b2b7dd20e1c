"""Index sets of Baraff's method, and the inverse matrix of their equations.

A contact is ignored, open (p_n = 0) or closed (u_n = 0); the friction of a closed one is

    loose      p_t constant: not yet considered, or given up for the time being
    half       u_t = 0 along a direction e, p_t constant across it
    stuck      u_t = 0                                        [Baraff1994, C_F]
    sliding    p_t = mu p_n d with the recorded direction d   [Baraff1994, NC_F]
    known      the same throughout the solve: dynamic friction, d against the slip

Members are unknown impulses with one equation each: for a closed contact its normal n (with column n + mu d·t if p_t is
tied to p_n), and where it is held also t along e and across e. The matrix of equations times columns is not symmetric
once some p_t is tied. Rows that depend on those of the members are left out, since redundant contacts are common. They
join when they begin to move.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import Any, NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot, invert, times, transposed_times
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import add_row, row_dot
from stiction.solvers.contact.baraff.tolerances import DEPENDENT, NEGLIGIBLE, NOISE, REFINE, STALE
from stiction.solvers.lcp.basis_inverse import border, strike

IGNORED, OPEN, CLOSED = range(3)
LOOSE, HALF, STUCK, SLIDING, KNOWN = range(5)


class Given(NamedTuple):
    """A problem in normal form, as the kernel reads it."""

    rows: Any  # (n, 3, w)
    segments: Any  # (n, 4)
    bias: Any  # (n, 3)
    mu: Any  # (n,)
    free: Any  # (m,)
    slip: Any  # (n, 2) direction of sliding, NaN where it is not known


class Sets(NamedTuple):
    """The state of the method; the normal form's units. k: largest number of members, w: width of rows."""

    parts: Any  # 1 if no contact has friction, else 3
    rows: Any  # (n, 3, w)
    segments: Any  # (n, 4)
    bias: Any  # (n, 3)
    mu: Any  # (n,)
    free: Any  # (m,)
    p: Array[Floats, "n", 3]
    u: Array[Floats, "n", 3]
    p_rate: Array[Floats, "n", 3]
    u_rate: Array[Floats, "n", 3]
    pushed: Array[Floats, "n", 3]  # the driven part of p_rate
    direction: Array[Floats, "n", 2]  # d where it slides, e where it is held
    level: Array[Floats, 2]  # rounding relative to the largest impulse; the largest impulse, at least 1
    x: Array[Floats, "m"]
    x_rate: Array[Floats, "m"]
    wide: Array[Floats, "m"]
    inverse: Array[Floats, "k", "k"]
    columns: Array[Floats, "k", "w"]
    equations: Array[Floats, "k", "w"]
    rate: Array[Floats, "k"]  # of the members
    entering: Array[Floats, "k"]
    leaving: Array[Floats, "k"]
    gathered: Array[Floats, "k"]
    normal: Array[Ints, "n"]  # IGNORED, OPEN or CLOSED
    grip: Array[Ints, "n"]  # LOOSE to KNOWN
    place: Array[Ints, "n", 3]  # slots among the members; -1: no member; -2: dependent, ignored in this drive
    changes: Array[Ints, "n"]  # changes of its sets without progress
    contact: Array[Ints, "k"]  # of the members
    part: Array[Ints, "k"]  # 0: n, 1: t along e, 2: across it
    pivots: Array[Ints, "k"]
    stale: Array[Ints, 1]  # whether the inverse must be rebuilt


class Turning(NamedTuple):
    """Newton's method for the directions of friction at sliding contacts (`turn`)."""

    jacobian: Array[Floats, "k", "k"]
    angle: Array[Floats, "k"]
    which: Array[Ints, "k"]
    pivots: Array[Ints, "k"]


class Work(NamedTuple):
    """The workspace."""

    sets: Sets
    turning: Turning


layout(Sets, "n", "m", "w", k="min(3 * n, m) + 3")
layout(Turning, "k")
sizes, views = layout(Work, "n", "m", "w", k="min(3 * n, m) + 3")


@kernel
def work_views(given, parts, floats, ints):
    """Views of the workspace: (state of the method, scratch for turning)."""
    rows, free = given.rows, given.free
    return views(
        len(rows), len(free), rows.shape[2], parts, rows, given.segments, given.bias, given.mu, free, floats, ints
    )


@kernel
def begin(t, slip, noise):
    """No impulses, all contacts ignored; p_t is tied to p_n where there is no friction or the slip is known."""
    # Friction: none, or against the known slip (not NaN), or still to be found.
    for i in range(len(t.mu)):
        t.normal[i], t.grip[i], t.changes[i] = IGNORED, LOOSE, 0
        t.direction[i, 0] = t.direction[i, 1] = 0.0
        if t.mu[i] == 0.0 or t.parts == 1:
            t.grip[i] = KNOWN
        elif slip[i, 0] == slip[i, 0]:
            t.grip[i], t.direction[i, 0], t.direction[i, 1] = KNOWN, -slip[i, 0], -slip[i, 1]
        for c in range(3):
            t.p[i, c], t.pushed[i, c], t.p_rate[i, c], t.u_rate[i, c], t.u[i, c] = 0.0, 0.0, 0.0, 0.0, 0.0
            t.place[i, c] = -1
    t.stale[0], t.level[0] = 0, noise
    velocities(t)


@kernel
def velocities(t):
    """Recompute x, u and the largest impulse from p."""
    # x = free + sum of rowsᵀ p, and the largest impulse.
    t.level[1] = 1.0
    for j in range(len(t.x)):
        t.x[j] = t.free[j]
    for i in range(len(t.mu)):
        for c in range(t.parts):
            if t.p[i, c] != 0.0:
                t.level[1] = max(t.level[1], abs(t.p[i, c]))
                add_row(t.rows[i, c], t.segments[i], t.p[i, c], t.x)

    # u = rows x + bias.
    for i in range(len(t.mu)):
        for c in range(t.parts):
            t.u[i, c] = row_dot(t.rows[i, c], t.segments[i], t.x) + t.bias[i, c]


@kernel
def tied(t, i):
    """Whether p_t follows p_n: p_t = mu p_n d."""
    return t.grip[i] == SLIDING or t.grip[i] == KNOWN


@kernel
def respond(t, k):
    """Add to x_rate the reaction of the members to it, which keeps their equations; `rate`: their impulse rates.

    Solves [Baraff1994, eq. 9] by the inverse, with iterative refinement.
    """
    for e in range(k):
        t.rate[e] = 0.0
    for attempt in range(4):
        # Residual of the members' equations; at least one solve, refined until only rounding is left.
        worst, size = 0.0, 1.0
        for e in range(k):
            t.gathered[e] = row_dot(t.equations[e], t.segments[t.contact[e]], t.x_rate)
            worst = max(worst, abs(t.gathered[e]))
            size = max(size, abs(t.rate[e]))
        if worst == 0.0 or (attempt > 0 and worst <= REFINE * size):
            break

        # Correct the rates of the members, and x_rate with them.
        times(t.inverse, t.gathered, k, t.entering)
        for v in range(k):
            t.rate[v] -= t.entering[v]
            add_row(t.columns[v], t.segments[t.contact[v]], -t.entering[v], t.x_rate)


@kernel
def direct(t, k):
    """fdirection [Baraff1994, sec. 4.3, 5.5]: all rates caused by `pushed`; returns the largest rate of an impulse."""
    # The driven impulses alone.
    for j in range(len(t.x)):
        t.x_rate[j] = 0.0
    for i in range(len(t.mu)):
        for c in range(t.parts):
            t.p_rate[i, c] = t.pushed[i, c]
            if t.pushed[i, c] != 0.0:
                add_row(t.rows[i, c], t.segments[i], t.pushed[i, c], t.x_rate)

    # The members react; their rates go to the impulses of their contacts, p_t with p_n where it is tied.
    respond(t, k)
    for v in range(k):
        i, rate = t.contact[v], t.rate[v]
        e1, e2 = t.direction[i, 0], t.direction[i, 1]
        if t.part[v] == 0:
            t.p_rate[i, 0] += rate
            if t.parts == 3 and tied(t, i):
                t.p_rate[i, 1] += t.mu[i] * rate * e1
                t.p_rate[i, 2] += t.mu[i] * rate * e2
        elif t.part[v] == 1:
            t.p_rate[i, 1] += rate * e1
            t.p_rate[i, 2] += rate * e2
        else:
            t.p_rate[i, 1] -= rate * e2
            t.p_rate[i, 2] += rate * e1

    # Rates of the contact velocities: Δa = A Δf [Baraff1994, eq. 6].
    fastest = 0.0
    for i in range(len(t.mu)):
        for c in range(t.parts):
            t.u_rate[i, c] = row_dot(t.rows[i, c], t.segments[i], t.x_rate)
            fastest = max(fastest, abs(t.p_rate[i, c]))
    return fastest


@kernel
def advance(t, step):
    """f = f + s Δf, a = a + s Δa [Baraff1994, sec. 4.3]."""
    largest = 1.0
    for j in range(len(t.x)):
        t.x[j] += step * t.x_rate[j]
    for i in range(len(t.mu)):
        for c in range(t.parts):
            t.p[i, c] += step * t.p_rate[i, c]
            t.u[i, c] += step * t.u_rate[i, c]
            largest = max(largest, abs(t.p[i, c]))
    t.level[1] = largest


@kernel
def write_member(t, slot, i, part):
    """Write the equation (velocity row) and the column (impulse row) of a member into a slot."""
    row, column, w = t.equations[slot], t.columns[slot], t.rows.shape[2]
    n, t1, t2 = t.rows[i, 0], t.rows[i, 1], t.rows[i, 2]
    e1, e2 = t.direction[i, 0], t.direction[i, 1]

    # Normal: the column includes the friction that is tied to p_n, so it differs from the equation.
    if part == 0:
        tie = t.mu[i] if t.parts == 3 and tied(t, i) else 0.0
        for j in range(w):
            row[j] = n[j]
            column[j] = n[j] + tie * (e1 * t1[j] + e2 * t2[j])
    else:
        # Tangent along e, or across it.
        if part == 2:
            e1, e2 = -e2, e1
        for j in range(w):
            row[j] = column[j] = e1 * t1[j] + e2 * t2[j]
    t.contact[slot], t.part[slot] = i, part


@kernel
def join(t, k, i, part):
    """Add a row as an equation and its impulse as a member, unless it depends on the members. Returns their number."""
    if k + 1 > len(t.inverse):
        return k
    write_member(t, k, i, part)

    # A row or column of zeros cannot be held.
    w = t.rows.shape[2]
    size = (dot(t.equations[k], t.equations[k], w) * dot(t.columns[k], t.columns[k], w)) ** 0.5
    if not size > 1e-20:
        return k

    # Pivot: the velocity of the row per unit of its own impulse while the members hold theirs. It vanishes if the row
    # depends on the members.
    for j in range(len(t.x)):
        t.x_rate[j] = t.wide[j] = 0.0
    add_row(t.columns[k], t.segments[i], 1.0, t.x_rate)
    respond(t, k)
    pivot = row_dot(t.equations[k], t.segments[i], t.x_rate)
    if not abs(pivot) > DEPENDENT * size:
        return k

    # Border the inverse: `entering` = inverse · new column, `leaving` = new row · inverse, equal without friction.
    for v in range(k):
        t.entering[v] = -t.rate[v]
    if t.parts == 1:
        border(t.inverse, k, t.entering, t.entering, pivot)
    else:
        add_row(t.equations[k], t.segments[i], 1.0, t.wide)
        for v in range(k):
            t.gathered[v] = row_dot(t.columns[v], t.segments[t.contact[v]], t.wide)
        transposed_times(t.inverse, t.gathered, k, t.leaving)
        border(t.inverse, k, t.entering, t.leaving, pivot)
    t.place[i, part] = k
    return k + 1


@kernel
def join_driven(t, k, i):
    """Add the driven normal as a member in a frictionless problem: `rate` and `u_rate` of its drive are the border."""
    pivot = t.u_rate[i, 0]
    if k + 1 > len(t.inverse) or not pivot > DEPENDENT * dot(t.rows[i, 0], t.rows[i, 0], t.rows.shape[2]):
        return k
    write_member(t, k, i, 0)
    for v in range(k):
        t.entering[v] = -t.rate[v]
    border(t.inverse, k, t.entering, t.entering, pivot)
    t.place[i, 0] = k
    return k + 1


@kernel
def drop(t, k, slot):
    """Remove a member; the last one takes its slot. Returns the number of members."""
    # Strike its row and column from the inverse; if the pivot is too small for that, have the inverse rebuilt.
    size = 0.0
    for j in range(k):
        size = max(size, abs(t.inverse[slot, j]), abs(t.inverse[j, slot]))
    if t.stale[0] == 0 and abs(t.inverse[slot, slot]) > STALE * size:
        strike(t.inverse, k, slot, slot)
    else:
        t.stale[0] = 1

    # Fill the gap with the last member.
    last = k - 1
    t.place[t.contact[slot], t.part[slot]] = -1
    if slot != last:
        t.contact[slot], t.part[slot] = t.contact[last], t.part[last]
        t.place[t.contact[slot], t.part[slot]] = slot
        for j in range(t.rows.shape[2]):
            t.equations[slot, j], t.columns[slot, j] = t.equations[last, j], t.columns[last, j]
    return last


@kernel
def renew(t, k):
    """Rebuild the inverse; leave out members that depend on the others. Returns the number of members."""
    # The matrix of equations times columns.
    t.stale[0] = 0
    for e in range(k):
        for j in range(len(t.wide)):
            t.wide[j] = 0.0
        add_row(t.equations[e], t.segments[t.contact[e]], 1.0, t.wide)
        for v in range(k):
            t.inverse[e, v] = row_dot(t.columns[v], t.segments[t.contact[v]], t.wide)

    # Invert it; entries that are huge or NaN show that some members are dependent.
    if invert(t.inverse, t.pivots, k):
        sound = True
        for e in range(k):
            for v in range(k):
                if not abs(t.inverse[e, v]) * DEPENDENT < 1.0:
                    sound = False
        if sound:
            return k

    # Then let the members join one by one; `join` refuses those that depend on earlier ones.
    size = 0
    for v in range(k):
        i, part = t.contact[v], t.part[v]
        t.place[i, part] = -1
        size = join(t, size, i, part)  # writes to slots that have been read
    return size


@kernel
def place_contact(t, k, i):
    """Replace the members of a contact by those that its index sets require. Returns the number of all members."""
    # Its old members leave.
    for part in range(t.parts - 1, -1, -1):
        if t.place[i, part] >= 0:
            k = drop(t, k, t.place[i, part])
    if t.stale[0] == 1:
        k = renew(t, k)

    # Closed: u_n = 0. Half-held: u_t = 0 along e as well. Stuck: and across e.
    if t.normal[i] == CLOSED:
        k = join(t, k, i, 0)
        if t.grip[i] == HALF or t.grip[i] == STUCK:
            k = join(t, k, i, 1)
        if t.grip[i] == STUCK:
            k = join(t, k, i, 2)
    return k


@kernel
def settle(t, k):
    """One step of iterative refinement of the members' impulses; recomputes tied friction, x and u."""
    # Steps have accumulated rounding: tie friction exactly, and recompute the velocities.
    for i in range(len(t.mu)):
        if t.parts == 3 and tied(t, i):
            t.p[i, 1] = t.mu[i] * t.p[i, 0] * t.direction[i, 0]
            t.p[i, 2] = t.mu[i] * t.p[i, 0] * t.direction[i, 1]
    velocities(t)

    # Velocities that the members should hold at zero.
    for e in range(k):
        i, e1, e2 = t.contact[e], t.direction[t.contact[e], 0], t.direction[t.contact[e], 1]
        if t.part[e] == 0:
            t.gathered[e] = t.u[i, 0]
        elif t.part[e] == 1:
            t.gathered[e] = e1 * t.u[i, 1] + e2 * t.u[i, 2]
        else:
            t.gathered[e] = e1 * t.u[i, 2] - e2 * t.u[i, 1]

    # Correct the members by the inverse, and apply this to the impulses of their contacts.
    times(t.inverse, t.gathered, k, t.entering)
    for v in range(k):
        i, change = t.contact[v], -t.entering[v]
        e1, e2 = t.direction[i, 0], t.direction[i, 1]
        # A normal impulse takes its friction along where that is tied; else friction along e, or across it.
        if t.part[v] == 0:
            t.p[i, 0] += change
            if t.parts == 3 and tied(t, i):
                t.p[i, 1] = t.mu[i] * t.p[i, 0] * e1
                t.p[i, 2] = t.mu[i] * t.p[i, 0] * e2
        elif t.part[v] == 1:
            t.p[i, 1] += change * e1
            t.p[i, 2] += change * e2
        else:
            t.p[i, 1] -= change * e2
            t.p[i, 2] += change * e1
    velocities(t)


@kernel
def rounding(t):
    """Violations below this count as rounding."""
    return min(t.level[0] * t.level[1], max(NEGLIGIBLE, NOISE * t.level[1]))

"""The ratio test: which watched quantity vanishes first along the path, and how far away it is."""

from __future__ import annotations

import numpy as np

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.solvers.contact.cell_lemke.basis import friction_bound
from stiction.solvers.contact.cell_lemke.cells import (
    BOUND,
    CORNER,
    EDGE,
    FIRST,
    FIRST_FORCE,
    FREE,
    INACTIVE,
    LAMBDA,
    LINE,
    NORMAL,
    NU,
    ROOM,
    SECOND,
    SECOND_FORCE,
    SIGMA,
    SIZE,
    SLIDING,
    SMOOTH,
    THETA,
    TURN,
    VERTEX,
    neighbour,
)
from stiction.solvers.contact.cell_lemke.precision import largest_of
from stiction.solvers.contact.cell_lemke.runs import velocity_dot
from stiction.solvers.contact.cell_lemke.tolerances import REFACTOR, SAFE, SLACK, SLOW, STANDING
from stiction.solvers.tolerances import HALF_OF_THE_DIGITS, ROUNDING

NOTHING, ARTIFICIAL = range(-1, -3, -1)  # what blocks, besides the watched quantities


@in_callers
@kernel
def blocking(contacts, cells, basis, watch):
    """The first obstacle of the path. Returns (its place in `watch`, step, whether the path is lost)."""
    fastest, largest = largest_of(basis.rate, basis.now[SIZE]), largest_of(basis.y, basis.now[SIZE])
    count = approaching(contacts, cells, basis, watch, SLOW * fastest)
    return harris(basis, watch, count, fastest, largest)


@in_callers
@kernel
def harris(basis, watch, count, fastest, largest):
    """Harris' two passes over the quantities that approach zero.

    z0 leaves if stepping to z0 = 0 violates nothing by more than the slack: a test for small z0 would stop too early
    where unknowns change fast with it, and too late where many quantities vanish together with it.
    """
    # First pass: the longest step that no quantity overshoots by more than its slack.
    rounding = ROUNDING * largest
    gap, speed = watch.gap, watch.speed
    bound, lowest = np.inf, 0.0
    for h in range(count):
        lowest = min(lowest, gap[h])
        gap[h] = max(gap[h], 0.0)
        allowed = max(SLACK / watch.weight[watch.contact[h]], rounding)
        bound = min(bound, (gap[h] + allowed) / speed[h])
    if lowest < -max(HALF_OF_THE_DIGITS, REFACTOR * largest):
        return NOTHING, 0.0, True
    if -basis.rate[0] > STANDING * fastest and basis.y[0] <= bound * -basis.rate[0]:
        return ARTIFICIAL, basis.y[0] / -basis.rate[0], False
    # Second pass: the fastest quantity that vanishes within this step, because it is the largest pivot.
    best, fast = NOTHING, 0.0
    for h in range(count):
        if speed[h] > fast and gap[h] <= bound * speed[h] * SAFE:
            best, fast = h, speed[h]
    return best, gap[best] / fast if best >= 0 else 0.0, False


@in_callers
@sums
def approaching(contacts, cells, basis, watch, slow):
    """Collect the watched quantities that fall faster than `slow`; returns how many [Lloyd2004, eq. 36]."""
    y, rate = basis.y, basis.rate
    normal_velocities(contacts, watch, basis.x, watch.normal)
    normal_velocities(contacts, watch, basis.x_rate, watch.normal_rate)
    count = 0
    for i in range(len(cells.state)):
        state, cover, column = cells.state[i], contacts.cover[i], cells.column[i]
        # ν of an open contact, or θ; where the bound has no cover, forces and room >= 0 imply θ >= 0.
        if column[NORMAL] == INACTIVE:
            nu_rate = watch.normal_rate[i] + cover[0] * rate[0]
            if nu_rate < -slow:
                nu = watch.normal[i] + contacts.bias[i, 0] + cover[0] * y[0]
                count = note(watch, count, nu, nu_rate, slow, NU, i, 0)
        elif state <= FREE or state == VERTEX or cover[BOUND] > 0.0:
            count = note(watch, count, y[column[NORMAL]], rate[column[NORMAL]], slow, THETA, i, 0)
        # The friction of the contact, if it takes part.
        if state > SMOOTH:
            if state != FREE and state != VERTEX:
                count = note_forces(contacts, cells, basis, watch, count, slow, i)
            if state != CORNER:
                count = note_sliding(contacts, cells, basis, watch, count, slow, i)
    return count


@in_callers
@sums
def normal_velocities(contacts, watch, x, out):
    """rows_n x of every contact, group by group."""
    segments, normals, groups = contacts.segments, contacts.normals, watch.groups
    g, first = 0, 0
    while first < len(out):
        # One group: contacts that touch the same velocities.
        end = groups[g + 1]
        part = out[first:end]
        for i in range(len(part)):
            part[i] = 0.0
        place = 0
        for s in range(2):
            start, length = segments[first, 2 * s], segments[first, 2 * s + 1]
            # Six velocities at a time, the contacts of the group in the inner loop, ...
            l = 0
            while l + 6 <= length:
                x0, x1, x2 = x[start + l], x[start + l + 1], x[start + l + 2]
                x3, x4, x5 = x[start + l + 3], x[start + l + 4], x[start + l + 5]
                n0, n1, n2 = normals[place + l], normals[place + l + 1], normals[place + l + 2]
                n3, n4, n5 = normals[place + l + 3], normals[place + l + 4], normals[place + l + 5]
                for i in range(first, end):
                    out[i] += x0 * n0[i] + x1 * n1[i] + x2 * n2[i] + x3 * n3[i] + x4 * n4[i] + x5 * n5[i]
                l += 6
            # ... then the others one at a time.
            while l < length:
                x0, n0 = x[start + l], normals[place + l]
                for i in range(first, end):
                    out[i] += x0 * n0[i]
                l += 1
            place += length
        first = end
        g += 1


@in_callers
@sums
def note_forces(contacts, cells, basis, watch, count, slow, i):
    """The forces of a line, corner or edge, and the room under the friction bound."""
    y, rate, column = basis.y, basis.rate, cells.column[i]
    p = column[FIRST]
    count = note(watch, count, y[p], rate[p], slow, FIRST_FORCE, i, 0)
    room = friction_bound(contacts, cells, y, i) - y[p]
    room_rate = friction_bound(contacts, cells, rate, i) - rate[p]
    # The second force of a corner takes its part of the room.
    if cells.state[i] == CORNER:
        p = column[SECOND]
        count = note(watch, count, y[p], rate[p], slow, SECOND_FORCE, i, 0)
        room, room_rate = room - y[p], room_rate - rate[p]
    return note(watch, count, room, room_rate, slow, ROOM, i, 0)


@in_callers
@sums
def note_sliding(contacts, cells, basis, watch, count, slow, i):
    """The tangential velocities that a free contact, line, vertex or edge watches."""
    state, d, cover, z0, z0_rate = cells.state[i], contacts.directions, contacts.cover[i], basis.y[0], basis.rate[0]
    u1, u1_rate = tangential_velocity(contacts, basis, i, 1)
    u2, u2_rate = tangential_velocity(contacts, basis, i, 2)
    # A free contact: all σ.
    if state == FREE:
        for j in range(len(d)):
            sigma_rate = d[j, 0] * u1_rate + d[j, 1] * u2_rate + cover[SLIDING] * z0_rate
            sigma = d[j, 0] * u1 + d[j, 1] * u2 + cover[SLIDING] * z0
            count = note(watch, count, sigma, sigma_rate, slow, SIGMA, i, j)
        return count
    # A vertex or an edge: λ.
    b = cells.direction[i]
    if state != LINE:
        lam_rate = -d[b, 0] * u1_rate - d[b, 1] * u2_rate - cover[SLIDING] * z0_rate
        lam = -d[b, 0] * u1 - d[b, 1] * u2 - cover[SLIDING] * z0
        count = note(watch, count, lam, lam_rate, slow, LAMBDA, i, 0)
    if state == EDGE:
        return count
    # A line or a vertex: σ of the neighbouring directions, less σ_b, which is zero on a line.
    for side in (1, -1):
        j = neighbour(b, side, len(d))
        if state == LINE:
            sigma_rate = d[j, 0] * u1_rate + d[j, 1] * u2_rate + cover[SLIDING] * z0_rate
            sigma = d[j, 0] * u1 + d[j, 1] * u2 + cover[SLIDING] * z0
            count = note(watch, count, sigma, sigma_rate, slow, SIGMA, i, j)
        else:
            first, second = d[j, 0] - d[b, 0], d[j, 1] - d[b, 1]
            gap, gap_rate = first * u1 + second * u2, first * u1_rate + second * u2_rate
            count = note(watch, count, gap, gap_rate, slow, TURN, i, side)
    return count


@in_callers
@sums
def tangential_velocity(contacts, basis, i, tangent):
    """A tangential velocity of contact i with its cover, and its rate."""
    row, segment, cover = contacts.rows[i, tangent], contacts.segments[i], contacts.cover[i, tangent]
    u = velocity_dot(row, segment, basis.x) + contacts.bias[i, tangent] + cover * basis.y[0]
    return u, velocity_dot(row, segment, basis.x_rate) + cover * basis.rate[0]


@in_callers
@kernel
def note(watch, count, value, rate, slow, quantity, i, which):
    """Enter a quantity in the list if it falls; returns how many are there."""
    if rate < -slow:
        watch.gap[count], watch.speed[count] = value, -rate
        watch.quantity[count], watch.contact[count], watch.which[count] = quantity, i, which
        return count + 1
    return count

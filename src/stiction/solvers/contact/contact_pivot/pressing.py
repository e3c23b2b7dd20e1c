"""The frictionless problem by its normal rows: kernels of `contact_pivot` and `no_slip`.

    0 <= z  ⊥  w = N x + b >= 0,      x = x_free + Nᵀ z

Members are the rows that press, at most as many as there are freedoms. They are kept as N_A = T Q, Q with orthonormal
rows and T a lower triangle, which is updated when one joins (Gram–Schmidt) or leaves (rotations). N Nᵀ is never
formed, nor N_A N_Aᵀ: contacts that nearly coincide would lose all their digits in it.

[Drumwright2013, Algorithm 1]; the safeguard is Keller's rule in its dual active-set form [GoldfarbIdnani1983].
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import add_row, row_dot
from stiction.solvers.contact.contact_pivot.tolerances import DEPENDENT, DOUBTFUL, NOISE, TRUSTED
from stiction.solvers.lcp.principal import MAX_ITERATIONS, RAY, SINGULAR, SOLVED


class Pressing(NamedTuple):
    """The state of the method; the normal form's units."""

    normals: Any  # (n, k)
    segments: Any  # (n, 4)
    bias: Any  # (n,)
    free: Any  # (m,)
    x: Any  # (m,)
    z: Any  # (n,)
    w: Array[Floats, "n"]
    size: Array[Floats, "n"]  # squared lengths of the rows
    rest: Array[Floats, "m"]  # what the members leave of a row
    basis: Array[Floats, "most", "m"]  # Q
    triangle: Array[Floats, "most", "most"]  # T
    along: Array[Floats, "most"]  # a row's components along Q
    entering: Array[Floats, "most"]  # what it takes of the members
    members: Array[Ints, "most"]
    place: Array[Ints, "n"]  # among the members, or -1


press_sizes, carve = layout(Pressing, "n", "m", most="min(n, m) + 1")


@kernel
def press_contacts(normals, segments, bias, free, start, limit, floats, ints, z, x):
    """Drumwright's Algorithm 1, then Keller's rule if that does not end. Returns (status, pivots).

    start: (n,) impulses to begin from, or empty
    limit: pivots of Algorithm 1
    """
    n, m = len(z), len(x)
    t = carve(n, m, normals, segments, bias, free, x, z, floats, ints)
    for i in range(n):
        t.size[i] = dot(normals[i], normals[i], normals.shape[1])
    release_all(t)
    status, pivots = algorithm_1(t, begin(t, start), limit)
    if status != SOLVED:
        release_all(t)
        status, more = keller(t, 100 * min(n, m) + 200)
        pivots += more
    return status, pivots


@kernel
def release_all(t):
    for i in range(len(t.z)):
        t.z[i], t.place[i] = 0.0, -1
    velocities(t, 0)


@kernel
def begin(t, start):
    """Those that pressed before are members again; the number of them."""
    k = 0
    for i in range(len(start)):
        if start[i] > 0.0 and k < len(t.members) - 1:
            left = leave_of(t, k, i)
            if left > TRUSTED * TRUSTED * t.size[i]:
                k = join(t, k, i, left)
    if k > 0:
        correct(t, k)
    return k


@kernel
def velocities(t, k):
    """x and w from z, from scratch."""
    move(t, k)
    for i in range(len(t.z)):
        t.w[i] = row_dot(t.normals[i], t.segments[i], t.x) + t.bias[i]


@kernel
def move(t, k):
    for j in range(len(t.x)):
        t.x[j] = t.free[j]
    for u in range(k):
        i = t.members[u]
        add_row(t.normals[i], t.segments[i], t.z[i], t.x)


@kernel
def correct(t, k):
    """The members' w to zero: one step of iterative refinement, and everything anew."""
    move(t, k)
    for u in range(k):
        i = t.members[u]
        w = row_dot(t.normals[i], t.segments[i], t.x) + t.bias[i]
        t.along[u] = (w - dot(t.triangle[u], t.along, u)) / t.triangle[u, u]
    back_substitute(t, k)
    for u in range(k):
        t.z[t.members[u]] -= t.entering[u]
    velocities(t, k)


@kernel
def back_substitute(t, k):
    """What a row, or a correction, takes of the members: Tᵀ entering = along."""
    for u in range(k):
        t.entering[u] = t.along[u]
    for u in range(k - 1, -1, -1):
        t.entering[u] /= t.triangle[u, u]
        subtract_multiple(t.entering, t.entering[u], t.triangle[u], u)


@kernel
def algorithm_1(t, k, limit):
    """The most violated row joins, the most negative member leaves, both in one iteration [Drumwright2013]."""
    pivots, doubts = 0, 1.0
    while pivots <= limit:
        allowed = NOISE * doubts * magnitude(t, k)
        row, member = most_violated(t, allowed), most_negative(t, k, allowed)
        if row < 0 and member < 0:
            correct(t, k)
            if settled(t, 10.0 * NOISE * doubts * magnitude(t, k)):
                clip(t)
                return SOLVED, pivots
            doubts *= 2.0
            pivots += 1
            continue
        if row >= 0:
            left = leave_of(t, k, row)
            if not left > DEPENDENT * DEPENDENT * t.size[row]:
                return SINGULAR, pivots
            back_substitute(t, k)
            step = -t.w[row] / left
            for u in range(k):
                t.z[t.members[u]] -= step * t.entering[u]
            t.z[row] = step
            k = join(t, k, row, left)
            pivots += 1
        if member >= 0:
            k = drop(t, k, t.place[member])
            correct(t, k)
            pivots += 1
        else:
            velocities(t, k)
    return MAX_ITERATIONS, pivots


@kernel
def keller(t, limit):
    """Members stay non-negative; the most violated row is driven to zero: the dual active-set method."""
    k, pivots, doubts = 0, 0, 1.0
    while pivots <= limit:
        row = most_violated(t, NOISE * doubts * magnitude(t, k))
        if row < 0:
            correct(t, k)
            if settled(t, 10.0 * NOISE * doubts * magnitude(t, k)):
                clip(t)
                return SOLVED, pivots
            doubts *= 2.0
            pivots += 1
            for u in range(k - 1, -1, -1):
                if t.z[t.members[u]] < 0.0:
                    k = drop(t, k, u)
            velocities(t, k)
            continue
        while True:
            left = leave_of(t, k, row)
            back_substitute(t, k)
            independent = left > DEPENDENT * DEPENDENT * t.size[row]
            step, blocking = (-t.w[row] / left if independent else np.inf), -1
            for u in range(k):
                if t.entering[u] > 1e-13 and max(t.z[t.members[u]], 0.0) < step * t.entering[u]:
                    step, blocking = max(t.z[t.members[u]], 0.0) / t.entering[u], u
            if step == np.inf:
                return RAY, pivots
            for u in range(k):
                t.z[t.members[u]] -= step * t.entering[u]
            t.z[row] += step
            if independent:
                subtract_multiple(t.x, -step, t.rest, len(t.x))
                t.w[row] += step * left
            pivots += 1
            if blocking < 0:
                k = join(t, k, row, left)
                break
            k = drop(t, k, blocking)
            if pivots > limit:
                return MAX_ITERATIONS, pivots
        velocities(t, k)
    return MAX_ITERATIONS, pivots


@kernel
def leave_of(t, k, row):
    """rest = what the members leave of a row, along = its components along Q; the squared length of the rest."""
    m = len(t.x)
    for j in range(m):
        t.rest[j] = 0.0
    add_row(t.normals[row], t.segments[row], 1.0, t.rest)
    for u in range(k):
        t.along[u] = row_dot(t.normals[row], t.segments[row], t.basis[u])
    for u in range(k):
        if t.along[u] != 0.0:
            subtract_multiple(t.rest, t.along[u], t.basis[u], m)
    left = dot(t.rest, t.rest, m)
    if left < DOUBTFUL * t.size[row]:
        for u in range(k):
            part = dot(t.basis[u], t.rest, m)
            t.along[u] += part
            subtract_multiple(t.rest, part, t.basis[u], m)
        left = dot(t.rest, t.rest, m)
    return left


@kernel
def join(t, k, row, left):
    """After `leave_of`: the rest, at unit length, is the last row of Q."""
    length = left**0.5
    for j in range(len(t.x)):
        t.basis[k, j] = t.rest[j] / length
    for u in range(k):
        t.triangle[k, u] = t.along[u]
    t.triangle[k, k] = length
    t.members[k], t.place[row] = row, k
    return k + 1


@kernel
def drop(t, k, slot):
    """The rows after it move up; rotations of neighbouring rows of Q make T a triangle again."""
    gone = t.members[slot]
    t.place[gone], t.z[gone] = -1, 0.0
    for u in range(slot, k - 1):
        t.members[u] = t.members[u + 1]
        t.place[t.members[u]] = u
        for l in range(u + 2):
            t.triangle[u, l] = t.triangle[u + 1, l]
    for u in range(slot, k - 1):
        a, b = t.triangle[u, u], t.triangle[u, u + 1]
        length = np.hypot(a, b)
        c, s = a / length, b / length
        for v in range(u, k - 1):
            a, b = t.triangle[v, u], t.triangle[v, u + 1]
            t.triangle[v, u], t.triangle[v, u + 1] = c * a + s * b, c * b - s * a
        for j in range(len(t.x)):
            a, b = t.basis[u, j], t.basis[u + 1, j]
            t.basis[u, j], t.basis[u + 1, j] = c * a + s * b, c * b - s * a
    return k - 1


@kernel
def most_violated(t, allowed):
    """The row outside that is below zero by the most, -1 if none is."""
    row, lowest = -1, -allowed
    for i in range(len(t.z)):
        if t.place[i] < 0 and t.w[i] < lowest and t.size[i] > 0.0:
            row, lowest = i, t.w[i]
    return row


@kernel
def most_negative(t, k, allowed):
    """The member that pulls the most, -1 if none does."""
    member, lowest = -1, -allowed
    for u in range(k):
        if t.z[t.members[u]] < lowest:
            member, lowest = t.members[u], t.z[t.members[u]]
    return member


@kernel
def magnitude(t, k):
    largest = 1.0
    for u in range(k):
        largest = max(largest, abs(t.z[t.members[u]]))
    return largest


@kernel
def settled(t, allowed):
    """Whether everything is within bounds up to rounding."""
    for i in range(len(t.z)):
        if t.place[i] >= 0:
            if not (t.z[i] >= -allowed and abs(t.w[i]) <= allowed):  # NaN is not settled
                return False
        elif t.w[i] < -allowed and t.size[i] > 0.0:
            return False
    return True


@kernel
def clip(t):
    for i in range(len(t.z)):
        t.z[i] = max(t.z[i], 0.0)

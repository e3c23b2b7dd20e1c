"""The frictionless problem by its normal rows: kernels of `contact_pivot` and `no_slip`.

    0 <= z  ⊥  w = N x + b >= 0,      x = x_free + Nᵀ z

Members are the rows with impulses, the active set; there are never more of them than velocities [Drumwright2013,
sec. V, Lemma 1]. They are factorised as N_A = T Q, with orthonormal rows of Q and a lower triangle T, updated when a
row joins (Gram–Schmidt) or leaves (rotations). Neither N Nᵀ nor N_A N_Aᵀ is formed: contacts that nearly coincide
would lose all their digits there.

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
from stiction.solvers.contact.contact_pivot.tolerances import DEPENDENT, DOUBTFUL, TRUSTED
from stiction.solvers.contract import MAX_ITERATIONS, RAY, SINGULAR, SOLVED
from stiction.solvers.tolerances import HYSTERESIS, NOISE, PRODUCT_ERROR, pivot_limit


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
    rest: Array[Floats, "m"]  # a row minus its projection onto Q
    basis: Array[Floats, "most", "m"]  # Q
    triangle: Array[Floats, "most", "most"]  # T
    along: Array[Floats, "most"]  # a row's components along Q
    entering: Array[Floats, "most"]  # decrease of the members' impulses per unit of the entering one
    members: Array[Ints, "most"]
    place: Array[Ints, "n"]  # among the members, or -1


press_sizes, press_views = layout(Pressing, "n", "m", most="min(n, m) + 1")


@kernel
def press_contacts(normals, segments, bias, free, start, limit, floats, ints, z, x):
    """Drumwright's Algorithm 1; if it fails, Keller's rule from the beginning. Returns (status, pivots).

    start: (n,) impulses to begin from, or empty
    limit: pivots of Algorithm 1
    """
    # Squared lengths of the rows.
    n, m = len(z), len(x)
    t = press_views(n, m, normals, segments, bias, free, x, z, floats, ints)
    for i in range(n):
        t.size[i] = dot(normals[i], normals[i], normals.shape[1])

    # Algorithm 1 changes two rows at a time and can fail; Keller's rule is the safeguard.
    release_all(t)
    status, pivots = algorithm_1(t, begin(t, start), limit)
    if status != SOLVED:
        release_all(t)
        status, more = keller(t, pivot_limit(min(n, m)))
        pivots += more
    return status, pivots


@kernel
def release_all(t):
    """No members, no impulses."""
    for i in range(len(t.z)):
        t.z[i], t.place[i] = 0.0, -1
    velocities(t, 0)


@kernel
def begin(t, start):
    """Make the rows that press in `start` members, unless nearly dependent. Returns the number of members."""
    k = 0
    for i in range(len(start)):
        if start[i] > 0.0 and k < len(t.members) - 1:
            left = orthogonalize(t, k, i)
            if left > TRUSTED * t.size[i]:
                k = join(t, k, i, left)
    if k > 0:
        correct(t, k)
    return k


@kernel
def velocities(t, k):
    """Recompute x and w from z [Drumwright2013, Algorithm 1, lines 13–14]."""
    move(t, k)
    for i in range(len(t.z)):
        t.w[i] = row_dot(t.normals[i], t.segments[i], t.x) + t.bias[i]


@kernel
def move(t, k):
    """x = x_free + Nᵀ z."""
    for j in range(len(t.x)):
        t.x[j] = t.free[j]
    for u in range(k):
        i = t.members[u]
        add_row(t.normals[i], t.segments[i], t.z[i], t.x)


@kernel
def correct(t, k):
    """One step of iterative refinement that brings w of the members to zero; recomputes x and w."""
    # Solve T Tᵀ dz = w: forward substitution, then back substitution.
    move(t, k)
    for u in range(k):
        i = t.members[u]
        w = row_dot(t.normals[i], t.segments[i], t.x) + t.bias[i]
        t.along[u] = (w - dot(t.triangle[u], t.along, u)) / t.triangle[u, u]
    back_substitute(t, k)

    # Apply the correction.
    for u in range(k):
        t.z[t.members[u]] -= t.entering[u]
    velocities(t, k)


@kernel
def back_substitute(t, k):
    """Solve Tᵀ entering = along."""
    for u in range(k):
        t.entering[u] = t.along[u]
    for u in range(k - 1, -1, -1):
        t.entering[u] /= t.triangle[u, u]
        subtract_multiple(t.entering, t.entering[u], t.triangle[u], u)


@kernel
def algorithm_1(t, k, limit):
    """Modified principal pivoting [Drumwright2013, Algorithm 1]. Returns (status, pivots).

    In one iteration the most violated row joins and the most negative member leaves.
    """
    pivots, doubts = 0, 1.0
    while pivots <= limit:
        # Lines 15, 17 and 34: the row to join and the member to leave, beyond rounding.
        allowed = NOISE * doubts * magnitude(t, k)
        row, member = most_violated(t, allowed), most_negative(t, k, allowed)

        # Lines 24–29: done, if the conditions still hold after refinement; if not, allow for more rounding.
        if row < 0 and member < 0:
            correct(t, k)
            if settled(t, HYSTERESIS * NOISE * doubts * magnitude(t, k)):
                clip(t)
                return SOLVED, pivots
            doubts *= 2.0
            pivots += 1
            continue

        # Lines 32–33: the row joins. Raising its impulse by one, with w of the members held at zero, raises its w by
        # `left`. A dependent row cannot be brought to zero.
        if row >= 0:
            left = orthogonalize(t, k, row)
            if not left > DEPENDENT * DEPENDENT * t.size[row]:
                return SINGULAR, pivots
            back_substitute(t, k)
            step = -t.w[row] / left
            for u in range(k):
                t.z[t.members[u]] -= step * t.entering[u]
            t.z[row] = step
            k = join(t, k, row, left)
            pivots += 1

        # Lines 35–38 (and 19–23): the member leaves, and the others are solved for again.
        if member >= 0:
            k = drop(t, k, t.place[member])
            correct(t, k)
            pivots += 1
        else:
            velocities(t, k)
    return MAX_ITERATIONS, pivots


@kernel
def keller(t, limit):
    """Keller's rule as a dual active-set method [GoldfarbIdnani1983]. Returns (status, pivots).

    The most violated row is driven to w = 0 while the members' impulses stay non-negative.
    """
    k, pivots, doubts = 0, 0, 1.0
    while pivots <= limit:
        # The row to drive.
        row = most_violated(t, NOISE * doubts * magnitude(t, k))

        # None: done, if the conditions still hold after refinement. If not, allow for more rounding, and drop members
        # that the refinement has made negative.
        if row < 0:
            correct(t, k)
            if settled(t, HYSTERESIS * NOISE * doubts * magnitude(t, k)):
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
            # Longest step: until w of the row is zero, or the first member's impulse is. A dependent row with nothing
            # in its way shows that no solution exists.
            left = orthogonalize(t, k, row)
            back_substitute(t, k)
            independent = left > DEPENDENT * DEPENDENT * t.size[row]
            step, blocking = (-t.w[row] / left if independent else np.inf), -1
            for u in range(k):
                if t.entering[u] > PRODUCT_ERROR and max(t.z[t.members[u]], 0.0) < step * t.entering[u]:
                    step, blocking = max(t.z[t.members[u]], 0.0) / t.entering[u], u
            if step == np.inf:
                return RAY, pivots
            # Take the step; x moves along `rest` only, since the members stay at w = 0.
            for u in range(k):
                t.z[t.members[u]] -= step * t.entering[u]
            t.z[row] += step
            if independent:
                subtract_multiple(t.x, -step, t.rest, len(t.x))
                t.w[row] += step * left
            # A full step ends the drive: the row joins. Otherwise the blocking member leaves, and the drive goes on.
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
def orthogonalize(t, k, row):
    """Orthogonalise a row against Q: sets `rest` and its components `along`; returns the squared length of the rest."""
    # Gram–Schmidt.
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

    # Most of the row has cancelled: repeat it, so that `rest` is orthogonal to Q up to rounding.
    if left < DOUBTFUL * t.size[row]:
        for u in range(k):
            part = dot(t.basis[u], t.rest, m)
            t.along[u] += part
            subtract_multiple(t.rest, part, t.basis[u], m)
        left = dot(t.rest, t.rest, m)
    return left


@kernel
def join(t, k, row, left):
    """Add a row after `orthogonalize`: `rest`, normalised, becomes the last row of Q. Returns the number of members."""
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
    """Remove the member in a slot, and its impulse. Returns the number of members."""
    gone = t.members[slot]
    t.place[gone], t.z[gone] = -1, 0.0

    # Later rows move up, which leaves T with one entry beside the diagonal in each.
    for u in range(slot, k - 1):
        t.members[u] = t.members[u + 1]
        t.place[t.members[u]] = u
        for l in range(u + 2):
            t.triangle[u, l] = t.triangle[u + 1, l]

    # Rotations of neighbouring rows of Q remove these entries.
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
    """The row outside the active set with the lowest w, -1 if none is below -allowed."""
    row, lowest = -1, -allowed
    for i in range(len(t.z)):
        if t.place[i] < 0 and t.w[i] < lowest and t.size[i] > 0.0:
            row, lowest = i, t.w[i]
    return row


@kernel
def most_negative(t, k, allowed):
    """The member with the lowest impulse, -1 if none is below -allowed."""
    member, lowest = -1, -allowed
    for u in range(k):
        if t.z[t.members[u]] < lowest:
            member, lowest = t.members[u], t.z[t.members[u]]
    return member


@kernel
def magnitude(t, k):
    """The largest impulse, at least 1: the unit of rounding."""
    largest = 1.0
    for u in range(k):
        largest = max(largest, abs(t.z[t.members[u]]))
    return largest


@kernel
def settled(t, allowed):
    """Whether 0 <= z ⊥ w >= 0 holds up to `allowed`."""
    for i in range(len(t.z)):
        if t.place[i] >= 0:
            if not (t.z[i] >= -allowed and abs(t.w[i]) <= allowed):  # NaN is not settled
                return False
        elif t.w[i] < -allowed and t.size[i] > 0.0:
            return False
    return True


@kernel
def clip(t):
    """Set impulses that are negative by rounding to zero."""
    for i in range(len(t.z)):
        t.z[i] = max(t.z[i], 0.0)

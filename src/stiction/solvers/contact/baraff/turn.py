"""Turn the friction of sliding contacts against their sliding; in space, Baraff's method does not fix its direction.

A sliding contact keeps the direction d in which its friction reached the cone; the paper requires only p_t·u_t <= 0
[Baraff1994, eq. 21]. Coulomb's law requires d × u_t = 0. While the index sets are constant, this is one equation for
the angle of each sliding contact. Newton's method solves them; a column of its Jacobian is the response to turning one
contact. A step is shortened where a contact must change its sets, as in every other drive.
"""

from __future__ import annotations

import math

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import lu, lu_solve
from stiction.solvers.contact.baraff.sets import CLOSED, SLIDING, direct, renew, settle, write_member
from stiction.solvers.contact.baraff.tolerances import WIDEST, WORSE
from stiction.solvers.tolerances import HALF_OF_THE_DIGITS


@kernel
def turning(t, i):
    """Whether the direction of a contact's friction is an unknown: it slides, and its normal is a member."""
    return t.normal[i] == CLOSED and t.grip[i] == SLIDING and t.place[i, 0] >= 0


@kernel
def misaligned(t):
    """The largest |d × u_t|: velocity across the recorded direction of friction."""
    worst = 0.0
    for i in range(len(t.mu)):
        if turning(t, i):
            worst = max(worst, abs(t.direction[i, 0] * t.u[i, 2] - t.direction[i, 1] * t.u[i, 1]))
    return worst


@kernel
def aim(t, k, jacobian, angle, which, pivots):
    """Newton step for the angles, in `angle`, and as rates of impulses in `pushed`. Returns how many contacts turn."""
    # Collect the sliding contacts.
    count = 0
    for i in range(len(t.mu)):
        for c in range(3):
            t.pushed[i, c] = 0.0
        if turning(t, i):
            which[count] = i
            count += 1

    # Jacobian of d × u_t: turning contact j by a unit angle moves its friction across d, and d itself (diagonal).
    for b in range(count):
        j = which[b]
        d1, d2 = t.direction[j, 0], t.direction[j, 1]
        radius = t.mu[j] * t.p[j, 0]
        t.pushed[j, 1], t.pushed[j, 2] = -radius * d2, radius * d1
        direct(t, k)
        t.pushed[j, 1] = t.pushed[j, 2] = 0.0
        for a in range(count):
            i = which[a]
            jacobian[a, b] = t.direction[i, 0] * t.u_rate[i, 2] - t.direction[i, 1] * t.u_rate[i, 1]
        jacobian[b, b] -= d1 * t.u[j, 1] + d2 * t.u[j, 2]

    # Newton step: jacobian · angle = -(d × u_t).
    for a in range(count):
        i = which[a]
        angle[a] = t.direction[i, 1] * t.u[i, 1] - t.direction[i, 0] * t.u[i, 2]
    solved = lu(jacobian, pivots, count)
    if solved:
        lu_solve(jacobian, pivots, count, angle)

    # Where Newton's method gives no sensible angle, turn friction to point against the present sliding.
    widest = 0.0
    for a in range(count):
        if not solved or not abs(angle[a]) * HALF_OF_THE_DIGITS < 1.0:
            i = which[a]
            across = t.direction[i, 1] * t.u[i, 1] - t.direction[i, 0] * t.u[i, 2]
            along = -t.direction[i, 0] * t.u[i, 1] - t.direction[i, 1] * t.u[i, 2]
            angle[a] = math.atan2(across, along)
        widest = max(widest, abs(angle[a]))

    # Limit the largest angle, and write the turn as rates of the tangential impulses.
    for a in range(count):
        i = which[a]
        if widest > WIDEST:
            angle[a] *= WIDEST / widest
        radius = angle[a] * t.mu[i] * t.p[i, 0]
        t.pushed[i, 1], t.pushed[i, 2] = -radius * t.direction[i, 1], radius * t.direction[i, 0]
    return count


@kernel
def turn(t, k, step, angle, which, count):
    """Turn the recorded directions by step · angle and solve for the members; halve the turn while it makes
    misalignment worse. Returns (members, whether the turn was made in full).
    """
    before = misaligned(t)
    k = rotate(t, k, step, angle, which, count)

    # Going back by half of the remaining turn each time.
    for halving in range(10):
        if misaligned(t) <= WORSE * before:
            return k, halving == 0
        step *= 0.5
        k = rotate(t, k, -step, angle, which, count)
    return k, False


@kernel
def rotate(t, k, step, angle, which, count):
    """Rotate the recorded directions by step · angle and solve for the members. Returns their number."""
    for a in range(count):
        i = which[a]

        # Rotate d, keep it at unit length, and update the column n + mu d·t of its member.
        c, s = math.cos(step * angle[a]), math.sin(step * angle[a])
        d1, d2 = t.direction[i, 0], t.direction[i, 1]
        d1, d2 = c * d1 - s * d2, s * d1 + c * d2
        size = math.hypot(d1, d2)
        t.direction[i, 0], t.direction[i, 1] = d1 / size, d2 / size
        if t.place[i, 0] >= 0:
            write_member(t, t.place[i, 0], i, 0)

    # Columns have changed: rebuild the inverse, and correct the impulses twice.
    k = renew(t, k)
    settle(t, k)
    settle(t, k)
    return k

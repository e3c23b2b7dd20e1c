"""Turning the friction of sliding contacts against their sliding: what Baraff's method leaves open in space.

A contact that slides keeps the direction d in which its friction entered the cone's surface; the paper asks no more
than p_t·u_t <= 0 [Baraff1994, eq. 21]. Coulomb's law asks d × u_t = 0. While the index sets stay as they are, that is
one equation for the angle of each sliding contact: Newton's method, whose columns are the responses to turning one
contact. A step is cut short where a contact must change its sets, as in every other drive.
"""

from __future__ import annotations

import math

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import lu, lu_solve
from stiction.solvers.contact.baraff.sets import CLOSED, SLIDING, direct, renew, settle, write_member
from stiction.solvers.contact.baraff.tolerances import WIDEST, WORSE


@kernel
def turning(t, i):
    """Whether the direction of a contact's friction is to be found."""
    return t.normal[i] == CLOSED and t.grip[i] == SLIDING and t.place[i, 0] >= 0


@kernel
def misaligned(t):
    """The largest velocity across the recorded direction."""
    worst = 0.0
    for i in range(len(t.mu)):
        if turning(t, i):
            worst = max(worst, abs(t.direction[i, 0] * t.u[i, 2] - t.direction[i, 1] * t.u[i, 1]))
    return worst


@kernel
def aim(t, k, jacobian, angle, which, pivots):
    """Newton's angles, in `angle`, and in `pushed` as rates of impulses; the number of contacts that turn."""
    count = 0
    for i in range(len(t.mu)):
        for c in range(3):
            t.pushed[i, c] = 0.0
        if turning(t, i):
            which[count] = i
            count += 1
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
    for a in range(count):
        i = which[a]
        angle[a] = t.direction[i, 1] * t.u[i, 1] - t.direction[i, 0] * t.u[i, 2]
    solved = lu(jacobian, pivots, count)
    if solved:
        lu_solve(jacobian, pivots, count, angle)
    widest = 0.0
    for a in range(count):
        if not solved or not abs(angle[a]) < 1e6:  # straight against the sliding instead
            i = which[a]
            across = t.direction[i, 1] * t.u[i, 1] - t.direction[i, 0] * t.u[i, 2]
            along = -t.direction[i, 0] * t.u[i, 1] - t.direction[i, 1] * t.u[i, 2]
            angle[a] = math.atan2(across, along)
        widest = max(widest, abs(angle[a]))
    for a in range(count):
        i = which[a]
        if widest > WIDEST:
            angle[a] *= WIDEST / widest
        radius = angle[a] * t.mu[i] * t.p[i, 0]
        t.pushed[i, 1], t.pushed[i, 2] = -radius * t.direction[i, 1], radius * t.direction[i, 0]
    return count


@kernel
def turn(t, k, step, angle, which, count):
    """Record the new directions, and members follow; less far if that makes things worse: (members, whether not)."""
    before = misaligned(t)
    k = rotate(t, k, step, angle, which, count)
    for halving in range(10):
        if misaligned(t) <= WORSE * before:
            return k, halving == 0
        step *= 0.5
        k = rotate(t, k, -step, angle, which, count)
    return k, False


@kernel
def rotate(t, k, step, angle, which, count):
    """Rotate recorded directions, and solve for the members; their number."""
    for a in range(count):
        i = which[a]
        c, s = math.cos(step * angle[a]), math.sin(step * angle[a])
        d1, d2 = t.direction[i, 0], t.direction[i, 1]
        d1, d2 = c * d1 - s * d2, s * d1 + c * d2
        size = math.hypot(d1, d2)
        t.direction[i, 0], t.direction[i, 1] = d1 / size, d2 / size
        if t.place[i, 0] >= 0:
            write_member(t, t.place[i, 0], i, 0)
    k = renew(t, k)
    settle(t, k)
    settle(t, k)
    return k

"""Bilateral rows that stay within a tree: velocities that follow from others are replaced by these.

Each independent row, solved for one velocity d of its tree, says v_d = rate - row · v. So v = N w + const with fewer
velocities w, those that are left, and NᵀM N is their mass. A loop reaches no further than the limb that it is in: with
w in place of v, rows of contacts elsewhere are as short as without loops, where a projection in the whitened space
(`normal_form`) makes all rows of the robot long. Velocities that follow keep their places, with mass one and no entry
in any row.

The velocity that is solved for is the one that the row moves most easily, |row_d| / M_dd^½, which bounds what others
are multiplied by. Rows are those that Gram–Schmidt has found to be independent (`joints`), in its order.
"""

from __future__ import annotations

from math import sqrt
from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.problems.mass_factor import factor_blocks, unwhiten_velocity, whiten_side, whiten_velocity


class Following(NamedTuple):
    """Velocities that follow: v_d + row · v = rate for each; mass and factor of the others."""

    rows: Array[Floats, "held", "m"]  # zero at all velocities that follow, but for a one at its own
    rate: Array[Floats, "held"]
    mass: Array[Floats, "some"]  # lower triangles of NᵀM N
    factor: Array[Floats, "some"]  # as `White.factor`
    motion: Array[Floats, "m if j > 0 else 0"]  # x without contact, joints held, of all velocities
    ease: Array[Floats, "m if j > 0 else 0"]  # 1 / M_jj^½ of each velocity
    which: Array[Ints, "held"]  # d
    used: Array[Ints, "min(j, 1)"]  # whether contacts are whitened in this way


layout(Following, "m", "j", "entries", held="min(j, m)", some="entries if j > 0 else 0")


@kernel
def within_trees(joints, trees):
    """Whether each bilateral row moves one tree only."""
    for i in range(len(joints)):
        found = 0
        for b in range(len(trees) - 1):
            for j in range(trees[b], trees[b + 1]):
                if joints[i, j] != 0.0:
                    found += 1
                    break
        if found > 1:
            return False
    return True


@in_callers
@kernel
def replace_velocities(posed, white, rank, c, t):
    """Find velocities that follow, mass, factor and free motion of the others; False if it cannot be done.

    white.free, x with joints held, becomes that of the others; c, t: (m,) scratch
    """
    follow, m, trees = white.following, len(posed.velocity), posed.trees
    if not (within_trees(posed.joints, trees) and solve_rows(posed, white.kept, rank, follow)):
        return False

    # NᵀM N: velocities that follow are folded into the others, tree by tree.
    at = 0
    for b in range(len(trees) - 1):
        first, size = trees[b], trees[b + 1] - trees[b]
        block = follow.mass[at : at + size * size]
        for e in range(size * size):
            block[e] = posed.mass[at + e]

        # One velocity after the other.
        for u in range(rank):
            d = follow.which[u] - first
            if 0 <= d < size:
                for j in range(size):
                    c[j] = -follow.rows[u, first + j]
                c[d] = 0.0
                fold(block, size, d, c, t)
        at += size * size
    if factor_blocks(follow.mass, trees, follow.factor, white.place) >= 0:
        return False

    # Velocities without contact, and the same in whitened coordinates of those that are left.
    unwhiten_velocity(white.factor, trees, white.free, white.held)
    for j in range(m):
        follow.motion[j], c[j] = white.free[j], white.held[j]
    for u in range(rank):
        c[follow.which[u]] = 0.0
    whiten_velocity(follow.factor, trees, c, white.free)
    return True


@kernel
def solve_rows(posed, kept, rank, follow):
    """Solve each independent row for one velocity, by Gauss–Jordan elimination; False if a row is zero."""
    m, rows, rate, which = len(posed.velocity), follow.rows, follow.rate, follow.which

    # How easily each velocity is moved by itself.
    at = 0
    for b in range(len(posed.trees) - 1):
        first, size = posed.trees[b], posed.trees[b + 1] - posed.trees[b]
        for i in range(size):
            follow.ease[first + i] = 1.0 / sqrt(posed.mass[at + i * size + i])
        at += size * size
    for u in range(rank):
        # The row without velocities that follow already.
        for j in range(m):
            rows[u, j] = posed.joints[kept[u], j]
        rate[u] = -posed.joint_rate[kept[u]]
        for w in range(u):
            eliminate(rows, rate, u, w, which[w], m)

        # Solve it for the velocity that is moved most easily.
        best, most = -1, 0.0
        for j in range(m):
            moved = abs(rows[u, j]) * follow.ease[j]
            if moved > most:
                best, most = j, moved
        if best < 0:
            return False
        inverse = 1.0 / rows[u, best]
        for j in range(m):
            rows[u, j] *= inverse
        rows[u, best], rate[u], which[u] = 1.0, rate[u] * inverse, best

        # Rows before it, without that velocity.
        for w in range(u):
            eliminate(rows, rate, w, u, best, m)
    return True


@in_callers
@kernel
def eliminate(rows, rate, u, w, d, m):
    """Take velocity d, which row w is solved for, out of row u."""
    factor = rows[u, d]
    if factor != 0.0:
        subtract_multiple(rows[u], factor, rows[w], m)
        rows[u, d] = 0.0
        rate[u] -= factor * rate[w]


@sums
def fold(A, k, d, c, t):
    """Lower triangle of a k × k block with velocity d replaced by c · the others; d itself keeps a one. t: scratch."""
    # A + c tᵀ + t cᵀ, with t the row of d and half of what its own mass adds.
    half = 0.5 * A[d * k + d]
    for j in range(k):
        t[j] = (A[d * k + j] if j <= d else A[j * k + d]) + half * c[j]
    t[d] = 0.0
    for i in range(k):
        if c[i] != 0.0:
            subtract_multiple(A[i * k :], -c[i], t, i + 1)
        if t[i] != 0.0:
            subtract_multiple(A[i * k :], -t[i], c, i + 1)

    # Nothing is coupled with d any more.
    for j in range(k):
        A[d * k + j if j <= d else j * k + d] = 0.0
    A[d * k + d] = 1.0


@kernel
def whiten_left(follow, rank, place, given, segment, bias, out):
    """Whiten a contact's rows over the velocities that are left; rates of those that follow enter its bias.

    Returns the square of the rows as they are given, each velocity by its own mass, and that of what is left.
    """
    before, after, at = 0.0, 0.0, 0
    for s in range(0, 4, 2):
        first, length = segment[s], segment[s + 1]
        if length == 0:
            continue
        for c in range(len(out)):
            row = out[c, at:]
            size = copy(given[c, at:], follow.ease[first:], row, length)
            before += size

            # Velocities that follow are replaced by what they follow from.
            for u in range(rank if size > 0.0 else 0):
                d = follow.which[u] - first
                if 0 <= d < length and row[d] != 0.0:
                    factor = row[d]
                    subtract_multiple(row, factor, follow.rows[u, first:], length)
                    row[d] = 0.0
                    bias[c] += factor * follow.rate[u]
        whiten_side(follow.factor[place[first] :], length, at, out)
        at += length
    for c in range(len(out)):
        after += dot(out[c], out[c], at)
    return before, after


@sums
def copy(row, ease, out, length):
    """out = row; returns its square, each velocity by its own mass."""
    total = 0.0
    for j in range(length):
        out[j] = row[j]
        total += (row[j] * ease[j]) * (row[j] * ease[j])
    return total


@in_callers
@kernel
def follow_on(white, trees, rank, x, velocity):
    """Velocities of all from the whitened change x of those that are left."""
    follow = white.following
    unwhiten_velocity(follow.factor, trees, x, velocity)
    for u in range(rank):
        velocity[follow.which[u]] = -dot(follow.rows[u], velocity, len(velocity))
    for j in range(len(velocity)):
        velocity[j] += white.held[j]

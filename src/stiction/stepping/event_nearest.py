"""The motion nearest to a given one, in the metric of the mass, in which chosen rows have chosen velocities.

    min |v' - v|_M   with   rows v' = target,   J v' = -rate

by least squares, since contacts are redundant as a rule; joints come first. With M = G Gᵀ, x = Gᵀ v and an orthonormal
basis B of the rows, whitened and without what joints hold, x changes by Bᵀ y, where y solves the normal equations of
(rows Bᵀ) y = what is missing.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import cholesky, cholesky_solve, dot, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import row_dot, spread_row
from stiction.contacts.gather import clear
from stiction.problems.joints import AGAIN, DEPENDENT, gram_schmidt
from stiction.problems.mass_factor import factor_blocks, unwhiten_velocity, whiten_dense, whiten_velocity
from stiction.problems.normal_form import hold_joints

if TYPE_CHECKING:
    from stiction.contacts.gather import Constraints

LEAST_PARTS = (1e-6, 1e-4, 1e-2)  # of a row beyond the span of others, below which it is left out, tried in turn
FARTHER = 10.0  # times the largest error: how far a contact may move when errors are corrected


class Held(NamedTuple):
    """What `hold_joints` reads of a problem."""

    velocity: Any  # (m,) to which the nearest is looked for
    trees: Any  # (b + 1,)
    joints: Any  # (j, m)
    joint_rate: Any  # (j,)


class Nearing(NamedTuple):
    """Scratch for k rows, m velocities and j bilateral rows; the first fields are those of `normal_form.White`."""

    factor: Array[Floats, "entries"]
    free: Array[Floats, "m"]  # x, joints held
    joints: Array[Floats, "j", "m"]
    basis: Array[Floats, "held", "m"]
    triangle: Array[Floats, "held", "held"]
    wanted: Array[Floats, "held"]
    joint_size: Array[Floats, 4, "j"]
    whole: Array[Floats, "j", "m"]  # bilateral rows over all velocities
    rate: Array[Floats, "j"]  # at which bilateral rows are to move, with the opposite sign
    still: Array[Floats, "m"]  # velocities from which positions are corrected: none
    start: Array[Floats, "m"]  # velocities with joints held
    x: Array[Floats, "m"]
    rows: Array[Floats, "k", "m"]  # whitened, without what joints hold, times `size`
    size: Array[Floats, "k"]  # 1 / |longest row of the contact|; 0 if joints hold all of it
    target: Array[Floats, "k"]  # velocities that the rows are to have
    span: Array[Floats, "most", "m"]  # orthonormal rows that span them
    part: Array[Floats, "most", "most"]  # as `triangle`
    left: Array[Floats, 2, "k"]  # for `gram_schmidt`
    along: Array[Floats, "k", "most"]  # rows times spanᵀ
    normal: Array[Floats, "most", "most"]  # alongᵀ along
    y: Array[Floats, "most"]
    place: Array[Ints, "m"]
    kept: Array[Ints, "held"]
    chosen: Array[Ints, "most"]
    which: Array[Ints, "k", 2]  # contact and part of each row


nearing_sizes, nearing_views = layout(Nearing, "k", "m", "j", "entries", held="min(j, m)", most="min(k, m)")


def room(found: Constraints, k: int, joined: bool = True) -> Any:
    """A workspace for k rows; joined: with the bilateral ones held."""
    j = len(found.joint_gap) if joined else 0
    return workspace(*nearing_sizes(k, found.free.size, j, found.mass.size))


@kernel
def set_nearest(found, mass, v, k, off, work, out):
    """The velocity nearest to v at which the joints hold and the k rows of `work.which` have their targets.

    Rows that depend on each other but for a little could ask for a long way: those are left out that would move any
    contact much farther than `off`, the largest error.
    """
    m, trees, rows, left = len(v), found.starts, work.rows[:k], work.left

    # Whiten velocities, and hold the joints.
    for j in range(m):
        out[j] = v[j]
    if factor_blocks(mass, trees, work.factor, work.place) >= 0:
        return
    whiten_velocity(work.factor, trees, v, work.free)
    for i in range(len(work.whole)):
        clear(work.whole[i])
        spread_row(found.joints[i], found.joint_segments[i], work.whole[i])
    rank = 0
    if len(work.whole) > 0:
        rank = hold_joints(Held(v, trees, work.whole, work.rate), work, DEPENDENT)
    unwhiten_velocity(work.factor, trees, work.free, work.start)
    for a in range(k):
        whiten_row(found, rank, a, work)

    # A basis of the rows, without those that nearly depend on others; what they miss of their targets along it, twice
    # since the first correction rounds.
    for least in LEAST_PARTS:
        count = gram_schmidt(rows, m, least, 1.0, work.span, work.chosen, work.part, left[0, :k], left[1, :k])
        if not factor_along(rows, count, work):
            continue
        for j in range(m):
            work.x[j] = work.free[j]
        for _ in range(2):
            unwhiten_velocity(work.factor, trees, work.x, out)
            correct(found, k, count, work, out)
        unwhiten_velocity(work.factor, trees, work.x, out)
        if farthest_change(found, work.start, out) <= FARTHER * off:
            return

    # Nothing but the joints.
    for j in range(m):
        out[j] = work.start[j]


@kernel
def whiten_row(found, rank, a, work):
    """Write row a, whitened and without what joints hold of it, in units of the longest row of its contact."""
    i, row, m, longest = work.which[a, 0], work.rows[a], len(work.free), 0.0
    for c in range(3):
        spread_white(found, i, c, work, work.x)
        longest = max(longest, dot(work.x, work.x, m))
    spread_white(found, i, work.which[a, 1], work, row)
    own = dot(row, row, m)
    left = own

    # Once more where little is left, which is rounding otherwise.
    for again in range(2):
        if rank > 0 and (again == 0 or left <= AGAIN * own):
            for u in range(rank):
                subtract_multiple(row, dot(work.basis[u], row, m), work.basis[u], m)
            left = dot(row, row, m)
    work.size[a] = 1.0 / sqrt(longest) if left > DEPENDENT * DEPENDENT * longest else 0.0
    for j in range(m):
        row[j] *= work.size[a]


@kernel
def spread_white(found, i, c, work, out):
    """Write row c of contact i, whitened, over all velocities."""
    clear(out)
    spread_row(found.rows[i, c], found.segments[i], out)
    whiten_dense(work.factor, found.starts, out)


@kernel
def factor_along(rows, count, work):
    """Parts of all rows along the basis, and the factor of their normal equations; False if it has none."""
    m = rows.shape[1]
    for u in range(count):
        for w in range(count):
            work.normal[u, w] = 0.0
    for a in range(len(rows)):
        along = work.along[a]
        for u in range(count):
            along[u] = dot(rows[a], work.span[u], m)
        for u in range(count):
            subtract_multiple(work.normal[u], -along[u], along, u + 1)
    return cholesky(work.normal, count) == count


@kernel
def correct(found, k, count, work, velocity):
    """Add to x what the rows miss of their targets at these velocities, by least squares."""
    for u in range(count):
        work.y[u] = 0.0
    for a in range(k):
        i, c = work.which[a, 0], work.which[a, 1]
        missing = work.size[a] * (work.target[a] - row_dot(found.rows[i, c], found.segments[i], velocity))
        subtract_multiple(work.y, -missing, work.along[a], count)
    cholesky_solve(work.normal, count, work.y)
    for u in range(count):
        subtract_multiple(work.x, -work.y[u], work.span[u], len(work.x))


@kernel
def farthest_change(found, one, two):
    """The largest difference of a contact's velocities."""
    most = 0.0
    for i in range(len(found.rows)):
        for c in range(3):
            row, segment = found.rows[i, c], found.segments[i]
            most = max(most, abs(row_dot(row, segment, two) - row_dot(row, segment, one)))
    return most

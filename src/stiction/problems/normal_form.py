"""The normal form: mass whitened to the identity, bilateral rows projected out, contacts scaled to unit size.

With M = G Gᵀ and x = Gᵀ v the mass becomes one, a row a becomes G⁻¹ a, and

    x = x_free + sum_i L_iᵀ p_i,      u_i = L_i x + b_i,      L_i the rows of contact i

A contact has three rows, n, t1, t2, or six with torsion and rolling. It is divided by its own size,
s_i = 1 / sqrt(trace / 3) with the trace of L_i L_iᵀ over the first three, and velocities by τ, the largest free
velocity of a contact that can close in this step: impulses come back as p_i = s_i τ p̂_i. A contact can close if its
gap_rate is not beyond what the energy of its island allows it to approach at; one that cannot sets no scale.

Independent bilateral rows are made orthonormal, and x is kept in the space that they leave. `mass_factor` has G,
`joints` the bilateral rows, `following` what takes the place of projection in a step, `delassus_form` problems without
a mass.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import alone, in_callers, kernel, sums
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import rows_dot
from stiction.arrays.vectors import at, largest, plus, put, times, with_normal
from stiction.errors import InvalidProblem
from stiction.problems.following import Following, replace_velocities, whiten_left
from stiction.problems.islands import label_velocities
from stiction.problems.joints import AGAIN, DEPENDENT, choose_rows, row_sizes, set_wanted
from stiction.problems.mass_factor import (
    factor_blocks,
    factor_left,
    is_zero,
    spread,
    unwhiten_velocity,
    whiten_dense,
    whiten_rows,
    whiten_velocity,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

ROUNDED = 1e-6  # a free velocity below this part of its bodies' whole motion may be rounding left by cancellation
SMALL = 6  # shorter runs are not cut
NO_ROWS, NONE = np.zeros((0, 0)), np.zeros(0, np.int64)


class Posed(NamedTuple):
    """A contact problem as kernels read it; they write to none of it."""

    mass: Any  # (entries,) symmetric blocks, one after the other
    trees: Any  # (b + 1,) where the velocities of each block begin
    velocity: Any  # (m,) without contact
    rows: Any  # (n, d, k) n, t1, t2 and, of some, spin and rolling of each contact, at the velocities that it touches
    segments: Any  # (n, 4) start and length of the two runs of velocities that it touches
    friction: Any  # (n,)
    gap_rate: Any  # (n,)
    joints: Any  # (j, m) bilateral rows
    joint_rate: Any  # (j,)
    tangent_rate: Any  # (n, d) velocities of moving surfaces along the tangents, 0 along n; (0, d) if there are none


class White(NamedTuple):
    """What `whiten` finds; a contact's rows have `width` entries, and `held` bilateral rows are independent at most."""

    factor: Array[Floats, "entries"]  # Gᵀ: lower triangles of the mass's blocks, diagonals inverted
    rows: Array[Floats, "n", "d", "width"]  # of each contact, at the velocities of `runs`
    free: Array[Floats, "m"]  # x without contact, over τ
    bias: Array[Floats, "n", "d"]  # constant part of the contact velocities, over τ
    scale: Array[Floats, "n"]  # s of each contact
    pace: Array[Floats, "n"]  # the largest free velocity on the contact's island, in m/s
    heavy: Array[Floats, "n"]  # 1 / |normal row| on the side of the contact that moves less
    joints: Array[Floats, "j", "m"]  # bilateral rows times G⁻¹
    basis: Array[Floats, "held", "m"]  # orthonormal rows that span them; as many as they have rank
    triangle: Array[Floats, "held", "held"]  # lower: independent rows of `joints` = triangle @ basis
    wanted: Array[Floats, "held"]  # velocities along the basis that the joints ask for
    share: Array[Floats, "held"]  # scratch: what a redundant row has of each of them
    joint_size: Array[Floats, 4, "j"]  # 1 / |row|; the same on the tree that it moves least; scratch
    held: Array[Floats, "m if j > 0 else 0"]  # velocities without contact, joints held
    by_island: Array[Floats, 4, "m"]  # scratch
    following: Following  # how bilateral rows are held where contacts are not projected
    place: Array[Ints, "m"]  # where the block that begins at a velocity begins in `factor`
    runs: Array[Ints, "n", 4]  # start and length of the two runs of velocities that a whitened contact touches
    kept: Array[Ints, "held"]  # which bilateral rows the basis comes from
    island: Array[Ints, "m"]  # as `label_velocities` fills it


white_sizes, white_views = layout(White, "n", "d", "m", "j", "width", "entries", held="min(j, m)")


class Whitened(NamedTuple):
    """A contact problem in normal form; everything dimensionless but `scale`, `tau` and `pace`."""

    rows: NDArray[np.float64]  # (n, d, k) of each contact, at the velocities that it touches
    segments: NDArray[np.int64]  # (n, 4) start and length of the two runs of velocities that it touches
    free: NDArray[np.float64]  # (m,) x without contact
    bias: NDArray[np.float64]  # (n, d) constant part of the contact velocities
    friction: NDArray[np.float64]  # (n,)
    scale: NDArray[np.float64]  # (n,) s
    tau: float  # τ, in m/s times s
    pace: NDArray[np.float64]  # (n,) the largest free velocity on the contact's island, in m/s
    joints: NDArray[np.float64]  # (r, m) orthonormal bilateral rows that are not redundant
    kept: NDArray[np.int64]  # (r,) which rows they come from
    triangle: NDArray[np.float64]  # (r, r) lower: whitened kept rows = triangle @ joints
    record: White | None  # all of it, for kernels; None in Delassus form

    def impulse(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Impulses in N s."""
        return scaled * (self.scale * self.tau)[:, None]

    def scaled(self, impulse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Impulses of the normal form."""
        return impulse / (self.scale * self.tau)[:, None]


def whiten(problem: ContactProblem) -> Whitened:
    """The normal form of a problem."""
    from stiction.problems.delassus_form import of_delassus

    return of_delassus(problem) if problem.mass is None else of_mass(problem, problem.mass)


def of_mass(problem: ContactProblem, mass: NDArray[np.float64]) -> Whitened:
    white, tau, rank = white_of(problem, mass, DEPENDENT)
    runs = white.runs.view()
    runs.flags.writeable = False  # as a problem's own, so that solvers are compiled once
    return Whitened(
        white.rows, runs, white.free, white.bias, problem.friction, white.scale, tau, white.pace,
        white.basis[:rank], white.kept[:rank], white.triangle[:rank, :rank], white,
    )  # fmt: skip


def white_of(problem: ContactProblem, mass: NDArray[np.float64], dependent: float) -> tuple[White, float, int]:
    """What kernels find: the arrays, τ, and the rank of the joints."""
    j = len(problem.joints)
    width = problem.m if j else problem.rows.shape[2]  # with joints, rows extend over all velocities
    sizes = *problem.rows.shape[:2], problem.m, j, width, mass.size
    floats, ints = white_sizes(*sizes)
    white = white_views(*sizes, np.empty(floats), np.empty(ints, np.int64))
    tau, rank = whiten_posed(problem.posed, white, dependent, problem.zero, False, False)
    if tau < 0.0:
        row = int(-tau) - 1
        raise InvalidProblem(f"ContactProblem: mass must be positive definite; it is not from row {row} on")
    return white, tau, rank


@alone
@kernel
def whiten_posed(posed, white, dependent, zero, short, begun):
    """Fill `white`; return τ, or -(1 + i) if the mass is not positive from row i on, and the rank of the joints.

    dependent: part of a bilateral row beyond the span of others that counts as none
    zero: of as many numbers as a contact has rows
    short: whether rows are to be over velocities that do not follow from others, if that can be done (`following`)
    begun: whether some blocks of the mass are factored already (`mass_factor.factor_left`)
    """
    m, n, motion = len(posed.velocity), len(posed.rows), white.free

    # Factor the mass and whiten the free velocity.
    if begun:
        failed = factor_left(posed.mass, posed.trees, white.factor, white.place)
    else:
        failed = factor_blocks(posed.mass, posed.trees, white.factor, white.place)
    if failed >= 0:
        return -1.0 - failed, 0
    whiten_velocity(white.factor, posed.trees, posed.velocity, white.free)

    # Whiten the contacts; where there are bilateral rows, project them out.
    rank = 0
    if len(posed.joints) == 0:
        for i in range(n):
            whiten_rows(white.factor, white.place, posed.rows[i], posed.segments[i], white.rows[i])
            white.heavy[i] = heavier(white.rows[i, 0], posed.segments[i])
            put(white.bias, i, given_rate(posed, i, zero))
            white.scale[i] = 0.0
            for a in range(4):
                white.runs[i, a] = posed.segments[i, a]
    else:
        # Velocities that follow from others are replaced by them, or all rows are projected.
        rank = hold_joints(posed, white, dependent)
        short = short and replace_velocities(posed, white, rank, white.by_island[0], white.by_island[1])
        white.following.used[0] = 1 if short else 0
        if short:
            motion = white.following.motion
            for i in range(n):
                hold_contact(posed, white, rank, i, zero)
        else:
            reach = reach_of(white.basis, rank)
            for i in range(n):
                put(white.bias, i, given_rate(posed, i, zero))
                leave_free(posed, white, rank, reach, i)

    # Bring contacts to unit size and velocities to units of τ.
    runs = white.runs
    unit_contacts(white.rows, runs, white.bias, white.scale)
    label_velocities(posed.trees, posed.segments, posed.joints, white.island)
    tau = set_pace(
        white.rows, runs, posed, white.free, motion, white.island, white.heavy, white.scale, white.by_island,
        white.bias, white.pace, zero,
    )  # fmt: skip
    if len(posed.joints) > 0 and not short:
        # The motion with joints held and without contact, to which the judge compares.
        x = white.by_island[0]
        for k in range(m):
            x[k] = tau * white.free[k]
        unwhiten_velocity(white.factor, posed.trees, x, white.held)
    return tau, rank


@kernel
def given_rate(posed, i, zero):
    """The velocity of a contact besides its rows times v: the gap rate, and the motion of surfaces."""
    if len(posed.tangent_rate) == 0:
        return with_normal(posed.gap_rate[i], zero)
    return with_normal(posed.gap_rate[i], at(posed.tangent_rate, i, zero))


@kernel
def demanded(posed, i, zero):
    """The speed at which a contact may move bodies that are at rest: to correct its overlap, or with its surface."""
    return max(
        -posed.gap_rate[i], 0.0 if len(posed.tangent_rate) == 0 else largest(at(posed.tangent_rate, i, zero)), 0.0
    )


@in_callers
@kernel
def hold_joints(posed, white, dependent):
    """Whiten the bilateral rows, choose independent ones, and impose them on the free motion; returns the rank."""
    m = len(posed.velocity)

    # Trees that they move: those of dry friction, which come last, have none.
    moved, reach = len(posed.trees) - 1, reach_of(posed.joints, len(posed.joints))
    while moved > 0 and posed.trees[moved - 1] >= reach:
        moved -= 1
    trees, reach = posed.trees[: moved + 1], posed.trees[moved]

    # Whiten each row and record its size.
    for i in range(len(posed.joints)):
        for j in range(m):
            white.joints[i, j] = posed.joints[i, j]
        whiten_dense(white.factor, trees, white.joints[i])
        white.joint_size[0, i], white.joint_size[1, i] = row_sizes(white.joints[i], trees)

    # An orthonormal basis of the independent rows, and the velocities along it that the joints prescribe.
    for u in range(len(white.triangle)):
        for w in range(len(white.triangle)):
            white.triangle[u, w] = 0.0
    rank = choose_rows(
        white.joints, reach, dependent, white.basis, white.kept, white.triangle, white.joint_size[2],
        white.joint_size[3],
    )  # fmt: skip
    set_wanted(posed.joint_rate, white.kept, white.triangle, rank, white.wanted)

    # The free motion takes on the prescribed velocities along the basis.
    for u in range(rank):
        along = dot(white.basis[u], white.free, m)
        subtract_multiple(white.free, along - white.wanted[u], white.basis[u], m)
    return rank


@kernel
def reach_of(basis, rank):
    """One past the last velocity that a joint touches: those of dry friction, which come last, are touched by none."""
    for j in range(basis.shape[1], 0, -1):
        for u in range(rank):
            if basis[u, j - 1] != 0.0:
                return j
    return 0


@in_callers
@kernel
def hold_contact(posed, white, rank, i, zero):
    """Whiten contact i over velocities that do not follow from others."""
    rows, given, segment, bias, size, heavy = white.rows[i], posed.rows[i], posed.segments[i], white.bias[i], 0.0, 0.0
    for a in range(4):
        white.runs[i, a] = segment[a]
    put(white.bias, i, given_rate(posed, i, zero))
    before, left = whiten_left(white.following, rank, white.place, given, segment, bias, rows)
    width, first = segment[1] + segment[3], segment[1]
    if left <= ROUNDED * before or not (is_zero(given[0], first) or is_zero(given[0, first:], segment[3])):
        # Little is left, or the lighter side counts: how large are the rows without joints?
        whiten_rows(white.factor, white.place, given, segment, rows)
        heavy = heavier(rows[0], segment)
        for c in range(len(rows)):
            size += dot(rows[c], rows[c], width)
        if left <= DEPENDENT * DEPENDENT * size:
            # Joints hold this contact entirely: only rounding is left, which must not be scaled up to a contact.
            for c in range(len(rows)):
                for j in range(width):
                    rows[c, j] = 0.0
        else:
            put(white.bias, i, given_rate(posed, i, zero))
            whiten_left(white.following, rank, white.place, given, segment, bias, rows)
    normal = dot(rows[0], rows[0], width)
    white.heavy[i] = max(heavy, 1.0 / sqrt(normal) if normal > 0.0 else 0.0)
    white.scale[i] = size


@in_callers
@kernel
def leave_free(posed, white, rank, reach, i):
    """Project the joints out of contact i; joints with a prescribed rate add to its bias. reach: of the joints."""
    m = len(posed.velocity)
    rows, segment, bias = white.rows[i], posed.segments[i], white.bias[i]

    # Joints couple trees, so the rows now extend over all velocities.
    white.runs[i, 0], white.runs[i, 1], white.runs[i, 2], white.runs[i, 3] = 0, m, 0, 0
    spread(white.factor, white.place, posed.rows[i], segment, rows)
    white.heavy[i] = heaviest(rows[0], segment)

    # Remove the components along the joints' basis; prescribed velocities along it enter the bias.
    size, left = 0.0, 0.0
    for c in range(len(rows)):
        row = rows[c]
        own = dot(row, row, m)
        size += own
        if own == 0.0 or dot(row, row, reach) == 0.0:  # limits have no tangents, and dry friction's normal no joint
            left += own
            continue
        rest = take_away(white, rank, reach, row, bias, c)
        if rest <= AGAIN * own:
            rest = take_away(white, rank, reach, row, bias, c)
        left += rest
    if left <= DEPENDENT * DEPENDENT * size:
        # Joints hold this contact entirely: only rounding is left, which must not be scaled up to a contact.
        for c in range(len(rows)):
            for j in range(m):
                rows[c, j] = 0.0
    else:
        # Joints may make the contact heavier than either of its sides alone.
        normal = dot(rows[0], rows[0], m)
        white.heavy[i] = max(white.heavy[i], 1.0 / sqrt(normal) if normal > 0.0 else 0.0)
    white.scale[i] = size


@kernel
def take_away(white, rank, reach, row, bias, c):
    """Subtract a row's components along the joints' basis, whose velocities enter bias[c]; returns the square left."""
    for u in range(rank):
        along = dot(white.basis[u], row, reach)
        subtract_multiple(row, along, white.basis[u], reach)
        bias[c] += along * white.wanted[u]
    return dot(row, row, len(row))


@kernel
def trim(rows, runs):
    """Cut out the zero part of the runs of whitened contacts, in place.

    For solvers that work in the space of velocities. Others need runs that are equal or disjoint, as they come.
    """
    for i in range(len(rows)):
        if runs[i, 3] == 0 and runs[i, 1] > SMALL:
            cut_run(rows[i], runs[i])
        # Of two runs, as of dry friction, the end of the second: limbs that come after.
        while runs[i, 3] > SMALL and not touches(rows[i], runs[i, 1] + runs[i, 3] - 1):
            runs[i, 3] -= 1


@kernel
def cut_run(rows, runs):
    """Split one run into two by removing its longest stretch of zeros."""
    start, length = runs[0], runs[1]
    # Look for the longest stretch of zeros between two nonzero velocities.
    first, end = -1, 0
    last, begin = -1, 0
    for j in range(length):
        if touches(rows, j):
            if last >= 0 and j - last > end - first:
                first, end = last, j
            if last < 0:
                begin = j
            last = j

    # A contact that moves nothing is left as it is; without a stretch to remove, there is one run.
    if last < 0:
        return
    if end - first <= 1:
        first, end = last, last + 1
    runs[0], runs[1] = start + begin, first + 1 - begin
    runs[2], runs[3] = start + end, last + 1 - end
    if runs[3] == 0:
        runs[2] = 0
    # Move the entries of the second run next to those of the first.
    for c in range(len(rows)):
        row = rows[c]
        for j in range(runs[1]):
            row[j] = row[begin + j]
        for j in range(last + 1 - end):
            row[runs[1] + j] = row[end + j]
        for j in range(runs[1] + last + 1 - end, length):
            row[j] = 0.0


@kernel
def touches(rows, j):
    """Whether any of a contact's rows has an entry at j."""
    for c in range(len(rows)):
        if rows[c, j] != 0.0:
            return True
    return False


@kernel
def heavier(row, segment):
    """1 / |row| of a contact's whitened row, on the side that moves less."""
    first, second = segment[1], segment[3]
    one = dot(row, row, first) if first > 0 else 0.0
    other = dot(row[first:], row[first:], second) if second > 0 else 0.0
    return size_of_lesser(one, other)


@kernel
def heaviest(row, segment):
    """As `heavier`, for a row over all velocities."""
    one = dot(row[segment[0] :], row[segment[0] :], segment[1]) if segment[1] > 0 else 0.0
    other = dot(row[segment[2] :], row[segment[2] :], segment[3]) if segment[3] > 0 else 0.0
    return size_of_lesser(one, other)


@kernel
def size_of_lesser(one, other):
    """1 / sqrt of the smaller positive square, 0 if there is none."""
    least = one if other <= 0.0 else other if one <= 0.0 else min(one, other)
    return 1.0 / sqrt(least) if least > 0.0 else 0.0


@kernel
def unit_contacts(rows, segments, bias, scale):
    """Divide every contact by its size; `scale` keeps the factor.

    scale: on entry, the squared size to use for rows that are zero (joints may hold them entirely); 0 if unknown
    """
    # s = 1 / sqrt(trace / 3), as in the module's docstring.
    for i in range(len(rows)):
        width = segments[i, 1] + segments[i, 3]
        r0, r1, r2 = rows[i, 0], rows[i, 1], rows[i, 2]
        size = dot(r0, r0, width) + dot(r1, r1, width) + dot(r2, r2, width)
        size = size if size > 0.0 else scale[i]
        s = 1.0 / sqrt(size / 3.0) if size > 0.0 else 1.0
        scale[i] = s

        # The rows and the constant part of the velocity.
        for j in range(width):
            r0[j] *= s
            r1[j] *= s
            r2[j] *= s
        for c in range(3, rows.shape[1]):
            for j in range(width):
                rows[i, c, j] *= s
        for c in range(rows.shape[1]):
            bias[i, c] *= s


@sums
def set_pace(rows, runs, posed, free, motion, island, heavy, scale, by_island, bias, pace, zero):
    """Divide velocities by τ and return it; write the largest free velocity on each contact's island to `pace`.

    rows, runs: as `unit_contacts` left them; motion: x of all velocities without contact
    """
    trees, segments, gap_rate = posed.trees, posed.segments, posed.gap_rate
    reach, demand, fastest, whole = by_island[0], by_island[1], by_island[2], by_island[3]
    for j in range(len(free)):
        reach[j], demand[j], fastest[j] = 0.0, 0.0, 0.0
    # Motion of each tree and island, and the motion that overlapping contacts and moving surfaces demand.
    for b in range(len(trees) - 1):
        square = 0.0
        for j in range(trees[b], trees[b + 1]):
            square += motion[j] * motion[j]
        if trees[b + 1] > trees[b]:
            whole[trees[b]] = sqrt(square)
            reach[island[trees[b]]] += square
    for i in range(len(rows)):
        if segments[i, 1] > 0:
            demand[island[segments[i, 0]]] += demanded(posed, i, zero) * heavy[i]
    for j in range(len(free)):
        if island[j] == j:
            reach[j] = sqrt(reach[j]) + demand[j]
    # Free velocities of the contacts that can close set the scale; the others only if there are none.
    tau, any_speed = 0.0, 0.0
    for i in range(len(rows)):
        u, gap = plus(rows_dot(rows[i], runs[i], free, zero), at(bias, i, zero)), scale[i] * gap_rate[i]
        any_speed = max(any_speed, largest(u))

        # The norm of a unit contact's row is at most sqrt(3), so it cannot approach faster than sqrt(3) reach.
        size, root = abs(u[0]), -1
        if segments[i, 1] > 0:
            size, root = 0.0, island[segments[i, 0]]
            if gap <= 3.0**0.5 * reach[root]:
                of_both = whole[segments[i, 0]] + (whole[segments[i, 2]] if segments[i, 3] > 0 else 0.0)
                size = max(largest(with_normal(u[0] - gap, u)), -gap, -u[0], ROUNDED * of_both)
        pace[i] = size / scale[i]
        if root >= 0:
            fastest[root] = max(fastest[root], pace[i])
        tau = max(tau, size)

    # Divide by τ; a contact on an island without motion gets τ in its own units.
    tau = tau if tau > 0.0 else any_speed if any_speed > 0.0 else 1.0
    inverse = 1.0 / tau
    for j in range(len(free)):
        free[j] *= inverse
    for i in range(len(rows)):
        put(bias, i, times(inverse, at(bias, i, zero)))
        if segments[i, 1] > 0:
            pace[i] = fastest[island[segments[i, 0]]]
        if not pace[i] > 0.0:
            pace[i] = tau / scale[i]
    return tau

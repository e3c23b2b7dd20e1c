"""The normal form: mass whitened to the identity, bilateral rows projected out, contacts scaled to unit size.

With M = G Gᵀ and x = Gᵀ v the mass becomes one, a row a becomes G⁻¹ a, and

    x = x_free + sum_i L_iᵀ p_i,      u_i = L_i x + b_i,      L_i the rows of contact i

G is upper triangular: velocities of a tree are numbered from its root, so that neither the factor nor a row ever
touches more than a body's ancestors.

A contact has three rows, n, t1, t2, or six with torsion and rolling. It is divided by its own size,
s_i = 1 / sqrt(trace / 3) with the trace of L_i L_iᵀ over the first three, and velocities by τ, the largest free
velocity of a contact that can close in this step: impulses come back as p_i = s_i τ p̂_i. A contact can close if its
gap_rate is not beyond what the energy of its island allows it to approach at; one that cannot sets no scale.

Bilateral rows are made orthonormal one by one; one that depends on those before it, or that is rounding beside the
largest of them, is left out (Drumwright's FIND-INDICES [Drumwright2013, Algorithm 2], in O(m²) a row), and x is kept in
the space that the others leave.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import alone, in_callers, kernel, sums
from stiction.arrays.dense import back_substitute, dot, forward_substitute, subtract_multiple, tree_factor
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import rows_dot
from stiction.arrays.vectors import at, largest, plus, put, times, with_normal
from stiction.errors import InvalidProblem
from stiction.problems.islands import label_velocities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

DEPENDENT = 1e-9  # a bilateral row is redundant if a smaller part of it is independent of the others
LOOSELY = 1e-5  # the same in a step: decimals of a model leave as much of a plane loop's third row
ABOUT, DECIDED = 0.01, -1.0  # a row with this part of the largest remaining square is as good; marks a row as done
AGAIN = 0.1  # part of a row's square that is left, below which rounding errors count and it is projected once more
NOISE_ROW = 1e-10  # a bilateral row smaller than this, over the largest, is rounding: a plane loop's third row
EXACTLY = 1e-12  # part of a redundant row beyond the others' span that is rounding
CONTRADICTION = 1e-8  # error of a redundant row, over its own terms, that is more than rounding
ZERO_EIGENVALUE = 1e-14  # of a Delassus matrix, in units of its largest
FACTORED = 1e-12  # error of its factors, in units of its largest entry: solvers correct what is left (`corrected`)
ROUNDING = 4.5e-16  # of its entries: pivots below this times its size are left out
INDEFINITE = 1e-3  # in the same units: smaller negative eigenvalues are rounding errors of a printed file
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
    joint_size: Array[Floats, 3, "j"]  # 1 / |row|; the same on the tree that it moves least; scratch
    held: Array[Floats, "m if j > 0 else 0"]  # velocities without contact, joints held
    by_island: Array[Floats, 4, "m"]  # scratch
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
    tau, rank = whiten_posed(problem.posed, white, dependent, problem.zero)
    if tau < 0.0:
        row = int(-tau) - 1
        raise InvalidProblem(f"ContactProblem: mass must be positive definite; it is not from row {row} on")
    return white, tau, rank


def of_delassus(problem: ContactProblem) -> Whitened:
    """Factor W = L Lᵀ; L represents the symmetric part only (the judge uses W itself)."""
    assert problem.delassus is not None
    assert problem.offset is not None
    n, d = problem.rows.shape[:2]
    # Contacts are brought to one size first, or light ones drown in the rounding errors of heavy ones.
    size = np.repeat(1.0 / delassus_scale(problem.delassus, d), d)
    factor = semidefinite_factor(0.5 * (problem.delassus + problem.delassus.T) / np.outer(size, size))
    width = factor.shape[1]
    rows = (size[:, None] * factor).reshape(n, d, width)
    segments = np.tile(np.array([0, width, 0, 0]), (n, 1))
    segments.flags.writeable = False
    rows, bias = np.ascontiguousarray(rows), problem.offset.reshape(n, d).copy()
    scale = np.zeros(n)
    unit_contacts(rows, segments, bias, scale)
    velocity = bias / scale[:, None]
    size, pace = paces(velocity, problem.labels[1])
    tau = float((scale * size).max(initial=0.0)) or float(np.abs(bias).max(initial=0.0)) or 1.0
    bias /= tau
    pace = np.where(pace > 0.0, pace, tau / scale)
    return Whitened(
        rows, segments, np.zeros(width), bias, problem.friction, scale, tau, pace, NO_ROWS, NONE, NO_ROWS, None,
    )  # fmt: skip


def delassus_scale(W: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """s of each contact of d directions where only W is known; 1 of a contact that does not respond."""
    size = np.sqrt(W.diagonal().reshape(-1, d)[:, :3].sum(axis=1) / 3.0)
    return np.asarray(1.0 / np.where(size > 0.0, size, 1.0))


def semidefinite_factor(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows, rank) L with W = L Lᵀ.

    By Cholesky's method with pivoting, a tenth of the work of an eigendecomposition. A printed W, semidefinite up to
    its last digits only, leaves more than rounding there; of that one its positive eigenvalues are taken.
    """
    from scipy.linalg.lapack import dpstrf

    if not len(W):
        return W
    most = W.diagonal().max(initial=0.0)
    triangle, pivots, rank, _ = dpstrf(W, lower=1, tol=max(ZERO_EIGENVALUE, len(W) * ROUNDING) * most)
    factor = np.zeros((len(W), rank))
    factor[pivots - 1] = np.tril(triangle[:, :rank])
    if np.abs(W - factor @ factor.T).max(initial=0.0) <= FACTORED * most:
        return factor
    values, vectors = np.linalg.eigh(W)
    largest = values.max(initial=0.0)
    if (values < -INDEFINITE * largest).any():
        least = values[0] / largest
        raise InvalidProblem(f"from_delassus: W must be positive semidefinite, but has an eigenvalue of {least:g} max")
    large = values > ZERO_EIGENVALUE * largest
    return np.asarray(vectors[:, large] * np.sqrt(values[large]))


def paces(free: NDArray[np.float64], label: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Free contact velocities that count, and the largest on each contact's island, where only these are known.

    What a contact would need to close is not known then: one that opens faster than all that approach move sets none.
    """
    count = int(label.max(initial=-1)) + 1
    opening, speed = free[:, 0], np.abs(free).max(axis=1, initial=0.0)
    fastest = np.zeros(count)
    np.maximum.at(fastest, label, np.where(opening <= 0.0, speed, 0.0))
    size = np.where(opening <= fastest[label], speed, 0.0)
    np.maximum.at(fastest, label, size)
    return size, fastest[label]


@alone
@kernel
def whiten_posed(posed, white, dependent, zero):
    """Fill `white`; return τ, or -(1 + i) if the mass is not positive from row i on, and the rank of the joints.

    dependent: part of a bilateral row beyond the span of others that counts as none
    zero: of as many numbers as a contact has rows
    """
    m, n = len(posed.velocity), len(posed.rows)

    # Factor the mass and whiten the free velocity.
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
        rank = hold_joints(posed, white, dependent)
        reach = reach_of(white.basis, rank)
        for i in range(n):
            put(white.bias, i, given_rate(posed, i, zero))
            leave_free(posed, white, rank, reach, i)

    # Bring contacts to unit size and velocities to units of τ.
    runs = white.runs
    unit_contacts(white.rows, runs, white.bias, white.scale)
    label_velocities(posed.trees, posed.segments, posed.joints, white.island)
    tau = set_pace(
        white.rows, runs, posed, white.free, white.island, white.heavy, white.scale, white.by_island, white.bias,
        white.pace, zero,
    )  # fmt: skip
    if len(posed.joints) > 0:
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
    """The speed that a contact may give to bodies at rest: that of taking back its overlap, or of a moving surface."""
    return max(
        -posed.gap_rate[i], 0.0 if len(posed.tangent_rate) == 0 else largest(at(posed.tangent_rate, i, zero)), 0.0
    )


@in_callers
@kernel
def hold_joints(posed, white, dependent):
    """Whiten the bilateral rows, choose independent ones, and impose them on the free motion; returns the rank."""
    m = len(posed.velocity)

    # Whiten each row and record its size.
    for i in range(len(posed.joints)):
        for j in range(m):
            white.joints[i, j] = posed.joints[i, j]
        whiten_dense(white.factor, posed.trees, white.joints[i])
        white.joint_size[0, i], white.joint_size[1, i] = row_sizes(white.joints[i], posed.trees)

    # An orthonormal basis of the independent rows, and the velocities along it that the joints prescribe.
    for u in range(len(white.triangle)):
        for w in range(len(white.triangle)):
            white.triangle[u, w] = 0.0
    rank = choose_rows(white.joints, dependent, white.basis, white.kept, white.triangle, white.joint_size[2])
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
def gram_schmidt(white, dependent, least, basis, kept, triangle, left):
    """Write orthonormal rows that span those of `white`; return their number, the rank.

    The next row is the first one with about the largest remaining part: rows that nearly depend on others come last
    and do not spoil the basis with their rounding errors. left: (rows,) scratch, remaining part of each row's square
    """
    m = white.shape[1]

    # At first all of each row remains; `least` keeps rows of rounding size small.
    for i in range(len(white)):
        size = max(dot(white[i], white[i], m), least * least)
        left[i] = dot(white[i], white[i], m) / size if size > 0.0 else DECIDED
    rank = 0
    while rank < len(basis):
        i = next_row(left)
        if i < 0:
            break
        # Subtract its components along the basis so far, once more if that leaves little of it.
        rest, along = basis[rank], triangle[rank]
        for j in range(m):
            rest[j] = white[i, j]
        own = dot(rest, rest, m)
        size = max(own, least * least)
        for u in range(rank):
            along[u] = 0.0
        for again in range(2):
            if again == 0 or dot(rest, rest, m) <= AGAIN * own:
                for u in range(rank):
                    part = dot(basis[u], rest, m)
                    along[u] += part
                    subtract_multiple(rest, part, basis[u], m)

        # Compare the remaining part with the estimate by which the row was chosen.
        length = sqrt(dot(rest, rest, m))
        part = length * length / size
        if part <= dependent * dependent:
            left[i] = DECIDED
        elif part < 0.25 * left[i]:  # less than estimated: another row may have more left
            left[i] = part
        else:
            # Accept it: normalize, then update what remains of the undecided rows.
            along[rank], kept[rank], left[i] = length, i, DECIDED
            for j in range(m):
                rest[j] /= length
            for k in range(len(white)):
                if left[k] >= 0.0:
                    part = dot(white[k], rest, m)
                    left[k] = max(left[k] - part * part / max(dot(white[k], white[k], m), least * least), 0.0)
            rank += 1
    return rank


@kernel
def next_row(left):
    """Return the first row with about the largest remaining part, -1 if all are decided."""
    most = DECIDED
    for i in range(len(left)):
        most = max(most, left[i])
    if most >= 0.0:
        for i in range(len(left)):
            if left[i] >= ABOUT * most:
                return i
    return -1


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
def row_sizes(row, trees):
    """1 / |row| of a whitened bilateral row, and 1 / |part| on the tree that it moves least; 0 if it is zero."""
    total, least = 0.0, np.inf
    for b in range(len(trees) - 1):
        part = row[trees[b] : trees[b + 1]]
        square = dot(part, part, len(part))
        total += square
        if square > 0.0:
            least = min(least, square)
    return (1.0 / sqrt(total), 1.0 / sqrt(least)) if total > 0.0 else (0.0, 0.0)


@kernel
def choose_rows(joints, dependent, basis, kept, triangle, left):
    """Orthonormal rows that span the whitened bilateral ones, except rows of rounding size; returns their number."""
    return gram_schmidt(joints, dependent, NOISE_ROW / dependent * longest(joints), basis, kept, triangle, left)


@kernel
def longest(rows):
    """The largest norm of a row."""
    largest = 0.0
    for i in range(len(rows)):
        largest = max(largest, dot(rows[i], rows[i], rows.shape[1]))
    return sqrt(largest)


@kernel
def set_wanted(rate, kept, triangle, rank, wanted):
    """Velocities along the basis at which the kept rows have their rates, by forward substitution."""
    for u in range(rank):
        wanted[u] = (-rate[kept[u]] - dot(triangle[u], wanted, u)) / triangle[u, u]


@kernel
def make_consistent(white, rank, joints, rate):
    """Give redundant rows the rates that the kept ones imply; rows of rounding size become zero.

    Errors of redundant rows never agree to the last digit, and rows that contradict each other cannot all be held. In a
    step, rates only correct errors, so redundant rows may follow the others. For the same reason a row that is not
    redundant to the last digit loses what is left of it, a part smaller than LOOSELY that enormous forces would hold.
    """
    m, left = joints.shape[1], white.joint_size[2]
    noise = NOISE_ROW * longest(white.joints)

    # Mark the redundant rows.
    for i in range(len(rate)):
        left[i] = 1.0
    for u in range(rank):
        left[white.kept[u]] = 0.0

    # Their rates follow from the velocities along the basis.
    for i in range(len(rate)):
        if left[i] == 0.0:
            continue
        moved = 0.0
        for u in range(rank):
            white.share[u] = dot(white.joints[i], white.basis[u], m)
            moved += white.share[u] * white.wanted[u]
        rate[i] = -moved
        size = dot(white.joints[i], white.joints[i], m)
        if size <= noise * noise:
            rate[i] = 0.0
            for j in range(m):
                joints[i, j] = 0.0
        elif not spanned(white, rank, i, size):
            combine_rows(white, rank, i, joints, rate)


@kernel
def spanned(white, rank, i, size):
    """Whether a redundant row lies in the span of the kept ones but for rounding; size: its square."""
    rest = 0.0
    for j in range(white.joints.shape[1]):
        part = white.joints[i, j]
        for u in range(rank):
            part -= white.share[u] * white.basis[u, j]
        rest += part * part
    return rest <= EXACTLY * EXACTLY * size


@kernel
def combine_rows(white, rank, i, joints, rate):
    """Replace row i and its rate by the combination of kept rows that is nearest to it."""
    share, T = white.share, white.triangle

    # From parts along the basis to parts of the kept rows, by back substitution.
    for u in range(rank - 1, -1, -1):
        for w in range(u + 1, rank):
            share[u] -= T[w, u] * share[w]
        share[u] /= T[u, u]

    # Their sum.
    rate[i] = 0.0
    for j in range(joints.shape[1]):
        joints[i, j] = 0.0
    for u in range(rank):
        k = white.kept[u]
        rate[i] += share[u] * rate[k]
        subtract_multiple(joints[i], -share[u], joints[k], joints.shape[1])


@kernel
def factor_blocks(mass, trees, factor, place):
    """M = Lᵀ L of each block, L with inverted diagonal; returns the first row that fails, -1 if none does."""
    at = 0
    for b in range(len(trees) - 1):
        size = trees[b + 1] - trees[b]
        if size > 0:  # an empty tree has no velocity at which to store its place
            place[trees[b]] = at
        failed = tree_factor(mass[at : at + size * size], size, factor[at : at + size * size])
        if failed >= 0:
            return trees[b] + failed
        at += size * size
    return -1


@sums
def back_substitute_rows(L, k, r0, r1, r2):
    """Multiply three rows by G⁻¹ in place; velocities that they do not touch are skipped."""
    for i in range(k - 1, -1, -1):
        if r0[i] == 0.0 and r1[i] == 0.0 and r2[i] == 0.0:
            continue
        row = L[i * k : i * k + i + 1]
        x0, x1, x2 = r0[i] * row[i], r1[i] * row[i], r2[i] * row[i]
        r0[i], r1[i], r2[i] = x0, x1, x2
        for j in range(i):
            r0[j] -= x0 * row[j]
            r1[j] -= x1 * row[j]
            r2[j] -= x2 * row[j]


@kernel
def whiten_rows(factor, place, rows, segment, out):
    """out = G⁻¹ of a contact's rows; each segment is a whole block."""
    for c in range(len(rows)):
        for j in range(rows.shape[1]):
            out[c, j] = rows[c, j]

    # Each side has its own block of the factor.
    first, second = segment[1], segment[3]
    if first > 0:
        whiten_side(factor[place[segment[0]] :], first, 0, out)
    if second > 0:
        whiten_side(factor[place[segment[2]] :], second, first, out)


@kernel
def whiten_side(L, k, start, rows):
    """Multiply the rows of a contact at k velocities from `start` on by G⁻¹ in place.

    A limit has a normal only, and dry friction a tangent: these are done alone.
    """
    r0, r1, r2 = rows[0, start:], rows[1, start:], rows[2, start:]
    if is_zero(r2, k) and is_zero(r1, k):
        back_substitute(L, k, r0)
    elif is_zero(r2, k) and is_zero(r0, k):
        back_substitute(L, k, r1)
    else:
        back_substitute_rows(L, k, r0, r1, r2)
    for c in range(3, len(rows)):
        back_substitute(L, k, rows[c, start:])


@kernel
def is_zero(row, k):
    """Whether the first k entries are zero."""
    for j in range(k):
        if row[j] != 0.0:
            return False
    return True


@kernel
def spread(factor, place, rows, segment, out):
    """As `whiten_rows`, with the result over all velocities."""
    for c in range(len(rows)):
        for j in range(out.shape[1]):
            out[c, j] = 0.0

    # Put each side at its velocities and whiten it there.
    taken = 0
    for s in range(2):
        start, length = segment[2 * s], segment[2 * s + 1]
        if length > 0:
            for c in range(len(rows)):
                for j in range(length):
                    out[c, start + j] = rows[c, taken + j]
            whiten_side(factor[place[start] :], length, start, out)
            taken += length


@kernel
def whiten_dense(factor, trees, row):
    """G⁻¹ of a row over all velocities, in place."""
    at = 0
    for b in range(len(trees) - 1):
        size = trees[b + 1] - trees[b]
        back_substitute(factor[at:], size, row[trees[b] :])
        at += size * size


@sums
def whiten_velocity(factor, trees, v, x):
    """x = Gᵀ v."""
    at = 0
    for b in range(len(trees) - 1):
        start, size = trees[b], trees[b + 1] - trees[b]
        for i in range(size):
            row = factor[at + i * size : at + i * size + i + 1]
            x[start + i] = dot(row, v[start:], i) + v[start + i] / row[i]
        at += size * size


@kernel
def unwhiten_velocity(factor, trees, x, v):
    """v = G⁻ᵀ x."""
    at = 0
    for b in range(len(trees) - 1):
        start, size = trees[b], trees[b + 1] - trees[b]
        part = v[start : start + size]
        for i in range(size):
            part[i] = x[start + i]
        forward_substitute(factor[at:], size, part)
        at += size * size


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
def set_pace(rows, runs, posed, free, island, heavy, scale, by_island, bias, pace, zero):
    """Divide velocities by τ and return it; write the largest free velocity on each contact's island to `pace`.

    rows, runs: as `unit_contacts` left them
    """
    trees, segments, gap_rate = posed.trees, posed.segments, posed.gap_rate
    reach, demand, fastest, whole = by_island[0], by_island[1], by_island[2], by_island[3]
    for j in range(len(free)):
        reach[j], demand[j], fastest[j] = 0.0, 0.0, 0.0
    # Motion of each tree and island, and the motion that overlapping contacts and moving surfaces demand.
    for b in range(len(trees) - 1):
        square = 0.0
        for j in range(trees[b], trees[b + 1]):
            square += free[j] * free[j]
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

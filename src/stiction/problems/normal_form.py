"""The normal form: mass whitened to the identity, bilateral rows projected out, contacts scaled to unit size.

With M = G Gᵀ and x = Gᵀ v the mass becomes one, a row a becomes G⁻¹ a, and

    x = x_free + sum_i L_iᵀ p_i,      u_i = L_i x + b_i,      L_i the three rows of contact i

G is upper triangular: velocities of a tree are numbered from its root, so that neither the factor nor a row ever
touches more than a body's ancestors.

Contact i is divided by its own size, s_i = 1 / sqrt(trace(L_i L_iᵀ) / 3), and velocities by τ, the largest free contact
velocity: impulses come back as p_i = s_i τ p̂_i. Bilateral rows are made orthonormal one by one; one that depends on
those before it is left out (Drumwright's FIND-INDICES [Drumwright2013, Algorithm 2], in O(m²) a row), and x is kept in
the space that the others leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.compiled import kernel, sums
from stiction.errors import InvalidProblem
from stiction.linear import back_substitute, dot, forward_substitute, subtract_multiple, tree_factor
from stiction.problems.contact import densified as densified

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

DEPENDENT = 1e-9  # part of a bilateral row that others leave of it, below which it is redundant
ZERO_EIGENVALUE = 1e-14  # of a Delassus matrix, in units of its largest
INDEFINITE = 1e-3  # the size, in the same units, up to which negative ones are the errors of a printed file
ROUNDED = 1e-6  # part of its bodies' whole motion below which a free velocity may be what rounding left of it
NO_ROWS, NONE = np.zeros((0, 0)), np.zeros(0, np.int64)


class Whitened(NamedTuple):
    """A contact problem in normal form; everything dimensionless but `scale`, `tau` and `factor`."""

    rows: NDArray[np.float64]  # (n, 3, k) of each contact, at the velocities that it touches
    segments: NDArray[np.int64]  # (n, 4) start and length of the two runs of velocities that it touches
    free: NDArray[np.float64]  # (m,) x without contact
    bias: NDArray[np.float64]  # (n, 3) constant part of the contact velocities
    friction: NDArray[np.float64]  # (n,)
    scale: NDArray[np.float64]  # (n,) s
    tau: float  # τ, in m/s times s
    factor: NDArray[np.float64]  # Gᵀ: lower triangles of the mass's blocks, one after the other, diagonals inverted
    place: NDArray[np.int64]  # (m,) where the block that begins at a velocity begins in `factor`
    joints: NDArray[np.float64]  # (r, m) orthonormal bilateral rows that are not redundant
    kept: NDArray[np.int64]  # (r,) which rows they come from
    triangle: NDArray[np.float64]  # (r, r) lower: whitened kept rows = triangle @ joints

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
    m, n, trees = problem.m, problem.n, problem.trees
    factor, place = np.empty(mass.size), np.empty(m, np.int64)
    free, bias, scale = np.empty(m), np.empty((n, 3)), np.empty(n)
    joints, kept, triangle, segments = NO_ROWS, NONE, NO_ROWS, problem.segments
    if not len(problem.joints):
        rows = np.empty(problem.rows.shape)
        tau = whiten_free(
            mass.reshape(-1), trees, problem.velocity, problem.rows, problem.segments, problem.gap_rate,
            factor, place, rows, free, bias, scale,
        )  # fmt: skip
    else:
        most = min(len(problem.joints), m)
        white, joints, triangle = np.empty((len(problem.joints), m)), np.empty((most, m)), np.zeros((most, most))
        kept, wanted = np.empty(most, np.int64), np.empty(most)
        rows, segments = np.empty((n, 3, m)), np.empty((n, 4), np.int64)
        tau, rank = whiten_jointed(
            mass.reshape(-1), trees, problem.velocity, problem.rows, problem.segments, problem.gap_rate,
            problem.joints, problem.joint_rate, factor, place, white, joints, kept, triangle, wanted,
            rows, segments, free, bias, scale,
        )  # fmt: skip
        segments.flags.writeable = False
        joints, kept, triangle = joints[:rank], kept[:rank], triangle[:rank, :rank]
    if tau < 0.0:
        row = int(-tau) - 1
        raise InvalidProblem(f"ContactProblem: mass must be positive definite; it is not from row {row} on")
    return Whitened(
        rows, segments, free, bias, problem.friction, scale, tau, factor, place, joints, kept, triangle
    )  # fmt: skip


def of_delassus(problem: ContactProblem) -> Whitened:
    """W = L Lᵀ by its eigenvalues; what is not symmetric in W is not in L (the judge uses W itself)."""
    assert problem.delassus is not None
    assert problem.offset is not None
    n = problem.n
    # Contacts are brought to one size first, or light ones drown in the rounding errors of heavy ones.
    size = np.sqrt(problem.delassus.diagonal().reshape(n, 3).sum(axis=1) / 3.0)
    size = np.repeat(np.where(size > 0.0, size, 1.0), 3)
    values, vectors = np.linalg.eigh(0.5 * (problem.delassus + problem.delassus.T) / np.outer(size, size))
    largest = values.max(initial=0.0)
    if (values < -INDEFINITE * largest).any():
        least = values[0] / largest
        raise InvalidProblem(f"from_delassus: W must be positive semidefinite, but has an eigenvalue of {least:g} max")
    large = values > ZERO_EIGENVALUE * largest
    width = int(large.sum())
    rows = (size[:, None] * vectors[:, large] * np.sqrt(values[large])).reshape(n, 3, width)
    segments = np.tile(np.array([0, width, 0, 0]), (n, 1))
    segments.flags.writeable = False
    rows, bias = np.ascontiguousarray(rows), problem.offset.reshape(n, 3).copy()
    free, scale = np.zeros(width), np.empty(n)
    tau = unit_contacts(rows, segments, free, bias, scale)
    return Whitened(
        rows, segments, free, bias, problem.friction, scale, tau, np.zeros(0), NONE, NO_ROWS, NONE, NO_ROWS
    )  # fmt: skip


def velocities(
    problem: ContactProblem, impulse: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x and v after these impulses of contacts, the joints held; undefined in Delassus form."""
    white = problem.whitened
    x, velocity = np.empty((2, problem.m))
    if problem.mass is not None:
        move(
            white.rows, white.segments, white.free, white.tau, white.scale, impulse, white.factor, problem.trees,
            x, velocity,
        )  # fmt: skip
    return x, velocity


def response(problem: ContactProblem, impulse: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """v = M⁻¹ of all impulses from v_free, and the joint impulses that keep J v + joint_rate = 0."""
    white, joint_impulse = problem.whitened, np.zeros(len(problem.joints))
    x, velocity = velocities(problem, impulse)
    if len(white.kept):
        # Whitened joint impulses are what x has beyond the free velocity and the contacts' own rows.
        alone = np.empty(problem.m)
        move_unheld(
            problem.rows, problem.segments, problem.velocity, impulse, white.factor, white.place, problem.trees,
            np.empty(problem.rows.shape[1:]), alone,
        )  # fmt: skip
        joint_impulse[white.kept] = np.linalg.solve(white.triangle.T, white.joints @ (x - alone))
    return velocity, joint_impulse


@kernel
def gram_schmidt(white, dependent, least, basis, kept, triangle):
    """Row by row, twice for safety; a row of which the others leave nothing is skipped. The number of rows kept."""
    m = white.shape[1]
    rank = 0
    for i in range(len(white)):
        if rank == len(basis):
            break
        rest, along = basis[rank], triangle[rank]
        for j in range(m):
            rest[j] = white[i, j]
        size = dot(rest, rest, m)
        for u in range(rank):
            along[u] = 0.0
        for _ in range(2):
            for u in range(rank):
                part = dot(basis[u], rest, m)
                along[u] += part
                subtract_multiple(rest, part, basis[u], m)
        left = dot(rest, rest, m)
        if left > dependent * dependent * max(size, least * least):
            length = left**0.5
            along[rank] = length
            for j in range(m):
                rest[j] /= length
            kept[rank] = i
            rank += 1
    return rank


@kernel
def whiten_free(mass, trees, velocity, rows, segments, gap_rate, factor, place, white, free, bias, scale):
    """The normal form of a problem without joints; τ, or -(1 + i) if the mass is not positive from row i on."""
    failed = factor_blocks(mass, trees, factor, place)
    if failed >= 0:
        return -1.0 - failed
    whiten_velocity(factor, trees, velocity, free)
    for i in range(len(rows)):
        whiten_rows(factor, place, rows[i], segments[i], white[i])
        bias[i, 0], bias[i, 1], bias[i, 2] = gap_rate[i], 0.0, 0.0
    return unit_contacts(white, segments, free, bias, scale)


@kernel
def whiten_jointed(
    mass, trees, velocity, rows, segments, gap_rate, given, rate, factor, place, joints, basis, kept, triangle, wanted,
    white, whole, free, bias, scale,
):  # fmt: skip
    """The same with bilateral rows projected out, and how many of them are independent."""
    m = len(velocity)
    failed = factor_blocks(mass, trees, factor, place)
    if failed >= 0:
        return -1.0 - failed, 0
    whiten_velocity(factor, trees, velocity, free)
    for i in range(len(given)):
        for j in range(m):
            joints[i, j] = given[i, j]
        whiten_dense(factor, trees, joints[i])
    rank = gram_schmidt(joints, DEPENDENT, 0.0, basis, kept, triangle)
    for u in range(rank):
        wanted[u] = (-rate[kept[u]] - dot(triangle[u], wanted, u)) / triangle[u, u]
    for u in range(rank):
        subtract_multiple(free, dot(basis[u], free, m) - wanted[u], basis[u], m)
    for i in range(len(rows)):
        whole[i, 0], whole[i, 1], whole[i, 2], whole[i, 3] = 0, m, 0, 0
        size, left = 0.0, 0.0
        spread(factor, place, rows[i], segments[i], white[i])
        for c in range(3):
            row = white[i, c]
            size += dot(row, row, m)
            bias[i, c] = gap_rate[i] if c == 0 else 0.0
            for _ in range(2):
                for u in range(rank):
                    along = dot(basis[u], row, m)
                    subtract_multiple(row, along, basis[u], m)
                    bias[i, c] += along * wanted[u]  # joints that are driven move the contacts
            left += dot(row, row, m)
        if left <= DEPENDENT * DEPENDENT * size:
            # What joints hold entirely is left with rounding errors, which must not be scaled up to a contact.
            for c in range(3):
                for j in range(m):
                    white[i, c, j] = 0.0
    return unit_contacts(white, whole, free, bias, scale), rank


@kernel
def factor_blocks(mass, trees, factor, place):
    """M = Lᵀ L of each block, L with inverted diagonal; the first row that fails, -1 if none does."""
    at = 0
    for b in range(len(trees) - 1):
        size = trees[b + 1] - trees[b]
        place[trees[b]] = at
        failed = tree_factor(mass[at : at + size * size], size, factor[at : at + size * size])
        if failed >= 0:
            return trees[b] + failed
        at += size * size
    return -1


@sums
def back_substitute_rows(L, k, r0, r1, r2):
    """Three rows times G⁻¹, in place; velocities that they do not touch are passed over."""
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
    """out = G⁻¹ of a contact's three rows; a segment is a block."""
    for c in range(3):
        for j in range(rows.shape[1]):
            out[c, j] = rows[c, j]
    first, second = segment[1], segment[3]
    r0, r1, r2 = out[0], out[1], out[2]
    if first > 0:
        back_substitute_rows(factor[place[segment[0]] :], first, r0, r1, r2)
    if second > 0:
        back_substitute_rows(factor[place[segment[2]] :], second, r0[first:], r1[first:], r2[first:])


@kernel
def spread(factor, place, rows, segment, out):
    """`whiten_rows` over all velocities."""
    for c in range(3):
        for j in range(out.shape[1]):
            out[c, j] = 0.0
    taken = 0
    for s in range(2):
        start, length = segment[2 * s], segment[2 * s + 1]
        if length > 0:
            for c in range(3):
                for j in range(length):
                    out[c, start + j] = rows[c, taken + j]
            back_substitute_rows(factor[place[start] :], length, out[0, start:], out[1, start:], out[2, start:])
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
def move(rows, segments, free, tau, scale, impulse, factor, trees, x, v):
    """The velocities x and v that impulses lead to."""
    for j in range(len(free)):
        x[j] = free[j] * tau
    for i in range(len(rows)):
        add_rows(rows[i], segments[i], impulse[i, 0] / scale[i], impulse[i, 1] / scale[i], impulse[i, 2] / scale[i], x)
    unwhiten_velocity(factor, trees, x, v)


@kernel
def move_unheld(rows, segments, velocity, impulse, factor, place, trees, white, x):
    """x as if there were no joints."""
    whiten_velocity(factor, trees, velocity, x)
    for i in range(len(rows)):
        whiten_rows(factor, place, rows[i], segments[i], white)
        add_rows(white, segments[i], impulse[i, 0], impulse[i, 1], impulse[i, 2], x)


@kernel
def row_dot(row, segment, x):
    """A contact's row times x."""
    length = segment[1]
    total = dot(row, x[segment[0] :], length)
    if segment[3] > 0:
        total += dot(row[length:], x[segment[2] :], segment[3])
    return total


@sums
def rows_dot(rows, segment, x):
    """A contact's three rows times x."""
    r0, r1, r2 = rows[0], rows[1], rows[2]
    u0, u1, u2 = 0.0, 0.0, 0.0
    start, length = segment[0], segment[1]
    for j in range(length):
        xj = x[start + j]
        u0 += r0[j] * xj
        u1 += r1[j] * xj
        u2 += r2[j] * xj
    other = segment[2] - length
    for j in range(length, length + segment[3]):
        xj = x[other + j]
        u0 += r0[j] * xj
        u1 += r1[j] * xj
        u2 += r2[j] * xj
    return u0, u1, u2


@sums
def run_size(first, length, x):
    total = 0.0
    for j in range(first, first + length):
        total += x[j] * x[j]
    return total**0.5


@kernel
def add_row(row, segment, factor, x):
    """x += factor times a contact's row."""
    length = segment[1]
    subtract_multiple(x[segment[0] :], -factor, row, length)
    if segment[3] > 0:
        subtract_multiple(x[segment[2] :], -factor, row[length:], segment[3])


@sums
def add_rows(rows, segment, p0, p1, p2, x):
    """x += a contact's three rows times p."""
    if p0 == 0.0 and p1 == 0.0 and p2 == 0.0:
        return
    r0, r1, r2 = rows[0], rows[1], rows[2]
    start, length = segment[0], segment[1]
    for j in range(length):
        x[start + j] += p0 * r0[j] + p1 * r1[j] + p2 * r2[j]
    other = segment[2] - length
    for j in range(length, length + segment[3]):
        x[other + j] += p0 * r0[j] + p1 * r1[j] + p2 * r2[j]


@sums
def unit_contacts(rows, segments, free, bias, scale):
    """Divide every contact by its size, and velocities by the largest free one of a contact, τ, which is returned."""
    tau = 0.0
    for i in range(len(rows)):
        width = segments[i, 1] + segments[i, 3]
        r0, r1, r2 = rows[i, 0], rows[i, 1], rows[i, 2]
        size = dot(r0, r0, width) + dot(r1, r1, width) + dot(r2, r2, width)
        s = 1.0 / (size / 3.0) ** 0.5 if size > 0.0 else 1.0
        scale[i] = s
        for j in range(width):
            r0[j] *= s
            r1[j] *= s
            r2[j] *= s
        u0, u1, u2 = rows_dot(rows[i], segments[i], free)
        b0, b1, b2 = bias[i, 0] * s, bias[i, 1] * s, bias[i, 2] * s
        bias[i, 0], bias[i, 1], bias[i, 2] = b0, b1, b2
        whole = run_size(segments[i, 0], segments[i, 1], free) + run_size(segments[i, 2], segments[i, 3], free)
        tau = max(tau, abs(u0 + b0), abs(u1 + b1), abs(u2 + b2), ROUNDED * (whole + abs(b0)))
    if not tau > 0.0:
        tau = 1.0
    inverse = 1.0 / tau
    for j in range(len(free)):
        free[j] *= inverse
    for i in range(len(rows)):
        bias[i, 0], bias[i, 1], bias[i, 2] = bias[i, 0] * inverse, bias[i, 1] * inverse, bias[i, 2] * inverse
    return tau

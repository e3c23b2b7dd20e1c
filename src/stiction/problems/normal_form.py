"""The normal form: mass whitened to the identity, bilateral rows projected out, contacts scaled to unit size.

With M = G Gᵀ and x = Gᵀ v the mass becomes one, a row a becomes G⁻¹ a, and

    x = x_free + sum_i L_iᵀ p_i,      u_i = L_i x + b_i,      L_i the three rows of contact i

Contact i is divided by its own size, s_i = 1 / sqrt(trace(L_i L_iᵀ) / 3), and velocities by τ, the largest free contact
velocity: impulses come back as p_i = s_i τ p̂_i. Bilateral rows are made orthonormal one by one; one that depends on
those before it is left out (Drumwright's FIND-INDICES [Drumwright2013, Algorithm 2], in O(m²) a row), and x is kept in
the space that the others leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.compiled import kernel
from stiction.errors import InvalidProblem
from stiction.linear import cholesky, dot, subtract_multiple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

DEPENDENT = 1e-9  # part of a bilateral row that others leave of it, below which it is redundant
ZERO_EIGENVALUE = 1e-14  # of a Delassus matrix, in units of its largest
INDEFINITE = 1e-3  # the size, in the same units, up to which negative ones are the errors of a printed file


class Whitened(NamedTuple):
    """A contact problem in normal form; everything dimensionless but `scale`, `tau` and `factor`."""

    rows: NDArray[np.float64]  # (n, 3, k) of each contact, at the velocities that it touches
    segments: NDArray[np.int64]  # (n, 4) start and length of the two runs of velocities that it touches
    free: NDArray[np.float64]  # (m,) x without contact
    bias: NDArray[np.float64]  # (n, 3) constant part of the contact velocities
    friction: NDArray[np.float64]  # (n,)
    scale: NDArray[np.float64]  # (n,) s
    tau: float  # τ, in m/s times s
    factor: NDArray[np.float64]  # G: (m, m) lower triangle, or (b, 6, 6)
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
    m, n = problem.m, problem.n
    factor = np.array(mass)
    blocks = factor if factor.ndim == 3 else factor[None]
    failed = factor_blocks(blocks)
    if failed >= 0:
        raise InvalidProblem(f"ContactProblem: mass must be positive definite; it is not from row {failed} on")
    rows = np.array(problem.rows)
    whiten_rows(blocks, problem.segments, rows)
    free = np.empty(m)
    whiten_velocity(blocks, problem.velocity, free)
    segments = problem.segments
    bias = np.zeros((n, 3))
    bias[:, 0] = problem.gap_rate
    joints, kept, triangle = np.zeros((0, m)), np.zeros(0, np.int64), np.zeros((0, 0))
    if len(problem.joints):
        white = np.array(problem.joints)[:, None, :]
        whole = np.tile(np.array([0, m, 0, 0]), (len(white), 1))
        whiten_dense(blocks, white[:, 0])
        joints, kept, triangle = independent_rows(white[:, 0])
        wanted = forward(triangle, -problem.joint_rate[kept])
        free = free - joints.T @ (joints @ free - wanted)
        dense = densified(rows, segments, m)
        along = dense @ joints.T
        rows = dense - along @ joints
        rows -= (rows @ joints.T) @ joints
        # What joints hold entirely is left with rounding errors, which must not be scaled up to a contact.
        rows[(rows**2).sum(axis=(1, 2)) <= DEPENDENT**2 * (dense**2).sum(axis=(1, 2))] = 0.0
        bias += along @ wanted  # joints that are driven move the contacts
        segments = np.tile(whole[:1], (n, 1))
    return scaled_to_unit(problem, rows, segments, free, bias, factor, joints, kept, triangle)


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
    none = np.zeros((0, width))
    return scaled_to_unit(
        problem, rows, segments, np.zeros(width), problem.offset.reshape(n, 3).copy(), np.eye(width),
        none, np.zeros(0, np.int64), np.zeros((0, 0)),
    )  # fmt: skip


def scaled_to_unit(
    problem: ContactProblem,
    rows: NDArray[np.float64],
    segments: NDArray[np.int64],
    free: NDArray[np.float64],
    bias: NDArray[np.float64],
    factor: NDArray[np.float64],
    joints: NDArray[np.float64],
    kept: NDArray[np.int64],
    triangle: NDArray[np.float64],
) -> Whitened:
    rows, bias, segments = np.ascontiguousarray(rows), np.ascontiguousarray(bias), np.ascontiguousarray(segments)
    segments.flags.writeable = False
    scale = np.empty(problem.n)
    tau = unit_contacts(rows, segments, free, bias, scale)
    free = free / tau
    return Whitened(rows, segments, free, bias, problem.friction, scale, tau, factor, joints, kept, triangle)


def response(problem: ContactProblem, impulse: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """v = M⁻¹ of all impulses from v_free, and the joint impulses that keep J v + joint_rate = 0."""
    white = problem.whitened
    velocity, joint_impulse = np.empty(problem.m), np.zeros(len(problem.joints))
    if problem.mass is None:
        return velocity, joint_impulse
    x = white.free * white.tau
    add_impulses(white.rows, white.segments, impulse / white.scale[:, None], x)
    blocks = white.factor if white.factor.ndim == 3 else white.factor[None]
    unwhiten_velocity(blocks, x, velocity)
    if len(white.kept):
        # Whitened joint impulses are what x has beyond the free velocity and the contacts' own rows.
        alone = np.empty(problem.m)
        whiten_velocity(blocks, problem.velocity, alone)
        rows = np.array(problem.rows)
        whiten_rows(blocks, problem.segments, rows)
        add_impulses(rows, problem.segments, impulse, alone)
        joint_impulse[white.kept] = np.linalg.solve(white.triangle.T, white.joints @ (x - alone))
    return velocity, joint_impulse


def densified(rows: NDArray[np.float64], segments: NDArray[np.int64], m: int) -> NDArray[np.float64]:
    dense = np.zeros((len(rows), 3, m))
    for i, (start, length, other, more) in enumerate(segments):
        dense[i, :, start : start + length] += rows[i, :, :length]
        dense[i, :, other : other + more] += rows[i, :, length : length + more]
    return dense


def forward(triangle: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve triangle c = b."""
    return np.asarray(np.linalg.solve(triangle, b), np.float64) if len(b) else b


def independent_rows(
    white: NDArray[np.float64], dependent: float = DEPENDENT, least: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Orthonormal rows that span the same space, which rows they come from, and the triangle between them.

    dependent: part of a row that the others leave of it, below which it counts as depending on them
    least: length below which a row counts as if it had that length
    """
    count, m = white.shape
    most = min(count, m)
    basis, kept, triangle = np.zeros((most, m)), np.empty(most, np.int64), np.zeros((most, most))
    rank = gram_schmidt(white, dependent, least, basis, kept, triangle)
    return basis[:rank], kept[:rank], triangle[:rank, :rank]


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
def factor_blocks(blocks):
    """Cholesky of each block in place; the first row that fails, -1 if none does."""
    size = blocks.shape[1]
    for b in range(len(blocks)):
        done = cholesky(blocks[b], size)
        if done < size:
            return b * size + done
    return -1


@kernel
def forward_substitute(L, k, x):
    for i in range(k):
        x[i] = (x[i] - dot(L[i], x, i)) / L[i, i]


@kernel
def whiten_rows(blocks, segments, rows):
    """Each row a becomes G⁻¹ a; a segment is a block, or all of one."""
    size = blocks.shape[1]
    for i in range(len(rows)):
        for c in range(3):
            place = 0
            for s in range(2):
                start, length = segments[i, 2 * s], segments[i, 2 * s + 1]
                if length > 0:
                    forward_substitute(blocks[start // size], length, rows[i, c, place:])
                    place += length


@kernel
def whiten_dense(blocks, rows):
    """The same for rows over all velocities."""
    size = blocks.shape[1]
    for i in range(len(rows)):
        for b in range(len(blocks)):
            forward_substitute(blocks[b], size, rows[i, b * size :])


@kernel
def whiten_velocity(blocks, v, x):
    """x = Gᵀ v."""
    size = blocks.shape[1]
    for b in range(len(blocks)):
        for i in range(size):
            total = 0.0
            for j in range(i, size):
                total += blocks[b, j, i] * v[b * size + j]
            x[b * size + i] = total


@kernel
def unwhiten_velocity(blocks, x, v):
    """v = G⁻ᵀ x."""
    size = blocks.shape[1]
    for b in range(len(blocks)):
        part = v[b * size : (b + 1) * size]
        for i in range(size):
            part[i] = x[b * size + i]
        for i in range(size - 1, -1, -1):
            part[i] /= blocks[b, i, i]
            subtract_multiple(part, part[i], blocks[b, i], i)


@kernel
def row_dot(row, segment, x):
    """A contact's row times x."""
    length = segment[1]
    total = dot(row, x[segment[0] :], length)
    if segment[3] > 0:
        total += dot(row[length:], x[segment[2] :], segment[3])
    return total


@kernel
def add_row(row, segment, factor, x):
    """x += factor times a contact's row."""
    length = segment[1]
    subtract_multiple(x[segment[0] :], -factor, row, length)
    if segment[3] > 0:
        subtract_multiple(x[segment[2] :], -factor, row[length:], segment[3])


@kernel
def add_impulses(rows, segments, impulse, x):
    """x += sum of L_iᵀ p_i."""
    for i in range(len(rows)):
        for c in range(3):
            if impulse[i, c] != 0.0:
                add_row(rows[i, c], segments[i], impulse[i, c], x)


@kernel
def unit_contacts(rows, segments, free, bias, scale):
    """Divide every contact by its size, and return the largest free contact velocity τ, by which bias is divided."""
    width = rows.shape[2]
    tau = 0.0
    for i in range(len(rows)):
        size = 0.0
        for c in range(3):
            size += dot(rows[i, c], rows[i, c], width)
        scale[i] = 1.0 / (size / 3.0) ** 0.5 if size > 0.0 else 1.0
        for c in range(3):
            for j in range(width):
                rows[i, c, j] *= scale[i]
            bias[i, c] *= scale[i]
            tau = max(tau, abs(row_dot(rows[i, c], segments[i], free) + bias[i, c]))
    if not tau > 0.0:
        tau = 1.0
    for i in range(len(rows)):
        for c in range(3):
            bias[i, c] /= tau
    return tau

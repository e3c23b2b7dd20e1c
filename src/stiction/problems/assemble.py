"""Contact problems from the sparse matrices that files hold.

    local    u = W r + q
    global   M v = H r + G λ + f,   u = Hᵀ v + w,   Gᵀ v + b = 0

A global problem keeps its mass. Where M falls into blocks, of which no contact touches more than two, it becomes one of
free bodies or of kinematic trees, and nothing of size m² is formed: bodies have six velocities, or three in the plane.
Otherwise matrices are made dense, unless that would take far more memory than the file could mean. Tangential parts of
w become the tangent rates of a `ContactProblem`.

A symmetric matrix of which the file has one triangle only is mirrored.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Coulomb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from stiction.problems.laws import Law

    Array = NDArray[np.float64]

CONE = Coulomb()
DEPENDENT = 1e-10  # what is left of Vᵀ, s or a joint, in units of its size, that counts as nothing
MASS_ASYMMETRY = 1e-3  # of a mass matrix that was printed with few digits, in units of its largest entry
ROOM = 1 << 26  # bytes that a matrix may take, whatever the size of its file
GROWTH = 2000  # times the bytes of its file that it may take; published ones take up to 700
MOST = 1 << 32  # bytes that no dense matrix of a file may exceed
RIGHT_ANGLES = "right angles"  # of the message about contact frames that free bodies cannot have


class Source(NamedTuple):
    """Where matrices come from, for messages and limits."""

    name: str  # of the file and the group in it
    size: int  # bytes of the file


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Have messages about the problem in a file name the file."""
    try:
        yield
    except InvalidProblem as error:
        line = str(error)
        raise InvalidProblem(line if line.startswith("load: ") else f"load: {path}: {line}") from None
    except MemoryError:
        raise InvalidProblem(f"load: {path} holds matrices too large for memory") from None


def offset_of(problem: ContactProblem) -> Array:
    """(n, dim) w: what a contact's velocity has besides Hᵀ v."""
    offset = np.zeros((problem.n, problem.dim))
    offset[:, 0] = problem.gap_rate
    if problem.tangent_rate is not None:
        offset[:, 1:] = problem.tangent_rate[:, : problem.dim - 1]
    return offset


def mirrored(matrix: Any) -> Any:
    """A symmetric matrix of which one triangle is stored, as a whole; any other as it is."""
    matrix = scipy.sparse.csr_array(matrix)
    matrix.sum_duplicates()
    upper, lower = scipy.sparse.triu(matrix, 1), scipy.sparse.tril(matrix, -1)
    if bool(upper.count_nonzero()) == bool(lower.count_nonzero()):
        return matrix
    return scipy.sparse.csr_array(matrix + upper.T + lower.T)


def check_room(source: Source, what: str, rows: int, columns: int) -> None:
    """Raise before a matrix is made dense that is too large for its file to mean it."""
    size = 8 * rows * columns
    if size > MOST or size > max(ROOM, GROWTH * source.size):
        raise InvalidProblem(
            f"{source.name}: {what} of {rows} rows and {columns} columns would take {size / 2**20:,.0f} MiB, from a "
            f"file of {source.size:,} bytes: refused, lest it fill the memory"
        )


def dense(source: Source, what: str, matrix: Any) -> Array:
    check_room(source, what, *matrix.shape)
    return np.asarray(matrix.toarray(), np.float64)


def local_problem(source: Source, W: Any, q: Array, friction: Array, dim: int, law: Law = CONE) -> ContactProblem:
    """The problem of a Delassus matrix."""
    size = max(3, dim) * len(friction)
    check_room(source, "W", size, size)
    return ContactProblem.from_delassus(dense(source, "W", mirrored(W)), q, friction, dim, law=law)


def global_problem(
    source: Source, M: Any, H: Any, f: Array, w: Array, friction: Array, dim: int, G: Any, b: Array, law: Law = CONE
) -> ContactProblem:
    """The problem of a mass matrix and the rows of contacts and joints; shapes are known to agree."""
    m = M.shape[0]
    if np.unique(M.row[M.data != 0.0]).size < m:
        raise InvalidProblem(f"{source.name}/M is singular")
    M = symmetric(source, mirrored(M))
    H = scipy.sparse.csc_array(H)
    H.sum_duplicates()
    check_room(source, "joints", G.shape[1], m)
    joints = np.ascontiguousarray(G.toarray().T)
    offset = w.reshape(-1, dim)
    known: dict[str, Any] = {
        "gap_rate": offset[:, 0], "joints": joints, "joint_rate": b, "law": law,
        "tangent_rate": offset[:, 1:] if offset[:, 1:].any() else None,
    }  # fmt: skip
    for starts in divisions(M, dim):
        problem = by_block(source, M, H, f, friction, dim, starts, known)
        if problem is not None:
            return problem
    mass = dense(source, "M", M)
    check_room(source, "H", max(3, dim) * len(friction), m)
    rows = np.ascontiguousarray(H.toarray().T).reshape(len(friction), dim, m)
    try:
        velocity = np.asarray(np.linalg.solve(mass, f), np.float64)
    except np.linalg.LinAlgError:
        raise InvalidProblem(f"{source.name}/M is singular") from None
    return ContactProblem(mass, velocity, rows[:, 0], rows[:, 1:], friction, **known)


def symmetric(source: Source, M: Any) -> Any:
    """M without the asymmetry that printed decimals leave."""
    if not M.nnz:
        return M
    difference = float(abs(M - M.T).max())
    if difference > MASS_ASYMMETRY * float(abs(M).max()):
        raise InvalidProblem(f"{source.name}/M must be symmetric, but M - Mᵀ reaches {difference:g}")
    return scipy.sparse.csr_array(0.5 * (M + M.T)) if difference else M


def divisions(M: Any, dim: int) -> Iterator[NDArray[np.int64]]:
    """Where blocks of M may begin: bodies in space or in the plane, else wherever no entry reaches across."""
    m = M.shape[0]
    entries = M.tocoo()
    for size in (3, 6) if dim == 2 else (6, 3):
        if m and m % size == 0 and (entries.row // size == entries.col // size).all():
            yield np.arange(0, m + 1, size)
    reach = np.arange(m)
    np.maximum.at(reach, entries.row, entries.col)
    ends = np.flatnonzero(np.maximum.accumulate(reach) == np.arange(m)) + 1
    yield np.concatenate([[0], ends])


def by_block(
    source: Source, M: Any, H: Any, f: Array, friction: Array, dim: int, starts: NDArray[np.int64],
    known: dict[str, Any],
) -> ContactProblem | None:  # fmt: skip
    """The form of free bodies or of trees; None if a contact touches more than two blocks, or there is only one.

    known: what all forms take, by name
    """
    sizes, count, n = np.diff(starts), len(starts) - 1, len(friction)
    bodies = count > 0 and bool((sizes == 6).all())
    if count == 0 or (count == 1 and not bodies):
        return None
    entries = H.tocoo()
    there = entries.data != 0.0
    row, column, value = entries.row[there].astype(np.int64), entries.col[there].astype(np.int64), entries.data[there]
    block_of = np.repeat(np.arange(count), sizes)
    # One key for every block that a contact touches: the first two of a contact are its sides.
    keys, which = np.unique(column // dim * count + block_of[row], return_inverse=True)
    contact, block = keys // count, keys % count
    side = np.arange(len(keys)) - np.searchsorted(contact, contact)
    if (side > 1).any():
        return None
    pairs = np.full((n, 2), -1)
    pairs[contact, side] = block
    length = np.where(pairs >= 0, sizes[pairs], 0)
    rows = np.zeros((n, dim, int(length.sum(axis=1).max(initial=0))))
    begin = np.where(side == 1, length[contact, 0], 0) - starts[block]
    rows[column // dim, column % dim, row + begin[which]] = value
    pairs[pairs[:, 0] < 0, 0] = 0  # a contact that touches nothing still needs a body
    masses, velocity = split(source, M, f, starts)
    if bodies:
        try:
            wide = np.zeros((n, dim, 12))
            wide[:, :, : rows.shape[2]] = rows
            by_body = wide.reshape(n, dim, 2, 6)
            return ContactProblem.from_bodies(
                np.array(masses), velocity.reshape(count, 6), pairs, by_body[:, 0], by_body[:, 1:], friction, **known
            )
        except InvalidProblem as error:
            if RIGHT_ANGLES not in str(error):
                raise
            if count == 1:
                return None
    # Published files have frames that are not at right angles, and mean them: trees allow them.
    k = int(np.where(pairs >= 0, sizes[pairs], 0).sum(axis=1).max(initial=0))
    padded = np.zeros((n, dim, max(k, rows.shape[2])))
    padded[:, :, : rows.shape[2]] = rows
    return ContactProblem.from_trees(masses, velocity, pairs, padded[:, 0], padded[:, 1:], friction, **known)


def split(source: Source, M: Any, f: Array, starts: NDArray[np.int64]) -> tuple[list[Array], Array]:
    """The blocks of M, and the velocity M⁻¹ f."""
    sizes = np.diff(starts)
    check_room(source, "M", 1, int((sizes**2).sum()))
    ends = np.cumsum(sizes**2)
    flat = np.zeros(int(ends[-1]))
    entries = M.tocoo()
    block = np.repeat(np.arange(len(sizes)), sizes)[entries.row]
    place = (entries.row - starts[block]) * sizes[block] + entries.col - starts[block]
    flat[(ends - sizes**2)[block] + place] = entries.data
    masses = [part.reshape(size, size) for part, size in zip(np.split(flat, ends[:-1]), sizes, strict=True)]
    try:
        if (sizes == sizes[0]).all():
            stacked = f.reshape(len(sizes), sizes[0], 1)
            return masses, np.asarray(np.linalg.solve(np.array(masses), stacked).ravel(), np.float64)
        return masses, np.concatenate([
            np.linalg.solve(mass, f[a:b]) for mass, a, b in zip(masses, starts[:-1], starts[1:], strict=True)
        ])  # fmt: skip
    except np.linalg.LinAlgError:
        raise InvalidProblem(f"{source.name}/M is singular") from None


def reduced(
    source: Source, mass: Array, velocity: Array, rows: Array, joints: Array, rate: Array, offset: Array,
    friction: Array,
) -> ContactProblem:  # fmt: skip
    """W and q with the joints' impulses eliminated: their whitened rows projected out, W = L Lᵀ."""
    n, dim, m = rows.shape
    check_room(source, "W", 3 * n, 3 * n)
    try:
        G = np.linalg.cholesky(mass)
    except np.linalg.LinAlgError:
        raise InvalidProblem("M must be positive definite") from None
    L, J = np.linalg.solve(G, rows.reshape(n * dim, m).T).T, np.linalg.solve(G, joints.T).T
    left, sizes, right = np.linalg.svd(J, full_matrices=False)
    rank = int((sizes > DEPENDENT * sizes.max(initial=0.0)).sum())
    left, sizes, right = left[:, :rank], sizes[:rank], right[:rank]
    x = G.T @ velocity
    x = x - right.T @ (right @ x + (left.T @ rate) / sizes)
    q = L @ x + offset.ravel()
    L = L - (L @ right.T) @ right
    return ContactProblem.from_delassus(L @ L.T, q, friction, dim)

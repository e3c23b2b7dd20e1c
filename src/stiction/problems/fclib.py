"""Files of the frictional-contact library, FCLIB: HDF5 with Coulomb's law on the circular cone.

    /fclib_local    W, optional V, R; vectors q, mu, optional s        u = W r + V λ + q,   Vᵀ r + R λ + s = 0
    /fclib_global   M, H, optional G; vectors f, w, mu, optional b     M v = H r + G λ + f, u = Hᵀ v + w, Gᵀ v + b = 0

A matrix is a group of m, n, nzmax, nz and the arrays i, p, x: triplets (row i, column p) if nz >= 0, compressed columns
if nz = -1, compressed rows if nz = -2. Contacts come in the order n, t1(, t2). `/solution` and `/guesses` are not read:
in published files they hold zeros or another solver's last iterate.

A global problem keeps its mass, and becomes one of free bodies where M and H allow; frames that are not at right
angles, which occur in published files, do not. If w has tangential parts, which a `ContactProblem` with a mass cannot
hold, it is reduced to Delassus form, and so is a local one from its V and R. Written and read again a problem is the
same but for rounding errors in f = M v_free and for viscosities, which have no place.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from stiction import optional
from stiction.errors import InvalidProblem
from stiction.problems.contact import PRINTED, ContactProblem
from stiction.problems.laws import Coulomb

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TRIPLETS, COLUMNS, ROWS = 0, -1, -2
DEPENDENT = 1e-10  # what is left of Vᵀ, s or a joint, in units of its size, that counts as nothing


def read(path: str | os.PathLike[str]) -> ContactProblem:
    """Read a local or global problem."""
    h5py = optional.h5py()
    path = Path(path)
    if not path.exists():
        raise InvalidProblem(f"load: there is no file {path}; check the name (save adds no suffix)")
    try:
        with h5py.File(path, "r") as file:
            for group, build in (("fclib_local", _local), ("fclib_global", _global)):
                if group in file:
                    return build(path, file[group])
            found = ", ".join(file) or "nothing"
            raise InvalidProblem(
                f"load: {path} is not an FCLIB file: no fclib_local or fclib_global in it, but {found}"
            )
    except InvalidProblem as error:
        text = str(error)
        raise InvalidProblem(text if text.startswith("load: ") else f"load: {path}: {text}") from None
    except MemoryError:
        raise InvalidProblem(f"load: {path} holds matrices too large for memory") from None
    except Exception as error:  # HDF5 raises errors of many kinds on damaged files
        raise InvalidProblem(f"load: {path} is not an HDF5 file, or is damaged ({error}); copy it anew") from error


def write(problem: ContactProblem, path: str | os.PathLike[str]) -> None:
    """Write a problem, global if its mass is known; use `problem.save`, which never leaves half a file."""
    if problem.law != Coulomb():
        raise InvalidProblem(
            f"save: FCLIB knows Coulomb's law on the circular cone only, not {problem.law}; "
            "save as .npz, or problem.with_law(Coulomb())"
        )
    if problem.slip is not None and not np.isnan(problem.slip).all():
        raise InvalidProblem("save: FCLIB has no place for known slip directions; save as .npz")
    with optional.h5py().File(path, "w") as file:
        root = file.create_group("fclib_local" if problem.mass is None else "fclib_global")
        root["spacedim"] = np.array([problem.dim], np.int32)
        info = root.create_group("info")
        info["title"], info["description"], info["math_info"] = "stiction", repr(problem), ""
        vectors = root.create_group("vectors")
        vectors["mu"] = problem.friction
        if problem.mass is None:
            _write_local(problem, root, vectors)
        else:
            _write_global(problem, root, vectors)


def _write_local(problem: ContactProblem, root: Any, vectors: Any) -> None:
    assert problem.delassus is not None
    assert problem.offset is not None
    place = np.arange(3 * problem.n).reshape(-1, 3)[:, : problem.dim].ravel()
    _write_matrix(root, "W", problem.delassus[np.ix_(place, place)])
    vectors["q"] = problem.offset[place]


def _write_global(problem: ContactProblem, root: Any, vectors: Any) -> None:
    dim, m = problem.dim, problem.m
    M = sparse.block_diag(problem.mass_blocks) if m else np.zeros((0, 0))
    _write_matrix(root, "M", M)
    _write_matrix(root, "H", problem.dense_rows()[:, :dim].reshape(problem.n * dim, m).T)
    w = np.zeros((problem.n, dim))
    w[:, 0] = problem.gap_rate
    vectors["f"], vectors["w"] = M @ problem.velocity, w.ravel()
    if len(problem.joints):
        _write_matrix(root, "G", problem.joints.T)
        vectors["b"] = problem.joint_rate


def _write_matrix(root: Any, name: str, matrix: Any) -> None:
    """As triplets: the one storage that every reader of FCLIB understands alike."""
    entries = sparse.coo_matrix(matrix)
    group = root.create_group(name)
    for key, value in (("m", entries.shape[0]), ("n", entries.shape[1]), ("nzmax", entries.nnz), ("nz", entries.nnz)):
        group[key] = np.array([value], np.int32)
    group["i"], group["p"] = entries.row.astype(np.int32), entries.col.astype(np.int32)
    group["x"] = entries.data.astype(np.float64)


def _local(path: Path, root: Any) -> ContactProblem:
    dim = _dim(path, root)
    W = _matrix(path, root, "W").toarray()
    q = _vector(path, root, "q", len(W))
    friction = _friction(path, root, len(W), dim)
    if "V" in root and "R" in root:
        V, R = _matrix(path, root, "V").toarray(), _matrix(path, root, "R").toarray()
        _agree(path, root, "V", V.shape, (len(W), len(R)))
        _agree(path, root, "R", R.shape, (len(R), len(R)))
        s = _vector(path, root, "s", len(R))
        # λ = -R⁻¹ (Vᵀ r + s), as far as R is regular
        known = np.column_stack([V.T, s])
        reduced = np.linalg.lstsq(R, known, rcond=None)[0]
        if np.abs(R @ reduced - known).max(initial=0.0) > DEPENDENT * np.abs(known).max(initial=0.0):
            raise InvalidProblem(f"load: {path}: {root.name}/R is singular, and V or s is not in its range")
        W, q = W - V @ reduced[:, :-1], q - V @ reduced[:, -1]
    return ContactProblem.from_delassus(W, q, friction, dim)


def _global(path: Path, root: Any) -> ContactProblem:
    dim = _dim(path, root)
    M, H = _matrix(path, root, "M"), _matrix(path, root, "H")
    m = M.shape[0]
    _agree(path, root, "M", M.shape, (m, m))
    _agree(path, root, "H", H.shape, (m, H.shape[1]))
    f, w = _vector(path, root, "f", m), _vector(path, root, "w", H.shape[1])
    friction = _friction(path, root, H.shape[1], dim)
    joints, rate = np.zeros((0, m)), np.zeros(0)
    if "G" in root:
        G = _matrix(path, root, "G")
        _agree(path, root, "G", G.shape, (m, G.shape[1]))
        joints, rate = G.toarray().T, _vector(path, root, "b", G.shape[1])
    mass = _symmetric(path, root, M.toarray())
    rows = H.toarray().T.reshape(len(friction), dim, m)
    try:
        velocity = np.asarray(np.linalg.solve(mass, f), np.float64)
    except np.linalg.LinAlgError:
        raise InvalidProblem(f"load: {path}: {root.name}/M is singular") from None
    offset = w.reshape(-1, dim)
    if (offset[:, 1:] != 0.0).any():
        return _reduced(mass, velocity, rows, joints, rate, offset, friction)
    bodies = _by_body(mass, velocity, rows, friction, offset[:, 0], joints, rate)
    if bodies is not None:
        return bodies
    return ContactProblem(
        mass, velocity, rows[:, 0], rows[:, 1:], friction, gap_rate=offset[:, 0], joints=joints, joint_rate=rate
    )


def _by_body(
    mass: Array, velocity: Array, rows: Array, friction: Array, gap_rate: Array, joints: Array, rate: Array
) -> ContactProblem | None:
    """The form of free bodies, if M has blocks of six and no contact touches more than two of them."""
    count, rest = divmod(len(mass), 6)
    if rest or not count:
        return None
    blocks = mass.reshape(count, 6, count, 6)
    diagonal = blocks[np.arange(count), :, np.arange(count)].copy()
    n, dim = rows.shape[:2]
    touched = (rows.reshape(n, dim, count, 6) != 0.0).any(axis=(1, 3))
    if np.count_nonzero(blocks) != np.count_nonzero(diagonal) or (touched.sum(axis=1) > 2).any():
        return None
    by_body = np.zeros((n, dim, 2, 6))
    pairs = np.full((n, 2), -1)
    for i in range(n):
        for side, body in enumerate(np.flatnonzero(touched[i])):
            pairs[i, side] = body
            by_body[i, :, side] = rows[i, :, 6 * body : 6 * body + 6]
    apart = pairs[:, 0] < 0
    pairs[apart, 0] = 0  # a contact that touches nothing still needs a body
    try:
        return ContactProblem.from_bodies(
            diagonal, velocity.reshape(count, 6), pairs, by_body[:, 0], by_body[:, 1:], friction,
            gap_rate=gap_rate, joints=joints, joint_rate=rate,
        )  # fmt: skip
    except InvalidProblem as error:
        if "right angles" in str(error):  # published files have such frames, and mean them
            return None
        raise


def _reduced(
    mass: Array, velocity: Array, rows: Array, joints: Array, rate: Array, offset: Array, friction: Array
) -> ContactProblem:
    """W and q with the joints' impulses eliminated: their whitened rows projected out, W = L Lᵀ."""
    n, dim, m = rows.shape
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


def _dim(path: Path, root: Any) -> int:
    dim = _numbers(path, root, "spacedim", "iu")
    if dim.size != 1 or int(dim[0]) not in (2, 3):
        raise InvalidProblem(f"load: {path}: {root.name}/spacedim must be 2 or 3, got {dim.tolist()}")
    return int(dim[0])


def _friction(path: Path, root: Any, size: int, dim: int) -> Array:
    if size % dim:
        raise InvalidProblem(f"load: {path}: {root.name} has {size} contact rows, not a multiple of spacedim = {dim}")
    return _vector(path, root, "mu", size // dim)


def _vector(path: Path, root: Any, name: str, size: int) -> Array:
    if "vectors" not in root:
        raise InvalidProblem(f"load: {path} lacks {root.name}/vectors")
    vector = _numbers(path, root["vectors"], name, "fiu").astype(np.float64)
    _agree(path, root["vectors"], name, vector.shape, (size,))
    return vector


def _numbers(path: Path, group: Any, name: str, kinds: str) -> NDArray[Any]:
    """One array, or an error that names it."""
    place = f"{group.name}/{name}"
    if name not in group:
        raise InvalidProblem(f"load: {path} lacks {place}")
    if not hasattr(group[name], "dtype") or group[name].dtype.kind not in kinds:
        raise InvalidProblem(f"load: {path}: {place} is not an array of numbers of the right kind")
    try:
        return np.atleast_1d(group[name][()])
    except Exception as error:  # HDF5 raises errors of many kinds on damaged files
        raise InvalidProblem(f"load: {path}: {place} cannot be read ({error}); copy the file anew") from error


def _matrix(path: Path, root: Any, name: str) -> Any:
    """A sparse matrix of any storage."""
    if name not in root:
        raise InvalidProblem(f"load: {path} lacks {root.name}/{name}")
    group = root[name]
    place = group.name
    if not hasattr(group, "keys"):
        raise InvalidProblem(f"load: {path}: {place} is not a group with m, n, nz, i, p, x")
    sizes = [_numbers(path, group, key, "iu") for key in ("m", "n", "nz")]
    if any(size.size != 1 for size in sizes):
        raise InvalidProblem(f"load: {path}: {place}: m, n and nz must be one number each")
    m, n, nz = (int(size[0]) for size in sizes)
    i, p, x = (_numbers(path, group, key, kinds) for key, kinds in (("i", "iu"), ("p", "iu"), ("x", "fiu")))
    if m < 0 or n < 0 or nz < ROWS:
        raise InvalidProblem(f"load: {path}: {place} has m = {m}, n = {n}, nz = {nz}; nz must be at least -2")
    if nz >= TRIPLETS:
        used = (i[:nz], p[:nz], x[:nz])
        if any(len(part) != nz for part in used):
            raise InvalidProblem(
                f"load: {path}: {place} has nz = {nz} triplets, but i, p, x have {len(i)}, {len(p)}, {len(x)}"
            )
        row, column, values = used
    else:
        lines = n if nz == COLUMNS else m
        if len(p) != lines + 1 or p[0] != 0 or (np.diff(p) < 0).any() or len(i) < p[-1] or len(x) < p[-1]:
            raise InvalidProblem(f"load: {path}: {place}/p must rise from 0 in {lines + 1} steps to at most {len(i)}")
        other, values = i[: p[-1]], x[: p[-1]]
        line = np.repeat(np.arange(lines), np.diff(p))
        row, column = (other, line) if nz == COLUMNS else (line, other)
    for index, size, what in ((row, m, "row"), (column, n, "column")):
        if len(index) and (index.min() < 0 or index.max() >= size):
            worst = int(index.min() if index.min() < 0 else index.max())
            raise InvalidProblem(f"load: {path}: {place} has an entry in {what} {worst}, but only {size} of them")
    return sparse.coo_matrix((values.astype(np.float64), (row, column)), (m, n))


def _symmetric(path: Path, root: Any, M: Array) -> Array:
    """M without the asymmetry of printed numbers."""
    difference = np.abs(M - M.T).max(initial=0.0)
    if difference > PRINTED * np.abs(M).max(initial=0.0):
        raise InvalidProblem(f"load: {path}: {root.name}/M must be symmetric, but M - Mᵀ reaches {difference:g}")
    return 0.5 * (M + M.T) if difference else M


def _agree(path: Path, group: Any, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise InvalidProblem(f"load: {path}: {group.name}/{name} must have shape {wanted}, got {shape}")

"""Files of the frictional-contact library, FCLIB: HDF5 with Coulomb's law on the circular cone.

    /fclib_local    W, optional V, R; vectors q, mu, optional s        u = W r + V λ + q,   Vᵀ r + R λ + s = 0
    /fclib_global   M, H, optional G; vectors f, w, mu, optional b     M v = H r + G λ + f, u = Hᵀ v + w, Gᵀ v + b = 0

A matrix is a group of m, n, nzmax, nz and the arrays i, p, x: triplets (row i, column p) if nz >= 0, compressed columns
if nz = -1, compressed rows if nz = -2. Contacts come in the order n, t1(, t2). `/solution` and `/guesses` are not read:
in published files they hold zeros or another solver's last iterate.

`stiction.problems.assemble` makes a problem of the matrices; a local problem loses its V and R. Written and
read again a problem is the same but for rounding errors in f = M v_free and for viscosities, which have no place.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from stiction import optional
from stiction.disk import check_growth
from stiction.errors import InvalidProblem
from stiction.problems.assemble import (
    DEPENDENT,
    Source,
    dense,
    errors_of,
    global_problem,
    local_problem,
    mirrored,
    offset_of,
)
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Coulomb

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TRIPLETS, COLUMNS, ROWS = 0, -1, -2


def read(path: str | os.PathLike[str]) -> ContactProblem:
    """Read a local or global problem."""
    h5py = optional.h5py()
    path = Path(path)
    if not path.exists():
        raise InvalidProblem(f"load: there is no file {path}; check the name (save adds no suffix)")
    try:
        source = Source(f"load: {path}", path.stat().st_size)
        with errors_of(path), h5py.File(path, "r") as file:
            for group, build in (("fclib_local", _local), ("fclib_global", _global)):
                if group in file:
                    return build(source, file[group])
            found = ", ".join(file) or "nothing"
            raise InvalidProblem(
                f"load: {path} is not an FCLIB file: no fclib_local or fclib_global in it, but {found}"
            )
    except InvalidProblem:
        raise
    except Exception as error:  # HDF5 raises errors of many kinds on damaged files
        reason = " ".join(str(error).split())
        raise InvalidProblem(f"load: {path} is not an HDF5 file, or is damaged ({reason}); copy it anew") from error


def write(problem: ContactProblem, path: str | os.PathLike[str]) -> None:
    """Write a problem, global if its mass is known; use `problem.save`, which never leaves half a file."""
    if problem.law != Coulomb():
        raise InvalidProblem(
            f"save: FCLIB knows Coulomb's law on the circular cone only, not {problem.law}; "
            "save as .npz, or problem.with_law(Coulomb())"
        )
    if problem.slip is not None and not np.isnan(problem.slip).all():
        raise InvalidProblem("save: FCLIB has no place for known slip directions; save as .npz")
    if problem.rows.shape[1] > 3:
        raise InvalidProblem("save: FCLIB has no place for torsional and rolling friction; save as .npz")
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
    M = scipy.sparse.block_diag(problem.mass_blocks) if m else np.zeros((0, 0))
    _write_matrix(root, "M", M)
    _write_matrix(root, "H", problem.dense_rows()[:, :dim].reshape(problem.n * dim, m).T)
    vectors["f"], vectors["w"] = M @ problem.velocity, offset_of(problem).ravel()
    if len(problem.joints):
        _write_matrix(root, "G", problem.joints.T)
        vectors["b"] = problem.joint_rate


def _write_matrix(root: Any, name: str, matrix: Any) -> None:
    """As triplets: the one storage that every reader of FCLIB understands alike."""
    entries = scipy.sparse.coo_matrix(matrix)
    group = root.create_group(name)
    for key, value in (("m", entries.shape[0]), ("n", entries.shape[1]), ("nzmax", entries.nnz), ("nz", entries.nnz)):
        group[key] = np.array([value], np.int32)
    group["i"], group["p"] = entries.row.astype(np.int32), entries.col.astype(np.int32)
    group["x"] = entries.data.astype(np.float64)


def _local(source: Source, root: Any) -> ContactProblem:
    dim = _dim(source, root)
    W = _matrix(source, root, "W")
    size = W.shape[0]
    q = _vector(source, root, "q", size)
    friction = _friction(source, root, size, dim)
    _agree(source, root, "W", W.shape, (size, size))
    if "V" in root and "R" in root:
        sparse_V, sparse_R = _matrix(source, root, "V"), _matrix(source, root, "R")
        many = sparse_R.shape[0]
        _agree(source, root, "V", sparse_V.shape, (size, many))
        _agree(source, root, "R", sparse_R.shape, (many, many))
        s = _vector(source, root, "s", many)
        V, R = dense(source, f"{root.name}/V", sparse_V), dense(source, f"{root.name}/R", mirrored(sparse_R))
        # λ = -R⁻¹ (Vᵀ r + s), as far as R is regular
        known = np.column_stack([V.T, s])
        solved = np.linalg.lstsq(R, known, rcond=None)[0]
        if np.abs(R @ solved - known).max(initial=0.0) > DEPENDENT * np.abs(known).max(initial=0.0):
            raise InvalidProblem(f"{source.name}: {root.name}/R is singular, and V or s is not in its range")
        whole = dense(source, f"{root.name}/W", mirrored(W))
        W, q = scipy.sparse.csr_array(whole - V @ solved[:, :-1]), q - V @ solved[:, -1]
    return local_problem(source, W, q, friction, dim)


def _global(source: Source, root: Any) -> ContactProblem:
    dim = _dim(source, root)
    M, H = _matrix(source, root, "M"), _matrix(source, root, "H")
    m, columns = M.shape[0], H.shape[1]
    _agree(source, root, "M", M.shape, (m, m))
    _agree(source, root, "H", H.shape, (m, columns))
    f, w = _vector(source, root, "f", m), _vector(source, root, "w", columns)
    friction = _friction(source, root, columns, dim)
    G, b = scipy.sparse.coo_array((m, 0)), np.zeros(0)
    if "G" in root:
        G = _matrix(source, root, "G")
        _agree(source, root, "G", G.shape, (m, G.shape[1]))
        b = _vector(source, root, "b", G.shape[1])
    return global_problem(Source(f"{source.name}: {root.name}", source.size), M, H, f, w, friction, dim, G, b)


def _dim(source: Source, root: Any) -> int:
    dim = _numbers(source, root, "spacedim", "iu")
    if dim.size != 1 or int(dim[0]) not in (2, 3):
        raise InvalidProblem(f"{source.name}: {root.name}/spacedim must be 2 or 3, got {dim.tolist()}")
    return int(dim[0])


def _friction(source: Source, root: Any, size: int, dim: int) -> Array:
    if size % dim:
        raise InvalidProblem(f"{source.name}: {root.name} has {size} contact rows, not a multiple of spacedim = {dim}")
    return _vector(source, root, "mu", size // dim)


def _vector(source: Source, root: Any, name: str, size: int) -> Array:
    if "vectors" not in root:
        raise InvalidProblem(f"{source.name} lacks {root.name}/vectors")
    vector = _numbers(source, root["vectors"], name, "fiu").astype(np.float64)
    _agree(source, root["vectors"], name, vector.shape, (size,))
    return vector


def _numbers(source: Source, group: Any, name: str, kinds: str) -> NDArray[Any]:
    """One array, or an error that names it."""
    place = f"{group.name}/{name}"
    if name not in group:
        raise InvalidProblem(f"{source.name} lacks {place}")
    if not hasattr(group[name], "dtype") or group[name].dtype.kind not in kinds:
        raise InvalidProblem(f"{source.name}: {place} is not an array of numbers of the right kind")
    # Values that were never written take no place in the file, and packed ones little.
    check_growth(f"{source.name}: {place}", source.size, int(group[name].nbytes))
    try:
        return np.atleast_1d(group[name][()])
    except Exception as error:  # HDF5 raises errors of many kinds on damaged files
        reason = " ".join(str(error).split())
        raise InvalidProblem(f"{source.name}: {place} cannot be read ({reason}); copy the file anew") from error


def _matrix(source: Source, root: Any, name: str) -> Any:
    """A sparse matrix of any storage."""
    if name not in root:
        raise InvalidProblem(f"{source.name} lacks {root.name}/{name}")
    group = root[name]
    place = group.name
    if not hasattr(group, "keys"):
        raise InvalidProblem(f"{source.name}: {place} is not a group with m, n, nz, i, p, x")
    sizes = [_numbers(source, group, key, "iu") for key in ("m", "n", "nz")]
    if any(size.size != 1 for size in sizes):
        raise InvalidProblem(f"{source.name}: {place}: m, n and nz must be one number each")
    m, n, nz = (int(size[0]) for size in sizes)
    i, p, x = (_numbers(source, group, key, kinds) for key, kinds in (("i", "iu"), ("p", "iu"), ("x", "fiu")))
    if m < 0 or n < 0 or nz < ROWS:
        raise InvalidProblem(f"{source.name}: {place} has m = {m}, n = {n}, nz = {nz}; nz must be at least -2")
    if nz >= TRIPLETS:
        used = (i[:nz], p[:nz], x[:nz])
        if any(len(part) != nz for part in used):
            raise InvalidProblem(
                f"{source.name}: {place} has nz = {nz} triplets, but i, p, x have {len(i)}, {len(p)}, {len(x)}"
            )
        row, column, values = used
    else:
        lines = n if nz == COLUMNS else m
        if len(p) != lines + 1 or p[0] != 0 or (np.diff(p) < 0).any() or len(i) < p[-1] or len(x) < p[-1]:
            raise InvalidProblem(f"{source.name}: {place}/p must rise from 0 in {lines + 1} steps to at most {len(i)}")
        other, values = i[: p[-1]], x[: p[-1]]
        line = np.repeat(np.arange(lines), np.diff(p))
        row, column = (other, line) if nz == COLUMNS else (line, other)
    for index, size, what in ((row, m, "row"), (column, n, "column")):
        if len(index) and (index.min() < 0 or index.max() >= size):
            worst = int(index.min() if index.min() < 0 else index.max())
            raise InvalidProblem(f"{source.name}: {place} has an entry in {what} {worst}, but only {size} of them")
    return scipy.sparse.coo_array((values.astype(np.float64), (row, column)), (m, n))


def _agree(source: Source, group: Any, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise InvalidProblem(f"{source.name}: {group.name}/{name} must have shape {wanted}, got {shape}")

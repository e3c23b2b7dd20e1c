"""What files say, read by other means than the package's: the independent judge of published problems."""

from __future__ import annotations

import h5py
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu


def matrix(group) -> sparse.csc_array:
    """A matrix of an FCLIB file, as it is stored."""
    nz, shape = int(group["nz"][0]), (int(group["m"][0]), int(group["n"][0]))
    i, p, x = group["i"][()], group["p"][()], group["x"][()]
    if nz >= 0:
        return sparse.csc_array(sparse.coo_array((x[:nz], (i[:nz], p[:nz])), shape))
    return sparse.csc_array((sparse.csc_array if nz == -1 else sparse.csr_array)((x, i, p), shape))


def delassus(path):
    """W, q and mu of an FCLIB file; the upper triangle of a mass is mirrored if it is all there is."""
    with h5py.File(path) as file:
        if "fclib_local" in file:
            root = file["fclib_local"]
            return matrix(root["W"]).toarray(), root["vectors/q"][()], root["vectors/mu"][()]
        root = file["fclib_global"]
        M, H = matrix(root["M"]), matrix(root["H"])
        if not sparse.tril(M, -1).count_nonzero():
            M = M + sparse.triu(M, 1).T
        return (*reduced(M, H, root["vectors/f"][()], root["vectors/w"][()]), root["vectors/mu"][()])


def reduced(M, H, f, w):
    solve = splu(sparse.csc_matrix(M)).solve
    return H.T @ solve(H.toarray()), H.T @ solve(f) + w


def violation(W, q, mu, impulse) -> float:
    """The natural map of de Saxcé's form, as a velocity in units of the largest free one.

    p = proj(p - (u + mu |u_t| n) / W_ii) onto the cone |p_t| <= mu p_n of each contact.
    """
    n = len(mu)
    dim = len(q) // n
    p = np.asarray(impulse)[:, :dim]
    u = (W @ p.ravel() + q).reshape(n, dim)
    size = W.diagonal().reshape(n, dim).mean(axis=1)[:, None]
    u[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
    y = p - u / size
    along = np.linalg.norm(y[:, 1:], axis=1)
    inside, below = along <= mu * y[:, 0], mu * along <= -y[:, 0]
    high = np.where(below, 0.0, (y[:, 0] + mu * along) / (1.0 + mu**2))
    onto = np.column_stack([high, (mu * high / np.where(along > 0.0, along, 1.0))[:, None] * y[:, 1:]])
    onto = np.where(inside[:, None], y, onto)
    return float(np.abs(size * (p - onto)).max() / np.abs(q).max())

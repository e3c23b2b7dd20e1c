"""The normal form of a problem of which only u = W p + q is known: W = L Lᵀ takes the place of rows and mass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.normal_form import NO_ROWS, NONE, Whitened, unit_contacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

ZERO_EIGENVALUE = 1e-14  # of a Delassus matrix, in units of its largest
FACTORED = 1e-12  # error of its factors, in units of its largest entry: solvers correct what is left (`corrected`)
ROUNDING = 4.5e-16  # of its entries: pivots below this times its size are left out
INDEFINITE = 1e-3  # in the same units: smaller negative eigenvalues are rounding errors of a printed file


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

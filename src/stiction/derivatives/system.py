"""The linear system of the active modes, factored once.

In the normal form, with joints projected out (`problems.normal_form`), a change y of the whitened velocities and a
change a of the impulses, in the directions in which these may change, satisfy

    A y = r + Fᵀ a           A = I + Lᵀ C L: mass, and friction that turns with the velocity or is viscous
    B y = s                  B = what stays zero, row by row: Qᵀ L;   F = what pushes: Pᵀ L

Where nothing slides B = F, and A = I. Rows outnumber motions as soon as contacts share a load, so B and F are factored
with column pivoting, Bᵀ = U Sᵀ Vᵀ with orthonormal U (m, k) and V (rows, k). With Z and Y whose columns span the null
spaces of B and F,

    y = y₀ + Z w,    y₀ = B⁺ s,    (Yᵀ A Z) w = Yᵀ (r - A y₀),    a = (Fᵀ)⁺ (A y - r)

and a is the smallest of those that make the motion. The motion is determined if and only if Yᵀ A Z is square and
regular: if B and F have different ranks, the way in which contacts share their load changes the motion itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack, solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DEPENDENT = 1e-9  # part of a row of unit size that is independent of the others, below which it is redundant
SINGULAR = 1e-10  # reciprocal condition of Yᵀ A Z below which the motion is not determined


@dataclass(frozen=True, eq=False)
class Factored:
    """rows = V S Uᵀ: U (m, k) and V (rows, k) orthonormal, S triangular; null: (m, m - k) what rows take to zero."""

    U: Array
    S: Array
    V: Array
    null: Array
    lower: bool

    @property
    def rank(self) -> int:
        return int(self.U.shape[1])

    def least(self, s: Array) -> Array:
        """The smallest y with rows y = s, or as nearly as can be."""
        return np.asarray(self.U @ self.solve(self.V.T @ s, 0))

    def least_transposed(self, y: Array) -> Array:
        """The transpose of `least`."""
        return np.asarray(self.V @ self.solve(self.U.T @ y, 1))

    def push(self, r: Array) -> Array:
        """The smallest a with rowsᵀ a = r, or as nearly as can be: the transpose of `least`."""
        return self.least_transposed(r)

    def solve(self, b: Array, transposed: int) -> Array:
        if not self.rank:
            return b
        return np.asarray(solve_triangular(self.S, b, trans=transposed, lower=self.lower, check_finite=False))

    @property
    def shared(self) -> Array:
        """(rows,) the part of each unit impulse that can be exchanged for others without moving anything."""
        return np.asarray(1.0 - np.einsum("rk,rk->r", self.V, self.V))

    def indifferent(self) -> Array:
        """(rows - k, rows) orthonormal impulses that move nothing."""
        if self.rank == len(self.V):
            return np.zeros((0, len(self.V)))
        return np.asarray(np.linalg.qr(self.V, mode="complete")[0][:, self.rank :].T)


def factored(rows: Array, dependent: float) -> Factored:
    """Factor (rows, m), redundant rows and all."""
    count, m = rows.shape
    if not count or not m:
        return Factored(np.zeros((m, 0)), np.zeros((0, 0)), np.zeros((count, 0)), np.eye(m), False)
    R, pivots, tau = lapack.dgeqp3(rows.T)[:3]
    most = min(count, m)
    diagonal = np.abs(R.diagonal()[:most])
    k = int((diagonal > dependent * diagonal[0]).sum()) if diagonal[0] > 0.0 else 0

    # All m columns of the orthogonal factor: the first k span the rows, the others are their null space.
    whole, taus = np.zeros((m, m), order="F"), np.zeros(m)
    whole[:, :most], taus[:most] = R[:, :most], tau[:most]
    Q = lapack.dorgqr(whole, taus, overwrite_a=1)[0]
    V = np.zeros((count, k))
    if k == count:
        V[pivots - 1, np.arange(k)] = 1.0
        return Factored(Q[:, :k], np.triu(R[:k, :k]).T, V, Q[:, k:], True)

    # Redundant rows: a second orthogonal factor, so that impulses and rates come out smallest.
    inner, S = np.linalg.qr(np.triu(R[:k]).T)
    V[pivots - 1] = inner
    return Factored(Q[:, :k], S, V, Q[:, k:], False)


@dataclass(frozen=True, eq=False)
class System:
    """A, B and F, factored. `compliance` is None where A = I."""

    compliance: Array | None  # (m, m) A
    zero: Factored  # B
    may: Factored  # F
    B: Array
    F: Array
    reduced: tuple[Array, NDArray[np.int32]] | None  # LU of Yᵀ A Z, where it is not the identity
    lowest: Array  # pseudo-inverse of Yᵀ A Z where the motion is not determined
    determined: bool  # whether the motion is

    def through(self, y: Array) -> Array:
        """A y."""
        return y if self.compliance is None else np.asarray(self.compliance @ y)

    def inner(self, b: Array, transposed: bool) -> Array:
        """(Yᵀ A Z)⁻¹ b, or of its transpose."""
        if not self.determined:
            return np.asarray((self.lowest.T if transposed else self.lowest) @ b)
        return b if self.reduced is None else np.asarray(lapack.dgetrs(*self.reduced, b, trans=int(transposed))[0])

    def solve(self, r: Array, s: Array) -> tuple[Array, Array]:
        """y and a; r (m, columns), s (rows, columns)."""
        y = self.zero.least(s)
        y = y + self.zero.null @ self.inner(self.may.null.T @ (r - self.through(y)), False)
        return y, self.may.push(self.through(y) - r)

    def solve_transposed(self, y: Array, a: Array) -> tuple[Array, Array]:
        """What y and a are worth in r and s."""
        pushed = self.may.least(a)  # the transpose of push
        y = y + self.through(pushed)  # A is symmetric
        across = self.may.null @ self.inner(self.zero.null.T @ y, True)
        return across - pushed, self.zero.least_transposed(y - self.through(across))

    def left_over(self, r: Array, s: Array, y: Array, a: Array) -> tuple[float, float]:
        """By how much the answer misses the first and the second equation, over the size of their terms."""
        first = np.abs(self.through(y) - self.F.T @ a - r).max(initial=0.0)
        second = np.abs(self.B @ y - s).max(initial=0.0)
        size = max(np.abs(y).max(initial=0.0), np.abs(r).max(initial=0.0), np.abs(s).max(initial=0.0))
        return (float(first / size), float(second / size)) if size > 0.0 else (0.0, 0.0)


def assembled(
    L: Array, may: Array, zero: Array, count: NDArray[np.int64], same: bool, C: Array | None, dependent: float
) -> System:
    """The system of whitened rows L (n, 3, m), directions of `modes.bases` (same: may = zero), and C (n, 3, 3)."""
    chosen = np.arange(3) < count[:, None]
    B = np.matmul(zero.transpose(0, 2, 1), L)[chosen]
    F = B if same else np.matmul(may.transpose(0, 2, 1), L)[chosen]
    left = factored(B, dependent)
    right = left if same else factored(F, dependent)
    return completed(L, C, B, F, left, right)


def completed(L: Array, C: Array | None, B: Array, F: Array, left: Factored, right: Factored) -> System:
    """The same of rows that are factored already: C alone depends on impulses."""
    m = L.shape[2]
    A = None if C is None else np.eye(m) + L.reshape(-1, m).T @ np.matmul(C, L).reshape(-1, m)

    # Yᵀ A Z, where it is not the identity.
    if left is right and A is None:
        return System(None, left, right, B, F, None, np.zeros((0, 0)), True)
    inner = right.null.T @ (left.null if A is None else A @ left.null)
    if left.rank == right.rank:
        if not inner.size:
            return System(A, left, right, B, F, None, inner, True)
        lu, pivots, _ = lapack.dgetrf(inner)
        if lapack.dgecon(lu, float(np.abs(inner).sum(axis=0).max()))[0] > SINGULAR:
            return System(A, left, right, B, F, (lu, pivots), inner, True)
    return System(A, left, right, B, F, None, np.linalg.pinv(inner, rcond=1e-9), False)

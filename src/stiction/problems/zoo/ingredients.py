"""Ingredients of random problems: spectra, exactly singular products, solutions known in advance.

Singular matrices are singular exactly: they are products B Bᵀ whose factors have 22 binary digits, so that no product
and no sum is rounded. So are their right-hand sides q = w - M z, made from a solution (z, w) in quarters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.problems.lcp import LCP, BoxLCP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]


def orthogonal(n: int, rng: np.random.Generator) -> Matrix:
    """A uniformly distributed orthogonal matrix: QR of normal numbers with the signs of R removed (Stewart 1980)."""
    Q, R = np.linalg.qr(rng.normal(size=(n, n)))
    return Q * np.where(np.diag(R) < 0.0, -1.0, 1.0)


def eigenvalues(n: int, condition: float, rng: np.random.Generator) -> Vector:
    """Between 1/condition and 1, both attained for n > 1, logarithms uniform."""
    values = condition ** -rng.uniform(0.0, 1.0, n)
    values[: min(n, 2)] = [1.0, 1.0 / condition][: min(n, 2)]
    return values


def spectral(n: int, condition: float, rng: np.random.Generator) -> Matrix:
    """A symmetric positive definite matrix of this condition number and norm 1."""
    Q = orthogonal(n, rng)
    M = (Q * eigenvalues(n, condition, rng)) @ Q.T
    return 0.5 * (M + M.T)


def skew_part(n: int, norm: float, rng: np.random.Generator) -> Matrix:
    """A random skew matrix of this spectral norm."""
    K = rng.normal(size=(n, n))
    K = K - K.T
    size = np.linalg.norm(K, 2) if n > 1 else 1.0
    return K * (norm / size)


def dyadic(values: Matrix) -> Matrix:
    """Rounded to multiples of 2⁻²²: products of two are multiples of 2⁻⁴⁴, and sums of them below 2⁹ are exact."""
    return np.round(values * 2.0**22) * 2.0**-22


def factor(n: int, rank: int, condition: float, rng: np.random.Generator) -> Matrix:
    """B with B Bᵀ of this rank exactly, norm 1 and (nearly) this ratio of largest to smallest nonzero eigenvalue."""
    if not 0 <= rank <= n:
        raise ValueError(f"rank must lie between 0 and n = {n}, got {rank}")
    return dyadic(orthogonal(n, rng)[:, :rank] * np.sqrt(eigenvalues(rank, condition, rng)))


def skew_product(B: Matrix) -> Matrix:
    """B J Bᵀ, with J skew: pairs of columns of B rotated into each other."""
    pairs = B.shape[1] // 2
    K = B[:, :pairs] @ B[:, pairs : 2 * pairs].T
    return K - K.T


def half(n: int) -> int:
    """The default rank: half of n, and 1 for n = 1."""
    return (n + 1) // 2


def contractive(n: int, contraction: float, rng: np.random.Generator) -> Matrix:
    """(I - A)⁻¹ (I + A) with |A|∞ = contraction; nine tenths of each row of A sit in one of a few columns."""
    A = 0.1 * rng.dirichlet(np.ones(max(n, 1)), n)[:, :n] * rng.choice([-1.0, 1.0], (n, n))
    if n:
        hubs = rng.permutation(n)[: max(1, n // 8)]
        A[np.arange(n), rng.choice(hubs, n)] += 0.9 * rng.choice([-1.0, 1.0], n)
        A *= contraction / np.abs(A).sum(axis=1, keepdims=True)
    return np.linalg.solve(np.eye(n) - A, np.eye(n) + A)


def nonnegative(n: int, rng: np.random.Generator) -> Matrix:
    """Symmetric: 3/2 between variables paired at random, a small positive diagonal. Strictly copositive, indefinite.

    Added to a positive semidefinite matrix of norm 1 it stays indefinite: 3/2 - |S_ij| > (S_ii + S_jj) / 2 + 1/8.
    """
    N = np.diag(dyadic(rng.uniform(0.0625, 0.125, n)))
    pairs = rng.permutation(n)[: n - n % 2].reshape(2, -1)
    N[pairs[0], pairs[1]] = N[pairs[1], pairs[0]] = 1.5
    return N


def complementary(n: int, rng: np.random.Generator, active: float, degenerate: float) -> tuple[Vector, Vector]:
    """z, w >= 0 with z_i w_i = 0, in quarters between 1/4 and 2; both zero where degenerate."""
    kind = rng.uniform(size=n)
    z = np.where(kind < active, 0.25 * rng.integers(1, 9, n), 0.0)
    w = np.where(kind >= active + degenerate, 0.25 * rng.integers(1, 9, n), 0.0)
    return z, w


def solvable(M: Matrix, rng: np.random.Generator, active: float, degenerate: float, q_range: float) -> LCP:
    """The LCP of M with a solution z, w in quarters, then scaled (by a power of two) to |q| <= q_range."""
    z, w = complementary(len(M), rng, active, degenerate)
    w *= binary_size(M)
    q = w - M @ z
    return LCP(M, q * fitting(q, q_range))


def solvable_box(M: Matrix, rng: np.random.Generator, degenerate: float, infinite: float, q_range: float) -> BoxLCP:
    """The box problem of M with a solution in quarters, then scaled (by a power of two) to |q| <= q_range."""
    n = len(M)
    lo, hi = -0.25 * rng.integers(1, 9, n), 0.25 * rng.integers(1, 9, n)
    lo = np.where(rng.uniform(size=n) < infinite, -np.inf, lo)
    hi = np.where(rng.uniform(size=n) < infinite, np.inf, hi)
    kind = rng.integers(0, 3, n)
    below, above = (kind == 0) & np.isfinite(lo), (kind == 1) & np.isfinite(hi)
    z = np.where(below, lo, np.where(above, hi, 0.0))
    w = 0.25 * binary_size(M) * rng.integers(1, 9, n)
    w = np.where(below, w, np.where(above, -w, 0.0))
    w[rng.uniform(size=n) < degenerate] = 0.0
    q = w - M @ z
    scale = fitting(q, q_range)
    return BoxLCP(M, q * scale, lo * scale, hi * scale)


def binary_size(M: Matrix) -> float:
    """A power of two near the typical row norm, so that w and Mz weigh alike."""
    size = float(np.sqrt((M**2).sum() / max(len(M), 1)))
    return float(2.0 ** np.ceil(np.log2(max(size, 2.0**-12))))


def fitting(q: Vector, q_range: float) -> float:
    """The largest power of two that brings q within ±q_range."""
    largest = float(np.abs(q).max(initial=0.0))
    return float(2.0 ** np.floor(np.log2(q_range / largest))) if largest > 0.0 else 1.0


def binary_scales(n: int, decades: float, rng: np.random.Generator) -> Vector:
    """Powers of two within 10^±decades."""
    scales: Vector = np.exp2(np.round(rng.uniform(-decades, decades, n) * np.log2(10.0)))
    return scales


def contradiction(n: int, seed: int, condition: float, symmetric: bool) -> tuple[Matrix, Vector, Vector]:
    """M, q and y >= 0 with Mᵀy = My = 0 and y·q < 0."""
    rng = np.random.default_rng(seed)
    B = factor(n, half(n) if n > 1 else 0, condition, rng)
    members = rng.permutation(n)[: min(n, int(rng.integers(2, 5)))]
    if n:
        B[members[-1]] = -B[members[:-1]].sum(axis=0)
    M = B @ B.T if symmetric else B @ B.T + skew_product(B)
    z, w = complementary(n, rng, 0.5, 0.1)
    q = w * binary_size(M) - M @ z
    y = np.zeros(n)
    y[members] = 1.0
    if n:
        q[members[0]] -= y @ q + binary_size(M)
    return M, q, y

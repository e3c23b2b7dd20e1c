"""Random problems of every class that the theory of pivoting and smoothing methods speaks about.

Each function takes the size `n`, a `seed` and what can be chosen; the same arguments give the same problem. Its
docstring names the class of the matrix, and why. `FAMILIES` lists those with a solution, `INFEASIBLE` those
proven to have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from stiction.problems.lcp import LCP, BoxLCP
from stiction.problems.zoo.heaps import frictionless_contact, wall
from stiction.problems.zoo.ingredients import (
    binary_scales,
    complementary,
    contractive,
    contradiction,
    dyadic,
    factor,
    half,
    nonnegative,
    skew_part,
    skew_product,
    solvable,
    solvable_box,
    spectral,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Family(NamedTuple):
    """A generator `make(n, seed)` and the classes that all its problems belong to."""

    make: Callable[..., BoxLCP]
    classes: frozenset[str]


def positive_definite(n: int, seed: int, condition: float = 1e4, q_range: float = 1e2) -> LCP:
    """Symmetric positive definite, with the given condition number: one solution for every q.

    After the random problems of Alefeld, Chen and Potra (1999) as used by Lacoursière (2003, section 7), of which the
    latter gives size, condition number and range of q. Here the eigenvectors are uniformly distributed (Stewart 1980),
    the logarithms of the eigenvalues uniform between 1/condition and 1, both attained, and q uniform in ±q_range.
    """
    rng = np.random.default_rng(seed)
    return LCP(spectral(n, condition, rng), rng.uniform(-q_range, q_range, n))


def positive_definite_box(
    n: int, seed: int, condition: float = 1e4, q_range: float = 1e2, width: float = 1.0, infinite: float = 0.0
) -> BoxLCP:
    """`positive_definite` between random bounds: one solution.

    Bounds are uniform in [-1, 0] and [0, 1] times width * q_range / (mean eigenvalue), the size that one variable would
    take alone; each is infinite with probability `infinite`. Lacoursière (2003, figures 1 and 2) does not give his.
    """
    rng = np.random.default_rng(seed)
    H = spectral(n, condition, rng)
    q = rng.uniform(-q_range, q_range, n)
    reach = width * q_range / max(float(H.diagonal().mean()), 1e-300) if n else 1.0
    lo, hi = -reach * rng.uniform(0.0, 1.0, n), reach * rng.uniform(0.0, 1.0, n)
    lo[rng.uniform(size=n) < infinite] = -np.inf
    hi[rng.uniform(size=n) < infinite] = np.inf
    return BoxLCP(H, q, lo, hi)


def unsymmetric_definite(n: int, seed: int, condition: float = 1e4, q_range: float = 1e2, skew: float = 1.0) -> LCP:
    """Positive definite, not symmetric: z·Mz > 0 because the skew part contributes nothing. One solution.

    The symmetric part is that of `positive_definite`, of norm 1; the skew part has the norm `skew`.
    """
    rng = np.random.default_rng(seed)
    M = spectral(n, condition, rng) + skew_part(n, skew, rng)
    return LCP(M, rng.uniform(-q_range, q_range, n))


def semidefinite(
    n: int,
    seed: int,
    rank: int | None = None,
    condition: float = 1e4,
    q_range: float = 1e2,
    active: float = 0.5,
    degenerate: float = 0.1,
) -> LCP:
    """Symmetric positive semidefinite of exactly the given rank (n // 2 by default); solvable, z rarely unique.

    `condition` is the ratio of the largest to the smallest nonzero eigenvalue, met within 5 % up to 1e8. A solution has
    the fraction `active` of z positive and the fraction `degenerate` with z = w = 0.
    """
    rng = np.random.default_rng(seed)
    B = factor(n, half(n) if rank is None else rank, condition, rng)
    return solvable(B @ B.T, rng, active, degenerate, q_range)


def semidefinite_box(
    n: int,
    seed: int,
    rank: int | None = None,
    condition: float = 1e4,
    q_range: float = 1e2,
    degenerate: float = 0.1,
    infinite: float = 0.25,
) -> BoxLCP:
    """`semidefinite` between bounds, each of them infinite with probability `infinite`: solvable.

    A solution has a third each of z at the lower bound, at the upper bound (where finite) and between, and the fraction
    `degenerate` at a bound with w = 0.
    """
    rng = np.random.default_rng(seed)
    B = factor(n, half(n) if rank is None else rank, condition, rng)
    return solvable_box(B @ B.T, rng, degenerate, infinite, q_range)


def monotone(
    n: int, seed: int, rank: int | None = None, condition: float = 1e4, q_range: float = 1e2, degenerate: float = 0.1
) -> LCP:
    """Positive semidefinite, not symmetric, of exactly the given rank: M = B (I + J) Bᵀ with J skew. Solvable."""
    rng = np.random.default_rng(seed)
    B = factor(n, half(n) if rank is None else rank, condition, rng)
    return solvable(B @ B.T + skew_product(B), rng, 0.5, degenerate, q_range)


def sufficient(
    n: int, seed: int, rank: int | None = None, condition: float = 1e4, q_range: float = 1e2, decades: float = 1.0
) -> LCP:
    """Sufficient, singular and in general not semidefinite: `monotone` with rows and columns in unlike units. Solvable.

    Positive scaling of rows and of columns keeps every product z_i (Mz)_i in its sign, hence sufficiency and P0
    (Cottle, Pang and Venkateswaran 1989); it does not keep semidefiniteness. Scales lie within 10^±decades.
    """
    problem = monotone(n, seed, rank, condition, q_range)
    rng = np.random.default_rng((seed, 1))
    return rescaled(problem, binary_scales(n, decades, rng), binary_scales(n, decades, rng))


def degenerate(n: int, seed: int, rank: int | None = None, copies: int = 3, zeros: float = 0.7) -> LCP:
    """Small integers full of ties: symmetric positive semidefinite, rows repeated, most of q zero. Solvable.

    M = B Bᵀ, each row of B (entries -1, 0, 1) occurring about `copies` times; q = B u + p with p >= 0 cancelling the
    fraction `zeros` of the negative entries. These are the optimality conditions of min |v - u|² / 2 with B v + p >= 0,
    for which v = 0 is feasible: a solution exists. Every ratio test has ties: anti-cycling rules are needed.
    """
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 2, (max(1, n // copies), half(n) if rank is None else rank)).astype(float)
    B = rows[rng.integers(0, len(rows), n)]
    q = B @ rng.integers(-2, 3, B.shape[1]).astype(float)
    q[(q < 0.0) & (rng.uniform(size=n) < zeros)] = 0.0
    return LCP(B @ B.T, q)


def p_matrix(n: int, seed: int, contraction: float = 0.95, q_range: float = 1e2) -> LCP:
    """A P matrix that is not positive definite (n >= 2): one solution for every q.

    M = (I - A)⁻¹ (I + A) with |A|∞ = contraction < 1. It is P: w = Mz means w - z = A (w + z), so the largest
    |w_i - z_i| is below the largest |w_i + z_i|, which cannot be if z_i w_i <= 0 for all i and z ≠ 0 (the same
    transformation leads to equations with absolute values, Mangasarian and Meyer 2006). It is definite only if
    |A|₂ < 1; a few heavy columns make |A|₂ > 1.
    """
    rng = np.random.default_rng(seed)
    return LCP(contractive(n, contraction, rng), rng.uniform(-q_range, q_range, n))


def p_matrix_box(n: int, seed: int, contraction: float = 0.95, q_range: float = 1e2, infinite: float = 0.25) -> BoxLCP:
    """`p_matrix` between random bounds within ±q_range, each infinite with probability `infinite`: one solution."""
    rng = np.random.default_rng(seed)
    H = contractive(n, contraction, rng)
    q = rng.uniform(-q_range, q_range, n)
    lo, hi = -q_range * rng.uniform(0.0, 1.0, n), q_range * rng.uniform(0.0, 1.0, n)
    lo[rng.uniform(size=n) < infinite] = -np.inf
    hi[rng.uniform(size=n) < infinite] = np.inf
    return BoxLCP(H, q, lo, hi)


def p_triangular(n: int, seed: int, coupling: float = 2.0, q_range: float = 1e2) -> LCP:
    """A triangular matrix in hidden order, a P matrix that is not positive definite (n >= 2): one solution.

    Principal minors of a triangular matrix are products of its diagonal, here 1. Murty's exponential example is of this
    kind. Off-diagonal entries are normal with deviation coupling / sqrt(n), so that the condition stays moderate.
    """
    rng = np.random.default_rng(seed)
    T = np.triu(rng.normal(0.0, coupling / np.sqrt(max(n, 1)), (n, n)), 1) + np.eye(n)
    if n > 1:
        T[0, 1] = -3.0  # a symmetric part with the minor 1 - 9/4 < 0
    order = rng.permutation(n)
    return LCP(T[np.ix_(order, order)], rng.uniform(-q_range, q_range, n))


def p0_matrix(n: int, seed: int, q_range: float = 1e2) -> LCP:
    """P0, but neither P nor semidefinite (n >= 3): solvable.

    A block triangular matrix in hidden order, its diagonal blocks triangular with positive diagonal and `semidefinite`:
    principal minors are products of theirs, hence nonnegative, and some are zero. Not sufficient in general, so that
    Lemke's, Keller's and Cottle and Dantzig's methods may fail on it.
    """
    rng = np.random.default_rng(seed)
    p = n // 2
    B = factor(n - p, half(n - p) if n - p > 1 else 0, 1e2, rng)
    M = np.zeros((n, n))
    M[:p, :p] = np.triu(dyadic(rng.uniform(-1.0, 1.0, (p, p)) / np.sqrt(max(p, 1))), 1) + np.eye(p)
    M[:p, p:] = dyadic(rng.uniform(-1.0, 1.0, (p, n - p)) / np.sqrt(max(p, 1)))
    M[p:, p:] = B @ B.T
    if p and n - p > 1:
        M[0, p] = 4.0  # a symmetric part with a minor M_00 M_pp - 4 < 0
    order = rng.permutation(n)
    return solvable(M[np.ix_(order, order)], rng, 0.5, 0.1, q_range)


def strictly_copositive(n: int, seed: int, q_range: float = 1e2) -> LCP:
    """z·Mz > 0 for z >= 0, z ≠ 0, but not semidefinite (n >= 2): solvable for every q, by Lemke's method.

    Positive semidefinite plus nonnegative with positive diagonal (Cottle, Pang and Stone 1992, 3.8), a few large
    entries off the diagonal making it indefinite. Solutions need not be unique.
    """
    rng = np.random.default_rng(seed)
    B = factor(n, half(n), 1e2, rng)
    return LCP(B @ B.T + nonnegative(n, rng), rng.uniform(-q_range, q_range, n))


def copositive_plus(n: int, seed: int, q_range: float = 1e2) -> LCP:
    """Copositive-plus, neither strictly copositive nor semidefinite nor symmetric (n >= 3): solvable by Lemke's method.

    M = [S -Cᵀ; C N] with S positive semidefinite and N strictly copositive: z·Mz = x·Sx + y·Ny vanishes for z >= 0
    only if y = 0 and Sx = 0, and then (M + Mᵀ) z = 0.
    """
    rng = np.random.default_rng(seed)
    s = n // 2 if n > 2 else 0
    B = factor(s, half(s) if s > 1 else 0, 1e2, rng)
    C = dyadic(rng.uniform(-1.0, 1.0, (n - s, s)) / np.sqrt(max(n, 1)))
    M = np.block([[B @ B.T, -C.T], [C, nonnegative(n - s, rng)]])
    return solvable(M, rng, 0.5, 0.1, q_range)


def mixed(n: int, seed: int, condition: float = 1e4, equalities: float = 0.1, inequalities: float = 0.5) -> BoxLCP:
    """Free variables and complementarity: the optimality conditions of a strictly convex quadratic program. Solvable.

    min x·Ax / 2 + a·x with Jx + c = 0 and Gx + b >= 0, whose multipliers are the fractions `equalities` and
    `inequalities` of the n variables. H = [A -Jᵀ -Gᵀ; J 0 0; G 0 0] is positive semidefinite and not symmetric; x is
    unique, multipliers of G need not be. Joints and contacts have this form while the mass matrix is not eliminated.
    """
    rng = np.random.default_rng(seed)
    unilateral = min(round(inequalities * n), n - 1) if n else 0
    bilateral = min(int(equalities * n), max(n - unilateral - 1, 0) // 2)
    m = n - unilateral - bilateral
    A, J, G = spectral(m, condition, rng), rng.normal(size=(bilateral, m)), rng.normal(size=(unilateral, m))
    x, joint = rng.normal(size=m), rng.normal(size=bilateral)
    y, w = complementary(unilateral, rng, 0.5, 0.1)
    free = np.block([[A, -J.T], [J, np.zeros((bilateral, bilateral))]])
    C = np.vstack([-G.T, np.zeros((bilateral, unilateral))])
    D = np.hstack([G, np.zeros((unilateral, bilateral))])
    a = -(free @ np.concatenate([x, joint]) + C @ y)
    return BoxLCP.from_mixed(free, np.zeros((unilateral, unilateral)), C, D, a, w - G @ x)


def badly_scaled(n: int, seed: int, decades: float = 6.0, condition: float = 1e4, q_range: float = 1e2) -> LCP:
    """`positive_definite` in unlike units, within 10^±decades a variable: D M D and D q, symmetric positive definite.

    The units are powers of two, so nothing is rounded: solutions are those of the original, in other units.
    """
    units = binary_scales(n, decades, np.random.default_rng((seed, 1)))
    return rescaled(positive_definite(n, seed, condition, q_range), units, units)


def badly_scaled_rows(n: int, seed: int, decades: float = 6.0, condition: float = 1e4, q_range: float = 1e2) -> LCP:
    """`positive_definite` with rows and columns scaled apart, within 10^±decades: P, no longer definite nor symmetric.

    Scaling multiplies principal minors by positive numbers (Cottle, Pang and Stone 1992, 3.3), so P matrices stay P.
    """
    rng = np.random.default_rng((seed, 1))
    problem = positive_definite(n, seed, condition, q_range)
    return rescaled(problem, binary_scales(n, decades, rng), binary_scales(n, decades, rng))


def tiny(n: int, seed: int, scale: float = 2.0**-200) -> LCP:
    """`positive_definite` with M, q and w multiplied by a tiny number: no fixed tolerance means anything here."""
    return rescaled(positive_definite(n, seed), scale, 1.0)


def huge(n: int, seed: int, scale: float = 2.0**200) -> LCP:
    """`positive_definite` with M, q and w multiplied by a huge number."""
    return rescaled(positive_definite(n, seed), scale, 1.0)


@overload
def rescaled(problem: LCP, row: ArrayLike, column: ArrayLike) -> LCP: ...
@overload
def rescaled(problem: BoxLCP, row: ArrayLike, column: ArrayLike) -> BoxLCP: ...
def rescaled(problem: BoxLCP, row: ArrayLike, column: ArrayLike) -> BoxLCP:
    """The same problem in other units: rows multiplied by `row` > 0, variables counted in `column` > 0 old units.

    H_ij row_i column_j, q_i row_i, bounds / column; its solutions are z / column, w row. Exact for powers of two.
    """
    row, column = np.broadcast_to(row, problem.n), np.broadcast_to(column, problem.n)
    with np.errstate(over="ignore"):  # an overflow is refused by the problem itself
        H, q = problem.H * np.outer(row, column), problem.q * row
        lo, hi = problem.lo / column, problem.hi / column
    return LCP(H, q) if isinstance(problem, LCP) else BoxLCP(H, q, lo, hi)


def infeasible(n: int, seed: int, condition: float = 1e2, symmetric: bool = True) -> LCP:
    """Positive semidefinite without a solution, and proven so.

    Some rows of B sum to zero: for their indicator y >= 0, Mᵀy = 0 exactly and y·q < 0: no z has Mz + q >= 0 (Farkas).
    """
    M, q, _ = contradiction(n, seed, condition, symmetric)
    return LCP(M, q)


def infeasible_box(n: int, seed: int, condition: float = 1e2, symmetric: bool = False) -> BoxLCP:
    """`infeasible` with both bounds finite on a third of the variables outside the contradiction."""
    H, q, y = contradiction(n, seed, condition, symmetric)
    rng = np.random.default_rng((seed, 1))
    lo = 0.25 * rng.integers(-8, 1, n)
    hi = np.where((y == 0.0) & (rng.uniform(size=n) < 1.0 / 3.0), lo + 2.0, np.inf)
    return BoxLCP(H, q, lo, hi)


_IMPLIED = {
    "PD": ("PSD", "P", "strictly-copositive"),
    "PSD": ("sufficient", "copositive-plus"),
    "P": ("sufficient",),
    "sufficient": ("P0",),
    "strictly-copositive": ("copositive-plus",),
}


def family(make: Callable[..., BoxLCP], *classes: str) -> Family:
    """With every class that the given ones imply."""
    found, todo = set(), list(classes)
    while todo:
        name = todo.pop()
        found.add(name)
        todo.extend(_IMPLIED.get(name, ()))
    return Family(make, frozenset(found))


# Matrix: PD, PSD, P, P0, sufficient, copositive-plus, strictly-copositive, symmetric; bounds: LCP or box.
FAMILIES: dict[str, Family] = {
    "positive_definite": family(positive_definite, "LCP", "PD", "symmetric"),
    "positive_definite_box": family(positive_definite_box, "box", "PD", "symmetric"),
    "unsymmetric_definite": family(unsymmetric_definite, "LCP", "PD"),
    "semidefinite": family(semidefinite, "LCP", "PSD", "symmetric"),
    "semidefinite_box": family(semidefinite_box, "box", "PSD", "symmetric"),
    "monotone": family(monotone, "LCP", "PSD"),
    "sufficient": family(sufficient, "LCP", "sufficient"),
    "degenerate": family(degenerate, "LCP", "PSD", "symmetric"),
    "p_matrix": family(p_matrix, "LCP", "P"),
    "p_matrix_box": family(p_matrix_box, "box", "P"),
    "p_triangular": family(p_triangular, "LCP", "P"),
    "p0_matrix": family(p0_matrix, "LCP", "P0"),
    "strictly_copositive": family(strictly_copositive, "LCP", "strictly-copositive", "symmetric"),
    "copositive_plus": family(copositive_plus, "LCP", "copositive-plus"),
    "mixed": family(mixed, "box", "PSD"),
    "frictionless_contact": family(frictionless_contact, "LCP", "PSD", "symmetric"),
    "wall": family(wall, "LCP", "PSD", "symmetric"),
    "badly_scaled": family(badly_scaled, "LCP", "PD", "symmetric"),
    "badly_scaled_rows": family(badly_scaled_rows, "LCP", "P"),
    "tiny": family(tiny, "LCP", "PD", "symmetric"),
    "huge": family(huge, "LCP", "PD", "symmetric"),
}

INFEASIBLE: dict[str, Family] = {
    "infeasible": family(infeasible, "LCP", "PSD", "symmetric"),
    "infeasible_box": family(infeasible_box, "box", "PSD"),
}

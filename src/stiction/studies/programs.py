"""Contact without a friction cone as a quadratic program, and the packages that solve it, where they are installed.

In the normal form, with normal rows N, free velocities u and normal impulses z:

    min ½ |y - u|²,  N y + b >= 0       whose multipliers are z:       0 <= z  ⊥  N Nᵀ z + N u + b >= 0

Explicit viscous friction changes u. No slip at any contact projects N and u onto what the tangents leave
[Drumwright2013, eq. 47–57]. Packages get this form, which is always strictly convex, and quadprog also the dual one,
min ½ z·Az + q·z with z >= 0, to whose matrix it needs something added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stiction as st
from stiction import optional
from stiction.problems.contact import densified
from stiction.studies.results import Array

DEPENDENT = 1e-10  # singular values, over the largest, of tangents that bind nothing new; rows they leave nothing of
ADDED = 1e-10  # to the diagonal of quadprog's dual, in units of its mean
FAR = 1e30
ACCURACY = 1e-10  # asked of ProxQP


class Program(NamedTuple):
    """N, u and b of the program above; all dimensionless."""

    rows: Array  # (n, m)
    free: Array  # (m,)
    bias: Array  # (n,)

    def lcp(self) -> st.LCP:
        return st.LCP(self.rows @ self.rows.T, self.rows @ self.free + self.bias)


def program(problem: st.ContactProblem) -> Program:
    """The program of a problem without friction, with explicit viscous friction, or without slip at any contact."""
    white = problem.whitened
    rows = densified(white.rows, white.segments, white.free.size)
    normals, free, bias = rows[:, 0], white.free, white.bias[:, 0]
    if isinstance(problem.law, st.Viscous):
        free = free + np.einsum("ic,icm->m", drag(problem)[:, 1:], rows[:, 1:])
    if isinstance(problem.law, st.NoSlip):
        bound, held = tangents(problem)
        left = normals - (normals @ bound.T) @ bound
        moves = np.linalg.norm(left, axis=1) > DEPENDENT * np.linalg.norm(normals, axis=1)  # else it is rounding
        normals, free = np.where(moves[:, None], left, 0.0), free - bound.T @ (bound @ free) + held
    return Program(np.ascontiguousarray(normals), free, bias)


def impulses(problem: st.ContactProblem, z: Any) -> Array:
    """(n, 3) impulses in N s of the multipliers z; friction is what the law makes of them."""
    white, scaled = problem.whitened, np.zeros((problem.n, 3))
    scaled[:, 0] = z
    if isinstance(problem.law, st.Viscous):
        scaled[:, 1:] = drag(problem)[:, 1:]
    if isinstance(problem.law, st.NoSlip):
        rows = densified(white.rows, white.segments, white.free.size)
        bound, held = tangents(problem)
        pushed = white.free + scaled[:, 0] @ rows[:, 0]
        change = held - bound.T @ (bound @ pushed)
        across = rows[:, 1:].reshape(2 * problem.n, -1)
        scaled[:, 1:] = np.linalg.lstsq(across.T, change, rcond=DEPENDENT)[0].reshape(-1, 2)
    return white.impulse(scaled)


def drag(problem: st.ContactProblem) -> Array:
    """(n, 3) viscous impulses of the free velocities, in the units of the normal form."""
    assert problem.viscosity is not None
    sliding = problem.dense_rows() @ problem.velocity
    sliding[:, 0] = 0.0
    return problem.whitened.scaled(-problem.viscosity[:, None] * sliding)


def tangents(problem: st.ContactProblem) -> tuple[Array, Array]:
    """(r, m) an orthonormal basis of all tangent rows, and the velocity in their space that stops every sliding."""
    white = problem.whitened
    across = densified(white.rows, white.segments, white.free.size)[:, 1:].reshape(2 * problem.n, -1)
    left, values, right = np.linalg.svd(across, full_matrices=False)
    kept = values > DEPENDENT * values.max(initial=0.0)
    known = -(left[:, kept].T @ white.bias[:, 1:].ravel()) / values[kept]
    return right[kept], right[kept].T @ known


Prepared = Callable[[], Any]  # returns z


def dual_by_quadprog(posed: Program) -> Prepared:
    package, lcp = optional.quadprog(), posed.lcp()
    G = lcp.M + ADDED * lcp.M.diagonal().mean() * np.eye(lcp.n)
    a, C, b = -lcp.q, np.eye(lcp.n), np.zeros(lcp.n)
    return lambda: package.solve_qp(G, a, C, b)[0]


def by_quadprog(posed: Program) -> Prepared:
    package, one = optional.quadprog(), np.eye(posed.free.size)
    C, b = np.asfortranarray(posed.rows.T), -posed.bias
    return lambda: package.solve_qp(one, posed.free, C, b, factorized=True)[4]


def by_daqp(posed: Program) -> Prepared:
    package, one, n = optional.daqp(), np.eye(posed.free.size), len(posed.rows)
    upper, sense = np.full(n, FAR), np.zeros(n, dtype=np.int32)

    def solve() -> Any:
        found = package.solve(one, -posed.free, posed.rows, upper, -posed.bias, sense, primal_tol=1e-12, dual_tol=1e-12)
        return np.abs(found[3]["lam"])

    return solve


def by_proxsuite(posed: Program) -> Prepared:
    dense = optional.proxsuite().proxqp.dense
    n, m = posed.rows.shape
    one, upper = np.eye(m), np.full(n, FAR)

    def solve() -> Any:
        qp = dense.QP(m, 0, n, False, dense.HessianType.Diagonal)
        qp.settings.eps_abs, qp.settings.eps_rel = ACCURACY, 0.0
        qp.init(one, -posed.free, None, None, posed.rows, -posed.bias, upper)
        qp.solve()
        return np.maximum(-qp.results.z, 0.0)

    return solve


PACKAGES: dict[str, tuple[Callable[[], Any], Callable[[Program], Prepared]]] = {
    "quadprog": (optional.quadprog, by_quadprog),
    "quadprog, dual": (optional.quadprog, dual_by_quadprog),
    "daqp": (optional.daqp, by_daqp),
    "proxsuite": (optional.proxsuite, by_proxsuite),
}


def installed() -> dict[str, Callable[[Program], Prepared]]:
    """The packages that are there, and how each prepares a program; what is not is not guessed at."""
    return {name: prepare for name, (load, prepare) in PACKAGES.items() if present(load)}


def present(load: Callable[[], Any]) -> bool:
    try:
        load()
    except st.MissingDependency:
        return False
    return True

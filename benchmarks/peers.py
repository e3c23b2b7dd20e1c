"""Other packages on the same problems, each in the form that suits it best.

Frictionless contact is given to quadratic programming solvers in two forms, which have the same solution:

    dual      min ½ z·Az + q·z,  z >= 0                      what an LCP solver gets; A = B Bᵀ may be singular
    primal    min ½ |y - u|²,    B y >= 0                    z are the multipliers; always strictly convex

The factor B and u (with q = B u) are computed beforehand and not timed: a contact problem knows them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from measure import Contestant

from stiction.problems.contact import densified


def available(package: str) -> bool:
    return find_spec(package) is not None


def lapack() -> Contestant:
    """One LU factorization and solution, the yardstick: its time does not depend on the values."""

    def prepare(problem: Any) -> Callable[[], Any]:
        A = problem.H + 1e-3 * problem.H.diagonal().mean() * np.eye(problem.n)
        return lambda: np.linalg.solve(A, problem.q)

    return Contestant("numpy.linalg.solve", prepare, solves=False)


def lapack_on_normals() -> Contestant:
    """The same for a contact problem: the matrix of its normal impulses, whose assembly is not timed."""

    def prepare(problem: Any) -> Callable[[], Any]:
        white = problem.whitened
        normals = densified(white.rows, white.segments, white.free.size)[:, 0]
        A, q = normals @ normals.T + 1e-3 * np.eye(problem.n), normals @ white.free
        return lambda: np.linalg.solve(A, q)

    return Contestant("numpy.linalg.solve", prepare, solves=False)


def quantecon() -> Contestant:
    from quantecon.optimize import lcp_lemke

    def prepare(problem: Any) -> Callable[[], Any]:
        M, q = problem.M.copy(), problem.q.copy()

        def solve() -> Any:
            found = lcp_lemke(M, q)
            return found.z if found.success else None

        return solve

    return Contestant("quantecon lcp_lemke", prepare)


def drake(name: str) -> Contestant:
    """Drake's `MobyLcpSolver` or `UnrevisedLemkeSolver`; posing the program is not timed."""
    from pydrake import solvers

    solver = getattr(solvers, name)()

    def prepare(problem: Any) -> Callable[[], Any]:
        program = solvers.MathematicalProgram()
        z = program.NewContinuousVariables(problem.n)
        program.AddLinearComplementarityConstraint(problem.M, problem.q, z)

        def solve() -> Any:
            found = solver.Solve(program)
            return found.GetSolution(z) if found.is_success() else None

        return solve

    return Contestant(f"Drake {name}", prepare)


def primal(problem: Any) -> tuple[Any, Any]:
    """B (n, rank) and u with A = B Bᵀ and q = B u."""
    values, vectors = np.linalg.eigh(problem.H)
    kept = values > 1e-11 * values[-1]
    B = np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
    return B, np.linalg.lstsq(B, problem.q, rcond=None)[0]


def quadprog_dual(regularization: float) -> Contestant:
    """Goldfarb and Idnani's method; it needs a definite matrix, so some multiple of the mean diagonal is added."""
    import quadprog

    def prepare(problem: Any) -> Callable[[], Any]:
        n = problem.n
        G = problem.H + regularization * problem.H.diagonal().mean() * np.eye(n)
        a, C, b = -problem.q, np.eye(n), np.zeros(n)
        return lambda: quadprog.solve_qp(G, a, C, b)[0]

    return Contestant(f"quadprog, dual + {regularization:.0e}", prepare)


def quadprog_primal() -> Contestant:
    import quadprog

    def prepare(problem: Any) -> Callable[[], Any]:
        B, u = primal(problem)
        identity, C, b = np.eye(len(u)), np.asfortranarray(B.T), np.zeros(problem.n)
        return lambda: quadprog.solve_qp(identity, u, C, b, factorized=True)[4]

    return Contestant("quadprog, primal", prepare)


def daqp_dual() -> Contestant:
    """With proximal regularization, which DAQP needs for singular matrices; its default stops at 1e-6 there."""
    import daqp

    settings = {"eps_prox": 1e-6, "eta_prox": 1e-12, "primal_tol": 1e-12, "dual_tol": 1e-12}

    def prepare(problem: Any) -> Callable[[], Any]:
        n = problem.n
        A, lower, upper, sense = np.zeros((0, n)), np.zeros(n), np.full(n, 1e30), np.zeros(n, dtype=np.int32)
        H, f = problem.H.copy(), problem.q.copy()
        return lambda: daqp.solve(H, f, A, upper, lower, sense, **settings)[0]

    return Contestant("daqp, dual", prepare)


def daqp_primal() -> Contestant:
    import daqp

    def prepare(problem: Any) -> Callable[[], Any]:
        B, u = primal(problem)
        n, m = B.shape
        H, upper, lower, sense = np.eye(m), np.full(n, 1e30), np.zeros(n), np.zeros(n, dtype=np.int32)

        def solve() -> Any:
            found = daqp.solve(H, -u, B, upper, lower, sense, primal_tol=1e-12, dual_tol=1e-12)
            return np.abs(found[3]["lam"])

        return solve

    return Contestant("daqp, primal", prepare)


def proxsuite_dual(accuracy: float) -> Contestant:
    """The augmented Lagrangian method of ProxQP, bounds kept as bounds."""
    from proxsuite import proxqp

    def prepare(problem: Any) -> Callable[[], Any]:
        n = problem.n
        H, q, lower, upper = problem.H.copy(), problem.q.copy(), np.zeros(n), np.full(n, 1e30)

        def solve() -> Any:
            qp = proxqp.dense.QP(n, 0, 0, True)
            qp.settings.eps_abs, qp.settings.eps_rel = accuracy, 0.0
            qp.init(H, q, None, None, None, None, None, lower, upper)
            qp.solve()
            return np.maximum(qp.results.x, 0.0)

        return solve

    return Contestant("proxsuite, dual", prepare)


def proxsuite_primal(accuracy: float) -> Contestant:
    from proxsuite import proxqp

    def prepare(problem: Any) -> Callable[[], Any]:
        B, u = primal(problem)
        n, m = B.shape
        H, lower, upper = np.eye(m), np.zeros(n), np.full(n, 1e30)

        def solve() -> Any:
            qp = proxqp.dense.QP(m, 0, n, False, proxqp.dense.HessianType.Diagonal)
            qp.settings.eps_abs, qp.settings.eps_rel = accuracy, 0.0
            qp.init(H, -u, None, None, B, lower, upper)
            qp.solve()
            return np.maximum(-qp.results.z, 0.0)

        return solve

    return Contestant("proxsuite, primal", prepare)


def clarabel_dual(accuracy: float) -> Contestant:
    """Interior points; its tolerances are set as tight as it reaches."""
    import clarabel
    from scipy import sparse

    def prepare(problem: Any) -> Callable[[], Any]:
        n = problem.n
        H, A = sparse.csc_matrix(np.triu(problem.H)), sparse.csc_matrix(-np.eye(n))
        q, b, cones = problem.q.copy(), np.zeros(n), [clarabel.NonnegativeConeT(n)]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy

        def solve() -> Any:
            found = clarabel.DefaultSolver(H, q, A, b, cones, settings).solve()
            return np.maximum(np.array(found.x), 0.0)

        return solve

    return Contestant("clarabel, dual", prepare)

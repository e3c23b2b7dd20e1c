"""Enumeration of all supports: the referee for small problems.

Each variable is tried at its lower bound, at its upper bound, and in between; each of the at most 3^n systems is
solved. Supports with a singular system are decided by linear programming. So a solution is found if there is one,
whatever the matrix, and if none is found, there is none (up to rounding).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stiction.compiled import kernel, workspace
from stiction.linear import lu, lu_solve
from stiction.problems.lcp import BoxLCP
from stiction.solutions.certificate import judge
from stiction.solutions.natural_map import judge_into
from stiction.solutions.status import Status
from stiction.solvers.contract import Contract, Proposal
from stiction.solvers.lcp.principal import AT_LOWER, AT_UPPER, MEMBER
from stiction.solvers.lcp.scaling import equilibrate

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 12
CERTAIN = 1e-12  # residual at which the search ends


@dataclass(frozen=True)
class Enumerate:
    """All supports, for LCP and BoxLCP with n <= 12."""

    contract: ClassVar[Contract] = Contract(
        matrix="any",
        guarantee="every problem: a solution, or the knowledge that there is none",
        cost="2^n to 3^n systems",
        choose="you doubt another solver, and n <= 12",
        solves=frozenset({"copositive-plus", "P0"}),
        largest=LARGEST,
    )

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        n = problem.n
        scaled, column = in_scaled_units(problem)
        choices = np.array([sides(lo, hi) for lo, hi in zip(problem.lo, problem.hi, strict=True)], np.int64).reshape(
            n, 4
        )
        total = int(np.prod(choices[:, 3])) if n else 1
        work = workspace(n * n + 8 * n, 5 * n)
        z, singular = np.zeros(n), np.empty(total, np.int64)
        tried, residual, skipped = try_supports(scaled.H, scaled.vectors, scaled.symmetric, choices, *work, z, singular)
        if residual > 1e-9:
            for code in singular[:skipped]:
                found = point_of_singular_support(scaled, decode(choices, int(code)))
                if found is not None and judge(scaled, found)[0].residual < residual:
                    z, residual = found, judge(scaled, found)[0].residual
        status = Status.SOLVED if residual <= 1e-9 else Status.NO_SOLUTION
        return Proposal(status, tried, np.clip(z * column, problem.lo, problem.hi))


def in_scaled_units(problem: BoxLCP) -> tuple[BoxLCP, NDArray[np.float64]]:
    """The problem with its units taken out, and the factors that bring an answer back."""
    n = problem.n
    columns, (q, lo, hi, row, column) = np.empty((n, n)), np.empty((5, n))
    tau = equilibrate(problem.H, problem.vectors, problem.symmetric, columns, q, lo, hi, row, column)
    return BoxLCP(columns.T, q, lo, hi), column * tau


def sides(lo: float, hi: float) -> tuple[int, int, int, int]:
    """The sides a variable can take, and how many."""
    if lo == hi:
        return AT_LOWER, AT_LOWER, AT_LOWER, 1
    if np.isfinite(lo):
        return (AT_LOWER, MEMBER, AT_UPPER, 3) if np.isfinite(hi) else (AT_LOWER, MEMBER, MEMBER, 2)
    return (AT_UPPER, MEMBER, MEMBER, 2) if np.isfinite(hi) else (MEMBER, MEMBER, MEMBER, 1)


def decode(choices: NDArray[np.int64], code: int) -> NDArray[np.int64]:
    """The sides that a support's number stands for."""
    state = np.empty(len(choices), np.int64)
    for i, choice in enumerate(choices):
        state[i] = choice[code % choice[3]]
        code //= choice[3]
    return state


def point_of_singular_support(problem: BoxLCP, state: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """A point with this support, by linear programming; None if there is none."""
    from scipy.optimize import linprog

    H, q = problem.H, problem.q
    lo = np.where(state == AT_UPPER, problem.hi, problem.lo)
    hi = np.where(state == AT_LOWER, problem.lo, problem.hi)
    equal, low, up = state == MEMBER, (state == AT_LOWER) & (problem.lo < problem.hi), state == AT_UPPER
    found = linprog(
        np.zeros(problem.n),
        A_eq=H[equal], b_eq=-q[equal],
        A_ub=np.vstack([-H[low], H[up]]), b_ub=np.concatenate([q[low], -q[up]]),
        bounds=np.column_stack([lo, hi]),
    )  # fmt: skip
    return np.clip(found.x, problem.lo, problem.hi) if found.status == 0 else None


@kernel
def try_supports(H, vectors, symmetric, choices, floats, ints, z, singular):
    """Solve all supports, keep the best. Returns (tried, residual, number of singular supports)."""
    n = len(z)
    A = floats[5 * n : 5 * n + n * n].reshape((n, n))
    f = 5 * n + n * n
    x, trial, w = floats[f : f + n], floats[f + n : f + 2 * n], floats[f + 2 * n : f + 3 * n]
    state, members, pivots = ints[2 * n : 3 * n], ints[3 * n : 4 * n], ints[4 * n : 5 * n]
    best, skipped = np.inf, 0
    for code in range(len(singular)):
        rest, size = code, 0
        for i in range(n):
            state[i] = choices[i, rest % choices[i, 3]]
            rest //= choices[i, 3]
            if state[i] == MEMBER:
                members[size] = i
                size += 1
            trial[i] = 0.0 if state[i] == MEMBER else (vectors[1, i] if state[i] == AT_LOWER else vectors[2, i])
        for e in range(size):
            row = members[e]
            x[e] = -vectors[0, row]
            for j in range(n):
                x[e] -= H[row, j] * trial[j]
            for u in range(size):
                A[e, u] = H[row, members[u]]
        if not lu(A, pivots, size) or nearly_singular(A, size):
            singular[skipped] = code
            skipped += 1
            continue
        lu_solve(A, pivots, size, x)
        for u in range(size):
            i = members[u]
            trial[i] = min(max(x[u], vectors[1, i]), vectors[2, i])
        residual = judge_into(H, vectors, symmetric, trial, w, floats, ints)[0]
        if residual < best:
            best = residual
            for i in range(n):
                z[i] = trial[i]
            if best <= CERTAIN:
                return code + 1, best, skipped
    return len(singular), best, skipped


@kernel
def nearly_singular(A, k):
    """Whether a pivot of the factor is small against its row."""
    for i in range(k):
        size = 0.0
        for j in range(i, k):
            size = max(size, abs(A[i, j]))
        if abs(A[i, i]) <= 1e-11 * size:
            return True
    return False

"""Block principal pivoting: all violated variables change sides at once, a Newton method without smoothing.

Each iteration factors the members' block once and solves it afresh, so nothing drifts. Changing all sides at once can
cycle: if the number of violations has not fallen for some iterations, Murty's least-index method takes over from
there, which is finite for P-matrices. A diagonal perturbation makes singular problems definite; its effect is taken
out again by the proximal point method: the perturbation is centred on the last answer and reduced, until the sides
found solve the problem itself.

[Kostreva1978], safeguard of [JudicePires1994].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.compiled import kernel, workspace
from stiction.errors import InvalidProblem
from stiction.layout import Floats, Ints, layout
from stiction.linear import add_columns, cholesky, cholesky_solve, lu, lu_solve
from stiction.problems.lcp import BoxLCP
from stiction.solutions.status import Status
from stiction.solvers.contract import STATUS, Contract, Proposal
from stiction.solvers.lcp.murty import Murty
from stiction.solvers.lcp.principal import (
    AT_LOWER,
    AT_UPPER,
    EMPTY,
    MAX_ITERATIONS,
    MEMBER,
    NOISE,
    SINGULAR,
    SOLVED,
    STALLED,
    finish,
)
from stiction.solvers.lcp.scaling import equilibrate

if TYPE_CHECKING:
    from numpy.typing import NDArray

PATIENCE = 10  # block changes without fewer violations before single changes begin [JudicePires1994]
PROXIMAL = 30  # repetitions that take a perturbation's effect out
REDUCTION, SMALLEST = 0.1, 1e-11  # of the perturbation from one repetition to the next


@dataclass(frozen=True)
class BlockPivot:
    """Block principal pivoting, for LCP and BoxLCP.

    perturbation: part of the diagonal added to it, to solve semidefinite problems; its effect is removed afterwards
    max_iterations: limit of factorizations in one try; Murty's pivots are limited to a hundred times as many
    """

    perturbation: float = 0.0
    max_iterations: int = 1000

    contract: ClassVar[Contract] = Contract(
        matrix="P",
        guarantee="P-matrices (so positive definite ones), from any start; PSD ones with a perturbation",
        cost="a handful of factorizations, O(k³) each, hardly depending on n",
        choose="large definite problems, or a sequence of similar ones",
        solves=frozenset({"P"}),
        warm=True,
    )

    def __post_init__(self) -> None:
        if not (np.isfinite(self.perturbation) and self.perturbation >= 0.0):
            raise InvalidProblem(f"BlockPivot: perturbation must be non-negative, got {self.perturbation}")

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        return self._perturbed(problem, start) if self.perturbation > 0.0 else self._plain(problem, start)

    def _plain(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        """Block changes, then Murty's method if they cycle."""
        n = problem.n
        work = workspace(*sizes(n))
        z = np.empty(n)
        status, count = block_pivot(
            problem.H, problem.vectors, problem.symmetric, EMPTY if start is None else start,
            self.max_iterations, *work, z,
        )  # fmt: skip
        if status != STALLED:
            return Proposal(STATUS[status], count, z)
        finished = Murty(100 * self.max_iterations).propose(problem, z)
        return finished._replace(
            iterations=count + finished.iterations,
            trace=(f"block changes cycled after {count}; Murty's method took over",),
        )

    def _perturbed(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        """The proximal point method: (H + E) z + q - E centre, E reduced each time."""
        diagonal = np.abs(problem.H.diagonal())
        diagonal = np.where(diagonal > 0.0, diagonal, diagonal.max(initial=0.0) or 1.0)
        centre = np.clip(np.zeros(problem.n), problem.lo, problem.hi) if start is None else start
        count, epsilon = 0, self.perturbation
        for _ in range(PROXIMAL):
            E = epsilon * diagonal
            shifted = BoxLCP(problem.H + np.diag(E), problem.q - E * centre, problem.lo, problem.hi)
            found = self._plain(shifted, centre)
            count += found.iterations
            if found.status != Status.SOLVED:
                return found._replace(iterations=count)
            moved = np.abs(E * (found.z - centre)).max(initial=0.0)
            centre, epsilon = found.z, max(REDUCTION * epsilon, SMALLEST)
            if moved <= 1e-15 * np.abs(E * centre).max(initial=0.0):
                break
        return Proposal(Status.SOLVED, count, centre)


class Sides(NamedTuple):
    """The state of a block pivot method; scaled units."""

    columns: Array[Floats, "n", "n"]  # column j of the matrix in row j
    factor: Array[Floats, "n", "n"]  # of the members' block
    q: Array[Floats, "n"]
    lo: Array[Floats, "n"]
    hi: Array[Floats, "n"]
    row_scale: Array[Floats, "n"]
    column_scale: Array[Floats, "n"]
    z: Array[Floats, "n"]
    w: Array[Floats, "n"]
    step: Array[Floats, "n"]
    spare: Array[Floats, "n"]
    state: Array[Ints, "n"]  # AT_LOWER, AT_UPPER or MEMBER
    members: Array[Ints, "n"]
    pivots: Array[Ints, "n"]
    other: Array[Ints, "n"]  # side to change to


sizes, carve = layout(Sides, "n")


@kernel
def block_pivot(H, vectors, symmetric, start, max_iterations, floats, ints, z):
    """Returns (status, factorizations); STALLED if changing all sides at once no longer reduces the violations."""
    n = len(z)
    t = carve(n, floats, ints)
    tau = equilibrate(H, vectors, symmetric, t.columns, t.q, t.lo, t.hi, t.row_scale, t.column_scale)
    warm = len(start) == n
    for i in range(n):
        free = np.isinf(t.lo[i]) and np.isinf(t.hi[i])
        if free or (warm and vectors[1, i] < start[i] < vectors[2, i]):
            t.state[i] = MEMBER
        else:
            upper = np.isinf(t.lo[i]) or (warm and start[i] == vectors[2, i])
            t.state[i] = AT_UPPER if upper else AT_LOWER
    status, count = MAX_ITERATIONS, 0
    fewest, patience = n + 1, PATIENCE
    while count < max_iterations:
        count += 1
        if not solve_members(t, symmetric):
            status = SINGULAR
            break
        wrong = wrong_sides(t, 1.0 + count / 50.0)
        if wrong == 0:
            status = SOLVED
            break
        if wrong < fewest:
            fewest, patience = wrong, PATIENCE
        else:
            patience -= 1
            if patience == 0:
                status = STALLED
                break
        for i in range(n):
            t.state[i] = t.other[i]
    finish(vectors, tau, t, z)
    return status, count


@kernel
def solve_members(t, symmetric):
    """z of the members from a fresh factor, with one refinement; w of all. False if their block is singular."""
    n = len(t.q)
    size = 0
    for i in range(n):
        t.w[i] = t.q[i]
        if t.state[i] == MEMBER:
            t.members[size], t.z[i] = i, 0.0
            size += 1
        else:
            t.z[i] = t.lo[i] if t.state[i] == AT_LOWER else t.hi[i]
    for j in range(n):
        if t.z[j] != 0.0:
            zj, column = t.z[j], t.columns[j]
            for i in range(n):
                t.w[i] += zj * column[i]
    for e in range(size):
        for u in range(e + 1 if symmetric else size):
            t.factor[e, u] = t.columns[t.members[u], t.members[e]]
    # A symmetric block that is not definite may still be that of a P-matrix to rounding: then it is eliminated.
    definite = symmetric and cholesky(t.factor, size) == size
    if not definite:
        for e in range(size):
            for u in range(size):
                t.factor[e, u] = t.columns[t.members[u], t.members[e]]
        if not lu(t.factor, t.pivots, size):
            return False
    for _ in range(2):
        for u in range(size):
            t.step[u] = -t.w[t.members[u]]
        if definite:
            cholesky_solve(t.factor, size, t.step)
        else:
            lu_solve(t.factor, t.pivots, size, t.step)
        for u in range(size):
            t.z[t.members[u]] += t.step[u]
        add_columns(t.columns, t.members, t.step, size, n, t.w)
    return True


@kernel
def wrong_sides(t, loosened):
    """How many variables violate beyond rounding; `other` gets each one's right side."""
    n = len(t.q)
    scale = 0.0
    for i in range(n):
        if t.state[i] == MEMBER:
            scale += abs(t.z[i])
    noise = NOISE * loosened
    wrong = 0
    for i in range(n):
        t.other[i] = t.state[i]
        if t.state[i] == MEMBER:
            if t.z[i] < t.lo[i] - noise * scale:
                t.other[i] = AT_LOWER
            elif t.z[i] > t.hi[i] + noise * scale:
                t.other[i] = AT_UPPER
        elif t.lo[i] < t.hi[i]:
            violation = -t.w[i] if t.state[i] == AT_LOWER else t.w[i]
            if violation > noise * (abs(t.q[i]) + scale):
                t.other[i] = MEMBER
        if t.other[i] != t.state[i]:
            wrong += 1
    return wrong

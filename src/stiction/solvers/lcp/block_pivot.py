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

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import add_columns, cholesky, cholesky_solve, lu, lu_solve
from stiction.arrays.layout import Ints
from stiction.errors import InvalidProblem
from stiction.problems.lcp import BoxLCP
from stiction.solutions.status import Status
from stiction.solvers.contract import MAX_ITERATIONS, SINGULAR, SOLVED, STALLED, STATUS, Contract, Proposal
from stiction.solvers.lcp.murty import Murty
from stiction.solvers.lcp.tableau import (
    AT_LOWER,
    AT_UPPER,
    EMPTY,
    MEMBER,
    finish,
    move_to_bound,
    residuals,
    scale,
    set_sides,
    tableau_with,
)
from stiction.solvers.lcp.tolerances import BLOCK_STALL, PERTURBATION_FACTOR, PROXIMAL_STEPS
from stiction.solvers.tolerances import INVERSE_ERROR, NOISE, ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class BlockPivot:
    """Block principal pivoting, for LCP and BoxLCP.

    perturbation: part of the diagonal added to it, to solve semidefinite problems; its effect is removed afterwards
    max_iterations: limit of factorizations in one try
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
        finished = Murty().propose(problem, z)
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
        for _ in range(PROXIMAL_STEPS):
            E = epsilon * diagonal
            shifted = BoxLCP(problem.H + np.diag(E), problem.q - E * centre, problem.lo, problem.hi)
            found = self._plain(shifted, centre)
            count += found.iterations
            if found.status != Status.SOLVED:
                return found._replace(iterations=count)
            moved = np.abs(E * (found.z - centre)).max(initial=0.0)
            centre, epsilon = found.z, max(PERTURBATION_FACTOR * epsilon, INVERSE_ERROR)
            if moved <= ROUNDING * np.abs(E * centre).max(initial=0.0):
                break
        return Proposal(Status.SOLVED, count, centre)


class Sides(NamedTuple):
    """Array for changing sides, in addition to the tableau, whose `inverse` holds a factor here."""

    other: Array[Ints, "n"]  # side to change to


sizes, views = tableau_with(Sides)


@kernel
def block_pivot(H, vectors, symmetric, start, max_iterations, floats, ints, z):
    """Returns (status, factorizations); STALLED if changing all sides at once no longer reduces the violations."""
    n = len(z)
    t = views(n, floats, ints)
    tau = scale(H, vectors, symmetric, t)
    set_sides(t, vectors, start)
    # Solve for the members and count the variables on the wrong side.
    status, count = MAX_ITERATIONS, 0
    fewest, patience = n + 1, BLOCK_STALL
    while count < max_iterations:
        count += 1
        if not solve_members(t, symmetric):
            status = SINGULAR
            break
        wrong = wrong_sides(t, NOISE)
        if wrong == 0:
            status = SOLVED
            break
        # All of them change sides, unless their number has not fallen for long.
        patience = BLOCK_STALL if wrong < fewest else patience - 1
        fewest = min(fewest, wrong)
        if patience == 0:
            status = STALLED
            break
        for i in range(n):
            t.state[i] = t.own.other[i]
    finish(vectors, tau, t, z)
    return status, count


@kernel
def solve_members(t, symmetric):
    """z of the members from a fresh factor, with one refinement; w of all. False if their block is singular."""
    # The others at their bounds, members at zero.
    size = 0
    for i in range(len(t.q)):
        if t.state[i] == MEMBER:
            t.members[size], t.z[i] = i, 0.0
            size += 1
        else:
            move_to_bound(t, i)
    residuals(t, 0)
    # A symmetric block that is not definite may still be that of a P-matrix to rounding: then it is eliminated.
    gather_block(t, size)
    definite = symmetric and cholesky(t.inverse, size) == size
    if symmetric and not definite:
        gather_block(t, size)
    if not definite and not lu(t.inverse, t.pivots, size):
        return False
    # Solve, and refine once.
    step = t.entering
    for _ in range(2):
        for u in range(size):
            step[u] = -t.w[t.members[u]]
        if definite:
            cholesky_solve(t.inverse, size, step)
        else:
            lu_solve(t.inverse, t.pivots, size, step)
        for u in range(size):
            t.z[t.members[u]] += step[u]
        add_columns(t.columns, t.members, step, size, len(t.q), t.w)
    return True


@kernel
def gather_block(t, size):
    """The members' block of the matrix, where its factor will be."""
    for e in range(size):
        for u in range(size):
            t.inverse[e, u] = t.columns[t.members[u], t.members[e]]


@kernel
def wrong_sides(t, noise):
    """How many variables violate beyond the noise, a part of the size of their terms; `other` gets each one's right
    side."""
    # The size of z.
    size = 0.0
    for i in range(len(t.q)):
        if t.state[i] == MEMBER:
            size += abs(t.z[i])
    wrong = 0
    for i in range(len(t.q)):
        other = t.state[i]
        # A member beyond a bound goes there; a row with the wrong sign joins.
        if t.state[i] == MEMBER:
            if t.z[i] < t.lo[i] - noise * size:
                other = AT_LOWER
            elif t.z[i] > t.hi[i] + noise * size:
                other = AT_UPPER
        elif t.lo[i] < t.hi[i]:
            violation = -t.w[i] if t.state[i] == AT_LOWER else t.w[i]
            if violation > noise * (abs(t.q[i]) + size):
                other = MEMBER
        t.own.other[i] = other
        wrong += other != t.state[i]
    return wrong

"""Projected block Gauss–Seidel: one block after the other is solved exactly, the rest held fixed.

Cheap, simple, and convergent for symmetric positive definite matrices at a linear rate that worsens with the
condition number; on the problems that contact poses it stagnates. The residual after every sweep is kept, so that
this can be seen.

[Lacoursiere2003, eq. 9]; a block of one is a projection, a larger one a small box LCP solved by Keller's rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, sums, workspace
from stiction.arrays.layout import Floats, Ints, layout
from stiction.errors import InvalidProblem
from stiction.solutions.natural_map import judge_into, scratch
from stiction.solvers.contract import MAX_ITERATIONS, SINGULAR, SOLVED, STATUS, Contract, Proposal
from stiction.solvers.lcp.principal import begin, drive_all, sizes, views
from stiction.solvers.lcp.tableau import finish
from stiction.solvers.lcp.tolerances import usual_pivots
from stiction.solvers.tolerances import PRODUCT_ERROR, pivot_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP


@dataclass(frozen=True)
class GaussSeidel:
    """Projected block Gauss–Seidel, for LCP and BoxLCP.

    blocks: the size of every block, or the sizes of all blocks in order
    relaxation: between 0 and 2; 1 is plain Gauss–Seidel
    max_sweeps: sweeps over all blocks
    target: residual (of the certificate) at which to stop
    """

    blocks: int | Sequence[int] = 1
    relaxation: float = 1.0
    max_sweeps: int = 10_000
    target: float = PRODUCT_ERROR

    contract: ClassVar[Contract] = Contract(
        matrix="P",
        guarantee="symmetric positive definite matrices, in the limit; linear, slow if ill-conditioned",
        cost="O(n²) a sweep",
        choose="low accuracy is enough, or a good start is known",
        warm=True,
    )

    def __post_init__(self) -> None:
        if not 0.0 < self.relaxation < 2.0:
            raise InvalidProblem(f"GaussSeidel: relaxation must lie between 0 and 2, got {self.relaxation}")
        sizes = [self.blocks] if isinstance(self.blocks, int) else list(self.blocks)
        if not all(size >= 1 for size in sizes):
            raise InvalidProblem(f"GaussSeidel: blocks must have sizes of at least 1, got {self.blocks}")

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        n = problem.n
        ends = self._ends(n)
        largest = int(np.diff(ends, prepend=0).max(initial=0))
        of_blocks = map(add, block_sizes(largest), sizes(largest))
        work = workspace(*map(max, scratch(n), of_blocks))  # the judge and the blocks take turns
        z, w = np.clip(np.zeros(n), problem.lo, problem.hi) if start is None else start.copy(), np.empty(n)
        history = np.empty(self.max_sweeps + 1)
        status, sweeps = gauss_seidel(
            problem.H, problem.vectors, problem.symmetric, ends, self.relaxation, self.target,
            *work, z, w, history,
        )  # fmt: skip
        return Proposal(STATUS[status], sweeps, z, history=history[: sweeps + 1].copy())

    def _ends(self, n: int) -> NDArray[np.int64]:
        """Where each block ends."""
        if isinstance(self.blocks, int):
            return np.minimum(np.arange(self.blocks, n + self.blocks, self.blocks), n)
        ends = np.cumsum(self.blocks)
        if len(ends) == 0 or ends[-1] != n:
            raise InvalidProblem(f"GaussSeidel: blocks must sum to n = {n}, got {sum(self.blocks)}")
        return ends


@kernel
def gauss_seidel(H, vectors, symmetric, ends, relaxation, target, floats, ints, z, w, history):
    """Returns (status, sweeps); history[k] is the residual after k sweeps."""
    n = len(z)
    history[0] = judge_into(H, vectors, z, w, floats, ints)[0]
    for sweep in range(1, len(history)):
        if history[sweep - 1] <= target or n == 0:
            return SOLVED, sweep - 1
        # One sweep: a block of one is projected, a larger one solved.
        first = 0
        for end in ends:
            if end == first + 1:
                project(H, vectors, relaxation, first, z)
            elif not solve_block(H, vectors, symmetric, relaxation, first, end, floats, ints, z):
                return SINGULAR, sweep - 1
            first = end
        history[sweep] = judge_into(H, vectors, z, w, floats, ints)[0]
    return MAX_ITERATIONS, len(history) - 1


@sums
def row_value(H, q, z, i):
    """q_i + H_i z."""
    total = q
    row = H[i]
    for j in range(len(z)):
        total += row[j] * z[j]
    return total


@kernel
def project(H, vectors, relaxation, i, z):
    """One variable: to the zero of its row, relaxed, within its bounds."""
    moved = z[i] - relaxation * row_value(H, vectors[0, i], z, i) / H[i, i]
    z[i] = min(max(moved, vectors[1, i]), vectors[2, i])


class Block(NamedTuple):
    """One block: its own box LCP; what is left of the buffers is for the tableau that solves it."""

    H: Array[Floats, "n", "n"]
    data: Array[Floats, 3, "n"]  # q, lo, hi
    answer: Array[Floats, "n"]
    ray: Array[Floats, "n"]
    floats: Array[Floats, ...]
    ints: Array[Ints, ...]


block_sizes, block_views = layout(Block, "n")


@kernel
def solve_block(H, vectors, symmetric, relaxation, first, end, floats, ints, z):
    """One block: its own box LCP, solved exactly, relaxed, within its bounds. False if it cannot be solved."""
    size = end - first
    block, data, answer, ray, floats, ints = block_views(size, floats, ints)
    t = views(size, floats, ints)
    # The problem of the block, the others held fixed.
    for i in range(size):
        data[0, i] = row_value(H, vectors[0, first + i], z, first + i)
        data[1, i], data[2, i] = vectors[1, first + i], vectors[2, first + i]
        for j in range(size):
            block[i, j] = H[first + i, first + j]
            data[0, i] -= block[i, j] * z[first + j]
    # Keller's rule.
    tau, members = begin(block, data, symmetric, z[:0], t)
    if members < 0:
        return False
    status, _, members = drive_all(t, members, usual_pivots(size, True), False, symmetric, pivot_limit(size), ray)
    if status != SOLVED:
        return False
    finish(data, tau, t, answer)
    for i in range(size):
        moved = z[first + i] + relaxation * (answer[i] - z[first + i])
        z[first + i] = min(max(moved, data[1, i]), data[2, i])
    return True

"""Cottle and Dantzig's principal pivoting: a violated row is driven to zero while everything satisfied stays satisfied.

Members stay within their bounds, and rows that have the right sign keep it: whatever would violate first blocks, and
joins or leaves the members. Each row once satisfied remains so, so at most n rows are ever driven; how many pivots each
takes is another matter. Baraff's contact method is this one with Jacobians.

[Cottle1968], [CottlePangStone1992, sec. 4.3].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stiction.arrays.compiled import kernel
from stiction.solvers.contract import SINGULAR, SOLVED, Contract, Proposal
from stiction.solvers.lcp.principal import begin, drive_all, propose, views
from stiction.solvers.lcp.tableau import finish
from stiction.solvers.lcp.tolerances import usual_pivots
from stiction.solvers.tolerances import pivot_limit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP


@dataclass(frozen=True)
class CottleDantzig:
    """Cottle and Dantzig's method, for LCP and BoxLCP.

    in_order: drive violated rows in the order of their indices, as published, instead of the most violated first
    max_pivots: limit; 50 n + 200 if not given
    """

    in_order: bool = False
    max_pivots: int | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="P0",
        guarantee="PSD matrices, symmetric or not, and P-matrices: a solution, or a ray",
        cost="n to 2 n pivots of O(n k), with a long tail",
        choose="rows once satisfied must stay so, as in Baraff's contact method",
        solves=frozenset({"PSD", "P"}),
    )

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        limit = pivot_limit(problem.n) if self.max_pivots is None else self.max_pivots
        return propose(cottle_dantzig, problem, start, self.in_order, limit)


@kernel
def cottle_dantzig(H, vectors, symmetric, start, in_order, max_pivots, floats, ints, z, ray):
    """Returns (status, pivots)."""
    # Rows once satisfied are guarded from the start.
    t = views(len(z), floats, ints)
    tau, size = begin(H, vectors, symmetric, start, t)
    if size < 0:
        z[:] = 0.0
        return SINGULAR, 0
    status, pivots, size = drive_all(t, size, 0, in_order, symmetric, max_pivots, ray)
    # Rounding may have led astray: begin again, in the other order, and then unguarded for as long as is usual.
    for guard_after, order in ((0, not in_order), (usual_pivots(len(z), True), False)):
        if status != SOLVED:
            tau, size = begin(H, vectors, symmetric, start, t)
            status, more, size = drive_all(t, size, guard_after, order, symmetric, max_pivots, ray)
            pivots += more
    finish(vectors, tau, t, z)
    return status, pivots

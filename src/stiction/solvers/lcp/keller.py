"""Keller's principal pivoting: members stay within their bounds, and the most violated row is driven to zero.

Nothing but the members and the driven variable itself can block; other rows may be violated on the way, and have
their turn later. For a symmetric positive semidefinite matrix this is a primal active-set method: ½ zᵀHz + qᵀz falls
with every pivot, so it ends, after about n pivots. For other matrices no such function is known; if the pivots exceed
what is usual, the rows that are satisfied are guarded from then on, as Cottle and Dantzig do.

[Keller1973]; bounds as in [Lacoursiere2003, sec. 5].
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
class Keller:
    """Keller's method, for LCP and BoxLCP.

    max_pivots: limit; 50 n + 200 if not given
    """

    max_pivots: int | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="P0",
        guarantee="PSD matrices, symmetric or not, and P-matrices: a solution, or a ray",
        cost="about n pivots of O(n k)",
        choose="the matrix is symmetric and may be singular; the first choice for contact without friction",
        solves=frozenset({"PSD", "P"}),
    )

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        limit = pivot_limit(problem.n) if self.max_pivots is None else self.max_pivots
        return propose(keller, problem, start, limit)


@kernel
def keller(H, vectors, symmetric, start, max_pivots, floats, ints, z, ray):
    """Returns (status, pivots)."""
    # Rows once satisfied are guarded if the pivots are more than usual.
    t = views(len(z), floats, ints)
    tau, size = begin(H, vectors, symmetric, start, t)
    if size < 0:
        z[:] = 0.0
        return SINGULAR, 0
    guard_after = usual_pivots(len(z), symmetric)
    status, pivots, size = drive_all(t, size, guard_after, False, symmetric, max_pivots, ray)
    # Rounding may have led astray: begin again, with satisfied rows guarded, in two orders.
    for in_order in (True, False):
        if status != SOLVED:
            tau, size = begin(H, vectors, symmetric, start, t)
            status, more, size = drive_all(t, size, 0, in_order, symmetric, max_pivots, ray)
            pivots += more
    finish(vectors, tau, t, z)
    return status, pivots

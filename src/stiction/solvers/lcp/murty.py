"""Murty's least-index method: the first violated variable changes sides, again and again.

A member outside its bounds goes to the bound it crossed; a non-member whose w has the wrong sign joins. The least
violated index is taken each time, and for a P-matrix no set of members ever returns. The method can start from any
set, and can take exponentially many pivots [Fathi1979].

[Murty1974], a Bard-type scheme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stiction.arrays.compiled import kernel
from stiction.solvers.contract import MAX_ITERATIONS, SINGULAR, SOLVED, Contract, Proposal
from stiction.solvers.lcp.members import make_member, send_to_bound
from stiction.solvers.lcp.principal import begin, propose, views
from stiction.solvers.lcp.tableau import AT_LOWER, AT_UPPER, MEMBER, correct, finish, magnitude, residuals, settle
from stiction.solvers.lcp.tolerances import murty_limit
from stiction.solvers.tolerances import NOISE, pivot_limit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP


@dataclass(frozen=True)
class Murty:
    """Murty's least-index method, for LCP and BoxLCP.

    max_pivots: limit; (n + 1) (50 n + 200) if not given
    """

    max_pivots: int | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="P",
        guarantee="P-matrices (so positive definite ones), from any start",
        cost="2 n to 3 n pivots of O(n k), exponential at worst",
        choose="a start near the answer is known, or another method cycles",
        solves=frozenset({"P"}),
        warm=True,
    )

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        limit = murty_limit(problem.n) if self.max_pivots is None else self.max_pivots
        return propose(murty, problem, start, limit)


@kernel
def murty(H, vectors, symmetric, start, max_pivots, floats, ints, z, ray):
    """Returns (status, pivots)."""
    n = len(z)
    t = views(n, floats, ints)
    tau, size = begin(H, vectors, symmetric, start, t)
    if size < 0:
        z[:] = 0.0
        return SINGULAR, 0
    status, pivots, verified = MAX_ITERATIONS, 0, False
    while pivots <= max_pivots:
        i, side = first_infeasible(t, size, NOISE * (1.0 + pivots / pivot_limit(n)))
        # Nothing is violated: believe it if it still is so after everything has been computed anew.
        if i < 0:
            if verified:
                status = SOLVED
                break
            residuals(t, size)
            correct(t, size)
            verified = True
            continue
        # The violated variable changes sides.
        verified = False
        size = make_member(t, size, i, symmetric) if side == MEMBER else send_to_bound(t, size, i, side)
        pivots += 1
        if size < 0 or not settle(t, size):
            status = SINGULAR
            break
    finish(vectors, tau, t, z)
    return status, pivots


@kernel
def first_infeasible(t, size, noise):
    """The least index that is on the wrong side beyond the noise, and the side it should change to; -1 if there is
    none."""
    scale = magnitude(t, size)
    for i in range(len(t.q)):
        if t.state[i] == MEMBER:
            if t.z[i] < t.lo[i] - noise * scale:
                return i, AT_LOWER
            if t.z[i] > t.hi[i] + noise * scale:
                return i, AT_UPPER
        elif -t.side[i] * t.w[i] > noise * (abs(t.q[i]) + scale - 1.0):
            return i, MEMBER
    return -1, MEMBER

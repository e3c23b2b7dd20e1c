"""Principal pivoting method I as modified by Drumwright: at most two members change at a time, the worst of each kind.

The row that is most violated joins the members; the member that is most negative leaves; if no row is violated, only
the latter. Few pivots are usual where contacts are many and freedoms few. The method may cycle, and a joining row may
depend on the members' (a singular block); in both cases the answer is finished by Keller's rule, which is finite.

[Drumwright2013, Algorithm 1]: its "nonbasic" set is the set of members here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stiction.arrays.compiled import kernel
from stiction.problems.contact import ContactProblem
from stiction.solvers.contact.contact_pivot import contact_pivot
from stiction.solvers.contract import MAX_ITERATIONS, SINGULAR, SOLVED, STALLED, ContactProposal, Contract, Proposal
from stiction.solvers.lcp.members import make_member, send_to_bound
from stiction.solvers.lcp.principal import begin, drive_all, propose, verify, views, violated
from stiction.solvers.lcp.tableau import AT_LOWER, finish, magnitude, settle
from stiction.solvers.lcp.tolerances import MOST_DOUBTS, usual_pivots
from stiction.solvers.tolerances import NOISE, pivot_limit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP


@dataclass(frozen=True)
class PrincipalPivot:
    """Drumwright's modified principal pivoting, for LCP and for contact without a friction cone.

    max_pivots: pivots after which Keller's rule takes over; 10 n + 40 if not given, for contacts 10 min(n, m) + 40
    """

    max_pivots: int | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="P0",
        guarantee="PSD matrices, symmetric or not, and P-matrices, by falling back on Keller's rule",
        cost="few pivots of O(n k) where k stays small",
        choose="many rows, few of them active: contact without friction or without slip",
        solves=frozenset({"PSD", "P"}),
        boxes=False,
        warm=True,
        laws=("frictionless", "viscous", "no-slip"),
    )

    def propose(
        self, problem: BoxLCP | ContactProblem, start: NDArray[np.float64] | None
    ) -> Proposal | ContactProposal:
        if isinstance(problem, ContactProblem):
            return contact_pivot.propose(problem, start, self.max_pivots)
        limit = usual_pivots(problem.n, True) if self.max_pivots is None else self.max_pivots
        return propose(principal_pivot, problem, start, limit)


@kernel
def principal_pivot(H, vectors, symmetric, start, max_pivots, floats, ints, z, ray):
    """Returns (status, pivots)."""
    n = len(z)
    t = views(n, floats, ints)
    tau, size = begin(H, vectors, symmetric, start, t)
    status, pivots, doubts = SINGULAR if size < 0 else MAX_ITERATIONS, 0, 1.0
    while status == MAX_ITERATIONS and pivots <= max_pivots:
        # The worst row and the worst member, lines 15 to 18 of the algorithm; if there is neither, verify.
        row = violated(t, size, False)
        member = most_negative_member(t, size)
        if row < 0 and member < 0:
            size, row = verify(t, size, doubts)
            if size < 0:
                status = SINGULAR
                break
            if row < 0:
                status = SOLVED
                break
            doubts *= 2.0
            if doubts > MOST_DOUBTS:
                status = STALLED
                break
        # Both change at once.
        if row >= 0:
            size = make_member(t, size, row, symmetric)
            pivots += 1
        if size > 0 and member >= 0:
            size = send_to_bound(t, size, member, AT_LOWER)
            pivots += 1
        if size < 0 or not settle(t, size):
            status = SINGULAR
    # It may cycle: Keller's rule does not.
    if status != SOLVED:
        tau, size = begin(H, vectors, symmetric, z[:0], t)
        guard_after = usual_pivots(n, symmetric)
        status, more, size = drive_all(t, size, guard_after, False, symmetric, pivot_limit(n), ray)
        pivots += more
    finish(vectors, tau, t, z)
    return status, pivots


@kernel
def most_negative_member(t, size):
    """The member below zero by the most, beyond rounding; -1 if there is none."""
    allowed = -NOISE * magnitude(t, size)
    which = -1
    for u in range(size):
        if t.z[t.members[u]] < allowed:
            allowed, which = t.z[t.members[u]], t.members[u]
    return which

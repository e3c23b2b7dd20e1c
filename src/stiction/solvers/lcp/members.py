"""Members of a basis come and go, each with its own row: the pivots of principal pivoting, of one variable or of two.

Each changes the inverse in O(k²). A pivot is the Schur complement of a variable, or of it and another variable's row.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot, times
from stiction.solvers.lcp.basis_inverse import border, exchange_column, exchange_row
from stiction.solvers.lcp.tableau import (
    AT_LOWER,
    MEMBER,
    add,
    advance,
    column_times_inverse,
    move_to_bound,
    rates_of_row,
    rates_of_variable,
    remove,
    row_times_inverse,
)
from stiction.solvers.lcp.tolerances import WEAK_PIVOT
from stiction.solvers.tolerances import PRODUCT_ERROR


@kernel
def assign_bound(t, variable, state):
    """Assign a variable to a bound; its row must have the sign that belongs there."""
    t.state[variable] = state
    if t.lo[variable] == t.hi[variable]:
        t.side[variable] = 0.0
    else:
        t.side[variable] = 1.0 if state == AT_LOWER else -1.0


@kernel
def watch_all_rows(t):
    """Watch every row again: `drive` ignores its own and those that only seemed to move."""
    for i in range(len(t.q)):
        if t.state[i] != MEMBER:
            assign_bound(t, i, t.state[i])


@kernel
def enroll(t, slot, variable):
    """The variable has this slot among the members, and its row among the equations."""
    t.members[slot] = t.equations[slot] = variable
    t.place[variable] = t.row_place[variable] = slot
    t.state[variable], t.side[variable] = MEMBER, 0.0


@kernel
def make_member(t, size, variable, symmetric):
    """Join a variable and move all members so that its w vanishes, whatever bounds that crosses; -1 if it cannot."""
    pivot = schur_complement(t, size, variable, symmetric)
    if pivot == 0.0:
        return -1
    rates_of_variable(t, size, variable, 1.0, t.entering)
    step = -t.w[variable] / pivot
    advance(t, size, step)
    t.z[variable] += step
    t.w[variable] = 0.0
    return join(t, size, variable, pivot)


@kernel
def send_to_bound(t, size, variable, state):
    """Drop a member to a bound and move the others so that their w stay zero, whatever bounds that crosses."""
    slot = t.place[variable]
    bound = t.lo[variable] if state == AT_LOWER else t.hi[variable]
    rates_of_row(t, size, variable, 1.0)
    advance(t, size, (bound - t.z[variable]) / t.inverse[slot, slot])
    size = drop(t, size, slot, state)
    move_to_bound(t, variable)
    return size


@kernel
def schur_complement(t, size, variable, symmetric):
    """H_vv - H_vα K H_αv of a variable, 0 if it vanishes; entering = K H_αv and leaving = H_vα K."""
    # A complement that cancels is computed again, refined.
    column_times_inverse(t, size, variable)
    pivot, terms = complement_and_terms(t, size, variable)
    if pivot < WEAK_PIVOT * terms:
        refine_entering(t, size, variable)
        pivot, terms = complement_and_terms(t, size, variable)
    if symmetric:
        for u in range(size):
            t.leaving[u] = t.entering[u]
    else:
        row_times_inverse(t, size, variable)
    return pivot if pivot > PRODUCT_ERROR * terms else 0.0


@kernel
def complement_and_terms(t, size, variable):
    """H_vv - H_vα entering, and the size of its terms."""
    total = t.columns[variable, variable]
    terms = abs(total)
    for u in range(size):
        term = t.columns[t.members[u], variable] * t.entering[u]
        total -= term
        terms += abs(term)
    return total, terms


@kernel
def refine_entering(t, size, variable):
    """One step of iterative refinement of H_αα entering = H_α,variable."""
    column = t.columns[variable]
    for e in range(size):
        t.gathered[e] = -column[t.members[e]]
    for u in range(size):
        x, column = t.entering[u], t.columns[t.members[u]]
        for e in range(size):
            t.gathered[e] += x * column[t.members[e]]
    times(t.inverse, t.gathered, size, t.spare)
    for u in range(size):
        t.entering[u] -= t.spare[u]


@kernel
def join(t, size, variable, pivot):
    """The variable becomes a member; entering and leaving hold its column and row times the inverse."""
    add(t, size, variable, variable, pivot)
    t.state[variable] = MEMBER
    return size + 1


@kernel
def drop(t, size, slot, state):
    """The member in this slot goes to a bound."""
    gone = t.members[slot]
    remove(t, size, slot, slot)
    assign_bound(t, gone, state)
    return size - 1


@kernel
def swap(t, size, slot, variable, state):
    """A member goes to a bound and a non-member takes its slot, in one pivot of two."""
    # First the column is exchanged, then, with the new column in the row, the row.
    gone = t.members[slot]
    column_times_inverse(t, size, variable)
    exchange_column(t.inverse, size, slot, t.entering)
    t.members[slot] = variable
    row_times_inverse(t, size, variable)
    exchange_row(t.inverse, size, slot, t.leaving)
    enroll(t, slot, variable)
    t.place[gone] = t.row_place[gone] = -1
    assign_bound(t, gone, state)


@kernel
def join_pair(t, size, first, second):
    """Two variables become members at once, where each one's own pivot is zero."""
    # first with the row of second, then second with the row of first
    pivot = cross_pivot(t, size, first, second)
    border(t.inverse, size, t.entering, t.leaving, pivot)
    t.members[size], t.equations[size] = first, second
    pivot = cross_pivot(t, size + 1, second, first)
    border(t.inverse, size + 1, t.entering, t.leaving, pivot)
    # The equations came in the other order.
    swap_columns(t.inverse, size + 2, size, size + 1)
    enroll(t, size, first)
    enroll(t, size + 1, second)
    return size + 2


@kernel
def cross_pivot(t, size, variable, row):
    """The pivot of a variable with another one's row; entering and leaving are its column and that row times K."""
    column_times_inverse(t, size, variable)
    row_times_inverse(t, size, row)
    return t.columns[variable, row] - dot(t.gathered, t.entering, size)


@kernel
def drop_pair(t, size, slot, driven_slot, state):
    """Two members leave at once, the driven one to be driven again from where it is."""
    driven = t.members[driven_slot]
    swap_columns(t.inverse, size, slot, driven_slot)
    size = drop(t, size, slot, state)
    return drop(t, size, t.place[driven], state)


@kernel
def swap_columns(K, k, a, b):
    """Exchange two columns of a matrix of k rows."""
    for i in range(k):
        K[i, a], K[i, b] = K[i, b], K[i, a]

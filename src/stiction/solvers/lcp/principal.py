"""Principal pivoting on a box LCP: a set of members, whose rows are equations, and everyone else at a bound.

    members α:  w_α = 0, z_α solved for from H_αα;   others:  z at lo (w >= 0 wanted) or at hi (w <= 0 wanted)

The inverse of H_αα follows the set, O(k²) a change; z and w follow along rays, O(n k) a step. Keller's, Cottle and
Dantzig's, Murty's and Drumwright's methods differ only in which member changes next; they share what is here, above
all `drive`: change one violated variable until its w vanishes, letting members leave (and others join) on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.compiled import kernel, minima, workspace
from stiction.layout import Floats, Ints, layout
from stiction.linear import add_columns, dot, invert, times, transposed_times
from stiction.solutions.status import Status
from stiction.solvers.contract import STATUS, Proposal
from stiction.solvers.lcp.basis_inverse import border, exchange_column, exchange_row, strike
from stiction.solvers.lcp.scaling import equilibrate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP

SOLVED, RAY, MAX_ITERATIONS, SINGULAR, STALLED = (
    int(s) for s in (Status.SOLVED, Status.RAY, Status.MAX_ITERATIONS, Status.SINGULAR, Status.STALLED)
)
AT_LOWER, AT_UPPER, MEMBER = 0, 1, 2
FINISHES, FLIPS, LEAVES, JOINS, NOTHING = 0, 1, 2, 3, 4

NOISE = 2e-14  # violations below this part of all terms are rounding
OWN_NOISE = 2e-15  # violations below this part of the terms of the row itself are rounding
MOST_DOUBTS = 1e3  # factor by which rounding may be underestimated before the method gives up
ABSURD = 1e11  # variables larger than this, in scaled units, come of a pivot that was rounding
SMALL_PIVOT = 1e-12  # pivots below this part of their terms are zero
DOUBTFUL_PIVOT = 1e-5  # pivots below this part are computed again with refinement
SLOW = 1e-11  # rates below this part of the fastest do not block
LEAST_WEIGHT = 0.01  # pivots below this count as this, in scaled units, when rows are compared
REFINE, REFACTOR = 1e-14, 1e-11  # equation residuals at which members are corrected, and the inverse rebuilt


class Tableau(NamedTuple):
    """The state of a principal pivoting method; scaled units."""

    columns: Array[Floats, "n", "n"]  # column j of the matrix in row j
    inverse: Array[Floats, "n", "n"]  # of the members' block
    q: Array[Floats, "n"]
    lo: Array[Floats, "n"]
    hi: Array[Floats, "n"]
    row_scale: Array[Floats, "n"]
    column_scale: Array[Floats, "n"]
    z: Array[Floats, "n"]
    w: Array[Floats, "n"]
    z_rate: Array[Floats, "n"]  # of the members, in their order
    w_rate: Array[Floats, "n"]
    entering: Array[Floats, "n"]  # inverse times a column
    leaving: Array[Floats, "n"]  # a row times the inverse
    gathered: Array[Floats, "n"]
    spare: Array[Floats, "n"]
    terms: Array[Floats, "n"]  # size of the terms of each row
    side: Array[Floats, "n"]  # sign that w must have: 1 at lo, -1 at hi, 0 for members and where lo = hi
    entered: Array[Floats, "n"]  # entering of the driven variable
    steps: Array[Floats, "n"]  # to where each quantity blocks
    weight: Array[Floats, "n"]  # each row's pivot, were it to join now
    previous: Array[Floats, "n"]  # w_rate before the last change of members
    guarded: Array[Floats, "n"]  # 1 for rows that must stay satisfied, else 0
    state: Array[Ints, "n"]  # AT_LOWER, AT_UPPER or MEMBER
    members: Array[Ints, "n"]
    place: Array[Ints, "n"]  # among the members, or -1
    pivots: Array[Ints, "n"]


sizes, carve = layout(Tableau, "n")


EMPTY = np.empty(0)


def propose(
    method: Callable[..., tuple[int, int]], problem: BoxLCP, start: NDArray[np.float64] | None, *options: float
) -> Proposal:
    """Run a principal pivoting kernel on a problem."""
    n = problem.n
    work = workspace(*sizes(n))
    z, ray = np.empty((2, n))
    status, pivots = method(
        problem.H, problem.vectors, problem.symmetric, EMPTY if start is None else start, *options, *work, z, ray
    )
    return Proposal(STATUS[status], pivots, z, ray if status == RAY else None)


@kernel
def begin(H, vectors, symmetric, start, t):
    """Scale the problem; free variables join, and those strictly inside their bounds in `start` (if it has n entries).

    Returns (τ, number of members), -1 members if their block is singular.
    """
    n = len(t.q)
    tau = equilibrate(H, vectors, symmetric, t.columns, t.q, t.lo, t.hi, t.row_scale, t.column_scale)
    size = 0
    warm = len(start) == n
    for i in range(n):
        t.place[i] = -1
        t.weight[i] = t.columns[i, i]
        free = np.isinf(t.lo[i]) and np.isinf(t.hi[i])
        inside = warm and vectors[1, i] < start[i] < vectors[2, i]
        if free or inside:
            t.state[i], t.side[i], t.z[i] = MEMBER, 0.0, 0.0
            t.members[size], t.place[i] = i, size
            size += 1
        else:
            lower = np.isfinite(t.lo[i]) and not (warm and start[i] == vectors[2, i])
            put(t, i, AT_LOWER if lower else AT_UPPER)
            rest(t, i)
    if size > 0 and not rebuild(t, size):
        return tau, -1
    residuals(t, size)
    correct(t, size)
    return tau, size


@kernel
def join_free(t):
    """Free variables join one by one; one that depends on the others joins in a pair with a variable of one finite
    bound.

    Returns (number of members, whether every free variable has joined).
    """
    n = len(t.q)
    size = 0
    for i in range(n):
        t.place[i] = -1
        if np.isinf(t.lo[i]) and np.isinf(t.hi[i]):
            t.state[i] = AT_LOWER
    for i in range(n):
        if np.isinf(t.lo[i]) and np.isinf(t.hi[i]):
            column_and_row(t, size, i, i)
            pivot = cross_pivot(t, size, i, i)
            if abs(pivot) > SMALL_PIVOT * cross_terms(t, size, i, i):
                size = join(t, size, i, pivot)
    complete = True
    for i in range(n):
        if np.isinf(t.lo[i]) and np.isinf(t.hi[i]) and t.place[i] < 0:
            best, partner = 0.0, -1
            for j in range(n):
                if t.place[j] < 0 and j != i and (np.isinf(t.lo[j]) or np.isinf(t.hi[j])):
                    column_and_row(t, size, i, j)
                    down, terms = cross_pivot(t, size, i, j), cross_terms(t, size, i, j)
                    column_and_row(t, size, j, i)
                    across, more = cross_pivot(t, size, j, i), cross_terms(t, size, j, i)
                    strength = min(abs(down) / terms, abs(across) / more) if terms > 0.0 and more > 0.0 else 0.0
                    if strength > best:
                        best, partner = strength, j
            if best > SMALL_PIVOT:
                size = join_pair(t, size, i, partner)
            else:
                complete = False
    return size, complete


@kernel
def cross_terms(t, size, variable, row):
    """The size of the terms of `cross_pivot`."""
    total = abs(t.columns[variable, row])
    for u in range(size):
        total += abs(t.gathered[u] * t.entering[u])
    return total


@kernel
def finish(vectors, tau, t, z):
    """Read the answer in the units of the problem; what lies at a bound lies there exactly."""
    for i in range(len(z)):
        if t.state[i] == MEMBER:
            z[i] = min(max(t.z[i] * t.column_scale[i] * tau, vectors[1, i]), vectors[2, i])
        else:
            z[i] = vectors[1, i] if t.state[i] == AT_LOWER else vectors[2, i]


@kernel
def read_ray(t, size, driven, sense, ray):
    """The direction of the last rates, in the units of the problem."""
    for i in range(len(ray)):
        ray[i] = 0.0
    for u in range(size):
        ray[t.members[u]] = t.z_rate[u] * t.column_scale[t.members[u]]
    if t.place[driven] < 0:
        ray[driven] = sense * t.column_scale[driven]


@kernel
def residuals(t, size):
    """w = H z + q from scratch."""
    n = len(t.q)
    for i in range(n):
        t.w[i] = t.q[i]
    for j in range(n):
        if t.state[j] != MEMBER and t.z[j] != 0.0:
            zj, column = t.z[j], t.columns[j]
            for i in range(n):
                t.w[i] += zj * column[i]
    for u in range(size):
        t.gathered[u] = t.z[t.members[u]]
    add_columns(t.columns, t.members, t.gathered, size, n, t.w)


@kernel
def rebuild(t, size):
    """The inverse of the members' block from the matrix; False if it is singular to working precision."""
    K = t.inverse
    largest = 0.0
    for e in range(size):
        for u in range(size):
            K[e, u] = t.columns[t.members[u], t.members[e]]
            largest = max(largest, abs(K[e, u]))
    if not invert(K, t.pivots, size):
        return False
    for e in range(size):
        for u in range(size):
            if not abs(K[e, u]) * largest < 1e14:
                return False
    return True


@kernel
def correct(t, size):
    """One step of iterative refinement of the members, and w anew."""
    if size > 0:
        for e in range(size):
            t.gathered[e] = t.w[t.members[e]]
        times(t.inverse, t.gathered, size, t.entering)
        for u in range(size):
            t.z[t.members[u]] -= t.entering[u]
        residuals(t, size)


@kernel
def magnitude(t, size):
    """The size of the terms of a row: |q| is at most one, entries of the matrix about one."""
    total = 1.0
    for u in range(size):
        total += abs(t.z[t.members[u]])
    return total


@kernel
def equation_residual(t, size):
    worst = 0.0
    for u in range(size):
        worst = max(worst, abs(t.w[t.members[u]]))
    return worst


@kernel
def settle(t, size):
    """Correct the members where their equations have drifted; False if their block has become singular."""
    worst, scale = equation_residual(t, size), magnitude(t, size)
    if worst > REFACTOR * scale and not rebuild(t, size):
        return False
    if worst > REFINE * scale:
        residuals(t, size)
        correct(t, size)
    return True


@kernel
def column_times_inverse(t, size, variable, symmetric):
    """entering = K H_α,variable, leaving = H_variable,α K; returns the Schur complement of the variable, 0 if it
    vanishes."""
    column = t.columns[variable]
    for u in range(size):
        t.gathered[u] = column[t.members[u]]
    times(t.inverse, t.gathered, size, t.entering)
    pivot, terms = schur(t, size, variable)
    if pivot < DOUBTFUL_PIVOT * terms:
        refine_entering(t, size, variable)
        pivot, terms = schur(t, size, variable)
    if symmetric:
        for u in range(size):
            t.leaving[u] = t.entering[u]
    else:
        for u in range(size):
            t.gathered[u] = t.columns[t.members[u], variable]
        transposed_times(t.inverse, t.gathered, size, t.leaving)
    return pivot if pivot > SMALL_PIVOT * terms else 0.0


@kernel
def schur(t, size, variable):
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
    border(t.inverse, size, t.entering, t.leaving, pivot)
    t.members[size], t.place[variable] = variable, size
    t.state[variable], t.side[variable] = MEMBER, 0.0
    return size + 1


@kernel
def drop(t, size, slot, state):
    """The member in this slot goes to a bound."""
    strike(t.inverse, size, slot, slot)
    last = size - 1
    gone, moved = t.members[slot], t.members[last]
    t.members[slot], t.place[moved] = moved, slot
    t.place[gone] = -1
    put(t, gone, state)
    return last


@kernel
def put(t, variable, state):
    """The variable belongs to a bound from now on."""
    t.state[variable] = state
    if t.lo[variable] == t.hi[variable]:
        t.side[variable] = 0.0
    else:
        t.side[variable] = 1.0 if state == AT_LOWER else -1.0


@kernel
def rest(t, variable):
    """Put a non-member exactly at its bound."""
    t.z[variable] = t.lo[variable] if t.state[variable] == AT_LOWER else t.hi[variable]


@kernel
def watch_all(t):
    """Give back its side to every row that was taken for immovable on the way of another."""
    for i in range(len(t.q)):
        if t.state[i] != MEMBER:
            put(t, i, t.state[i])


@kernel
def violated(t, size, in_order):
    """The worst row with the wrong sign beyond rounding, or the first such; -1 if there is none.

    The worst is the one with the largest w² / pivot, twice what joining it would take off ½ zᵀHz + qᵀz.
    """
    scale = magnitude(t, size)
    worst, which = 0.0, -1
    for i in range(len(t.q)):
        violation = -t.side[i] * t.w[i]
        weight = max(t.weight[i], LEAST_WEIGHT)
        if violation > 0.0 and violation * violation > worst * weight:
            if violation > NOISE * (abs(t.q[i]) + scale - 1.0):
                if in_order:
                    return i
                worst, which = violation * violation / weight, i
    return which


@kernel
def remember_rates(t):
    for i in range(len(t.q)):
        t.previous[i] = t.w_rate[i]


@kernel
def follow_weights(t, factor):
    """Every row's pivot after one more member joins (factor < 0) or leaves (> 0), from how that changed the rates."""
    for i in range(len(t.q)):
        change = t.w_rate[i] - t.previous[i]
        t.weight[i] += factor * change * change


@kernel
def rates_of_variable(t, size, driven, sense, entering):
    """Rates as z_driven (not a member) moves by `sense`; entering = K H_α,driven."""
    n = len(t.q)
    for u in range(size):
        t.z_rate[u] = -sense * entering[u]
    column = t.columns[driven]
    for i in range(n):
        t.w_rate[i] = sense * column[i]
    add_columns(t.columns, t.members, t.z_rate, size, n, t.w_rate)


@kernel
def rates_of_row(t, size, driven, sense):
    """Rates as w_driven (a member's) moves by `sense`."""
    n = len(t.q)
    slot = t.place[driven]
    for u in range(size):
        t.z_rate[u] = sense * t.inverse[u, slot]
    for i in range(n):
        t.w_rate[i] = 0.0
    add_columns(t.columns, t.members, t.z_rate, size, n, t.w_rate)


@kernel
def make_member(t, size, variable, symmetric):
    """Join a variable and move all members so that its w vanishes, whatever bounds that crosses; -1 if it cannot."""
    pivot = column_times_inverse(t, size, variable, symmetric)
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
    rest(t, variable)
    return size


@kernel
def advance(t, size, step):
    for u in range(size):
        t.z[t.members[u]] += step * t.z_rate[u]
    for i in range(len(t.q)):
        t.w[i] += step * t.w_rate[i]


@kernel
def drive_all(t, size, guard_after, in_order, symmetric, max_pivots, ray):
    """Drive one violated row after the other until none is left; from `guard_after` pivots on, guard the satisfied
    ones.

    Returns (status, pivots, number of members).
    """
    pivots, doubts = 0, 1.0
    # A principal subproblem of a solvable symmetric semidefinite problem is solvable, so that only rows driven before
    # need be guarded [Baraff1994]; the others have their turn when they are violated.
    for i in range(len(t.q)):
        t.guarded[i] = 0.0 if symmetric and guard_after == 0 and not in_order else 1.0
    while pivots <= max_pivots:
        driven = violated(t, size, in_order)
        if driven < 0:
            size, driven = verify(t, size, doubts)  # from the matrix, not from accumulated steps
            if size < 0:
                return SINGULAR, pivots, 0
            if driven < 0:
                return SOLVED, pivots, size
            doubts *= 2.0
            if doubts > MOST_DOUBTS:
                return STALLED, pivots, size
        guard = pivots >= guard_after
        t.guarded[driven] = 1.0
        status, count, size = drive(t, size, driven, guard, symmetric, max_pivots + 1 - pivots, ray)
        pivots += count
        if status != SOLVED:
            return status, pivots, size
        if not settle(t, size):
            return SINGULAR, pivots, size
    return MAX_ITERATIONS, pivots, size


@kernel
def verify(t, size, doubts):
    """Compute everything anew; members found outside go to their bounds.

    Returns the number of members, -1 if their equations cannot be solved, and the worst row beyond its own rounding, -1
    if there is none.
    """
    n = len(t.q)
    residuals(t, size)
    correct(t, size)
    if equation_residual(t, size) > REFINE * magnitude(t, size):
        if not rebuild(t, size):
            return -1, -1
        correct(t, size)
        correct(t, size)
        if equation_residual(t, size) > REFACTOR * magnitude(t, size):
            return -1, -1
    if magnitude(t, size) > ABSURD:
        return -1, -1
    allowed = NOISE * doubts * magnitude(t, size)
    for i in range(n):
        if t.state[i] == MEMBER and size > 0:
            if t.z[i] < t.lo[i] - allowed:
                size = send_to_bound(t, size, i, AT_LOWER)
            elif t.z[i] > t.hi[i] + allowed:
                size = send_to_bound(t, size, i, AT_UPPER)
    watch_all(t)
    for i in range(n):
        t.terms[i] = abs(t.q[i])
    for j in range(n):
        if t.z[j] != 0.0:
            zj, column = abs(t.z[j]), t.columns[j]
            for i in range(n):
                t.terms[i] += zj * abs(column[i])
    worst, which = 0.0, -1
    for i in range(n):
        if t.state[i] != MEMBER:
            violation = -t.side[i] * t.w[i]
            if violation > OWN_NOISE * doubts * t.terms[i] and violation > worst:
                worst, which = violation, i
    return size, which


@kernel
def drive(t, size, driven, watch, symmetric, limit, ray):
    """Move the violated variable `driven` off its bound until w_driven = 0, or it reaches its other bound.

    Members that reach a bound leave; if `watch`, others whose w would change its sign join. A change whose pivot is
    zero is made together with the driven variable, as a pivot of two: then w_driven is driven instead of z_driven, or
    the other way round. Returns (status, pivots, number of members).
    """
    watch_all(t)
    sense = t.side[driven]
    home = t.state[driven]
    t.side[driven] = 0.0  # it is driven, not watched
    by_row, known, pivot = False, False, 0.0
    changed, factor = -1, 0.0  # the member that joined or left last, and how weights follow
    pivots, idle = 0, 0
    while pivots < limit:
        speed = 1.0
        if by_row:
            rates_of_row(t, size, driven, sense)
        else:
            if not known:
                pivot = column_times_inverse(t, size, driven, symmetric)
                for u in range(size):
                    t.entered[u] = t.entering[u]
            rates_of_variable(t, size, driven, sense, t.entered)
            speed = pivot
            if changed >= 0:
                if factor > 0.0:  # it has left: divide by the square of its rate, which is known only now
                    t.weight[changed] = factor
                    rate = t.w_rate[changed]
                    factor = factor / (rate * rate) if abs(rate) > SLOW else 0.0
                follow_weights(t, factor)
        known, changed = False, -1
        if speed == 0.0 and -sense * t.w[driven] <= NOISE * magnitude(t, size):
            return SOLVED, pivots + 1, retreat(t, size, driven, home, sense, symmetric)
        event, which, step = first_event(t, size, driven, sense, by_row, speed, watch, idle > 2 * len(t.q))
        if event == NOTHING:
            read_ray(t, size, driven, sense, ray)
            put(t, driven, home)
            return RAY, pivots, size
        idle = idle + 1 if step == 0.0 else 0
        advance(t, size, step)
        if not by_row:
            t.z[driven] += sense * step
        pivots += 1

        if event == FINISHES:
            if not by_row:
                t.previous[:] = 0.0
                follow_weights(t, -1.0 / pivot)
                if symmetric:
                    for u in range(size):
                        t.entering[u] = t.leaving[u] = t.entered[u]
                else:
                    pivot = column_times_inverse(t, size, driven, symmetric)
                size = join(t, size, driven, pivot)
            t.w[driven] = 0.0
            return SOLVED, pivots, size
        if event == FLIPS:
            put(t, driven, AT_UPPER if sense > 0.0 else AT_LOWER)
            rest(t, driven)
            return SOLVED, pivots, size
        if event == LEAVES:
            leaver = t.members[which]
            to = AT_LOWER if t.z_rate[which] < 0.0 else AT_UPPER
            diagonal = t.inverse[which, which]
            if leaver == driven or abs(diagonal) > SMALL_PIVOT * abs(t.z_rate[which]):
                size = drop(t, size, which, to)
                rest(t, leaver)
                if not by_row:
                    changed, factor = leaver, 1.0 / diagonal
                    remember_rates(t)
                if leaver == driven:
                    if t.side[driven] * t.w[driven] >= 0.0:
                        return SOLVED, pivots, size
                    t.side[driven] = 0.0
                    by_row = False
            elif by_row:
                size = drop_pair(t, size, which, t.place[driven], to)
                t.state[driven], t.side[driven] = home, 0.0
                rest(t, leaver)
                by_row = False
                pivots += 1
            else:
                swap(t, size, which, driven, to)
                rest(t, leaver)
                by_row = True
                pivots += 1
        else:
            t.w[which] = 0.0
            joining = column_times_inverse(t, size, which, symmetric)
            if joining > 0.0:
                if not by_row and pivot > 0.0:  # what the driven variable's column and pivot become
                    share = sense * t.w_rate[which] / joining
                    changed, factor = which, -1.0 / (share * share * joining) if share != 0.0 else 0.0
                    remember_rates(t)
                    across = t.columns[driven, which] if symmetric else t.columns[which, driven]
                    for u in range(size):
                        t.entered[u] -= share * t.entering[u]
                    left = across if size == 0 else across - row_dot(t, size, driven, t.entering)
                    pivot -= left * share
                    t.entered[size] = share
                    known = pivot > DOUBTFUL_PIVOT * abs(t.columns[driven, driven])
                size = join(t, size, which, joining)
            elif symmetric:
                t.side[which] = 0.0  # a row without a diagonal has no entries at all: it only seemed to move
                known = True
                pivots -= 1
            elif by_row:
                swap(t, size, t.place[driven], which, home)
                t.side[driven] = 0.0
                by_row = False
                pivots += 1
            else:
                size = join_pair(t, size, driven, which)
                by_row = True
                pivots += 1
    if t.place[driven] < 0:
        put(t, driven, home)
    return MAX_ITERATIONS, pivots, size


@kernel
def retreat(t, size, driven, home, sense, symmetric):
    """Its w is zero already, but the driven variable depends on the members: take back what can be taken back.

    Along the direction in which no w changes, either it returns to its bound, or a member leaves and it can join.
    """
    while True:
        pivot = column_times_inverse(t, size, driven, symmetric)
        if pivot > 0.0:
            t.w[driven] = 0.0
            return join(t, size, driven, pivot)
        bound = t.lo[driven] if home == AT_LOWER else t.hi[driven]
        step, which = abs(t.z[driven] - bound), -1
        for u in range(size):
            variable, rate = t.members[u], sense * t.entering[u]
            gap = t.z[variable] - t.lo[variable] if rate < 0.0 else t.hi[variable] - t.z[variable]
            if abs(rate) > SLOW and max(gap, 0.0) < step * abs(rate):
                step, which = max(gap, 0.0) / abs(rate), u
        for u in range(size):
            t.z[t.members[u]] += step * sense * t.entering[u]
        t.z[driven] -= sense * step
        if which < 0:
            put(t, driven, home)
            rest(t, driven)
            return size
        leaver = t.members[which]
        size = drop(t, size, which, AT_LOWER if sense * t.entering[which] < 0.0 else AT_UPPER)
        rest(t, leaver)


@kernel
def row_dot(t, size, row, x):
    """A row of the matrix, at the members, times x."""
    total = 0.0
    for u in range(size):
        total += t.columns[t.members[u], row] * x[u]
    return total


@kernel
def first_event(t, size, driven, sense, by_row, speed, watch, least_index):
    """What stops the motion first: (event, slot or variable, step). Ties go to the fastest, or to the least index."""
    fastest = max(speed, 1.0)
    for u in range(size):
        fastest = max(fastest, abs(t.z_rate[u]))
    slow, tie = SLOW * fastest, 1e-14 * magnitude(t, size)
    event, which, step = NOTHING, -1, np.inf
    if speed > 0.0:
        event, step = FINISHES, max(-sense * t.w[driven], 0.0) / speed
    if not by_row:
        flip = t.hi[driven] - t.z[driven] if sense > 0.0 else t.z[driven] - t.lo[driven]
        if flip < np.inf and flip <= step:
            event, step = FLIPS, max(flip, 0.0)

    for u in range(size):
        variable, rate = t.members[u], t.z_rate[u]
        gap = t.z[variable] - t.lo[variable] if rate < 0.0 else t.hi[variable] - t.z[variable]
        t.steps[u] = max(gap, 0.0) / abs(rate) if abs(rate) > slow else np.inf
    first = smallest(t.steps, size)
    if first * fastest < step * fastest - tie:
        best = 0.0
        for u in range(size):
            rate = abs(t.z_rate[u])
            if t.steps[u] * rate <= first * rate + tie and t.steps[u] < step and rate > best:
                if not (least_index and which >= 0 and t.members[u] > t.members[which]):
                    event, which, best = LEAVES, u, 0.0 if least_index else rate
        step = t.steps[which]

    if watch:
        blocking_steps(t.side, t.guarded, t.w, t.w_rate, slow, -tie, t.steps)
        first = smallest(t.steps, len(t.q))
        if first * fastest < step * fastest - tie:
            best, which = 0.0, -1
            for i in range(len(t.q)):
                if t.steps[i] < step:
                    rate = -t.side[i] * t.w_rate[i]
                    if t.steps[i] * rate <= first * rate + tie and rate > best:
                        event, which, best = JOINS, i, rate
                        if least_index:
                            break
            step = t.steps[which]
    return event, which, step


@minima
def smallest(x, k):
    least = np.inf
    for i in range(k):
        least = min(least, x[i])
    return least


@minima
def blocking_steps(side, guarded, w, w_rate, slow, lowest, steps):
    """Steps at which rows with the right sign lose it; infinity for the others."""
    for i in range(len(side)):
        gap, rate = side[i] * w[i], -side[i] * w_rate[i]
        step = max(gap, 0.0) / max(rate, slow)
        steps[i] = step if rate > slow and gap >= lowest and guarded[i] > 0.0 else np.inf


@kernel
def swap(t, size, slot, variable, state):
    """A member goes to a bound and a non-member takes its slot, in one pivot of two."""
    gone = t.members[slot]
    column = t.columns[variable]
    for u in range(size):
        t.gathered[u] = column[t.members[u]]
    times(t.inverse, t.gathered, size, t.entering)
    exchange_column(t.inverse, size, slot, t.entering)
    t.members[slot] = variable
    for u in range(size):
        t.gathered[u] = t.columns[t.members[u], variable]
    transposed_times(t.inverse, t.gathered, size, t.leaving)
    exchange_row(t.inverse, size, slot, t.leaving)
    t.place[variable], t.state[variable], t.side[variable] = slot, MEMBER, 0.0
    t.place[gone] = -1
    put(t, gone, state)


@kernel
def join_pair(t, size, first, second):
    """Two variables become members at once: first with the row of second, second with the row of first."""
    column_and_row(t, size, first, second)
    border(t.inverse, size, t.entering, t.leaving, cross_pivot(t, size, first, second))
    t.members[size] = first
    column = t.columns[second]
    for e in range(size):
        t.gathered[e] = column[t.members[e]]
    t.gathered[size] = column[second]
    times(t.inverse, t.gathered, size + 1, t.entering)
    for u in range(size + 1):
        t.gathered[u] = t.columns[t.members[u], first]
    transposed_times(t.inverse, t.gathered, size + 1, t.leaving)
    pivot = column[first] - dot(t.gathered, t.entering, size + 1)
    border(t.inverse, size + 1, t.entering, t.leaving, pivot)
    t.members[size + 1] = second
    swap_columns(t.inverse, size + 2, size, size + 1)  # equations came in the other order
    t.place[first], t.state[first], t.side[first] = size, MEMBER, 0.0
    t.place[second], t.state[second], t.side[second] = size + 1, MEMBER, 0.0
    return size + 2


@kernel
def column_and_row(t, size, variable, row):
    """entering = K times the variable's column, leaving = the row times K."""
    for e in range(size):
        t.gathered[e] = t.columns[variable, t.members[e]]
    times(t.inverse, t.gathered, size, t.entering)
    for u in range(size):
        t.gathered[u] = t.columns[t.members[u], row]
    transposed_times(t.inverse, t.gathered, size, t.leaving)


@kernel
def cross_pivot(t, size, variable, row):
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
    for i in range(k):
        K[i, a], K[i, b] = K[i, b], K[i, a]

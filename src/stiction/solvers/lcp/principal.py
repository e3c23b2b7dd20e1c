"""Principal pivoting on a box LCP: a set of members, whose rows are equations, and all other variables at a bound.

    members α:  w_α = 0, z_α solved for from H_αα;   others:  z at lo (w >= 0 wanted) or at hi (w <= 0 wanted)

Keller's, Cottle and Dantzig's, Murty's and Drumwright's methods differ only in which member changes next. They share
this module, above all `drive`: move one violated variable until its w vanishes, while members leave (and others join)
on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import alone, in_callers, kernel, minima, workspace
from stiction.arrays.layout import Floats
from stiction.solvers.contract import MAX_ITERATIONS, RAY, SINGULAR, SOLVED, STALLED, STATUS, Proposal
from stiction.solvers.lcp.members import (
    assign_bound,
    drop,
    drop_pair,
    enroll,
    join,
    join_pair,
    schur_complement,
    send_to_bound,
    swap,
    watch_all_rows,
)
from stiction.solvers.lcp.tableau import (
    AT_LOWER,
    AT_UPPER,
    EMPTY,
    MEMBER,
    advance,
    correct,
    equation_residual,
    magnitude,
    move_to_bound,
    rates_of_row,
    rates_of_variable,
    read_ray,
    rebuild,
    residuals,
    scale,
    set_sides,
    settle,
    solve_anew,
    tableau_with,
)
from stiction.solvers.lcp.tolerances import LARGEST_Z, LEAST_WEIGHT, MOST_DOUBTS, WEAK_PIVOT
from stiction.solvers.tolerances import INVERSE_ERROR, NOISE, PRODUCT_ERROR, ROUNDING, SOLVE_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP

FINISHES, FLIPS, LEAVES, JOINS, NOTHING = range(5)


class Drive(NamedTuple):
    """Arrays for driving one variable, in addition to the tableau."""

    entered: Array[Floats, "n"]  # inverse times the driven variable's column
    steps: Array[Floats, "n"]  # to where each quantity blocks
    weight: Array[Floats, "n"]  # each row's pivot, were it to join now
    previous: Array[Floats, "n"]  # w_rate before the last change of members
    guarded: Array[Floats, "n"]  # 1 for rows that must stay satisfied, else 0


sizes, views = tableau_with(Drive)


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
    tau = scale(H, vectors, symmetric, t)
    set_sides(t, vectors, start)
    # Each variable among the members, or at its bound.
    size = 0
    for i in range(n):
        t.place[i] = t.row_place[i] = -1
        t.own.weight[i] = t.columns[i, i]
        if t.state[i] == MEMBER:
            t.z[i] = 0.0
            enroll(t, size, i)
            size += 1
        else:
            assign_bound(t, i, t.state[i])
            move_to_bound(t, i)
    # The members of the start are solved for, whatever bounds that crosses.
    if size > 0 and not rebuild(t, size):
        return tau, -1
    residuals(t, size)
    correct(t, size)
    return tau, size


# Which row is driven next, and whether the answer is final.


@alone
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
        t.own.guarded[i] = 0.0 if symmetric and guard_after == 0 and not in_order else 1.0
    while pivots <= max_pivots:
        # If no row seems violated, verify from the matrix; each time that finds one, allow for twice the noise.
        driven = violated(t, size, in_order)
        if driven < 0:
            size, driven = verify(t, size, doubts)
            if size < 0:
                return SINGULAR, pivots, 0
            if driven < 0:
                return SOLVED, pivots, size
            doubts *= 2.0
            if doubts > MOST_DOUBTS:
                return STALLED, pivots, size
        # Satisfy the row, then correct what rounding has added.
        guard = pivots >= guard_after
        t.own.guarded[driven] = 1.0
        status, count, size = drive(t, size, driven, guard, symmetric, max_pivots + 1 - pivots, ray)
        pivots += count
        if status != SOLVED:
            return status, pivots, size
        if not settle(t, size):
            return SINGULAR, pivots, size
    return MAX_ITERATIONS, pivots, size


@kernel
def violated(t, size, in_order):
    """The worst row with the wrong sign beyond rounding, or the first such; -1 if there is none.

    The worst is the one with the largest w² / pivot, twice what joining it would take off ½ zᵀHz + qᵀz.
    """
    # Compare w² / pivot without a division.
    scale = magnitude(t, size)
    worst, which = 0.0, -1
    for i in range(len(t.q)):
        violation = -t.side[i] * t.w[i]
        weight = max(t.own.weight[i], LEAST_WEIGHT)
        if violation > 0.0 and violation * violation > worst * weight:
            if violation > NOISE * (abs(t.q[i]) + scale - 1.0):
                if in_order:
                    return i
                worst, which = violation * violation / weight, i
    return which


@kernel
def verify(t, size, doubts):
    """Compute everything anew; members found outside go to their bounds.

    Returns the number of members, -1 if their equations cannot be solved, and the worst row beyond its own rounding, -1
    if there is none.
    """
    # Equations without a solution, or with a huge one, mean that a pivot was rounding.
    n = len(t.q)
    if not solve_anew(t, size):
        return -1, -1
    if equation_residual(t, size) > INVERSE_ERROR * magnitude(t, size) or magnitude(t, size) > LARGEST_Z:
        return -1, -1
    # Members are accurate now; those outside their bounds leave.
    allowed = NOISE * doubts * magnitude(t, size)
    for i in range(n):
        if t.state[i] == MEMBER and size > 0:
            if t.z[i] < t.lo[i] - allowed:
                size = send_to_bound(t, size, i, AT_LOWER)
            elif t.z[i] > t.hi[i] + allowed:
                size = send_to_bound(t, size, i, AT_UPPER)
    watch_all_rows(t)
    # Each row is judged by the size of its own terms.
    terms = t.spare
    for i in range(n):
        terms[i] = abs(t.q[i])
    for j in range(n):
        if t.z[j] != 0.0:
            zj, column = abs(t.z[j]), t.columns[j]
            for i in range(n):
                terms[i] += zj * abs(column[i])
    worst, which = 0.0, -1
    for i in range(n):
        if t.state[i] != MEMBER:
            violation = -t.side[i] * t.w[i]
            if violation > ROUNDING * doubts * terms[i] and violation > worst:
                worst, which = violation, i
    return size, which


# One violated row is satisfied.


class Motion(NamedTuple):
    """How the driven variable moves between two events.

    by_row: its w is moved, since it is a member; else its z
    pivot: rate of its w as its z moves (the Schur complement); 0 if it depends on the members
    known: `pivot` and `entered` are those of the present members already
    changed: variable that joined or left last, -1 if none did, and the weights do not follow it yet
    factor: by which they follow
    """

    by_row: bool
    pivot: float
    known: bool
    changed: int
    factor: float


@kernel
def drive(t, size, driven, watch, symmetric, limit, ray):
    """Move the violated variable `driven` off its bound until w_driven = 0, or it reaches its other bound.

    Members that reach a bound leave; if `watch`, others whose w would change its sign join. A change whose pivot is
    zero is made together with the driven variable, as a pivot of two: then w_driven is driven instead of z_driven, or
    the other way round. Returns (status, pivots, number of members).
    """
    # The driven row is not watched until it is satisfied.
    watch_all_rows(t)
    sense, home = t.side[driven], t.state[driven]
    t.side[driven] = 0.0
    motion = Motion(False, 0.0, False, -1, 0.0)
    pivots, idle = 0, 0
    while pivots < limit:
        # Rates of members and rows. A variable that depends on the members moves no w; where its own is zero, undo it.
        motion = set_rates(t, size, driven, sense, symmetric, motion)
        speed = 1.0 if motion.by_row else motion.pivot
        if speed == 0.0 and -sense * t.w[driven] <= NOISE * magnitude(t, size):
            return SOLVED, pivots + 1, retreat(t, size, driven, home, sense, symmetric)
        # Move to the first event; after many steps of length zero, ties go to the least index, which cannot cycle.
        least_index = idle > len(t.q)
        event, which, step = first_event(t, size, driven, sense, motion.by_row, speed, watch, least_index)
        if event == NOTHING:
            read_ray(t, size, driven if t.place[driven] < 0 else -1, sense, ray)
            assign_bound(t, driven, home)
            return RAY, pivots, size
        idle = idle + 1 if step == 0.0 else 0
        advance(t, size, step)
        if not motion.by_row:
            t.z[driven] += sense * step
        pivots += 1
        # Done: its w is zero and it joins, or its z has reached the other bound.
        if event == FINISHES:
            if not motion.by_row:
                size = join_driven(t, size, driven, symmetric, motion.pivot)
            t.w[driven] = 0.0
            return SOLVED, pivots, size
        if event == FLIPS:
            assign_bound(t, driven, AT_UPPER if sense > 0.0 else AT_LOWER)
            move_to_bound(t, driven)
            return SOLVED, pivots, size
        # Otherwise a member leaves or a row joins, and the motion continues in another direction.
        if event == LEAVES:
            returned = t.members[which] == driven
            size, more, motion = leave(t, size, driven, which, home, motion)
            if returned and t.side[driven] * t.w[driven] >= 0.0:
                return SOLVED, pivots, size
            t.side[driven] = 0.0
        else:
            size, more, motion = join_blocking(t, size, driven, which, home, sense, symmetric, motion)
        pivots += more
    if t.place[driven] < 0:
        assign_bound(t, driven, home)
    return MAX_ITERATIONS, pivots, size


@in_callers
@kernel
def set_rates(t, size, driven, sense, symmetric, motion):
    """Rates of members and rows as the driven variable moves; weights follow the last change of members."""
    if motion.by_row:
        rates_of_row(t, size, driven, sense)
        return Motion(True, motion.pivot, False, -1, 0.0)
    # Its column through the inverse, unless that has been updated.
    pivot, own = motion.pivot, t.own
    if not motion.known:
        pivot = schur_complement(t, size, driven, symmetric)
        for u in range(size):
            own.entered[u] = t.entering[u]
    rates_of_variable(t, size, driven, sense, own.entered)
    # Weights of rows; of a variable that has left, the rate is known only now.
    if motion.changed >= 0:
        factor = motion.factor
        if factor > 0.0:
            own.weight[motion.changed] = factor
            rate = t.w_rate[motion.changed]
            factor = factor / (rate * rate) if abs(rate) > INVERSE_ERROR else 0.0
        follow_weights(t, factor)
    return Motion(False, pivot, False, -1, 0.0)


@kernel
def remember_rates(t):
    """Keep the rates of rows for `follow_weights`."""
    for i in range(len(t.q)):
        t.own.previous[i] = t.w_rate[i]


@kernel
def follow_weights(t, factor):
    """Every row's pivot after one more member joins (factor < 0) or leaves (> 0), from how that changed the rates."""
    own = t.own
    for i in range(len(t.q)):
        change = t.w_rate[i] - own.previous[i]
        own.weight[i] += factor * change * change


@in_callers
@kernel
def join_driven(t, size, driven, symmetric, pivot):
    """The driven variable becomes a member: its w is zero. `entered` and pivot are those of the last rates."""
    t.own.previous[:] = 0.0
    follow_weights(t, -1.0 / pivot)
    if symmetric:
        for u in range(size):
            t.entering[u] = t.leaving[u] = t.own.entered[u]
    else:
        pivot = schur_complement(t, size, driven, symmetric)
    return join(t, size, driven, pivot)


@in_callers
@kernel
def leave(t, size, driven, slot, home, motion):
    """The member in this slot has reached a bound. Returns (number of members, further pivots, motion)."""
    leaver, diagonal = t.members[slot], t.inverse[slot, slot]
    to = AT_LOWER if t.z_rate[slot] < 0.0 else AT_UPPER
    by_row, changed, factor, more = motion.by_row, -1, 0.0, 0
    if leaver == driven or abs(diagonal) > PRODUCT_ERROR * abs(t.z_rate[slot]):
        # A pivot of its own; if it is the driven one, its z moves again.
        size = drop(t, size, slot, to)
        if not by_row:
            changed, factor = leaver, 1.0 / diagonal
            remember_rates(t)
        by_row = by_row and leaver != driven
    elif by_row:
        # Its own pivot is zero: the driven variable leaves with it.
        size = drop_pair(t, size, slot, t.place[driven], to)
        t.state[driven] = home
        by_row, more = False, 1
    else:
        # Its own pivot is zero: the driven variable takes its slot.
        swap(t, size, slot, driven, to)
        by_row, more = True, 1
    move_to_bound(t, leaver)
    return size, more, Motion(by_row, motion.pivot, False, changed, factor)


@in_callers
@kernel
def join_blocking(t, size, driven, row, home, sense, symmetric, motion):
    """The w of this row has become zero: it joins. Returns (number of members, further pivots, motion)."""
    t.w[row] = 0.0
    pivot = schur_complement(t, size, row, symmetric)
    if pivot > 0.0:
        if not motion.by_row and motion.pivot > 0.0:
            motion = motion_after_joining(t, size, driven, row, sense, symmetric, motion.pivot, pivot)
        return join(t, size, row, pivot), 0, motion
    if symmetric:
        # A row without a diagonal has no entries at all: it only seemed to move.
        t.side[row] = 0.0
        return size, -1, Motion(motion.by_row, motion.pivot, True, -1, 0.0)
    # Its own pivot is zero: it joins in the driven variable's place, or together with it.
    if motion.by_row:
        swap(t, size, t.place[driven], row, home)
        t.side[driven] = 0.0
        return size, 1, Motion(False, motion.pivot, False, -1, 0.0)
    size = join_pair(t, size, driven, row)
    return size, 1, Motion(True, motion.pivot, False, -1, 0.0)


@in_callers
@kernel
def motion_after_joining(t, size, driven, row, sense, symmetric, pivot, row_pivot):
    """The motion that follows when a row joins: `entered` and the pivot are updated, unless they would cancel."""
    # Weights follow the change of the rates, once these are known.
    share = sense * t.w_rate[row] / row_pivot
    factor = -1.0 / (share * share * row_pivot) if share != 0.0 else 0.0
    remember_rates(t)
    # One step of elimination: the row's part of the driven column is taken out of the members'.
    across = t.columns[driven, row] if symmetric else t.columns[row, driven]
    entered = t.own.entered
    for u in range(size):
        entered[u] -= share * t.entering[u]
    left = across if size == 0 else across - row_dot(t, size, driven, t.entering)
    pivot -= left * share
    entered[size] = share
    return Motion(False, pivot, pivot > WEAK_PIVOT * abs(t.columns[driven, driven]), row, factor)


@kernel
def row_dot(t, size, row, x):
    """A row of the matrix, at the members, times x."""
    total = 0.0
    for u in range(size):
        total += t.columns[t.members[u], row] * x[u]
    return total


@kernel
def retreat(t, size, driven, home, sense, symmetric):
    """Undo the move of a driven variable that depends on the members, and whose w is zero already.

    Along the direction in which no w changes, either it returns to its bound, or a member leaves and it can join.
    """
    while True:
        # It joins as soon as it no longer depends on them.
        pivot = schur_complement(t, size, driven, symmetric)
        if pivot > 0.0:
            t.w[driven] = 0.0
            return join(t, size, driven, pivot)
        # How far back it can go: to its own bound, or until a member reaches one.
        bound = t.lo[driven] if home == AT_LOWER else t.hi[driven]
        step, which = abs(t.z[driven] - bound), -1
        for u in range(size):
            variable, rate = t.members[u], sense * t.entering[u]
            gap = t.z[variable] - t.lo[variable] if rate < 0.0 else t.hi[variable] - t.z[variable]
            if abs(rate) > INVERSE_ERROR and max(gap, 0.0) < step * abs(rate):
                step, which = max(gap, 0.0) / abs(rate), u
        for u in range(size):
            t.z[t.members[u]] += step * sense * t.entering[u]
        t.z[driven] -= sense * step
        # It is back at its bound, or one member leaves.
        if which < 0:
            assign_bound(t, driven, home)
            move_to_bound(t, driven)
            return size
        leaver = t.members[which]
        size = drop(t, size, which, AT_LOWER if sense * t.entering[which] < 0.0 else AT_UPPER)
        move_to_bound(t, leaver)


# The event that stops a motion.


@kernel
def first_event(t, size, driven, sense, by_row, speed, watch, least_index):
    """The event that ends the motion first: (event, slot or variable, step). Ties: the fastest, or the least index."""
    # What is too slow to block, and what is a tie.
    fastest = max(speed, 1.0)
    for u in range(size):
        fastest = max(fastest, abs(t.z_rate[u]))
    slow, tie = INVERSE_ERROR * fastest, SOLVE_ERROR * magnitude(t, size)

    # The driven variable itself: its w vanishes, or its z reaches its other bound.
    event, which, step = NOTHING, -1, np.inf
    if speed > 0.0:
        event, step = FINISHES, max(-sense * t.w[driven], 0.0) / speed
    if not by_row:
        flip = t.hi[driven] - t.z[driven] if sense > 0.0 else t.z[driven] - t.lo[driven]
        if flip < np.inf and flip <= step:
            event, step = FLIPS, max(flip, 0.0)

    # Members that reach a bound.
    steps = t.own.steps
    for u in range(size):
        variable, rate = t.members[u], t.z_rate[u]
        gap = t.z[variable] - t.lo[variable] if rate < 0.0 else t.hi[variable] - t.z[variable]
        steps[u] = max(gap, 0.0) / abs(rate) if abs(rate) > slow else np.inf
    first = smallest(steps, size)
    if first * fastest < step * fastest - tie:
        # Among those that tie with the first, the fastest is the safest pivot.
        best = 0.0
        for u in range(size):
            rate = abs(t.z_rate[u])
            if steps[u] * rate <= first * rate + tie and steps[u] < step and rate > best:
                if not (least_index and which >= 0 and t.members[u] > t.members[which]):
                    event, which, best = LEAVES, u, 0.0 if least_index else rate
        step = steps[which]

    # Guarded rows that lose their sign.
    if watch:
        blocking_steps(t.side, t.own.guarded, t.w, t.w_rate, slow, -tie, steps)
        first = smallest(steps, len(t.q))
        if first * fastest < step * fastest - tie:
            best, which = 0.0, -1
            for i in range(len(t.q)):
                if steps[i] < step:
                    rate = -t.side[i] * t.w_rate[i]
                    if steps[i] * rate <= first * rate + tie and rate > best:
                        event, which, best = JOINS, i, rate
                        if least_index:
                            break
            step = steps[which]
    return event, which, step


@minima
def smallest(x, k):
    """The least of the first k entries; infinity if k is 0."""
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

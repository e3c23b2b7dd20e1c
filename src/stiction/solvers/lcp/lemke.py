"""Lemke's complementary pivoting, with the bounds inside the method.

With an artificial variable z0 >= 0 and a cover d > 0 the problem becomes w = H z + q + c z0, where c_i is d_i for a
variable at its lower bound and -d_i at its upper one. For large z0 every variable rests at a bound; the path of
solutions is followed from there, one pivot a linear piece, until z0 = 0. A variable between its bounds is a member
and its row an equation; one that reaches a bound leaves the members, and its w is driven next; one whose w vanishes
is driven itself. Free variables are members from the start, and so is a bounded partner of each one that depends on
the others; those are covered like rows.

Guaranteed for copositive-plus matrices (all positive semidefinite ones among them) and for any matrix when all bounds
are finite, in exact arithmetic: ties are broken lexicographically, and z0 wins them. A ray is believed only from a
fresh factorization.

[Lemke1965], bounds after [Sargent1978] and [JudiceMachadoFaustino1992]; the two-pass ratio test is Harris'. The
textbook's version, on a dense tableau and without bounds, is `stiction.studies.tableau_lemke`: read that first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import in_callers, inlined, kernel, minima, workspace
from stiction.arrays.dense import add_columns, dot, times
from stiction.arrays.layout import Floats
from stiction.errors import InvalidProblem
from stiction.problems.lcp import BoxLCP, vector
from stiction.solutions.ray import examine
from stiction.solutions.status import Status
from stiction.solvers.contract import MAX_ITERATIONS, RAY, SINGULAR, SOLVED, STATUS, Contract, Proposal
from stiction.solvers.lcp.basis_inverse import exchange_column, exchange_row
from stiction.solvers.lcp.members import cross_pivot, join, join_pair
from stiction.solvers.lcp.tableau import (
    AT_LOWER,
    AT_UPPER,
    EMPTY,
    MEMBER,
    add,
    advance,
    column_times_inverse,
    correct,
    finish,
    move_to_bound,
    rates_of_row,
    rates_of_variable,
    read_ray,
    rebuild,
    remove,
    residuals,
    row_times_inverse,
    scale,
    settle,
    solve_anew,
    tableau_with,
)
from stiction.solvers.lcp.tolerances import WEAK_PIVOT
from stiction.solvers.tolerances import HALF_OF_THE_DIGITS, INVERSE_ERROR, PRODUCT_ERROR, SOLVE_ERROR, pivot_limit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NOTHING, FLIPS, LEAVES, VANISHES = range(4)


@dataclass(frozen=True)
class Lemke:
    """Lemke's method, for LCP and BoxLCP.

    cover: positive vector d of the artificial variable, (n,); ones in the scaled problem if not given
    max_pivots: limit of one try; 50 n + 200 if not given
    tries: paths followed before giving up, each with another cover, unless a ray proves that there is no solution
    """

    cover: ArrayLike | None = None
    max_pivots: int | None = None
    tries: int = 6

    contract: ClassVar[Contract] = Contract(
        matrix="any",
        guarantee="copositive-plus (so PSD) matrices, or all bounds finite: a solution or a ray",
        cost="about n pivots of O(n k), k unknowns",
        choose="the matrix is unsymmetric, copositive or unknown; the last resort",
        solves=frozenset({"copositive-plus", "P"}),
    )

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        n = problem.n
        given = None if self.cover is None else self._checked_cover(n)
        limit = pivot_limit(n) if self.max_pivots is None else self.max_pivots
        work = workspace(*sizes(n))
        best, least, pivots = None, np.inf, 0
        for attempt in range(max(1, self.tries)):
            answer = np.empty((2, n))
            cover = EMPTY if attempt == 0 and given is None else irregular(n, attempt, given)
            status, count, violation = lemke(problem.H, problem.vectors, problem.symmetric, cover, limit, *work, answer)
            z, pivots = answer[0], pivots + count
            if status == SOLVED and violation <= PRODUCT_ERROR:
                return Proposal(Status.SOLVED, pivots, z)
            ray = answer[1] if status == RAY else None
            if ray is not None and examine(problem, ray).infeasible:
                return Proposal(Status.RAY, pivots, z, ray)
            if status == SINGULAR and count == 0:
                return self._with_free_variables_split(problem)
            if best is None or violation < least:
                best, least = Proposal(STATUS[status], pivots, z, ray), violation
        assert best is not None
        return best._replace(iterations=pivots)

    def _checked_cover(self, n: int) -> NDArray[np.float64]:
        cover = vector("Lemke", "cover", self.cover, n, "the problem")
        if not (cover > 0.0).all():
            i = int(np.argmin(cover))
            raise InvalidProblem(f"Lemke: cover must be positive, but cover[{i}] = {cover[i]:g}")
        return cover

    def _with_free_variables_split(self, problem: BoxLCP) -> Proposal:
        """Free variables whose block is singular become differences of two non-negative ones."""
        free = np.flatnonzero(np.isinf(problem.lo) & np.isinf(problem.hi))
        if free.size == 0:  # bounds that overflow in scaled units
            return Proposal(Status.SINGULAR, 0, np.clip(np.zeros(problem.n), problem.lo, problem.hi))
        sign = np.concatenate([np.ones(problem.n), -np.ones(free.size)])
        index = np.concatenate([np.arange(problem.n), free])
        lo, hi = problem.lo[index].copy(), problem.hi[index].copy()
        lo[free], lo[problem.n :] = 0.0, 0.0
        hi[free], hi[problem.n :] = np.inf, np.inf
        split = BoxLCP(sign[:, None] * problem.H[np.ix_(index, index)] * sign, sign * problem.q[index], lo, hi)
        found = Lemke(None, self.max_pivots, self.tries).propose(split, None)
        merged = found.z[: problem.n].copy()
        merged[free] -= found.z[problem.n :]
        ray = None
        if found.ray is not None:
            ray = found.ray[: problem.n].copy()
            ray[free] -= found.ray[problem.n :]
        return Proposal(found.status, found.iterations, merged, ray)


def irregular(n: int, attempt: int, given: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The given cover first; then covers between one and two without pattern: multiples of the golden ratio."""
    base = np.ones(n) if given is None else given
    return base if attempt == 0 else base * (1.0 + np.mod((np.arange(n) + 1.0) * (0.6180339887498949 * attempt), 1.0))


class Path(NamedTuple):
    """Arrays for following a path, in addition to the tableau; "quantities" are the members, then the rows."""

    order: Array[Floats, "n"]  # the cover of each variable, and then the lexicographic row of the best candidate
    gap: Array[Floats, "2 * n + 2"]  # from each quantity to the bound that it approaches
    speed: Array[Floats, "2 * n + 2"]  # at which it approaches that bound


sizes, views = tableau_with(Path, artificial=1)


@kernel
def lemke(H, vectors, symmetric, cover, max_pivots, floats, ints, answer):
    """Follow one path. Returns (status, pivots, violation); answer[0] is z, answer[1] the direction of a ray."""
    # Everything at a bound, free variables solved for.
    z, ray = answer[0], answer[1]
    t = views(len(z), floats, ints)
    tau = scale(H, vectors, symmetric, t)
    size = rest_at_bounds(t)
    if size < 0:
        return SINGULAR, 0, np.inf
    # From z0 = infinity to z0 = 0; the basis found is solved anew, and judged.
    set_cover(t, size, cover)
    status, pivots, size = follow(t, size, max_pivots, ray)
    violation = np.inf
    if status == SOLVED and solve_anew(t, size):
        violation = largest_violation(t, size)
    if status == SOLVED and not violation < np.inf:
        status = SINGULAR
    finish(vectors, tau, t, z)
    return status, pivots, violation


# The beginning of the path: everything at a bound, and a cover.


@kernel
def rest_at_bounds(t):
    """Bounded variables at a finite bound, free ones solved for; the number of members, or -1 if they are singular."""
    # At the lower bound, where there is one.
    n = len(t.q)
    size, free = 0, 0
    t.place[n], t.z[n] = -1, 0.0
    for i in range(n):
        t.row_place[i] = t.place[i] = -1
        if np.isfinite(t.lo[i]) or np.isfinite(t.hi[i]):
            lower = np.isfinite(t.lo[i])
            t.state[i], t.side[i] = AT_LOWER if lower else AT_UPPER, 1.0 if lower else -1.0
            move_to_bound(t, i)
        else:
            t.z[i] = 0.0
            free += 1
    # Free variables are solved for, from a fresh inverse and with one refinement.
    if free > 0:
        size, complete = join_free(t)
        if not complete or not rebuild(t, size):
            return -1
    residuals(t, size)
    correct(t, size)
    return size


@kernel
def join_free(t):
    """Free variables join one by one; one that depends on the others joins in a pair with a variable of one finite
    bound.

    Returns (number of members, whether every free variable has joined).
    """
    # Those that do not depend on the ones before.
    n = len(t.q)
    size, complete = 0, True
    for i in range(n):
        if np.isinf(t.lo[i]) and np.isinf(t.hi[i]):
            pivot = cross_pivot(t, size, i, i)
            if abs(pivot) > PRODUCT_ERROR * cross_terms(t, size, i, i):
                size = join(t, size, i, pivot)
    # Each other one with the partner whose two pivots are safest.
    for i in range(n):
        if np.isinf(t.lo[i]) and np.isinf(t.hi[i]) and t.place[i] < 0:
            best, partner = 0.0, -1
            for j in range(n):
                if t.place[j] < 0 and j != i and (np.isinf(t.lo[j]) or np.isinf(t.hi[j])):
                    strength = min(cross_strength(t, size, i, j), cross_strength(t, size, j, i))
                    if strength > best:
                        best, partner = strength, j
            if best > PRODUCT_ERROR:
                size = join_pair(t, size, i, partner)
            else:
                complete = False
    return size, complete


@kernel
def cross_strength(t, size, variable, row):
    """The pivot of a variable and a row, as a part of its terms."""
    pivot = cross_pivot(t, size, variable, row)
    terms = cross_terms(t, size, variable, row)
    return abs(pivot) / terms if terms > 0.0 else 0.0


@kernel
def cross_terms(t, size, variable, row):
    """The size of the terms of `cross_pivot`."""
    total = abs(t.columns[variable, row])
    for u in range(size):
        total += abs(t.gathered[u] * t.entering[u])
    return total


@kernel
def set_cover(t, size, cover):
    """The cover, signed and scaled, in row n of `columns`; `order` keeps what each bounded variable is covered by.

    A member that is bounded is covered itself: z_i + d_i z0 stays within its bound, so the rows get c - H d.
    """
    # Positive at a lower bound, negative at an upper one.
    n = len(t.q)
    c, d = t.columns[n], t.own.order
    for i in range(n):
        large = cover[i] * t.row_scale[i] if len(cover) == n and n > 0 else 1.0
        free = np.isinf(t.lo[i]) and np.isinf(t.hi[i])
        d[i] = 0.0 if free else (large if np.isfinite(t.lo[i]) else -large)
        c[i] = d[i] if t.state[i] != MEMBER else 0.0

    # Members that are covered themselves.
    for u in range(size):
        j = t.members[u]
        if d[j] != 0.0:
            column = t.columns[j]
            for i in range(n):
                c[i] -= d[j] * column[i]


@in_callers
@kernel
def enter_artificial(t, size):
    """z0 enters at the least value that keeps everything within bounds; the variable that needs it most is driven.

    Returns (number of members, driven variable, whether its z is driven); -1 if nothing needs z0.
    """
    # Of ties the last is perturbed least, and so the lexicographic choice.
    n = len(t.q)
    c, d = t.columns[n], t.own.order
    driven, largest = -1, 0.0
    for i in range(n):
        if d[i] != 0.0:
            below = t.w[i] if t.state[i] != MEMBER else t.z[i] - (t.lo[i] if d[i] > 0.0 else t.hi[i])
            if t.lo[i] < t.hi[i] and below * d[i] < 0.0 and -below / d[i] >= largest * (1.0 - SOLVE_ERROR):
                driven, largest = i, max(largest, -below / d[i])
    if driven < 0:
        return size, -1, False
    # The members move with z0.
    column_times_inverse(t, size, n)
    t.z[n] = largest
    for u in range(size):
        t.z[t.members[u]] -= largest * t.entering[u]
    # z0 becomes a member with the row that it holds at zero, or in place of the member that it holds at its bound.
    drives_z = t.state[driven] != MEMBER
    if drives_z:
        row_times_inverse(t, size, driven)
        add(t, size, driven, n, c[driven] - dot(t.gathered, t.entering, size))
        size += 1
    else:
        t.state[driven] = AT_LOWER if d[driven] > 0.0 else AT_UPPER
        replace_member(t, size, t.place[driven], n)
        move_to_bound(t, driven)
    residuals(t, size)
    correct(t, size)
    return size, driven, drives_z


@in_callers
@kernel
def replace_member(t, size, slot, variable):
    """A variable takes the place of a member, with the same equations; entering is its column times the inverse."""
    exchange_column(t.inverse, size, slot, t.entering)
    t.place[t.members[slot]] = -1
    t.members[slot], t.place[variable] = variable, slot


# The path itself.


@kernel
def follow(t, size, max_pivots, ray):
    """The path from z0 = infinity to z0 = 0. Returns (status, pivots, number of members)."""
    n = len(t.q)
    size, driven, drives_z = enter_artificial(t, size)
    if driven < 0:
        return SOLVED, 0, size
    fresh = True
    for pivots in range(1, max_pivots + 1):
        # The driven variable, or its w, moves into its range until something blocks.
        sense = 1.0 if t.state[driven] == AT_LOWER else -1.0
        rates(t, size, driven, drives_z, sense)
        event, which, step, doubtful = blocking(t, size, driven, drives_z)
        # Neither a ray nor a small pivot is trusted unless the inverse is fresh and the rates are refined.
        if event == NOTHING or doubtful:
            if not fresh:
                # If the basis cannot be inverted anew, what nothing blocks may be a ray; others examine its proof.
                read_ray(t, size, driven if drives_z else -1, sense, ray)
                if not rebuild(t, size):
                    return RAY if event == NOTHING else SINGULAR, pivots, size
                residuals(t, size)
                correct(t, size)
                rates(t, size, driven, drives_z, sense)
            refine_rates(t, size, driven, drives_z, sense)
            event, which, step, doubtful = blocking(t, size, driven, drives_z)
            # Still nothing blocks: this is a ray.
            if event == NOTHING:
                read_ray(t, size, driven if drives_z else -1, sense, ray)
                return RAY, pivots, size
        fresh = False
        advance(t, size, step)
        if drives_z:
            t.z[driven] += sense * step

        # It reaches its other bound: its w is driven next.
        if event == FLIPS:
            t.state[driven] = AT_UPPER if t.state[driven] == AT_LOWER else AT_LOWER
            move_to_bound(t, driven)
            drives_z = False
            continue
        # A member reaches a bound and its w is driven next, or it is z0, and the path ends.
        if event == LEAVES:
            size, driven = leave(t, size, driven, drives_z, sense, which)
            if driven == n:
                return SOLVED, pivots, size
            drives_z = False
        # The w of a row vanishes: its variable is driven next.
        else:
            size = vanish(t, size, driven, drives_z, sense, which)
            driven, drives_z = which, True
        if not settle(t, size):
            return SINGULAR, pivots, size
    return MAX_ITERATIONS, max_pivots, size


@in_callers
@kernel
def leave(t, size, driven, drives_z, sense, slot):
    """The member in this slot leaves for its bound. Returns (number of members, the variable that has left)."""
    leaving, to_lower = t.members[slot], t.z_rate[slot] < 0.0

    # The driven variable takes its place, or the driven row leaves with it.
    if drives_z:
        replace_member(t, size, slot, driven)
        t.state[driven] = MEMBER
    else:
        remove(t, size, slot, t.row_place[driven])
        t.side[driven] = sense
        size -= 1

    # z0 vanishes; any other stays at its bound.
    if leaving == len(t.q):
        t.z[leaving] = 0.0
    else:
        t.state[leaving] = AT_LOWER if to_lower else AT_UPPER
        move_to_bound(t, leaving)
    return size, leaving


@in_callers
@kernel
def vanish(t, size, driven, drives_z, sense, row):
    """The w of a row has vanished: the row becomes an equation. Returns the number of members."""
    row_times_inverse(t, size, row)
    if drives_z:
        add(t, size, row, driven, t.columns[driven, row] - dot(t.gathered, t.entering, size))
        t.state[driven] = MEMBER
        size += 1
    else:
        equation = t.row_place[driven]
        exchange_row(t.inverse, size, equation, t.leaving)
        t.equations[equation], t.row_place[row], t.row_place[driven] = row, equation, -1
        t.side[row], t.side[driven] = 0.0, sense
    t.w[row] = 0.0
    return size


@in_callers
@kernel
def rates(t, size, driven, drives_z, sense):
    """Rates of members and rows as z_driven, or w_driven, moves by `sense`."""
    if drives_z:
        column_times_inverse(t, size, driven)
        rates_of_variable(t, size, driven, sense, t.entering)
    else:
        rates_of_row(t, size, driven, sense)


@kernel
def refine_rates(t, size, driven, drives_z, sense):
    """One step of iterative refinement of the rates: equations keep w = 0, but for the driven row's own motion."""
    # What the rates leave of the equations, solved for and taken away.
    for e in range(size):
        row = t.equations[e]
        t.gathered[e] = t.w_rate[row] - (sense if not drives_z and row == driven else 0.0)
    times(t.inverse, t.gathered, size, t.leaving)
    for u in range(size):
        t.leaving[u] = -t.leaving[u]
        t.z_rate[u] += t.leaving[u]
        if drives_z:
            t.entering[u] = -sense * t.z_rate[u]
    add_columns(t.columns, t.members, t.leaving, size, len(t.q), t.w_rate)


# The ratio test: what blocks the motion.


@inlined
def gaps_and_speeds(t, size):
    """Distance of each quantity to the bound that it approaches, and its speed (0 if it recedes).

    Quantities 0 … size-1 are the members, size + i is row i.
    """
    n = len(t.q)
    # Members; those that approach no finite bound never block.
    gap, speed = t.own.gap, t.own.speed
    for u in range(size):
        variable, rate = t.members[u], t.z_rate[u]
        if variable == n:
            gap[u], speed[u] = t.z[n], max(-rate, 0.0)
        elif rate < 0.0:
            gap[u], speed[u] = t.z[variable] - t.lo[variable], -rate
        else:
            gap[u], speed[u] = t.hi[variable] - t.z[variable], rate
        if not gap[u] < np.inf:
            gap[u], speed[u] = 0.0, 0.0
    # Rows lose their sign where w vanishes.
    for i in range(n):
        gap[size + i] = t.side[i] * t.w[i]
        speed[size + i] = max(-t.side[i] * t.w_rate[i], 0.0)


@inlined
def blocking(t, size, driven, drives_z):
    """Harris' two passes; z0 wins if stepping to z0 = 0 violates nothing by more than the slack; ties
    lexicographically.

    Returns (event, member's slot or row, step, whether the pivot is doubtfully small).
    """
    # The units in which slack and slowness are measured.
    n = len(t.q)
    gaps_and_speeds(t, size)
    gap, speed = t.own.gap, t.own.speed
    fastest, largest = 1.0 if drives_z else 0.0, 1.0
    for u in range(size):
        fastest = max(fastest, abs(t.z_rate[u]))
        largest = max(largest, abs(t.z[t.members[u]]))
    fastest = max(fastest, fastest_row(t.side, t.w_rate))
    slow = INVERSE_ERROR * fastest
    flip = t.hi[driven] - t.lo[driven] if drives_z else np.inf

    # First pass: how far everything can go, past its bound by the error of a product. z0 wins, then the driven
    # variable's own bound.
    bound, first = shortest_steps(gap, speed, size + n, slow, PRODUCT_ERROR * largest)
    bound, first = min(bound, flip), min(first, flip)
    if bound == np.inf:
        return NOTHING, -1, 0.0, False
    artificial = t.place[n]
    if speed[artificial] > slow and gap[artificial] <= bound * speed[artificial]:
        return LEAVES, artificial, gap[artificial] / speed[artificial], speed[artificial] < HALF_OF_THE_DIGITS * fastest
    if flip <= first:
        return FLIPS, driven, flip, False

    # Second pass: of all that block within the bound, the fastest; if rounding of the bound excludes all, the first.
    tie = first + SOLVE_ERROR * max(first, largest / fastest)
    best, ties = fastest_within(gap, speed, size + n, slow, bound, tie)
    if best < 0:
        for c in range(size + n):
            if speed[c] > slow and (best < 0 or gap[c] * speed[best] < gap[best] * speed[c]):
                best = c
    if best < 0:  # every candidate is NaN
        return NOTHING, -1, 0.0, False
    if ties > 1:
        best = lexicographic(t, size, tie, max(slow, WEAK_PIVOT * speed[best]), best)
    step = gap[best] / speed[best]
    if flip < step:
        return FLIPS, driven, flip, False
    doubtful = speed[best] < HALF_OF_THE_DIGITS * fastest
    return (LEAVES, best, step, doubtful) if best < size else (VANISHES, best - size, step, doubtful)


@minima
def fastest_row(side, w_rate):
    """The largest rate of a row that must keep its sign."""
    fastest = 0.0
    for i in range(len(side)):
        fastest = max(fastest, abs(side[i] * w_rate[i]))
    return fastest


@minima
def shortest_steps(gap, speed, count, slow, allowed):
    """The longest step that overshoots nothing by more than `allowed`, and the one that overshoots nothing."""
    bound, first = np.inf, np.inf
    for c in range(count):
        gap[c] = max(gap[c], 0.0)
        inverse = 1.0 / max(speed[c], slow)
        blocks = speed[c] > slow
        bound = min(bound, (gap[c] + allowed) * inverse if blocks else np.inf)
        first = min(first, gap[c] * inverse if blocks else np.inf)
    return bound, first


@in_callers
@kernel
def fastest_within(gap, speed, count, slow, bound, tie):
    """The fastest quantity that blocks within the bound, -1 if there is none, and how many block within the tie."""
    best, ties = -1, 0
    for c in range(count):
        if speed[c] > slow and gap[c] <= bound * speed[c]:
            if gap[c] <= tie * speed[c]:
                ties += 1
            if best < 0 or speed[c] > speed[best]:
                best = c
    return best, ties


@kernel
def lexicographic(t, size, tie, slow, otherwise):
    """Of the tied quantities, the one that blocks first when q is perturbed by (ε, ε², …)."""
    best, chosen = otherwise, False
    order, other = t.own.order, t.spare
    for c in range(size + len(t.q)):
        if t.own.speed[c] > slow and t.own.gap[c] <= tie * t.own.speed[c]:
            perturbed_gap(t, size, c, other)
            if not chosen or lexicographically_less(other, order):
                best, chosen = c, True
                for i in range(len(order)):
                    order[i] = other[i]
    return best


@kernel
def lexicographically_less(a, b):
    """Whether a is lexicographically less than b, beyond rounding."""
    for i in range(len(a)):
        difference = a[i] - b[i]
        if abs(difference) > INVERSE_ERROR * (abs(b[i]) + abs(a[i])):
            return difference < 0.0
    return False


@kernel
def perturbed_gap(t, size, candidate, out):
    """Derivative of gap / speed with respect to each q_i."""
    out[:] = 0.0
    speed = t.own.speed[candidate]
    if candidate < size:
        sign = -1.0 if t.z_rate[candidate] < 0.0 else 1.0  # members are -K (q + …)
        for e in range(size):
            out[t.equations[e]] = sign * t.inverse[candidate, e] / speed
    else:
        row = candidate - size
        row_times_inverse(t, size, row)
        for e in range(size):
            out[t.equations[e]] = -t.side[row] * t.leaving[e] / speed
        out[row] = t.side[row] / speed


@kernel
def largest_violation(t, size):
    """By how much a basis violates its bounds and equations, over its largest member (at least one)."""
    largest, worst = 1.0, 0.0
    for u in range(size):
        largest = max(largest, abs(t.z[t.members[u]]))
    for i in range(len(t.q)):
        if t.state[i] == MEMBER:
            worst = max(worst, t.lo[i] - t.z[i], t.z[i] - t.hi[i], abs(t.w[i]))
        elif t.lo[i] < t.hi[i]:
            worst = max(worst, -t.w[i] if t.state[i] == AT_LOWER else t.w[i])
    return worst / largest

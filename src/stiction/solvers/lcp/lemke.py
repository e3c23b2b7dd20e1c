"""Lemke's complementary pivoting, with the bounds inside the method.

With an artificial variable z0 >= 0 and a cover d > 0 the problem becomes w = H z + q + c z0, where c_i is d_i for a
variable at its lower bound and -d_i at its upper one. For large z0 every variable rests at a bound; the path of
solutions is followed from there, one pivot a linear piece, until z0 = 0. A variable between its bounds is an unknown
and its row an equation; one that reaches a bound leaves the unknowns, and its w is driven next; one whose w vanishes
is driven itself. Free variables are unknowns from the start, and so is a bounded partner of each one that depends on
the others; those are covered like rows.

Guaranteed for copositive-plus matrices (all positive semidefinite ones among them) and for any matrix when all bounds
are finite, in exact arithmetic: ties are broken lexicographically, and z0 wins them. A ray is believed only from a
fresh factorization.

[Lemke1965], bounds after [Sargent1978] and [JudiceMachadoFaustino1992]; the two-pass ratio test is Harris'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.compiled import inlined, kernel, minima, workspace
from stiction.errors import InvalidProblem
from stiction.layout import Floats, Ints, layout
from stiction.linear import add_columns, dot, invert, times, transposed_times
from stiction.problems.lcp import BoxLCP, vector
from stiction.solutions.ray import examine
from stiction.solutions.status import Status
from stiction.solvers.contract import STATUS, Contract, Proposal
from stiction.solvers.lcp.basis_inverse import border, exchange_column, exchange_row, strike
from stiction.solvers.lcp.principal import Tableau, join_free
from stiction.solvers.lcp.scaling import equilibrate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SOLVED, RAY, MAX_ITERATIONS, SINGULAR = (
    int(s) for s in (Status.SOLVED, Status.RAY, Status.MAX_ITERATIONS, Status.SINGULAR)
)
AT_LOWER, AT_UPPER, UNKNOWN = 0, 1, 2
NOTHING, FLIPS, LEAVES, VANISHES = 0, 1, 2, 3

HARRIS = 1e-12  # how far a basic quantity may overshoot its bound, in units of the largest quantity
SMALL_RATE = 1e-10  # slower quantities do not block, in units of the fastest
DOUBTFUL_RATES = (1e-8, 1e-6)  # slower quantities block only from a fresh inverse: first try, later ones
TIE = 1e-13  # steps closer than this are equal
REFINE, REFACTOR = 1e-13, 1e-11  # equation residuals at which the unknowns are corrected, and the inverse rebuilt
ACCEPT = 1e-13  # largest violation of the final basis, in scaled units; what is worse is tried with another cover


@dataclass(frozen=True)
class Lemke:
    """Lemke's method, for LCP and BoxLCP.

    cover: positive vector d of the artificial variable, (n,); ones in the scaled problem if not given
    max_pivots: limit of one try; 20 n + 200 if not given
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
        limit = 20 * n + 200 if self.max_pivots is None else self.max_pivots
        work = workspace(*sizes(n))
        best, least, pivots = None, np.inf, 0
        for attempt in range(max(1, self.tries)):
            answer = np.empty((2, n))
            cover = EMPTY if attempt == 0 and given is None else irregular(n, attempt, given)
            slack = HARRIS * (1.0, 0.01, 100.0)[attempt % 3]
            doubtful = DOUBTFUL_RATES[min(attempt, 1)]
            status, count, violation = lemke(
                problem.H, problem.vectors, problem.symmetric, cover, slack, doubtful, limit, *work, answer
            )
            z, pivots = answer[0], pivots + count
            if status == SOLVED and violation <= ACCEPT:
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


EMPTY = np.empty(0)


def irregular(n: int, attempt: int, given: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The given cover first; then covers between one and two without pattern: multiples of the golden ratio."""
    base = np.ones(n) if given is None else given
    return base if attempt == 0 else base * (1.0 + np.mod((np.arange(n) + 1.0) * (0.6180339887498949 * attempt), 1.0))


class Path(NamedTuple):
    """Everything a path is followed with; scaled units."""

    columns: Array[Floats, "n + 1", "n + 1"]  # column j of the matrix in row j; row n is the cover's
    inverse: Array[Floats, "n + 1", "n + 1"]  # of the basis: a row an unknown, a column an equation
    q: Array[Floats, "n"]
    lo: Array[Floats, "n"]
    hi: Array[Floats, "n"]
    row_scale: Array[Floats, "n"]
    column_scale: Array[Floats, "n"]
    z: Array[Floats, "n + 1"]  # z0 last
    w: Array[Floats, "n"]
    z_rate: Array[Floats, "n + 1"]  # of the unknowns, in their order
    w_rate: Array[Floats, "n"]
    entering: Array[Floats, "n + 1"]  # inverse times the driven variable's column
    leaving: Array[Floats, "n + 1"]  # a row times the inverse
    gathered: Array[Floats, "n + 1"]
    order_a: Array[Floats, "n"]  # lexicographic rows of two candidates
    order_b: Array[Floats, "n"]
    side: Array[Floats, "n"]  # sign that w must have: 1 at the lower bound, -1 at the upper, 0 for equations
    gap: Array[Floats, "2 * n + 2"]  # of unknowns and rows to what they approach
    speed: Array[Floats, "2 * n + 2"]  # at which they approach it
    state: Array[Ints, "n + 1"]  # AT_LOWER, AT_UPPER or UNKNOWN
    unknowns: Array[Ints, "n + 1"]  # which variables; n is z0
    equations: Array[Ints, "n + 1"]  # which rows
    place: Array[Ints, "n + 1"]  # of a variable among the unknowns, or -1
    row_place: Array[Ints, "n + 1"]  # of a row among the equations, or -1
    pivots: Array[Ints, "n + 1"]


sizes, carve = layout(Path, "n")


@kernel
def lemke(H, vectors, symmetric, cover, slack, doubtful_rate, max_pivots, floats, ints, answer):
    """Follow one path. Returns (status, pivots, violation); answer[0] is z, answer[1] the direction of a ray."""
    z, ray = answer[0], answer[1]
    n = len(z)
    path = carve(n, floats, ints)
    tau = equilibrate(H, vectors, symmetric, path.columns, path.q, path.lo, path.hi, path.row_scale, path.column_scale)
    size = rest_at_bounds(path)
    if size < 0:
        return SINGULAR, 0, np.inf
    set_cover(path, size, cover)
    status, pivots, size = follow(path, size, slack, doubtful_rate, max_pivots)
    violation = np.inf
    if status == SOLVED:
        violation = settle(path, size)
        if not violation < np.inf:
            status = SINGULAR
    for i in range(n):
        ray[i] = 0.0
        if path.state[i] == UNKNOWN:
            z[i] = min(max(path.z[i] * path.column_scale[i] * tau, vectors[1, i]), vectors[2, i])
        else:
            z[i] = vectors[1, i] if path.state[i] == AT_LOWER else vectors[2, i]
    if status == RAY:
        for u in range(size):
            if path.unknowns[u] < n:
                ray[path.unknowns[u]] = path.z_rate[u] * path.column_scale[path.unknowns[u]]
        driven = path.pivots[0]
        if driven >= 0:
            ray[driven] = (1.0 if path.state[driven] == AT_LOWER else -1.0) * path.column_scale[driven]
    return status, pivots, violation


@kernel
def rest_at_bounds(path):
    """Bounded variables at a finite bound, free ones solved for; the number of unknowns, or -1 if they are singular."""
    n = len(path.q)
    size, free = 0, 0
    for i in range(n):
        path.row_place[i] = path.place[i] = -1
        if np.isfinite(path.lo[i]):
            path.state[i], path.side[i], path.z[i] = AT_LOWER, 1.0, path.lo[i]
        elif np.isfinite(path.hi[i]):
            path.state[i], path.side[i], path.z[i] = AT_UPPER, -1.0, path.hi[i]
        else:
            path.z[i] = 0.0
            free += 1
    path.place[n] = -1
    path.z[n] = 0.0
    if free > 0:
        size, complete = join_free(as_tableau(path))
        if not complete:
            return -1
        for u in range(size):
            i = path.unknowns[u]
            path.equations[u], path.row_place[i] = i, u
            path.state[i], path.side[i] = UNKNOWN, 0.0
        if not rebuild(path, size):
            return -1
    residuals(path)
    correct(path, size)
    return size


@kernel
def as_tableau(path):
    """The same arrays, by the names that principal pivoting knows them by."""
    return Tableau(
        path.columns, path.inverse, path.q, path.lo, path.hi, path.row_scale, path.column_scale, path.z, path.w,
        path.z_rate, path.w_rate, path.entering, path.leaving, path.gathered, path.order_a, path.order_b, path.side,
        path.gap, path.speed, path.speed, path.speed, path.speed, path.state, path.unknowns, path.place, path.pivots,
    )  # fmt: skip


@kernel
def residuals(path):
    """w = H z + q + c z0, from scratch."""
    n = len(path.q)
    for i in range(n):
        path.w[i] = path.q[i]
    for j in range(n):
        if path.z[j] != 0.0:
            zj, column = path.z[j], path.columns[j]
            for i in range(n):
                path.w[i] += zj * column[i]
    if path.place[n] >= 0:
        z0, column = path.z[n], path.columns[n]
        for i in range(n):
            path.w[i] += z0 * column[i]


@kernel
def rebuild(path, size):
    """The inverse of the basis, from the matrix; False if it is singular to working precision."""
    K = path.inverse
    for e in range(size):
        for u in range(size):
            K[e, u] = path.columns[path.unknowns[u], path.equations[e]]
    largest = 0.0
    for e in range(size):
        for u in range(size):
            largest = max(largest, abs(K[e, u]))
    if not invert(K, path.pivots, size):
        return False
    for e in range(size):
        for u in range(size):
            if not abs(K[e, u]) * largest < 1e14:
                return False
    return True


@kernel
def correct(path, size):
    """One step of iterative refinement of the unknowns, and w anew."""
    if size == 0:
        return
    for e in range(size):
        path.gathered[e] = path.w[path.equations[e]]
    times(path.inverse, path.gathered, size, path.entering)
    for u in range(size):
        path.z[path.unknowns[u]] -= path.entering[u]
    residuals(path)


@kernel
def set_cover(path, size, cover):
    """The cover, signed and scaled, in row n of `columns`; `order_a` keeps what each bounded variable is covered by.

    An unknown that is bounded is covered itself: z_i + d_i z0 stays within its bound, so the rows get c - H d.
    """
    n = len(path.q)
    c, d = path.columns[n], path.order_a
    for i in range(n):
        large = cover[i] * path.row_scale[i] if len(cover) == n and n > 0 else 1.0
        free = np.isinf(path.lo[i]) and np.isinf(path.hi[i])
        d[i] = 0.0 if free else (large if np.isfinite(path.lo[i]) else -large)
        c[i] = d[i] if path.state[i] != UNKNOWN else 0.0
    for u in range(size):
        j = path.unknowns[u]
        if d[j] != 0.0:
            column = path.columns[j]
            for i in range(n):
                c[i] -= d[j] * column[i]


@kernel
def follow(path, size, slack, doubtful_rate, max_pivots):
    """The path from z0 = infinity to z0 = 0. Returns (status, pivots, number of unknowns)."""
    n = len(path.q)
    K, c, d = path.inverse, path.columns[n], path.order_a
    # z0 enters at the least value that keeps everything within bounds; what it keeps there is driven first. Of ties the
    # last is perturbed least, and so the lexicographic choice.
    driven, largest = -1, 0.0
    for i in range(n):
        if d[i] != 0.0:
            below = path.w[i] if path.state[i] != UNKNOWN else path.z[i] - (path.lo[i] if d[i] > 0.0 else path.hi[i])
            if path.lo[i] < path.hi[i] and below * d[i] < 0.0 and -below / d[i] >= largest * (1.0 - TIE):
                driven, largest = i, max(largest, -below / d[i])
    if driven < 0:
        return SOLVED, 0, size
    for e in range(size):
        path.gathered[e] = c[path.equations[e]]
    times(K, path.gathered, size, path.entering)
    path.z[n] = largest
    for u in range(size):
        path.z[path.unknowns[u]] -= largest * path.entering[u]
    drives_z = path.state[driven] != UNKNOWN
    if drives_z:
        row_times_inverse(path, size, driven)
        add_equation(path, size, driven, n, c[driven] - dot(path.gathered, path.entering, size))
        size += 1
    else:
        slot = path.place[driven]
        exchange_column(K, size, slot, path.entering)
        path.unknowns[slot], path.place[n], path.place[driven] = n, slot, -1
        path.state[driven] = AT_LOWER if d[driven] > 0.0 else AT_UPPER
        path.z[driven] = path.lo[driven] if d[driven] > 0.0 else path.hi[driven]
    residuals(path)
    correct(path, size)
    fresh = True

    for pivots in range(1, max_pivots + 1):
        # The rates of all unknowns and rows as the driven variable, or its w, moves into its range.
        sense = 1.0 if path.state[driven] == AT_LOWER else -1.0
        rates(path, size, driven, drives_z, sense)
        event, which, step, doubtful = blocking(path, size, driven, drives_z, slack, doubtful_rate)
        if event == NOTHING or doubtful:
            if not fresh:  # believe neither a ray nor a small pivot of an inverse that has been updated
                if not rebuild(path, size):
                    return SINGULAR, pivots, size
                residuals(path)
                correct(path, size)
                fresh = True
                rates(path, size, driven, drives_z, sense)
            refine_rates(path, size, driven, drives_z, sense)
            event, which, step, doubtful = blocking(path, size, driven, drives_z, slack, doubtful_rate)
            if event == NOTHING:
                path.pivots[0] = driven if drives_z else -1
                return RAY, pivots, size
        fresh = False
        advance(path, size, driven, drives_z, sense, step)

        if event == FLIPS:
            path.state[driven] = AT_UPPER if path.state[driven] == AT_LOWER else AT_LOWER
            path.z[driven] = path.hi[driven] if path.state[driven] == AT_UPPER else path.lo[driven]
            drives_z = False
            continue
        if event == LEAVES:
            leaving = path.unknowns[which]
            if drives_z:
                exchange_column(K, size, which, path.entering)
                path.unknowns[which], path.place[driven], path.state[driven] = driven, which, UNKNOWN
            else:
                remove(path, size, which, path.row_place[driven])
                path.side[driven] = sense
                size -= 1
            path.place[leaving] = -1
            if leaving == n:
                path.z[n] = 0.0
                return SOLVED, pivots, size
            to_lower = path.z_rate[which] < 0.0
            path.state[leaving] = AT_LOWER if to_lower else AT_UPPER
            path.z[leaving] = path.lo[leaving] if to_lower else path.hi[leaving]
            driven, drives_z = leaving, False
        else:
            row_times_inverse(path, size, which)
            if drives_z:
                pivot = path.columns[driven, which] - dot(path.gathered, path.entering, size)
                add_equation(path, size, which, driven, pivot)
                path.state[driven] = UNKNOWN
                size += 1
            else:
                equation = path.row_place[driven]
                exchange_row(K, size, equation, path.leaving)
                path.equations[equation], path.row_place[which], path.row_place[driven] = which, equation, -1
                path.side[which], path.side[driven] = 0.0, sense
            path.w[which] = 0.0
            driven, drives_z = which, True

        drift = equation_residual(path, size)
        if drift > REFACTOR:
            if not rebuild(path, size):
                return SINGULAR, pivots, size
            fresh = True
        if drift > REFINE:
            residuals(path)
            correct(path, size)
    return MAX_ITERATIONS, max_pivots, size


@inlined
def row_times_inverse(path, size, row):
    """leaving = (row of the matrix, at the unknowns) times the inverse; the row itself stays in `gathered`."""
    for u in range(size):
        path.gathered[u] = path.columns[path.unknowns[u], row]
    transposed_times(path.inverse, path.gathered, size, path.leaving)


@inlined
def add_equation(path, size, row, variable, pivot):
    border(path.inverse, size, path.entering, path.leaving, pivot)
    path.equations[size], path.row_place[row], path.side[row] = row, size, 0.0
    path.unknowns[size], path.place[variable] = variable, size


@kernel
def remove(path, size, unknown, equation):
    strike(path.inverse, size, unknown, equation)
    last = size - 1
    path.row_place[path.equations[equation]] = -1
    moved_row, moved = path.equations[last], path.unknowns[last]
    if equation != last:
        path.equations[equation], path.row_place[moved_row] = moved_row, equation
    if unknown != last:
        path.unknowns[unknown], path.place[moved] = moved, unknown


@inlined
def rates(path, size, driven, drives_z, sense):
    n = len(path.q)
    if drives_z:
        column = path.columns[driven]
        for e in range(size):
            path.gathered[e] = column[path.equations[e]]
        times(path.inverse, path.gathered, size, path.entering)
        for u in range(size):
            path.z_rate[u] = -sense * path.entering[u]
        for i in range(n):
            path.w_rate[i] = sense * column[i]
    else:
        equation = path.row_place[driven]
        for u in range(size):
            path.z_rate[u] = sense * path.inverse[u, equation]
        for i in range(n):
            path.w_rate[i] = 0.0
    add_columns(path.columns, path.unknowns, path.z_rate, size, n, path.w_rate)


@kernel
def refine_rates(path, size, driven, drives_z, sense):
    """One step of iterative refinement of the rates: equations keep w = 0, but for the driven row's own motion."""
    n = len(path.q)
    for e in range(size):
        row = path.equations[e]
        path.gathered[e] = path.w_rate[row] - (sense if not drives_z and row == driven else 0.0)
    times(path.inverse, path.gathered, size, path.leaving)
    for u in range(size):
        path.leaving[u] = -path.leaving[u]
        path.z_rate[u] += path.leaving[u]
        if drives_z:
            path.entering[u] = -sense * path.z_rate[u]
    add_columns(path.columns, path.unknowns, path.leaving, size, n, path.w_rate)


@inlined
def gaps_and_speeds(path, size):
    """Distance of each quantity to the bound that it approaches, and its speed (0 if it recedes).

    Quantities 0 … size-1 are the unknowns, size + i is row i.
    """
    n = len(path.q)
    gap, speed = path.gap, path.speed
    for u in range(size):
        variable, rate = path.unknowns[u], path.z_rate[u]
        if variable == n:
            gap[u], speed[u] = path.z[n], max(-rate, 0.0)
        elif rate < 0.0:
            gap[u], speed[u] = path.z[variable] - path.lo[variable], -rate
        else:
            gap[u], speed[u] = path.hi[variable] - path.z[variable], rate
        if not gap[u] < np.inf:
            gap[u], speed[u] = 0.0, 0.0
    for i in range(n):
        gap[size + i] = path.side[i] * path.w[i]
        speed[size + i] = max(-path.side[i] * path.w_rate[i], 0.0)


@inlined
def blocking(path, size, driven, drives_z, slack, doubtful_rate):
    """Harris' two passes; z0 wins if stepping to z0 = 0 violates nothing by more than the slack; ties
    lexicographically.

    Returns (event, unknown or row, step, whether the pivot is doubtfully small).
    """
    n = len(path.q)
    gaps_and_speeds(path, size)
    gap, speed = path.gap, path.speed
    fastest, largest = 1.0 if drives_z else 0.0, 1.0
    for u in range(size):
        fastest = max(fastest, abs(path.z_rate[u]))
        largest = max(largest, abs(path.z[path.unknowns[u]]))
    fastest = max(fastest, fastest_row(path.side, path.w_rate))
    allowed = slack * largest
    slow = SMALL_RATE * fastest
    flip = path.hi[driven] - path.lo[driven] if drives_z else np.inf

    bound, first = shortest_steps(gap, speed, size + n, slow, allowed)
    bound, first = min(bound, flip), min(first, flip)
    if bound == np.inf:
        return NOTHING, -1, 0.0, False
    artificial = path.place[n]
    if speed[artificial] > slow and gap[artificial] <= bound * speed[artificial]:
        return LEAVES, artificial, gap[artificial] / speed[artificial], speed[artificial] < doubtful_rate * fastest
    if flip <= first:
        return FLIPS, driven, flip, False

    tie = first + TIE * max(first, 1e-3 * largest / fastest)
    best, ties = -1, 0
    for c in range(size + n):
        if speed[c] > slow and gap[c] <= bound * speed[c]:
            if gap[c] <= tie * speed[c]:
                ties += 1
            if best < 0 or speed[c] > speed[best]:
                best = c
    if best < 0:  # rounding of the bound has hidden them all: the first one
        for c in range(size + n):
            if speed[c] > slow and (best < 0 or gap[c] * speed[best] < gap[best] * speed[c]):
                best = c
    if best < 0:  # what is not a number blocks nothing
        return NOTHING, -1, 0.0, False
    if ties > 1:
        best = lexicographic(path, size, tie, max(slow, 1e-5 * speed[best]), best)
    step = gap[best] / speed[best]
    if flip < step:
        return FLIPS, driven, flip, False
    doubtful = speed[best] < doubtful_rate * fastest
    return (LEAVES, best, step, doubtful) if best < size else (VANISHES, best - size, step, doubtful)


@minima
def fastest_row(side, w_rate):
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


@kernel
def lexicographic(path, size, tie, slow, otherwise):
    """Of the tied quantities, the one that blocks first when q is perturbed by (ε, ε², …)."""
    n = len(path.q)
    best = otherwise
    chosen = False
    for c in range(size + n):
        if path.speed[c] > slow and path.gap[c] <= tie * path.speed[c]:
            perturbed_gap(path, size, c, path.order_b)
            if chosen:
                earlier = False
                for i in range(n):
                    difference = path.order_b[i] - path.order_a[i]
                    if abs(difference) > 1e-11 * (abs(path.order_a[i]) + abs(path.order_b[i])):
                        earlier = difference < 0.0
                        break
                if not earlier:
                    continue
            best, chosen = c, True
            for i in range(n):
                path.order_a[i] = path.order_b[i]
    return best


@kernel
def perturbed_gap(path, size, candidate, out):
    """Derivative of gap / speed with respect to each q_i."""
    for i in range(len(path.q)):
        out[i] = 0.0
    speed = path.speed[candidate]
    if candidate < size:
        sign = -1.0 if path.z_rate[candidate] < 0.0 else 1.0  # unknowns are -K (q + …)
        for e in range(size):
            out[path.equations[e]] = sign * path.inverse[candidate, e] / speed
    else:
        row = candidate - size
        row_times_inverse(path, size, row)
        for e in range(size):
            out[path.equations[e]] = -path.side[row] * path.leaving[e] / speed
        out[row] = path.side[row] / speed


@inlined
def advance(path, size, driven, drives_z, sense, step):
    for u in range(size):
        path.z[path.unknowns[u]] += step * path.z_rate[u]
    if drives_z:
        path.z[driven] += sense * step
    for i in range(len(path.q)):
        path.w[i] += step * path.w_rate[i]


@inlined
def equation_residual(path, size):
    """Largest violation of an equation, in units of the largest unknown (at least one)."""
    worst, largest = 0.0, 1.0
    for e in range(size):
        worst = max(worst, abs(path.w[path.equations[e]]))
        largest = max(largest, abs(path.z[path.unknowns[e]]))
    return worst / largest


@kernel
def settle(path, size):
    """Solve the final basis anew with refinement; by how much it violates its bounds, infinity if it is singular."""
    n = len(path.q)
    residuals(path)
    correct(path, size)
    if equation_residual(path, size) > REFINE:
        if not rebuild(path, size):
            return np.inf
        correct(path, size)
        correct(path, size)
    largest, worst = 1.0, 0.0
    for u in range(size):
        largest = max(largest, abs(path.z[path.unknowns[u]]))
    for i in range(n):
        if path.state[i] == UNKNOWN:
            worst = max(worst, path.lo[i] - path.z[i], path.z[i] - path.hi[i], abs(path.w[i]))
        elif path.lo[i] < path.hi[i]:
            worst = max(worst, -path.w[i] if path.state[i] == AT_LOWER else path.w[i])
    return worst / largest

"""Enumeration of all supports: the referee for small problems.

Each variable is tried at its lower bound, at its upper bound, and in between; each of the at most 3^n systems is
solved. Supports with a singular system are decided by linear programming. So a solution is found if there is one,
whatever the matrix, and if none is found, there is none (up to rounding). Free variables have no sides to choose: they
are eliminated first, as far as their own rows determine them, so that only the number of bounded ones matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import lu, lu_solve
from stiction.arrays.layout import Floats, Ints, layout
from stiction.solutions.natural_map import judge_into, natural_map, scratch
from stiction.solutions.status import Status
from stiction.solvers.contract import Contract, Proposal
from stiction.solvers.lcp.scaling import equilibrate
from stiction.solvers.lcp.tableau import AT_LOWER, AT_UPPER, MEMBER
from stiction.solvers.lcp.tolerances import LARGEST, OUTSIDE, WEAK_PIVOT
from stiction.solvers.tolerances import ACCEPT, INVERSE_ERROR, PRODUCT_ERROR, SOLVE_ERROR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]

__all__ = ["LARGEST", "Enumerate"]


@dataclass(frozen=True)
class Enumerate:
    """All supports, for LCP and BoxLCP with at most 12 bounded variables."""

    contract: ClassVar[Contract] = Contract(
        matrix="any",
        guarantee="every problem: a solution, or the knowledge that there is none",
        cost="2^n to 3^n systems",
        choose="you doubt another solver, and n <= 12 (free variables not counted)",
        solves=frozenset({"copositive-plus", "P0"}),
        largest=LARGEST,
    )

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        whole, column = in_scaled_units(problem)
        reduced = without_free_variables(whole)
        n = len(reduced.H)
        choices = np.array([sides(lo, hi) for lo, hi in reduced.vectors[1:].T], np.int64).reshape(n, 4)
        total = int(np.prod(choices[:, 3])) if n else 1
        z, singular, w = np.zeros(n), np.empty(total, np.int64), np.empty(n)
        tried, residual, singular_count, overflows = try_supports(
            reduced.H, reduced.vectors, choices, *workspace(*map(add, scratch(n), sizes(n))), z, singular
        )
        if not residual <= ACCEPT:
            for code in singular[:singular_count]:
                for point in points_of_singular_support(reduced, decode(choices, int(code))):
                    new = natural_map(reduced.H, reduced.vectors, point, w)[0]
                    if new < residual:
                        z, residual = point, new
                if residual <= ACCEPT:
                    break
        # A support whose numbers overflowed has not been decided.
        nothing = Status.SINGULAR if overflows else Status.NO_SOLUTION
        answer = np.clip(whole_answer(whole, reduced, z) * column, problem.lo, problem.hi)
        return Proposal(Status.SOLVED if residual <= ACCEPT else nothing, tried, answer)


class Scaled(NamedTuple):
    """A problem in scaled units.

    H: (n, n); vectors: (3, n) with rows q, lo, hi
    kept, gone: which variables of the whole problem these are, and which have been eliminated
    gone_rows: the rows that these were eliminated with
    """

    H: Matrix
    vectors: Matrix
    kept: NDArray[np.int64]
    gone: NDArray[np.int64]
    gone_rows: NDArray[np.int64]


def in_scaled_units(problem: BoxLCP) -> tuple[Scaled, Vector]:
    """The problem in scaled units, and the factors that scale an answer back.

    A problem whose scaled data overflow is left as it is.
    """
    n = problem.n
    columns, (q, lo, hi, row, column) = np.empty((n, n)), np.empty((5, n))
    tau = equilibrate(problem.H, problem.vectors, problem.symmetric, columns, q, lo, hi, row, column)
    everyone, nobody = np.arange(n), np.arange(0)
    same_bounds = (np.isfinite(lo) == np.isfinite(problem.lo)) & (np.isfinite(hi) == np.isfinite(problem.hi))
    factor = column * tau
    if not (np.isfinite(columns).all() and np.isfinite(q).all() and same_bounds.all() and np.isfinite(factor).all()):
        return Scaled(problem.H, problem.vectors, everyone, nobody, nobody), np.ones(n)
    return Scaled(np.ascontiguousarray(columns.T), np.array([q, lo, hi]), everyone, nobody, nobody), factor


def without_free_variables(problem: Scaled) -> Scaled:
    """Free variables eliminated by their rows, with complete pivoting, as long as pivots are large enough."""
    lo, hi = problem.vectors[1:]
    free = np.flatnonzero(np.isinf(lo) & np.isinf(hi))
    if free.size == 0:
        return problem
    block = problem.H[np.ix_(free, free)].copy()
    rows, columns, rank, least = free.copy(), free.copy(), 0, WEAK_PIVOT * np.abs(block).max()
    for p in range(free.size):
        rest = np.abs(block[p:, p:])
        i, j = divmod(int(np.argmax(rest)), free.size - p)
        if not rest[i, j] > least:
            break
        block[[p, p + i]], rows[[p, p + i]] = block[[p + i, p]], rows[[p + i, p]]
        block[:, [p, p + j]], columns[[p, p + j]] = block[:, [p + j, p]], columns[[p + j, p]]
        block[p + 1 :, p:] -= np.outer(block[p + 1 :, p] / block[p, p], block[p, p:])
        rank += 1
    if rank == 0:
        return problem
    bounded = np.flatnonzero(np.isfinite(lo) | np.isfinite(hi))
    kept, kept_rows = np.concatenate([columns[rank:], bounded]), np.concatenate([rows[rank:], bounded])
    gone, gone_rows = columns[:rank], rows[:rank]
    solved = np.linalg.solve(
        problem.H[np.ix_(gone_rows, gone)],
        np.column_stack([problem.H[np.ix_(gone_rows, kept)], problem.vectors[0, gone_rows]]),
    )
    own = np.column_stack([problem.H[np.ix_(kept_rows, kept)], problem.vectors[0, kept_rows]])
    others = problem.H[np.ix_(kept_rows, gone)]
    left = own - others @ solved
    # Rows that depend on an eliminated one are left with rounding, which would be scaled up to a row of its own.
    left[np.abs(left) <= SOLVE_ERROR * (np.abs(own) + np.abs(others) @ np.abs(solved))] = 0.0
    H, q = left[:, :-1], left[:, -1]
    return Scaled(np.ascontiguousarray(H), np.array([q, lo[kept], hi[kept]]), kept, gone, gone_rows)


def whole_answer(whole: Scaled, reduced: Scaled, z: Vector) -> Vector:
    """An answer with its eliminated variables, refined once; then all that are between their bounds, together.

    Elimination by small pivots loses digits that the whole system still has.
    """
    answer = np.zeros(len(whole.H))
    answer[reduced.kept] = z
    block, rows = whole.H[np.ix_(reduced.gone_rows, reduced.gone)], reduced.gone_rows
    if not rows.size:
        return answer
    for _ in range(2):
        answer[reduced.gone] -= np.linalg.solve(block, whole.H[rows] @ answer + whole.vectors[0, rows])
    q, lo, hi = whole.vectors
    inside = np.flatnonzero((answer > lo) & (answer < hi))
    better = answer.copy()
    better[inside] -= np.linalg.lstsq(whole.H[np.ix_(inside, inside)], (whole.H @ answer + q)[inside])[0]
    found, w = ((better >= lo) & (better <= hi)).all(), np.empty(len(q))
    if found and natural_map(whole.H, whole.vectors, better, w)[0] < natural_map(whole.H, whole.vectors, answer, w)[0]:
        return better
    return answer


def sides(lo: float, hi: float) -> tuple[int, int, int, int]:
    """The sides a variable can take, and how many."""
    if lo == hi:
        return AT_LOWER, AT_LOWER, AT_LOWER, 1
    if np.isfinite(lo):
        return (AT_LOWER, MEMBER, AT_UPPER, 3) if np.isfinite(hi) else (AT_LOWER, MEMBER, MEMBER, 2)
    return (AT_UPPER, MEMBER, MEMBER, 2) if np.isfinite(hi) else (MEMBER, MEMBER, MEMBER, 1)


def decode(choices: NDArray[np.int64], code: int) -> NDArray[np.int64]:
    """The sides that a support's number stands for."""
    state = np.empty(len(choices), np.int64)
    for i, choice in enumerate(choices):
        state[i] = choice[code % choice[3]]
        code //= choice[3]
    return state


def points_of_singular_support(problem: Scaled, state: NDArray[np.int64]) -> list[Vector]:
    """Points with this support, by linear programming, and the same with their rows solved once more; none if none is.

    Programs are solved to a tolerance that knows no units: constants are made one, where they are more than rounding,
    and again all of them, however small.
    """
    H, q = problem.H, problem.vectors[0]
    largest = np.abs(H).max(axis=1, initial=0.0)
    size = np.where(np.abs(q) > ACCEPT * largest, np.abs(q), largest)
    plain = np.ones(len(q)), np.where(size > 0.0, size, 1.0)
    return [point for units in (plain, own_units(H, q)) for point in program(problem, state, *units)]


def own_units(H: Matrix, q: Vector) -> tuple[Vector, Vector]:
    """Units of variables and rows in which all constants are one, and no row has entries above that."""
    entries, given, size = np.abs(H), q != 0.0, np.abs(q)
    with np.errstate(divide="ignore", over="ignore"):
        unit = (size[given, None] / entries[given]).min(axis=0, initial=np.inf)
    known = np.isfinite(unit) & (unit > 0.0)
    unit = np.where(known, unit, unit[known].max(initial=0.0) or 1.0)
    size = np.where(given, size, (entries * unit).max(axis=1, initial=0.0))
    return unit, np.where(size > 0.0, size, 1.0)


def program(problem: Scaled, state: NDArray[np.int64], unit: Vector, size: Vector) -> list[Vector]:
    """Points with this support, in these units of variables and rows."""
    from scipy.optimize import linprog

    q, least, most = problem.vectors
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is left to the other units
        H, q, least, most = problem.H * unit / size[:, None], q / size, least / unit, most / unit
    lo = np.where(state == AT_UPPER, most, least)
    hi = np.where(state == AT_LOWER, least, most)
    equal, low, up = state == MEMBER, (state == AT_LOWER) & (least < most), state == AT_UPPER
    if not (np.isfinite(H).all() and np.isfinite(q).all()):
        return []
    found = linprog(
        np.zeros(len(q)),
        A_eq=H[equal], b_eq=-q[equal],
        A_ub=np.vstack([-H[low], H[up]]), b_ub=np.concatenate([q[low], -q[up]]),
        bounds=np.column_stack([lo, hi]),
    )  # fmt: skip
    if found.status != 0:
        return []
    block, solved = H[np.ix_(equal, equal)], np.array(found.x)
    for _ in range(2):
        solved[equal] -= np.linalg.lstsq(block, H[equal] @ solved + q[equal], rcond=INVERSE_ERROR)[0]
    return [unit * np.clip(x, least, most) for x in (found.x, solved)]


class Support(NamedTuple):
    """The system of a support."""

    A: Array[Floats, "n", "n"]
    x: Array[Floats, "n"]
    row_size: Array[Floats, "n"]  # largest entry of each row of A
    trial: Array[Floats, "n"]
    w: Array[Floats, "n"]
    state: Array[Ints, "n"]
    members: Array[Ints, "n"]
    pivots: Array[Ints, "n"]
    floats: Array[Floats, ...]  # for the judge
    ints: Array[Ints, ...]


sizes, views = layout(Support, "n")


@kernel
def try_supports(H, vectors, choices, floats, ints, z, singular):
    """Solve all supports, keep the best. Returns (tried, residual, number of singular supports, of overflows).

    The scratch of the judge lies behind that of the systems.
    """
    n = len(z)
    A, x, row_size, trial, w, state, members, pivots, floats, ints = views(n, floats, ints)
    best, singular_count, overflows = np.inf, 0, 0
    for code in range(len(singular)):
        # The sides that this number stands for; those at a bound are put there.
        rest, size = code, 0
        for i in range(n):
            state[i] = choices[i, rest % choices[i, 3]]
            rest //= choices[i, 3]
            if state[i] == MEMBER:
                members[size] = i
                size += 1
            trial[i] = 0.0 if state[i] == MEMBER else (vectors[1, i] if state[i] == AT_LOWER else vectors[2, i])
        # The others solve their rows; singular systems are left for later.
        for e in range(size):
            row = members[e]
            x[e] = -vectors[0, row]
            for j in range(n):
                x[e] -= H[row, j] * trial[j]
            row_size[e] = 0.0
            for u in range(size):
                A[e, u] = H[row, members[u]]
                row_size[e] = max(row_size[e], abs(A[e, u]))

        # A support whose system is singular is decided by linear programming, later.
        if not lu(A, pivots, size) or nearly_singular(A, pivots, row_size, size):
            singular[singular_count] = code
            singular_count += 1
            continue
        lu_solve(A, pivots, size, x)
        # An answer far outside its bounds is not judged.
        fits = True
        for u in range(size):
            i = members[u]
            trial[i] = min(max(x[u], vectors[1, i]), vectors[2, i])
            if not abs(x[u]) < np.inf:
                overflows += 1
            fits = fits and abs(x[u] - trial[i]) <= OUTSIDE * (1.0 + abs(x[u]))
        if not fits and best < np.inf:
            continue

        # The best so far; one that is certain ends the search.
        residual = judge_into(H, vectors, trial, w, floats, ints)[0]
        if residual < best:
            best = residual
            for i in range(n):
                z[i] = trial[i]
            if best <= PRODUCT_ERROR:
                return code + 1, best, singular_count, overflows
    return len(singular), best, singular_count, overflows


@kernel
def nearly_singular(A, pivots, row_size, k):
    """Whether a pivot of the factor is rounding: small against the largest entry that its row began with."""
    for i in range(k):
        row_size[i], row_size[pivots[i]] = row_size[pivots[i]], row_size[i]
        if abs(A[i, i]) <= INVERSE_ERROR * row_size[i]:
            return True
    return False

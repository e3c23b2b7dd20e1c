"""A box LCP in scaled units, a basis of it, and the operations that all pivoting methods share.

    w = H z + q,   members α:  w of their equations is 0, z solved for;   others:  z at lo (w >= 0 wanted) or at hi

The inverse of the basis is updated with the members, O(k²) a change; z and w move along rays, O(n k) a step, and are
computed again when rounding has accumulated. In principal pivoting each member's equation is its own row.
On Lemke's path the artificial variable z0, with index n, is a member too, and members and equations differ.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated as Array
from typing import Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import in_callers, kernel, shared
from stiction.arrays.dense import add_columns, invert, times, transposed_times
from stiction.arrays.layout import Floats, Ints, described, layout
from stiction.solvers.lcp.basis_inverse import border, strike
from stiction.solvers.lcp.scaling import equilibrate
from stiction.solvers.lcp.tolerances import LARGEST_CONDITION
from stiction.solvers.tolerances import INVERSE_ERROR, SOLVE_ERROR

AT_LOWER, AT_UPPER, MEMBER = range(3)
EMPTY = np.empty(0)  # no start, no cover


class Tableau(NamedTuple):
    """The state of a pivoting method; scaled units. `width` is n, or n + 1 with Lemke's artificial variable."""

    columns: Array[Floats, "width", "width"]  # column j of the matrix in row j
    inverse: Array[Floats, "width", "width"]  # of the basis: a row for each member, a column for each equation
    q: Array[Floats, "n"]
    lo: Array[Floats, "n"]
    hi: Array[Floats, "n"]
    row_scale: Array[Floats, "n"]
    column_scale: Array[Floats, "n"]
    z: Array[Floats, "width"]
    w: Array[Floats, "n"]
    z_rate: Array[Floats, "width"]  # of the members, in their order
    w_rate: Array[Floats, "n"]
    entering: Array[Floats, "width"]  # inverse times a column
    leaving: Array[Floats, "width"]  # a row times the inverse
    gathered: Array[Floats, "width"]  # entries of a vector at the members or equations
    spare: Array[Floats, "n"]
    side: Array[Floats, "n"]  # sign that w must have: 1 at lo, -1 at hi, 0 where it may have any
    state: Array[Ints, "n"]  # AT_LOWER, AT_UPPER or MEMBER
    members: Array[Ints, "width"]  # variables that are solved for
    equations: Array[Ints, "width"]  # rows that they solve
    place: Array[Ints, "width"]  # of a variable among the members, or -1
    row_place: Array[Ints, "width"]  # of a row among the equations, or -1
    pivots: Array[Ints, "width"]  # row exchanges of a factorization
    own: Any  # arrays of one method


tableau_sizes, tableau_views = layout(Tableau, "n", "width")


def tableau_with(record: Any, artificial: int = 0) -> tuple[Any, Any]:
    """`sizes(n)` and `views(n, floats, ints)` of a tableau whose field `own` is a record laid out by n."""
    own_sizes, own_views = layout(record, "n")

    @cache
    def sizes(n: int) -> tuple[int, ...]:
        return tuple(map(int.__add__, tableau_sizes(n, n + artificial), own_sizes(n)))

    def whole_views(n: Any, floats: Any, ints: Any) -> Any:
        # The arrays of the method lie behind the tableau.
        used_floats, used_ints = tableau_sizes(n, n + artificial)
        own = own_views(n, floats[used_floats:], ints[used_ints:])
        return tableau_views(n, n + artificial, own, floats, ints)

    return sizes, shared(described(whole_views, record))


@kernel
def scale(H, vectors, symmetric, t):
    """Fill in the problem, scaled. Returns τ, the unit of z and w."""
    return equilibrate(H, vectors, symmetric, t.columns, t.q, t.lo, t.hi, t.row_scale, t.column_scale)


@kernel
def set_sides(t, vectors, start):
    """Free variables are members, and those strictly inside their bounds in `start`, if it has n entries."""
    warm = len(start) == len(t.q)
    for i in range(len(t.q)):
        free = np.isinf(t.lo[i]) and np.isinf(t.hi[i])
        if free or (warm and vectors[1, i] < start[i] < vectors[2, i]):
            t.state[i] = MEMBER
        else:
            upper = np.isinf(t.lo[i]) or (warm and start[i] == vectors[2, i])
            t.state[i] = AT_UPPER if upper else AT_LOWER


@kernel
def finish(vectors, tau, t, z):
    """Read the answer in the units of the problem; variables at a bound get exactly its value."""
    for i in range(len(z)):
        if t.state[i] == MEMBER:
            z[i] = min(max(t.z[i] * t.column_scale[i] * tau, vectors[1, i]), vectors[2, i])
        else:
            z[i] = vectors[1, i] if t.state[i] == AT_LOWER else vectors[2, i]


@kernel
def read_ray(t, size, driven, sense, ray):
    """The direction of the last rates, in the units of the problem; `driven` is -1 if no variable but members moves."""
    ray[:] = 0.0
    for u in range(size):
        if t.members[u] < len(ray):
            ray[t.members[u]] = t.z_rate[u] * t.column_scale[t.members[u]]
    if driven >= 0:
        ray[driven] = sense * t.column_scale[driven]


# Accuracy: w, the inverse and the members, computed from the matrix.


@kernel
def residuals(t, size):
    """w = H z + q from scratch."""
    # Variables at a bound; those at zero cost nothing.
    n = len(t.q)
    for i in range(n):
        t.w[i] = t.q[i]
    for j in range(n):
        if t.state[j] != MEMBER and t.z[j] != 0.0:
            zj, column = t.z[j], t.columns[j]
            for i in range(n):
                t.w[i] += zj * column[i]
    # The members, Lemke's artificial variable among them.
    for u in range(size):
        t.gathered[u] = t.z[t.members[u]]
    add_columns(t.columns, t.members, t.gathered, size, n, t.w)


@kernel
def rebuild(t, size):
    """The inverse of the basis from the matrix; False if it is singular to working precision."""
    # The block of members and equations, inverted.
    K = t.inverse
    largest = 0.0
    for e in range(size):
        for u in range(size):
            K[e, u] = t.columns[t.members[u], t.equations[e]]
            largest = max(largest, abs(K[e, u]))
    if not invert(K, t.pivots, size):
        return False
    # NaN fails this comparison as well.
    for e in range(size):
        for u in range(size):
            if not abs(K[e, u]) * largest < LARGEST_CONDITION:
                return False
    return True


@kernel
def correct(t, size):
    """One step of iterative refinement of the members, and w anew."""
    if size > 0:
        for e in range(size):
            t.gathered[e] = t.w[t.equations[e]]
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
    """Largest |w| of an equation."""
    worst = 0.0
    for e in range(size):
        worst = max(worst, abs(t.w[t.equations[e]]))
    return worst


@kernel
def settle(t, size):
    """Correct the members where their equations have drifted; False if the basis has become singular."""
    worst, scale = equation_residual(t, size), magnitude(t, size)
    if worst > INVERSE_ERROR * scale and not rebuild(t, size):
        return False
    if worst > SOLVE_ERROR * scale:
        residuals(t, size)
        correct(t, size)
    return True


@kernel
def solve_anew(t, size):
    """Refine members and w from the matrix, with a fresh inverse if need be; False if the basis is singular."""
    residuals(t, size)
    correct(t, size)
    if equation_residual(t, size) > SOLVE_ERROR * magnitude(t, size):
        if not rebuild(t, size):
            return False
        correct(t, size)
        correct(t, size)
    return True


# Motion: everything moves linearly with one variable z_driven, or with one w_driven.


@in_callers
@kernel
def column_times_inverse(t, size, variable):
    """entering = K times the variable's column at the equations."""
    column = t.columns[variable]
    for e in range(size):
        t.gathered[e] = column[t.equations[e]]
    times(t.inverse, t.gathered, size, t.entering)


@in_callers
@kernel
def row_times_inverse(t, size, row):
    """leaving = (row of the matrix, at the members) times K; the row itself stays in `gathered`."""
    for u in range(size):
        t.gathered[u] = t.columns[t.members[u], row]
    transposed_times(t.inverse, t.gathered, size, t.leaving)


@in_callers
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


@in_callers
@kernel
def rates_of_row(t, size, driven, sense):
    """Rates as w_driven (of an equation) moves by `sense`."""
    n = len(t.q)
    equation = t.row_place[driven]
    for u in range(size):
        t.z_rate[u] = sense * t.inverse[u, equation]
    for i in range(n):
        t.w_rate[i] = 0.0
    add_columns(t.columns, t.members, t.z_rate, size, n, t.w_rate)


@in_callers
@kernel
def advance(t, size, step):
    """Move members and w along their rates."""
    for u in range(size):
        t.z[t.members[u]] += step * t.z_rate[u]
    for i in range(len(t.q)):
        t.w[i] += step * t.w_rate[i]


# The basis: members and equations come and go.


@in_callers
@kernel
def add(t, size, row, variable, pivot):
    """A row becomes an equation and a variable a member; entering and leaving hold its column and row times K."""
    border(t.inverse, size, t.entering, t.leaving, pivot)
    t.equations[size], t.row_place[row], t.side[row] = row, size, 0.0
    t.members[size], t.place[variable] = variable, size


@kernel
def remove(t, size, member, equation):
    """A member and an equation, given by their places, leave; the last ones take their places."""
    strike(t.inverse, size, member, equation)
    last = size - 1
    moved_row, moved = t.equations[last], t.members[last]
    t.row_place[t.equations[equation]] = t.place[t.members[member]] = -1
    if equation != last:
        t.equations[equation], t.row_place[moved_row] = moved_row, equation
    if member != last:
        t.members[member], t.place[moved] = moved, member


@kernel
def move_to_bound(t, variable):
    """Put a non-member exactly at its bound."""
    t.z[variable] = t.lo[variable] if t.state[variable] == AT_LOWER else t.hi[variable]

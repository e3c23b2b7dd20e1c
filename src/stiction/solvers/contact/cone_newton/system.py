"""The linear system of a Newton step in velocity space: (I + sum of L_iᵀ slope_i L_i) dx = right.

It has as many unknowns as there are velocities, for any number of contacts. For free bodies it is stored by blocks (see
`blocks`), otherwise as a dense matrix, with partial pivoting within the band of nonzero entries.

Velocities that one contact alone has, as its normal, are eliminated beforehand (dry friction adds one a joint; they
come last). Their rows of the matrix have a diagonal entry only, since velocities along tangents change no normal
impulse: `core` velocities are left, and the columns that couple them are kept where these rows have zeros.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.vectors import column, inner
from stiction.solvers.contact.cone_newton.blocks import Blocks, add_law, clear, factor_blocks, solve_blocks
from stiction.solvers.contact.cone_newton.slope import through

OPEN, STICK, SLIP = 0, 1, 2


class System(NamedTuple):
    """The linearised law of each contact, dp = constant - slope du, and the system that they make."""

    constant: Array[Floats, "n", "d"]
    # Entries nn, 1n, 2n ..., then 11, 12 = 21 ..., 22 ... of the tangents; those at n1, n2 ... are zero.
    slope: Array[Floats, "n", "d * (d + 1) // 2"]
    mode: Array[Ints, "n"]  # OPEN, STICK or SLIP
    matrix: Array[Floats, "dense", "dense"]  # I + sum of L_iᵀ slope_i L_i, then its factors
    right: Array[Floats, "m"]  # right-hand side, then solution
    reach: Array[Ints, "m"]  # one past the last entry of each row of the matrix that is not zero
    pivots: Array[Ints, "m"]
    core: Array[Ints, 1]  # how many velocities the system has after these
    blocks: Blocks  # the same matrix by blocks, used instead of `matrix` if not empty


layout(System, "n", "d", "m", "b", dense="0 if b > 0 else m")


@kernel
def solve_system(contacts, system):
    """right = matrix⁻¹ right; False if the matrix is singular. Its factors are kept for `solve_again`."""
    # By blocks of free bodies, or as a whole; an open contact has no slope.
    if len(system.blocks.order) > 0:
        clear(system.blocks)
        for i in range(len(system.mode)):
            if system.mode[i] != OPEN:
                add_law(contacts.rows[i], contacts.segments[i], system.slope, i, contacts.zero, system.blocks)
        regular = factor_blocks(system.blocks, system.pivots)
    else:
        assemble(contacts, system)
        regular = factorise(system)
    if regular:
        solve_again(system, system.right)
    return regular


@kernel
def solve_again(system, x):
    """x = matrix⁻¹ x from the factors."""
    if len(system.blocks.order) > 0:
        solve_blocks(system.blocks, system.pivots, x)
    else:
        substitute(system, x)


@kernel
def assemble(contacts, system):
    """matrix = I + sum of L_iᵀ slope_i L_i."""
    # The identity.
    matrix, reach, core = system.matrix, system.reach, system.core[0]
    for j in range(len(reach)):
        for k in range(core):
            matrix[j, k] = 0.0
        matrix[j, j] = 1.0
        reach[j] = j + 1

    # Contacts with a velocity of their own: the upper triangle, then the lower one.
    n, m = len(system.mode), len(reach)
    if core < m:
        for i in range(n):
            own = own_velocity(contacts.segments[i])
            if own >= core and system.mode[i] != OPEN:
                add_dry(contacts.rows[i], contacts.segments[i], system.slope, i, own, core, matrix, reach)
        for j in range(core):
            for k in range(j + 1, reach[j]):
                matrix[k, j] = matrix[j, k]
                reach[k] = max(reach[k], reach[j])

    # The other closed contacts.
    for i in range(n):
        if system.mode[i] != OPEN and (core == m or own_velocity(contacts.segments[i]) < core):
            add_contact(contacts.rows[i], contacts.segments[i], system.slope, i, contacts.zero, matrix, reach)


@kernel
def own_velocity(segment):
    """The last velocity that a contact touches: its own, if it has one."""
    return max(segment[0] + segment[1], segment[2] + segment[3]) - 1


@kernel
def core_of(rows, segments, m):
    """How many velocities are left besides those at the end that one contact alone has, as its normal."""
    # Of the last contacts each has the next velocity from the end.
    n, core = len(rows), m
    while m - core < n and is_dry(rows[n - 1 - (m - core)], segments[n - 1 - (m - core)], core - 1):
        core -= 1

    # The other contacts touch none of these.
    for i in range(n - (m - core)):
        if own_velocity(segments[i]) >= core:
            return m
    return core


@kernel
def is_dry(rows, segment, own):
    """Whether the normal touches this velocity alone, and of the tangents t1 alone touches any, but not this one."""
    if own_velocity(segment) != own:
        return False
    for j in range(segment[1] + segment[3]):
        at = segment[0] + j if j < segment[1] else segment[2] - segment[1] + j
        if (rows[0, j] != 0.0) != (at == own) or (at == own and rows[1, j] != 0.0):
            return False
        for c in range(2, len(rows)):
            if rows[c, j] != 0.0:
                return False
    return True


@sums
def add_dry(rows, segment, slope, i, own, core, matrix, reach):
    """As `add_contact` for one that has a velocity of its own, whose column lies in row `own`; upper triangle only."""
    length, width = segment[1], segment[1] + segment[3]
    first, other = segment[0], segment[2] - length
    across, between = slope[i, len(rows)], slope[i, 1]

    # Its own velocity, and how it changes the others; where these end.
    normal, end = 0.0, 0
    for j in range(width):
        at = first + j if j < length else other + j
        normal = rows[0, j] if at == own else normal
        end = at + 1 if at < core and rows[1, j] != 0.0 else end
    matrix[own, own] = 1.0 + slope[i, 0] * normal * normal
    for j in range(width):
        tangent, at = rows[1, j], first + j if j < length else other + j
        if tangent == 0.0:
            continue
        matrix[own, at] = between * normal * tangent

        # The others among themselves, from the diagonal on; sliding friction does not couple them.
        if across == 0.0:
            continue
        row, part = matrix[at], across * tangent
        reach[at] = max(reach[at], end)
        for k in range(j, min(length, core - first)):
            row[first + k] += part * rows[1, k]
        for k in range(max(j, length), min(width, core - other)):
            row[other + k] += part * rows[1, k]


@sums
def add_contact(rows, segment, slope, i, zero, matrix, reach):
    """matrix += Lᵀ slope L of contact i."""
    # Where the two runs of velocities of the contact lie: entry j at first + j, or at other + j in the second run.
    length = segment[1]
    width = length + segment[3]
    end = max(segment[0] + length, segment[2] + segment[3])
    first, other = segment[0], segment[2] - length
    for j in range(width):
        # Row j of Lᵀ slope, multiplied by L.
        a = through(slope, i, column(rows, j, zero))
        at = first + j if j < length else other + j
        reach[at] = max(reach[at], end)
        row = matrix[at]
        for k in range(length):
            row[first + k] += inner(a, column(rows, k, zero))
        for k in range(length, width):
            row[other + k] += inner(a, column(rows, k, zero))


@kernel
def factorise(system):
    """P matrix = L U in place, with partial pivoting within the reach of each row; False if a pivot vanishes.

    The pattern of nonzero entries is symmetric: column p ends no later than the longest of the first p + 1 rows, so
    that a banded matrix stays banded.
    """
    A, reach, pivots, m = system.matrix, system.reach, system.pivots, system.core[0]
    below = 0
    for p in range(m):
        # Largest entry of the column.
        below = max(below, reach[p])
        best, size = p, abs(A[p, p])
        for i in range(p + 1, below):
            if abs(A[i, p]) > size:
                best, size = i, abs(A[i, p])
        if not size > 0.0:
            return False
        pivots[p] = best

        # Exchange rows, with their reaches.
        if best != p:
            for j in range(max(reach[p], reach[best])):
                A[p, j], A[best, j] = A[best, j], A[p, j]
            reach[p], reach[best] = reach[best], reach[p]
            below = max(below, reach[p])

        # Eliminate below the pivot; rows that are changed reach as far as the pivot's.
        inverse, end = 1.0 / A[p, p], reach[p]
        for i in range(p + 1, below):
            if A[i, p] != 0.0:
                factor = A[i, p] * inverse
                A[i, p] = factor
                subtract_multiple(A[i, p + 1 :], factor, A[p, p + 1 :], end - p - 1)
                reach[i] = max(reach[i], end)
    return True


@kernel
def substitute(system, x):
    """x = matrix⁻¹ x from the factors."""
    A, reach, pivots, m = system.matrix, system.reach, system.pivots, system.core[0]

    # Velocities of single contacts first.
    for own in range(m, len(reach)):
        x[own] /= A[own, own]
        subtract_multiple(x, x[own], A[own], m)

    # Row exchanges, forward and back substitution.
    for p in range(m):
        best = pivots[p]
        x[p], x[best] = x[best], x[p]
    for i in range(m):
        x[i] -= dot(A[i], x, i)
    for i in range(m - 1, -1, -1):
        x[i] = (x[i] - dot(A[i, i + 1 :], x[i + 1 :], reach[i] - i - 1)) / A[i, i]

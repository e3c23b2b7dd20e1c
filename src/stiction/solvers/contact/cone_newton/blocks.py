"""LU factors of A = I + sum of L_iᵀ G_i L_i for free bodies: 6 × 6 blocks, for each body and each pair that touches.

Bodies are eliminated in the order of minimum degree: next is the one with the fewest neighbours left, which then become
neighbours of each other. Only blocks that are nonzero at first or fill in are stored. Pivots are sought within the
diagonal blocks, not across bodies, so that the order is kept; the caller corrects the loss of digits by refinement.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.vectors import column, inner
from stiction.solvers.contact.cone_newton.slope import through

SIZE = 6


class Blocks(NamedTuple):
    """Sparsity pattern and values of the blocks, by bodies; empty if the velocities are not those of free bodies."""

    order: Array[Ints, "b"]  # bodies in the order of elimination
    begin: Array[Ints, "b + 1"]  # start of the neighbours of order[k] in `later`
    later: Array[Ints, "b * b"]  # neighbours of a body that are eliminated after it
    table: Array[Ints, "b", "b"]  # number of a block, -1 where there is none
    values: Array[Floats, "b * b", 6, 6]
    count: Array[Ints, 1]  # type: ignore[assignment]  # blocks that are used


layout(Blocks, "b")


@kernel
def of_free_bodies(segments, m):
    """Whether there are several bodies and each run of velocities of a contact is one whole body, or empty."""
    if m < 2 * SIZE or m % SIZE != 0:
        return False
    for i in range(len(segments)):
        for s in range(0, 4, 2):
            if segments[i, s] % SIZE != 0 or (segments[i, s + 1] != SIZE and segments[i, s + 1] != 0):
                return False
    return True


@kernel
def order_bodies(segments, blocks):
    """Minimum-degree order and sparsity pattern, including fill: sets all fields but the values."""
    table, order, begin, later = blocks.table, blocks.order, blocks.begin, blocks.later
    b = len(order)

    # Neighbours: 0 where two bodies share a contact, -1 elsewhere.
    for i in range(b):
        for j in range(b):
            table[i, j] = -1
    for i in range(len(segments)):
        if segments[i, 1] > 0 and segments[i, 3] > 0:
            first, second = segments[i, 0] // SIZE, segments[i, 2] // SIZE
            table[first, second] = table[second, first] = 0
    # While bodies are left, the diagonal holds their number of neighbours; then -1.
    for i in range(b):
        degree = 0
        for j in range(b):
            if j != i and table[i, j] == 0:
                degree += 1
        table[i, i] = degree

    # Eliminate the body of least degree; its remaining neighbours are those eliminated after it.
    size, number = 0, 0
    for k in range(b):
        body, degree = -1, b
        for i in range(b):
            if 0 <= table[i, i] < degree:
                body, degree = i, table[i, i]
        order[k], begin[k] = body, size
        for j in range(b):
            if j != body and table[body, j] == 0 and table[j, j] >= 0:
                later[size] = j
                size += 1

        # Elimination connects these neighbours with each other: fill.
        table[body, body] = -1
        for x in range(begin[k], size):
            i = later[x]
            table[i, i] -= 1
            for y in range(begin[k], x):
                j = later[y]
                if table[i, j] < 0:
                    table[i, j] = table[j, i] = 0
                    table[i, i] += 1
                    table[j, j] += 1

    # Number the blocks in the order in which the factorisation uses them.
    begin[b] = size
    for k in range(b):
        i = order[k]
        table[i, i] = number
        number += 1
        for x in range(begin[k], begin[k + 1]):
            j = later[x]
            table[i, j], table[j, i] = number, number + 1
            number += 2
    blocks.count[0] = number


@kernel
def clear(blocks):
    """A = I."""
    values = blocks.values
    for k in range(blocks.count[0]):
        for i in range(SIZE):
            for j in range(SIZE):
                values[k, i, j] = 0.0
    for body in range(len(blocks.order)):
        D = values[blocks.table[body, body]]
        for i in range(SIZE):
            D[i, i] = 1.0


@kernel
def add_law(rows, segment, slope, i, zero, blocks):
    """A += Lᵀ slope L of contact i."""
    table, values = blocks.table, blocks.values
    first, second = segment[0] // SIZE, segment[2] // SIZE

    # First body, second body, and the coupling between them.
    length = segment[1]
    if length > 0:
        add_product(rows, 0, slope, i, 0, zero, values[table[first, first]])
    if segment[3] > 0:
        add_product(rows, length, slope, i, length, zero, values[table[second, second]])
        if length > 0:
            add_product(rows, 0, slope, i, length, zero, values[table[first, second]])
            add_product(rows, length, slope, i, 0, zero, values[table[second, first]])


@sums
def add_product(rows, first, slope, i, second, zero, block):
    """block += Rᵀ slope S of contact i, R and S its rows from these places on."""
    for j in range(SIZE):
        a = through(slope, i, column(rows, first + j, zero))
        row = block[j]
        for k in range(SIZE):
            row[k] += inner(a, column(rows, second + k, zero))


@kernel
def factor_blocks(blocks, pivots):
    """A = L U in place; False if a diagonal block is singular. pivots: (6 b,) row exchanges within each body."""
    order, begin, later, table, values = blocks.order, blocks.begin, blocks.later, blocks.table, blocks.values
    for k in range(len(order)):
        # Factor the diagonal block.
        body = order[k]
        D, own = values[table[body, body]], pivots[SIZE * body : SIZE * body + SIZE]
        if not factor_block(D, own):
            return False

        # Row of U, then column of L; update the blocks that remain.
        for y in range(begin[k], begin[k + 1]):
            solve_lower(D, own, values[table[body, later[y]]])
        for x in range(begin[k], begin[k + 1]):
            i = later[x]
            L = values[table[i, body]]
            solve_upper_from_right(D, L)
            for y in range(begin[k], begin[k + 1]):
                j = later[y]
                subtract_product(L, values[table[body, j]], values[table[i, j]])
    return True


@kernel
def factor_block(D, pivots):
    """P D = L U in place, with the diagonal of U inverted; False if D is singular."""
    for k in range(SIZE):
        # Partial pivoting: exchange rows so that the largest entry is the pivot.
        best = k
        for i in range(k + 1, SIZE):
            if abs(D[i, k]) > abs(D[best, k]):
                best = i
        pivots[k] = best
        if not abs(D[best, k]) > 0.0:
            return False
        if best != k:
            for j in range(SIZE):
                D[k, j], D[best, j] = D[best, j], D[k, j]

        # Eliminate below the pivot.
        inverse = 1.0 / D[k, k]
        D[k, k] = inverse
        for i in range(k + 1, SIZE):
            factor = D[i, k] * inverse
            D[i, k] = factor
            for j in range(k + 1, SIZE):
                D[i, j] -= factor * D[k, j]
    return True


@kernel
def solve_lower(D, pivots, B):
    """B = L⁻¹ P B."""
    # Row exchanges, then forward substitution.
    for k in range(SIZE):
        best = pivots[k]
        if best != k:
            for j in range(SIZE):
                B[k, j], B[best, j] = B[best, j], B[k, j]
    for i in range(1, SIZE):
        for k in range(i):
            factor = D[i, k]
            for j in range(SIZE):
                B[i, j] -= factor * B[k, j]


@kernel
def solve_upper_from_right(D, B):
    """B = B U⁻¹."""
    for i in range(SIZE):
        for k in range(SIZE):
            B[i, k] *= D[k, k]
            factor = B[i, k]
            for j in range(k + 1, SIZE):
                B[i, j] -= factor * D[k, j]


@sums
def subtract_product(L, U, C):
    """C -= L U."""
    for i in range(SIZE):
        l0, l1, l2, l3, l4, l5 = L[i, 0], L[i, 1], L[i, 2], L[i, 3], L[i, 4], L[i, 5]
        for j in range(SIZE):
            C[i, j] -= l0 * U[0, j] + l1 * U[1, j] + l2 * U[2, j] + l3 * U[3, j] + l4 * U[4, j] + l5 * U[5, j]


@kernel
def solve_blocks(blocks, pivots, x):
    """x = A⁻¹ x from its factors."""
    order, begin, later, table, values = blocks.order, blocks.begin, blocks.later, blocks.table, blocks.values

    # Forward: within the block, with its row exchanges, then subtracted from later bodies.
    for k in range(len(order)):
        at = SIZE * order[k]
        part, D = x[at : at + SIZE], values[table[order[k], order[k]]]
        for i in range(SIZE):
            best = pivots[at + i]
            part[i], part[best] = part[best], part[i]
        for i in range(1, SIZE):
            for j in range(i):
                part[i] -= D[i, j] * part[j]
        for z in range(begin[k], begin[k + 1]):
            j = later[z]
            subtract_image(values[table[j, order[k]]], part, x[SIZE * j : SIZE * j + SIZE])

    # Backward: subtract later bodies, then solve within the block.
    for k in range(len(order) - 1, -1, -1):
        at = SIZE * order[k]
        part, D = x[at : at + SIZE], values[table[order[k], order[k]]]
        for z in range(begin[k], begin[k + 1]):
            j = later[z]
            subtract_image(values[table[order[k], j]], x[SIZE * j : SIZE * j + SIZE], part)
        for i in range(SIZE - 1, -1, -1):
            for j in range(i + 1, SIZE):
                part[i] -= D[i, j] * part[j]
            part[i] *= D[i, i]


@sums
def subtract_image(L, x, y):
    """y -= L x."""
    x0, x1, x2, x3, x4, x5 = x[0], x[1], x[2], x[3], x[4], x[5]
    for i in range(SIZE):
        y[i] -= L[i, 0] * x0 + L[i, 1] * x1 + L[i, 2] * x2 + L[i, 3] * x3 + L[i, 4] * x4 + L[i, 5] * x5

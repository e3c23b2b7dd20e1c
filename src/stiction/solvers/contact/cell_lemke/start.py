"""A start instead of a path: every contact in the cell that holds its given impulse.

A step later most contacts do what they did before. Each is put into the cell of its impulse, and the equations of all
cells are solved at once, with z0 = 0. If the result obeys the law it is the answer; else a path is followed as usual.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.dense import invert, times
from stiction.solvers.contact.cell_lemke.answer import sector
from stiction.solvers.contact.cell_lemke.cells import (
    CORNER,
    EDGE,
    FIRST,
    FREE,
    INACTIVE,
    LINE,
    NORMAL,
    SECOND,
    SEPARATED,
    SMOOTH,
    VERTEX,
    neighbour,
)
from stiction.solvers.contact.cell_lemke.runs import combine, coupling, velocity_add, velocity_dot
from stiction.solvers.contact.cell_lemke.tolerances import NEGLIGIBLE


@kernel
def recall(contacts, cells, basis, start):
    """Cells from impulses of the normal form, and their unknowns in basis.y; False if they make no basis."""
    d, largest, size = contacts.directions, 0.0, 0
    for i in range(len(start)):
        largest = max(largest, start[i, 0])
    for i in range(len(start)):
        theta, mu = start[i, 0], contacts.friction[i]
        cells.state[i], cells.column[i, NORMAL] = SEPARATED, INACTIVE
        if not theta > NEGLIGIBLE * largest:
            continue
        # The directions that it presses along, the larger part first, and whether it is at its friction bound.
        b, o, p_b, p_o = sector(d, start[i, 1], start[i, 2])
        small = NEGLIGIBLE * mu * theta
        if p_b <= small:
            b, o, p_b, p_o = o, b, p_o, p_b
        slides = p_b + p_o >= mu * theta - small
        alone = p_o <= small
        # A contact has at most three unknowns; are there places for them?
        if size + 3 > len(basis.y):
            return False
        # The rows and columns of its cell, as in the table of `cells`.
        normal, along, beside = (1.0, 0.0, 0.0), (0.0, d[b, 0], d[b, 1]), (0.0, d[o, 0], d[o, 1])
        cells.direction[i], cells.side[i] = b, 1 if o == neighbour(b, 1, len(d)) else -1
        if mu == 0.0 or p_b <= small:
            cells.state[i] = SMOOTH if mu == 0.0 else FREE
            size = add_pair(contacts, cells, basis, i, NORMAL, size, normal, normal)
        # It slides along one direction or between two, or it sticks.
        elif slides:
            cells.state[i] = VERTEX if alone else EDGE
            size = add_pair(contacts, cells, basis, i, NORMAL, size, (1.0, mu * d[b, 0], mu * d[b, 1]), normal)
            if not alone:
                across = 0.0, d[o, 0] - d[b, 0], d[o, 1] - d[b, 1]
                size = add_pair(contacts, cells, basis, i, FIRST, size, across, across)
        else:
            cells.state[i] = LINE if alone else CORNER
            size = add_pair(contacts, cells, basis, i, NORMAL, size, normal, normal)
            size = add_pair(contacts, cells, basis, i, FIRST, size, along, along)
            if not alone:
                size = add_pair(contacts, cells, basis, i, SECOND, size, beside, beside)
    return solve_cells(contacts, basis, size)


@kernel
def add_pair(contacts, cells, basis, i, role, size, column, row):
    """One more unknown and one more row = 0 of contact i; returns how many there are."""
    combine(contacts.rows, i, column, basis.columns[size])
    combine(contacts.rows, i, row, basis.rows[size])
    bias = contacts.bias[i]
    basis.row_bias[size] = row[0] * bias[0] + row[1] * bias[1] + row[2] * bias[2]
    basis.column_contact[size], basis.row_contact[size], cells.column[i, role] = i, i, size
    return size + 1


@sums
def solve_cells(contacts, basis, size):
    """basis.y from all rows = 0, corrected once; False if they are singular."""
    K, y, segments = basis.inverse, basis.y, contacts.segments
    # The matrix of all rows over all columns, and its inverse.
    for r in range(size):
        y[r] = 0.0
        for q in range(size):
            K[r, q] = coupling(
                basis.rows[r], segments[basis.row_contact[r]], basis.columns[q], segments[basis.column_contact[q]]
            )
    if not invert(K, basis.order, size):
        return False
    # Two steps of refinement, the first one from zero.
    for _ in range(2):
        for l in range(len(basis.x)):
            basis.x[l] = contacts.free[l]
        for q in range(size):
            velocity_add(basis.x, y[q], basis.columns[q], segments[basis.column_contact[q]])
        for r in range(size):
            value = velocity_dot(basis.rows[r], segments[basis.row_contact[r]], basis.x) + basis.row_bias[r]
            basis.residual[r] = -value
        times(K, basis.residual, size, basis.product)
        for q in range(size):
            y[q] += basis.product[q]
    return True

"""Where a path through the cells need not be followed: contacts are in the cells in which given impulses lie.

A step later most contacts do what they did. Each is put into the cell that holds its impulse, the equations of all
cells are solved at once, with z0 = 0, and the answer is one if it obeys the law; else the path is followed as ever.
"""

from __future__ import annotations

from stiction.compiled import kernel, sums
from stiction.linear import invert, times
from stiction.solvers.cell_lemke.cells import (
    CORNER,
    EDGE,
    FIRST,
    FREE,
    LINE,
    NORMAL,
    SECOND,
    SEPARATED,
    SMOOTH,
    VERTEX,
    combine,
    coupling,
    neighbour,
    velocity_add,
    velocity_dot,
)

NOTHING = 1e-9  # part of the largest impulse, or of a contact's own bound, that is none


@kernel
def recall(contacts, cells, basis, start):
    """Cells from impulses in units of the normal form, and their unknowns in basis.y; False if these are no basis."""
    d, largest = contacts.directions, 0.0
    for i in range(len(start)):
        largest = max(largest, start[i, 0])
    size = 0
    for i in range(len(start)):
        theta, mu = start[i, 0], contacts.friction[i]
        cells.state[i] = SEPARATED
        if not theta > NOTHING * largest:
            continue
        b, o, p_b, p_o = sector(d, start[i, 1], start[i, 2])
        small = NOTHING * mu * theta
        if p_b <= small:
            b, o, p_b, p_o = o, b, p_o, p_b
        slides = p_b + p_o >= mu * theta - small
        alone = p_o <= small
        if size + 3 > len(basis.y):
            return False
        cells.direction[i], cells.side[i] = b, 1 if o == neighbour(b, 1, len(d)) else -1
        if mu == 0.0 or p_b <= small:
            cells.state[i] = SMOOTH if mu == 0.0 else FREE
            size = pair(contacts, cells, basis, i, NORMAL, size, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
        elif slides:
            cells.state[i] = VERTEX if alone else EDGE
            size = pair(contacts, cells, basis, i, NORMAL, size, 1.0, mu * d[b, 0], mu * d[b, 1], 1.0, 0.0, 0.0)
            if not alone:
                t1, t2 = d[o, 0] - d[b, 0], d[o, 1] - d[b, 1]
                size = pair(contacts, cells, basis, i, FIRST, size, 0.0, t1, t2, 0.0, t1, t2)
        else:
            cells.state[i] = LINE if alone else CORNER
            size = pair(contacts, cells, basis, i, NORMAL, size, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
            size = pair(contacts, cells, basis, i, FIRST, size, 0.0, d[b, 0], d[b, 1], 0.0, d[b, 0], d[b, 1])
            if not alone:
                size = pair(contacts, cells, basis, i, SECOND, size, 0.0, d[o, 0], d[o, 1], 0.0, d[o, 0], d[o, 1])
    return solve_cells(contacts, basis, size)


@kernel
def pair(contacts, cells, basis, i, role, size, normal, first, second, row_normal, row_first, row_second):
    """One more unknown and one more row = 0 of contact i; returns how many there are."""
    combine(contacts.rows, i, normal, first, second, basis.columns[size])
    combine(contacts.rows, i, row_normal, row_first, row_second, basis.rows[size])
    bias = contacts.bias[i]
    basis.row_bias[size] = row_normal * bias[0] + row_first * bias[1] + row_second * bias[2]
    basis.column_contact[size], basis.row_contact[size], cells.column[i, role] = i, i, size
    return size + 1


@sums
def solve_cells(contacts, basis, size):
    """basis.y from all rows = 0, corrected once; False if they are singular."""
    K, y, segments = basis.inverse, basis.y, contacts.segments
    for r in range(size):
        y[r] = 0.0
        for q in range(size):
            K[r, q] = coupling(
                basis.rows[r], segments[basis.row_contact[r]], basis.columns[q], segments[basis.column_contact[q]]
            )
    if not invert(K, basis.order, size):
        return False
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


@sums
def sector(d, p1, p2):
    """Neighbouring directions b and o of the pyramid between which a tangential impulse lies, and its parts."""
    count = len(d)
    if count == 2:  # one tangent
        b, o = (0, 1) if p1 >= 0.0 else (1, 0)
        return b, o, p1 / d[b, 0], 0.0
    b, furthest = 0, -1.0
    for j in range(count):
        k = neighbour(j, 1, count)
        along = (d[j, 0] + d[k, 0]) * p1 + (d[j, 1] + d[k, 1]) * p2
        if j == 0 or along > furthest:
            b, furthest = j, along
    o = neighbour(b, 1, count)
    area = d[b, 0] * d[o, 1] - d[b, 1] * d[o, 0]
    return b, o, (p1 * d[o, 1] - p2 * d[o, 0]) / area, (p2 * d[b, 0] - p1 * d[b, 1]) / area

"""The basis that follows a path: the rows = 0 and the driven row, over the unknowns of all cells and z0.

Its matrix is kept as its inverse, so that moving along the path is moving along the driven row's column of it. A row
comes in place of the driven one, a column comes with a driven one and leaves with it. Then a change of variables inside
one contact writes its columns and rows in the terms of the new cell [Lloyd2004, app. A].
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.arrays.dense import invert, times
from stiction.solvers.contact.cell_lemke.cells import (
    BOUND,
    CONTACT,
    CORNER,
    FIRST,
    FIRST_FORCE,
    INACTIVE,
    NO_ROLE,
    NORMAL,
    QUANTITY,
    ROW,
    SECOND,
    SECOND_FORCE,
    SIZE,
    THETA,
    VERTEX,
    is_force,
)
from stiction.solvers.contact.cell_lemke.runs import combine, coupling, velocity_add, velocity_dot
from stiction.solvers.lcp.basis_inverse import exchange_row, strike


class Move(NamedTuple):
    """A vanished velocity, as the row = 0 that it becomes, and the column of the force that is driven next."""

    role: Any
    row: Any  # factors of n, t1, t2
    margin: Any  # coefficient of z0 in the row beyond that of u
    column: Any  # factors of n, t1, t2
    driven: Any  # quantity


@in_callers
@sums
def impose(contacts, cells, basis, i, move):
    """The row of contact i that has vanished replaces the driven row."""
    K, size, driven = basis.inverse, basis.now[SIZE], basis.now[ROW]
    normal, first, second = move.row
    cover, bias, segments = contacts.cover[i], contacts.bias[i], contacts.segments
    total = normal * cover[0] + first * cover[1] + second * cover[2] + move.margin
    combine(contacts.rows, i, move.row, basis.vector)
    # The new row times the inverse: z0 first, then the unknowns that share velocities with contact i.
    product = basis.product
    of_z0 = total + velocity_dot(basis.vector, segments[i], basis.lift)
    for r in range(size):
        product[r] = of_z0 * K[0, r]
    for q in range(1, size):
        factor = coupling(basis.vector, segments[i], basis.columns[q], segments[basis.column_contact[q]])
        if factor != 0.0:
            for r in range(size):
                product[r] += factor * K[q, r]
    exchange_row(K, size, driven, product)
    # Enter it in the tables.
    row = basis.rows[driven]
    for l in range(len(row)):
        row[l] = basis.vector[l]
    basis.row_cover[driven] = total
    basis.row_bias[driven] = normal * bias[0] + first * bias[1] + second * bias[2]
    basis.row_contact[driven], basis.row_role[driven] = i, move.role
    cells.row[i, move.role] = driven


@in_callers
@sums
def introduce(contacts, cells, basis, i, move):
    """A new unknown of contact i, which is itself the driven row."""
    K, size, role, segments = basis.inverse, basis.now[SIZE], move.role, contacts.segments
    # Border the inverse by the new column and a unit row.
    column = basis.columns[size]
    combine(contacts.rows, i, move.column, column)
    for r in range(size):
        basis.residual[r] = coupling(column, segments[i], basis.rows[r], segments[basis.row_contact[r]])
    times(K, basis.residual, size, basis.product)
    for q in range(size):
        K[q, size], K[size, q] = -basis.product[q], 0.0
    K[size, size] = 1.0
    # Enter it in the tables.
    basis.y[size] = 0.0
    basis.column_contact[size], basis.column_role[size], cells.column[i, role] = i, role, size
    basis.row_contact[size], basis.row_role[size] = i, NO_ROLE
    basis.now[ROW], basis.now[SIZE] = size, size + 1


@in_callers
@kernel
def leave(cells, basis, i, role):
    """A vanished unknown of contact i leaves with the driven row; the row of the same role is driven next."""
    size, driven = basis.now[SIZE], basis.now[ROW]
    column, next_driven = cells.column[i, role], cells.row[i, role]
    strike(basis.inverse, size, column, driven)
    last = size - 1
    # The last column moves into the free place, ...
    if column != last:
        basis.y[column] = basis.y[last]
        for l in range(basis.columns.shape[1]):
            basis.columns[column, l] = basis.columns[last, l]
        basis.column_contact[column], basis.column_role[column] = basis.column_contact[last], basis.column_role[last]
        cells.column[basis.column_contact[column], basis.column_role[column]] = column
    # ... and so does the last row.
    if driven != last:
        for l in range(basis.rows.shape[1]):
            basis.rows[driven, l] = basis.rows[last, l]
        basis.row_cover[driven], basis.row_bias[driven] = basis.row_cover[last], basis.row_bias[last]
        basis.row_contact[driven], basis.row_role[driven] = basis.row_contact[last], basis.row_role[last]
        cells.row[basis.row_contact[driven], basis.row_role[driven]] = driven
        if next_driven == last:
            next_driven = driven
    basis.row_role[next_driven] = NO_ROLE
    basis.now[ROW], basis.now[SIZE] = next_driven, last


# Changes of variables inside one contact


@in_callers
@sums
def room_for_force(contacts, cells, basis, i, role, other):
    """p ← μθ + c_γ z0 − p (− the other force, if any): its own inverse [Lloyd2004, eq. 38]."""
    K, y, size, mu, cover = basis.inverse, basis.y, basis.now[SIZE], contacts.friction[i], contacts.cover[i, BOUND]
    p, theta = cells.column[i, role], cells.column[i, NORMAL]
    for r in range(size):
        K[p, r] = cover * K[0, r] - K[p, r]
    y[p] = cover * y[0] - y[p]
    # Only a closed contact has θ.
    if theta != INACTIVE:
        for r in range(size):
            K[p, r] += mu * K[theta, r]
        y[p] += mu * y[theta]

    # Of two forces that share a bound, the other takes its part.
    if other != NO_ROLE:
        q = cells.column[i, other]
        for r in range(size):
            K[p, r] -= K[q, r]
        y[p] -= y[q]


@in_callers
@kernel
def set_normal_column(contacts, cells, basis, i, first, second):
    """θ pushes along n + first t1 + second t2 from now on."""
    if cells.column[i, NORMAL] != INACTIVE:
        combine(contacts.rows, i, (1.0, first, second), basis.columns[cells.column[i, NORMAL]])


@in_callers
@sums
def add_lift(contacts, basis, i, j, sign):
    """The column of z0 gains or loses c_γ d_j of contact i [Lloyd2004, eq. 39]."""
    d, factor = contacts.directions, sign * contacts.cover[i, BOUND]
    if factor != 0.0:
        velocity_add(basis.lift, factor * d[j, 0], contacts.rows[i, 1], contacts.segments[i])
        velocity_add(basis.lift, factor * d[j, 1], contacts.rows[i, 2], contacts.segments[i])


@sums
def add_to_row(cells, basis, i, role, factor, source):
    """Row `role` of contact i becomes itself plus factor times row `source`."""
    K, target, other = basis.inverse, cells.row[i, role], cells.row[i, source]
    for q in range(basis.now[SIZE]):
        K[q, other] -= factor * K[q, target]
    for l in range(basis.rows.shape[1]):
        basis.rows[target, l] += factor * basis.rows[other, l]
    basis.row_cover[target] += factor * basis.row_cover[other]
    basis.row_bias[target] += factor * basis.row_bias[other]


@kernel
def negate_row(cells, basis, i, role):
    K, row = basis.inverse, cells.row[i, role]
    for q in range(basis.now[SIZE]):
        K[q, row] = -K[q, row]
    for l in range(basis.rows.shape[1]):
        basis.rows[row, l] = -basis.rows[row, l]
    basis.row_cover[row], basis.row_bias[row] = -basis.row_cover[row], -basis.row_bias[row]


@kernel
def exchange_roles(cells, basis, i):
    """First and second force, and first and second row, of contact i take each other's name."""
    column, row = cells.column[i], cells.row[i]
    column[FIRST], column[SECOND] = column[SECOND], column[FIRST]
    row[FIRST], row[SECOND] = row[SECOND], row[FIRST]
    basis.column_role[column[FIRST]], basis.column_role[column[SECOND]] = FIRST, SECOND
    basis.row_role[row[FIRST]], basis.row_role[row[SECOND]] = FIRST, SECOND


# The inverse from scratch


@kernel
def rebuild(contacts, cells, basis):
    """The inverse from the rows and columns [Lloyd2004, eq. 42, 44, 47]; False if they are singular."""
    K, size, driven = basis.inverse, basis.now[SIZE], basis.now[ROW]
    # The column of z0 has a part for every contact that slides.
    for l in range(len(basis.lift)):
        basis.lift[l] = 0.0
    for i in range(len(cells.state)):
        if cells.state[i] >= VERTEX:
            add_lift(contacts, basis, i, cells.direction[i], 1.0)
    # Velocity rows over z0 and the unknowns.
    for r in range(size):
        segment = contacts.segments[basis.row_contact[r]]
        K[r, 0] = basis.row_cover[r] + velocity_dot(basis.rows[r], segment, basis.lift)
        for q in range(1, size):
            K[r, q] = coupling(basis.rows[r], segment, basis.columns[q], contacts.segments[basis.column_contact[q]])
    # A driven force is a row over the unknowns themselves: its value for each unit vector.
    if is_force(basis.now[QUANTITY]):
        for q in range(size):
            basis.product[q] = 0.0
        for q in range(size):
            basis.product[q] = 1.0
            K[driven, q] = driven_force(contacts, cells, basis, basis.product)
            basis.product[q] = 0.0
    return invert(K, basis.order, size)


@kernel
def driven_force(contacts, cells, basis, y):
    """The driven quantity, a force, from unknowns or rates y."""
    i, quantity = basis.now[CONTACT], basis.now[QUANTITY]
    column = cells.column[i]
    if quantity == THETA:
        return y[column[NORMAL]]
    if quantity == FIRST_FORCE:
        return y[column[FIRST]]
    if quantity == SECOND_FORCE:
        return y[column[SECOND]]
    # The room under the friction bound
    room = friction_bound(contacts, cells, y, i) - y[column[FIRST]]
    return room - y[column[SECOND]] if cells.state[i] == CORNER else room


@in_callers
@kernel
def friction_bound(contacts, cells, y, i):
    """μθ + c_γ z0, the largest sum of the forces of contact i."""
    theta, bound = cells.column[i, NORMAL], contacts.cover[i, BOUND] * y[0]
    return bound if theta == INACTIVE else bound + contacts.friction[i] * y[theta]

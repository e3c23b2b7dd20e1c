"""The cell complex of a contact under pyramid friction, and the basis that follows a path through it.

A contact's impulse is θ n + p_b d_b + p_o d_o: its normal and at most two neighbouring directions of the pyramid. Which
of these are unknown, which velocities vanish and which quantities must stay positive is said by the cell it is in:

    state       columns              rows = 0               watched >= 0
    separated   –                    –                      ν
    smooth      n                    n                      θ                                            (μ = 0)
    free        n                    n                      θ; all σ_j = d_j·u + c_d z0
    line b      n, d_b               n, σ_b                 p_b; μθ − p_b; σ_{b±1}
    corner b,o  n, d_b, d_o          n, σ_b, σ_o            p_b; p_o; μθ − p_b − p_o
    vertex b    n + μ d_b            n                      θ; (d_{b±1} − d_b)·u; λ = −d_b·u − c_d z0
    edge b,o    n + μ d_b, d_o − d_b n, (d_o − d_b)·u       ψ; μθ − ψ; λ

u is the contact velocity plus c z0, ν its normal part, o = b ± 1. A watched quantity that vanishes moves the contact to
a neighbouring cell, and its counterpart (force for velocity, velocity for force) is driven next. The matrix of all rows
= 0 and of one more row, the driven quantity, over all columns and z0 is kept as its inverse: moving along the path is
moving along the driven row's column of it.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import Any, NamedTuple

from stiction.compiled import in_callers, kernel, sums
from stiction.layout import Floats, Ints, layout
from stiction.linear import dot, times
from stiction.solvers.lcp.basis_inverse import exchange_row, strike

SEPARATED, SMOOTH, FREE, LINE, CORNER, VERTEX, EDGE = 0, 1, 2, 3, 4, 5, 6  # states
NU, THETA, SIGMA, FIRST_FORCE, SECOND_FORCE, ROOM, TURN, LAMBDA = 0, 1, 2, 3, 4, 5, 6, 7  # watched quantities
NORMAL, FIRST, SECOND, NO_ROLE = 0, 1, 2, -1  # roles of a contact's columns and rows
SIZE, ROW, CONTACT, QUANTITY = 0, 1, 2, 3  # fields of `Basis.now`


class Contacts(NamedTuple):
    """The problem, in normal form: x = free + sum_i rows_iᵀ p_i, u_i = rows_i x + bias_i."""

    rows: Any  # (n, 3, K)
    segments: Any  # (n, 4)
    free: Any  # (m,)
    bias: Any  # (n, 3)
    friction: Any  # (n,)
    directions: Any  # (d, 2) of the pyramid, in the plane of the tangents
    cover: Array[Floats, "n", 5]  # c along n, t1, t2, and c_d; one more number for the structured method
    normals: Array[Floats, "K", "n"]  # normal rows once more, transposed


class Cells(NamedTuple):
    """Where each contact is."""

    state: Array[Ints, "n"]
    direction: Array[Ints, "n"]  # b
    side: Array[Ints, "n"]  # o - b: 1 or -1
    column: Array[Ints, "n", 3]  # places of its columns, by role
    row: Array[Ints, "n", 3]  # places of its rows, by role


class Basis(NamedTuple):
    """The unknowns, z0 first, the rows, and the inverse of the matrix between them."""

    inverse: Array[Floats, "R", "R"]  # a row an unknown, a column a row of the table
    columns: Array[Floats, "R", "K"]  # what a unit of each unknown adds to x
    column_contact: Array[Ints, "R"]
    column_role: Array[Ints, "R"]
    rows: Array[Floats, "R", "K"]  # velocity rows over x
    row_cover: Array[Floats, "R"]  # their coefficient of z0
    row_bias: Array[Floats, "R"]  # their constant
    row_contact: Array[Ints, "R"]
    row_role: Array[Ints, "R"]  # NO_ROLE for the driven one
    y: Array[Floats, "R"]  # the unknowns
    rate: Array[Floats, "R"]  # and their rates as the driven quantity grows
    x: Array[Floats, "m"]
    x_rate: Array[Floats, "m"]
    residual: Array[Floats, "R"]
    product: Array[Floats, "R"]
    vector: Array[Floats, "K"]
    order: Array[Ints, "R"]  # of the pivots of an inversion
    now: Array[Ints, 4]  # number of unknowns; the driven row, its contact and quantity


layout(Contacts, "n", "K")
layout(Cells, "n")
layout(Basis, "n", "m", "K", R="min(m, 3 * n) + 4")  # rows = 0 are independent over x and z0: R <= m + 2, and 3 n + 2


# Products over the velocities that contacts touch. Free bodies have runs of six, and those are written out.


@in_callers
@sums
def run_dot(a, b, length):
    if length == 6:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]
    return dot(a, b, length)


@in_callers
@sums
def run_add(x, factor, a, length):
    if length == 6:
        x[0] += factor * a[0]
        x[1] += factor * a[1]
        x[2] += factor * a[2]
        x[3] += factor * a[3]
        x[4] += factor * a[4]
        x[5] += factor * a[5]
    else:
        for l in range(length):
            x[l] += factor * a[l]


@in_callers
@sums
def velocity_dot(vector, segment, x):
    length, more = segment[1], segment[3]
    total = run_dot(vector, x[segment[0] :], length)
    if more > 0:
        total += run_dot(vector[length:], x[segment[2] :], more)
    return total


@in_callers
@sums
def velocity_add(x, factor, vector, segment):
    length, more = segment[1], segment[3]
    run_add(x[segment[0] :], factor, vector, length)
    if more > 0:
        run_add(x[segment[2] :], factor, vector[length:], more)


@in_callers
@sums
def coupling(a, one, b, two):
    """a·b where the contacts share a run of velocities: runs are equal or disjoint."""
    total = 0.0
    if one[0] == two[0]:
        total += run_dot(a, b, min(one[1], two[1]))
    elif two[3] > 0 and one[0] == two[2]:
        total += run_dot(a, b[two[1] :], one[1])
    if one[3] > 0:
        if one[2] == two[0]:
            total += run_dot(a[one[1] :], b, one[3])
        elif two[3] > 0 and one[2] == two[2]:
            total += run_dot(a[one[1] :], b[two[1] :], one[3])
    return total


@in_callers
@sums
def combine(rows, i, normal, first, second, out):
    """out = normal n + first t1 + second t2 of contact i."""
    n, t1, t2 = rows[i, 0], rows[i, 1], rows[i, 2]
    for l in range(len(out)):
        out[l] = normal * n[l] + first * t1[l] + second * t2[l]


# The basis: rows come in place of the driven one, columns come with a driven one, and leave with it.


@in_callers
@sums
def impose(contacts, cells, basis, i, move):
    """The driven row gives way to the row of contact i that has vanished."""
    K, size, driven = basis.inverse, basis.now[SIZE], basis.now[ROW]
    normal, first, second = move.row_normal, move.row_first, move.row_second
    cover, bias, segments = contacts.cover[i], contacts.bias[i], contacts.segments
    total = normal * cover[0] + first * cover[1] + second * cover[2] + move.margin
    combine(contacts.rows, i, normal, first, second, basis.vector)
    product = basis.product
    for r in range(size):
        product[r] = total * K[0, r]
    for q in range(1, size):
        factor = coupling(basis.vector, segments[i], basis.columns[q], segments[basis.column_contact[q]])
        if factor != 0.0:
            for r in range(size):
                product[r] += factor * K[q, r]
    exchange_row(K, size, driven, product)
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
    column = basis.columns[size]
    combine(contacts.rows, i, move.column_normal, move.column_first, move.column_second, column)
    for r in range(size):
        basis.residual[r] = coupling(column, segments[i], basis.rows[r], segments[basis.row_contact[r]])
    times(K, basis.residual, size, basis.product)
    for q in range(size):
        K[q, size], K[size, q] = -basis.product[q], 0.0
    K[size, size] = 1.0
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
    if column != last:  # the last ones move into their places
        basis.y[column] = basis.y[last]
        for l in range(basis.columns.shape[1]):
            basis.columns[column, l] = basis.columns[last, l]
        basis.column_contact[column], basis.column_role[column] = basis.column_contact[last], basis.column_role[last]
        cells.column[basis.column_contact[column], basis.column_role[column]] = column
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


# Changes of variables inside one contact: the cell stays, its columns and rows are written in other terms.


@sums
def room_for_force(contacts, cells, basis, i, role, other):
    """The unknown p becomes μθ − p (− the other force, if any), or is had back from that."""
    K, size, mu = basis.inverse, basis.now[SIZE], contacts.friction[i]
    p, theta = cells.column[i, role], cells.column[i, NORMAL]
    for r in range(size):
        K[p, r] = mu * K[theta, r] - K[p, r]
    basis.y[p] = mu * basis.y[theta] - basis.y[p]
    if other != NO_ROLE:
        q = cells.column[i, other]
        for r in range(size):
            K[p, r] -= K[q, r]
        basis.y[p] -= basis.y[q]


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


# The transitions, one for each quantity of the table.


class Move(NamedTuple):
    """What a vanished velocity brings: its row = 0, and the column of the force that is driven next."""

    role: Any
    row_normal: Any
    row_first: Any
    row_second: Any
    margin: Any  # how much of z0 the row has beyond that of u
    column_normal: Any
    column_first: Any
    column_second: Any
    driven: Any


@in_callers
@kernel
def cross(contacts, cells, basis, quantity, i, which):
    """Move contact i to the cell on the other side of the quantity that vanished; False if the basis is full."""
    if is_force(quantity):
        if quantity == THETA:
            role, driven = open_up(cells, i)
        elif quantity == FIRST_FORCE:
            role, driven = release_first(contacts, cells, basis, i)
        elif quantity == SECOND_FORCE:
            role, driven = release_second(cells, i)
        else:
            role, driven = slip(contacts, cells, basis, i)
        leave(cells, basis, i, role)
    else:
        if basis.now[SIZE] == len(basis.y):
            return False
        if quantity == NU:
            move = close(contacts, cells, basis, i)
        elif quantity == SIGMA:
            move = grip(contacts, cells, i, which)
        elif quantity == TURN:
            move = turn(contacts, cells, i, which)
        else:
            move = stop(contacts, cells, i)
        impose(contacts, cells, basis, i, move)
        introduce(contacts, cells, basis, i, move)
        if quantity == LAMBDA:
            forces_for_room(contacts, cells, basis, i)
        driven = move.driven
    basis.now[CONTACT], basis.now[QUANTITY] = i, driven
    return True


@in_callers
@kernel
def close(contacts, cells, basis, i):
    """ν = 0: separated → free if the cover outweighs the sliding, else → vertex. θ is driven."""
    d, mu, cover = contacts.directions, contacts.friction[i], contacts.cover[i]
    cells.state[i], first, second = SMOOTH, 0.0, 0.0
    if mu > 0.0:
        z0, segment, bias = basis.y[0], contacts.segments[i], contacts.bias[i]
        u1 = velocity_dot(contacts.rows[i, 1], segment, basis.x) + bias[1] + cover[1] * z0
        u2 = velocity_dot(contacts.rows[i, 2], segment, basis.x) + bias[2] + cover[2] * z0
        b, lowest = 0, d[0, 0] * u1 + d[0, 1] * u2
        for j in range(1, len(d)):
            if d[j, 0] * u1 + d[j, 1] * u2 < lowest:
                b, lowest = j, d[j, 0] * u1 + d[j, 1] * u2
        cells.state[i], cells.direction[i] = FREE, b
        if -lowest > cover[3] * z0:
            cells.state[i], first, second = VERTEX, mu * d[b, 0], mu * d[b, 1]
    return Move(NORMAL, 1.0, 0.0, 0.0, 0.0, 1.0, first, second, THETA)


@in_callers
@kernel
def grip(contacts, cells, i, j):
    """σ_j = 0: free → line j, or line b → corner b,j. The force along d_j is driven."""
    first, second, margin = contacts.directions[j, 0], contacts.directions[j, 1], contacts.cover[i, 3]
    if cells.state[i] == FREE:
        cells.state[i], cells.direction[i] = LINE, j
        return Move(FIRST, 0.0, first, second, margin, 0.0, first, second, FIRST_FORCE)
    cells.state[i] = CORNER
    cells.side[i] = 1 if j == neighbour(cells.direction[i], 1, len(contacts.directions)) else -1
    return Move(SECOND, 0.0, first, second, margin, 0.0, first, second, SECOND_FORCE)


@in_callers
@kernel
def turn(contacts, cells, i, side):
    """(d_o − d_b)·u = 0: vertex b → edge b,o. ψ is driven."""
    d, b = contacts.directions, cells.direction[i]
    o = neighbour(b, side, len(d))
    first, second = d[o, 0] - d[b, 0], d[o, 1] - d[b, 1]
    cells.state[i], cells.side[i] = EDGE, side
    return Move(FIRST, 0.0, first, second, 0.0, 0.0, first, second, FIRST_FORCE)


@in_callers
@kernel
def stop(contacts, cells, i):
    """λ = 0: vertex b → line b, edge b,o → corner b,o. The room under the friction bound, along −d_b, is driven."""
    first, second = contacts.directions[cells.direction[i], 0], contacts.directions[cells.direction[i], 1]
    role = FIRST if cells.state[i] == VERTEX else SECOND
    cells.state[i] = LINE if role == FIRST else CORNER
    return Move(role, 0.0, first, second, contacts.cover[i, 3], 0.0, -first, -second, ROOM)


@kernel
def forces_for_room(contacts, cells, basis, i):
    """After `stop`: write the room, which is an unknown, and n + μ d_b in terms of the forces of a line or corner."""
    d, b, column = contacts.directions, cells.direction[i], cells.column[i]
    combine(contacts.rows, i, 1.0, 0.0, 0.0, basis.columns[column[NORMAL]])
    if cells.state[i] == LINE:
        room_for_force(contacts, cells, basis, i, FIRST, NO_ROLE)
    else:
        room_for_force(contacts, cells, basis, i, SECOND, FIRST)
        o = neighbour(b, cells.side[i], len(d))
        combine(contacts.rows, i, 0.0, d[o, 0], d[o, 1], basis.columns[column[FIRST]])
        add_to_row(cells, basis, i, FIRST, 1.0, SECOND)  # (σ_o − σ_b) + σ_b
        exchange_roles(cells, basis, i)
    combine(contacts.rows, i, 0.0, d[b, 0], d[b, 1], basis.columns[column[FIRST]])


@in_callers
@kernel
def open_up(cells, i):
    """θ = 0: → separated. ν is driven."""
    cells.state[i] = SEPARATED
    return NORMAL, NU


@in_callers
@kernel
def release_first(contacts, cells, basis, i):
    """p_b = 0: line b → free, corner b,o → line o, σ_b is driven. ψ = 0: edge b,o → vertex b, (d_o − d_b)·u is."""
    if cells.state[i] == CORNER:
        cells.direction[i] = neighbour(cells.direction[i], cells.side[i], len(contacts.directions))
        exchange_roles(cells, basis, i)
        return release_second(cells, i)
    if cells.state[i] == LINE:
        cells.state[i] = FREE
        return FIRST, SIGMA
    cells.state[i] = VERTEX
    return FIRST, TURN


@in_callers
@kernel
def release_second(cells, i):
    """p_o = 0: corner b,o → line b. σ_o is driven."""
    cells.state[i] = LINE
    return SECOND, SIGMA


@kernel
def slip(contacts, cells, basis, i):
    """No room is left: line b → vertex b, corner b,o → edge b,o, λ is driven; edge b,o → vertex o, (d_b − d_o)·u is."""
    d, mu, b, state, column = (
        contacts.directions,
        contacts.friction[i],
        cells.direction[i],
        cells.state[i],
        cells.column[i],
    )
    o = neighbour(b, cells.side[i], len(d))
    room_for_force(contacts, cells, basis, i, FIRST, SECOND if state == CORNER else NO_ROLE)
    if state == EDGE:
        b = o
        cells.direction[i] = o
    combine(contacts.rows, i, 1.0, mu * d[b, 0], mu * d[b, 1], basis.columns[column[NORMAL]])
    if state == CORNER:
        combine(contacts.rows, i, 0.0, d[o, 0] - d[b, 0], d[o, 1] - d[b, 1], basis.columns[column[SECOND]])
        add_to_row(cells, basis, i, SECOND, -1.0, FIRST)  # σ_o − σ_b
    negate_row(cells, basis, i, FIRST)  # λ = −σ_b
    if state == CORNER:
        exchange_roles(cells, basis, i)
        cells.state[i] = EDGE
        return SECOND, LAMBDA
    cells.state[i] = VERTEX
    return FIRST, LAMBDA if state == LINE else TURN


@in_callers
@kernel
def neighbour(j, side, count):
    k = j + side
    if k == count:
        return 0
    return count - 1 if k < 0 else k


@in_callers
@kernel
def is_force(quantity):
    return quantity in (THETA, FIRST_FORCE, SECOND_FORCE, ROOM)


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
    room = contacts.friction[i] * y[column[NORMAL]] - y[column[FIRST]]
    return room - y[column[SECOND]] if cells.state[i] == CORNER else room


@kernel
def impulses(contacts, cells, y, out):
    """(n, 3) impulses of the cells, kept inside the pyramid."""
    d = contacts.directions
    for i in range(len(out)):
        state, column = cells.state[i], cells.column[i]
        out[i, 0] = out[i, 1] = out[i, 2] = 0.0
        if state == SEPARATED:
            continue
        theta = max(y[column[NORMAL]], 0.0)
        out[i, 0] = theta
        if state in (SMOOTH, FREE):
            continue
        b, bound = cells.direction[i], contacts.friction[i] * theta
        p_b, p_o = bound, 0.0
        if state == LINE:
            p_b = min(max(y[column[FIRST]], 0.0), bound)
        elif state == EDGE:
            p_o = min(max(y[column[FIRST]], 0.0), bound)
            p_b = bound - p_o
        elif state == CORNER:
            p_b, p_o = max(y[column[FIRST]], 0.0), max(y[column[SECOND]], 0.0)
        o = neighbour(b, cells.side[i], len(d)) if state in (EDGE, CORNER) else b
        out[i, 1] = p_b * d[b, 0] + p_o * d[o, 0]
        out[i, 2] = p_b * d[b, 1] + p_o * d[o, 1]

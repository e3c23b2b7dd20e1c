"""From cell to cell: one crossing for each watched quantity of the table in `cells`.

A crossing changes the state of the contact, and returns the row or column that joins or leaves the basis and the
quantity that is driven next.
"""

from __future__ import annotations

from stiction.arrays.compiled import in_callers, kernel
from stiction.solvers.contact.cell_lemke.basis import (
    Move,
    add_lift,
    add_to_row,
    exchange_roles,
    impose,
    introduce,
    leave,
    negate_row,
    room_for_force,
    set_normal_column,
)
from stiction.solvers.contact.cell_lemke.cells import (
    CELLS,
    CONTACT,
    CORNER,
    EDGE,
    FIRST,
    FIRST_FORCE,
    FREE,
    INACTIVE,
    LAMBDA,
    LINE,
    NO_ROLE,
    NORMAL,
    NU,
    QUANTITY,
    ROOM,
    SECOND,
    SECOND_FORCE,
    SEPARATED,
    SIGMA,
    SIZE,
    SLIDING,
    SMOOTH,
    THETA,
    TURN,
    VERTEX,
    is_force,
    neighbour,
)
from stiction.solvers.contact.cell_lemke.runs import combine, velocity_dot
from stiction.solvers.contact.cell_lemke.tolerances import COVER_GROWTH


@in_callers
@kernel
def cross(contacts, cells, basis, quantity, i, which):
    """Move contact i to the cell on the other side of the quantity that vanished; False if the basis is full."""
    if is_force(quantity):
        # A force leaves the unknowns, and the velocity along it is driven.
        if quantity == THETA:
            role, driven = open_up(contacts, cells, i)
        elif quantity == FIRST_FORCE:
            role, driven = release_first(contacts, cells, basis, i)
        elif quantity == SECOND_FORCE:
            role, driven = release_second(cells, i)
        else:
            role, driven = slip(contacts, cells, basis, i)
        leave(cells, basis, i, role)
        if quantity == THETA:
            cells.column[i, NORMAL] = INACTIVE
    else:
        # A velocity stays zero from now on, and the force along it is driven.
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

    # What is driven next.
    basis.now[CONTACT], basis.now[QUANTITY] = i, driven
    return True


# Velocities that vanish


@in_callers
@kernel
def close(contacts, cells, basis, i):
    """ν = 0: θ is driven. A contact that has no friction yet gets it."""
    d, mu, first, second = contacts.directions, contacts.friction[i], 0.0, 0.0
    if cells.state[i] <= SMOOTH:
        cells.state[i] = SMOOTH
        if mu > 0.0:
            begin_friction(contacts, cells, basis, i)
    # A sliding contact has its friction in the column of θ.
    if cells.state[i] >= VERTEX:
        b = cells.direction[i]
        first, second = mu * d[b, 0], mu * d[b, 1]
    return Move(NORMAL, (1.0, 0.0, 0.0), 0.0, (1.0, first, second), THETA)


@in_callers
@kernel
def begin_friction(contacts, cells, basis, i):
    """→ free if c_σ z0 outweighs the sliding; else → vertex, or c_σ grows until it does [Lloyd2004, eq. 59]."""
    d, z0, segment = contacts.directions, basis.y[0], contacts.segments[i]
    bias, cover = contacts.bias[i], contacts.cover[i]
    u1 = velocity_dot(contacts.rows[i, 1], segment, basis.x) + bias[1] + cover[1] * z0
    u2 = velocity_dot(contacts.rows[i, 2], segment, basis.x) + bias[2] + cover[2] * z0
    # The direction most opposed to the sliding.
    b, lowest = 0, d[0, 0] * u1 + d[0, 1] * u2
    for j in range(1, len(d)):
        if d[j, 0] * u1 + d[j, 1] * u2 < lowest:
            b, lowest = j, d[j, 0] * u1 + d[j, 1] * u2
    # Where it slides too fast for its cover, either the state or the cover must give way.
    cells.state[i], cells.direction[i] = FREE, b
    if -lowest > cover[SLIDING] * z0:
        if contacts.method == CELLS:
            cells.state[i] = VERTEX
        else:
            cover[SLIDING] = -lowest / z0 * COVER_GROWTH * cover[0]  # times c_n, so that no two contacts are alike


@in_callers
@kernel
def grip(contacts, cells, i, j):
    """σ_j = 0: free → line j, or line b → corner b,j. The force along d_j is driven."""
    along, margin = (0.0, contacts.directions[j, 0], contacts.directions[j, 1]), contacts.cover[i, SLIDING]
    if cells.state[i] == FREE:
        cells.state[i], cells.direction[i] = LINE, j
        return Move(FIRST, along, margin, along, FIRST_FORCE)
    cells.state[i] = CORNER
    cells.side[i] = 1 if j == neighbour(cells.direction[i], 1, len(contacts.directions)) else -1
    return Move(SECOND, along, margin, along, SECOND_FORCE)


@in_callers
@kernel
def turn(contacts, cells, i, side):
    """(d_o − d_b)·u = 0: vertex b → edge b,o. ψ is driven."""
    d, b = contacts.directions, cells.direction[i]
    o = neighbour(b, side, len(d))
    along = 0.0, d[o, 0] - d[b, 0], d[o, 1] - d[b, 1]
    cells.state[i], cells.side[i] = EDGE, side
    return Move(FIRST, along, 0.0, along, FIRST_FORCE)


@in_callers
@kernel
def stop(contacts, cells, i):
    """λ = 0: vertex b → line b, edge b,o → corner b,o. The room under the friction bound, along −d_b, is driven."""
    first, second = contacts.directions[cells.direction[i], 0], contacts.directions[cells.direction[i], 1]
    role = FIRST if cells.state[i] == VERTEX else SECOND
    cells.state[i] = LINE if role == FIRST else CORNER
    return Move(role, (0.0, first, second), contacts.cover[i, SLIDING], (0.0, -first, -second), ROOM)


@kernel
def forces_for_room(contacts, cells, basis, i):
    """After `stop`: write the room, which is an unknown, and n + μ d_b in terms of the forces of a line or corner."""
    d, b, column = contacts.directions, cells.direction[i], cells.column[i]
    set_normal_column(contacts, cells, basis, i, 0.0, 0.0)
    add_lift(contacts, basis, i, b, -1.0)
    if cells.state[i] == LINE:
        room_for_force(contacts, cells, basis, i, FIRST, NO_ROLE)
    else:
        # ψ along d_o − d_b is the force along d_o, and becomes the second one.
        room_for_force(contacts, cells, basis, i, SECOND, FIRST)
        o = neighbour(b, cells.side[i], len(d))
        combine(contacts.rows, i, (0.0, d[o, 0], d[o, 1]), basis.columns[column[FIRST]])
        add_to_row(cells, basis, i, FIRST, 1.0, SECOND)  # (σ_o − σ_b) + σ_b
        exchange_roles(cells, basis, i)
    combine(contacts.rows, i, (0.0, d[b, 0], d[b, 1]), basis.columns[column[FIRST]])


# Forces that vanish


@in_callers
@kernel
def open_up(contacts, cells, i):
    """θ = 0: ν is driven. In the cells the contact is separated; else its friction goes on."""
    if contacts.method == CELLS:
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
    d, mu, b, state = contacts.directions, contacts.friction[i], cells.direction[i], cells.state[i]
    o = neighbour(b, cells.side[i], len(d))
    # The room replaces p_b as the unknown, and leaves; the force along d_b is now part of the columns of θ and z0.
    room_for_force(contacts, cells, basis, i, FIRST, SECOND if state == CORNER else NO_ROLE)
    if state == EDGE:
        add_lift(contacts, basis, i, b, -1.0)
        b = o
        cells.direction[i] = o
    add_lift(contacts, basis, i, b, 1.0)
    set_normal_column(contacts, cells, basis, i, mu * d[b, 0], mu * d[b, 1])
    # The second force of a corner becomes ψ along d_o − d_b.
    if state == CORNER:
        along = 0.0, d[o, 0] - d[b, 0], d[o, 1] - d[b, 1]
        combine(contacts.rows, i, along, basis.columns[cells.column[i, SECOND]])
        add_to_row(cells, basis, i, SECOND, -1.0, FIRST)  # σ_o − σ_b
    # λ = −σ_b; of an edge it is (d_b − d_o)·u, since its b has changed.
    negate_row(cells, basis, i, FIRST)
    if state == CORNER:
        exchange_roles(cells, basis, i)
        cells.state[i] = EDGE
        return SECOND, LAMBDA
    cells.state[i] = VERTEX
    return FIRST, LAMBDA if state == LINE else TURN

"""The almost complementary basis of the contact LCP, with everything eliminated that can be [Lloyd2004, §5.1, app. A].

The pairs of contact i are (ν, θ), (σ_j, φ_j) for its d directions and (γ, λ); see `problems.pyramid` for their
meaning. With the artificial variable z0 and a cover c > 0,

    ν = n·u,      σ_j = d_j·u + λ + c_σ z0,      γ = μ θ - Σ φ_j + c_γ z0,      u = rows x + bias + (c_n, c_t) z0

(c_t, the same for all directions of a contact, only breaks ties). At most two σ_j of a contact vanish at once
[Lloyd2004, app. B], and those are neighbours; if λ is basic, one does [app. C]. So a contact has one of these forms,
and θ is basic (the contact is active) or not independently of it:

    form        basic z       columns                    rows = 0             watched >= 0 besides ν or θ
    smooth      –             n                          n                    –                (μ = 0, not expanded)
    free        –             n                          n                    all σ_j
    line b      φ_b           n, d_b                     n, σ_b               φ_b; γ; σ_{b±1}
    corner b,o  φ_b, φ_o      n, d_b, d_o                n, σ_b, σ_o          φ_b; φ_o; γ
    vertex b    φ_b, λ        n + μ d_b                  n                    λ; σ_{b±1}
    edge b,o    φ_b, φ_o, λ   n + μ d_b, d_o - d_b       n, σ_o - σ_b         φ_o; φ_b; λ

In vertex and edge φ_x = φ_b is eliminated by γ = 0 [eq. 38] and λ by σ_b = 0 [eq. 41]: the columns n and row n are N*
and N, d_o - d_b is D* [eq. 28]; and z0 gets a column of its own, the sum of c_γ d_b over these contacts, which is c*
[eq. 39] and named `lift` here. The rows and columns left form the matrix of eq. 42, 44 or 47; its last row is the
driven variable, or the one whose complement is driven: ν (a velocity row, eq. 42), σ or λ = -σ_b (eq. 44), or γ (a row
over forces, eq. 47). A force that is driven comes with its column, and its own value as the row; so the direction of
each step is one column of the inverse [eq. 20 and 21 alike].

Hence its size is at most the number of velocities plus two, whatever n and d are. A pivot is: the variable that
vanished names its contact, which changes its form; a change of form is a change of variables inside the contact
(p = μ θ + c_γ z0 - p', exact up to rounding), and one rank-one update with the pivot element of Lemke's method.

Extending [Lloyd2004, §5.3, app. D]: a contact is smooth until it first becomes active. Then it becomes free, with c_σ
grown so far that no σ_j is negative; γ = c_γ z0 is not.
"""

from __future__ import annotations

from stiction.compiled import in_callers, kernel, sums
from stiction.linear import invert
from stiction.solvers.cell_lemke.cells import (
    CONTACT,
    CORNER,
    EDGE,
    FIRST,
    FIRST_FORCE,
    FREE,
    LAMBDA,
    LINE,
    NO_ROLE,
    NORMAL,
    NU,
    QUANTITY,
    ROW,
    SECOND,
    SECOND_FORCE,
    SIGMA,
    SIZE,
    SMOOTH,
    THETA,
    VERTEX,
    Move,
    add_to_row,
    combine,
    coupling,
    exchange_roles,
    grip,
    introduce,
    is_force,
    leave,
    negate_row,
    neighbour,
    release_first,
    release_second,
    stop,
    turn,
    velocity_add,
    velocity_dot,
)
from stiction.solvers.lcp.basis_inverse import exchange_row

INACTIVE = -1  # the place of θ's column if θ is not basic
GROWTH = 2.0  # a cover that must grow becomes about so many times what is needed


@in_callers
@kernel
def pivot(contacts, cells, basis, lift, quantity, i, which):
    """The variable that vanished leaves the basis, its complement is driven next; False if the basis is full."""
    if is_force(quantity):
        if quantity == THETA:
            role, driven = NORMAL, NU
        elif quantity == FIRST_FORCE:
            role, driven = release_first(contacts, cells, basis, i)
        elif quantity == SECOND_FORCE:
            role, driven = release_second(cells, i)
        else:
            role, driven = eliminate(contacts, cells, basis, lift, i)
        leave(cells, basis, i, role)
        if quantity == THETA:
            cells.column[i, NORMAL] = INACTIVE
    else:
        if basis.now[SIZE] == len(basis.y):
            return False
        if quantity == NU:
            move = activate(contacts, cells, basis, i)
        elif quantity == SIGMA:
            move = grip(contacts, cells, i, which)
        elif quantity == LAMBDA:
            move = stop(contacts, cells, i)
        else:
            move = turn(contacts, cells, i, which)
        impose(contacts, cells, basis, lift, i, move)
        introduce(contacts, cells, basis, i, move)
        if quantity == LAMBDA:
            restore(contacts, cells, basis, lift, i)
        driven = move.driven
    basis.now[CONTACT], basis.now[QUANTITY] = i, driven
    return True


@in_callers
@kernel
def activate(contacts, cells, basis, i):
    """ν = 0: θ is driven. The first time, the contact gets its friction."""
    d, mu, first, second = contacts.directions, contacts.friction[i], 0.0, 0.0
    if cells.state[i] == SMOOTH:
        if mu > 0.0:
            expand(contacts, cells, basis, i)
    elif cells.state[i] == VERTEX or cells.state[i] == EDGE:
        b = cells.direction[i]
        first, second = mu * d[b, 0], mu * d[b, 1]
    return Move(NORMAL, 1.0, 0.0, 0.0, 0.0, 1.0, first, second, THETA)


@in_callers
@kernel
def expand(contacts, cells, basis, i):
    """σ and γ of contact i join the basis; c_σ grows if it must [Lloyd2004, eq. 59]."""
    d, z0, segment, bias, cover = (
        contacts.directions,
        basis.y[0],
        contacts.segments[i],
        contacts.bias[i],
        contacts.cover[i],
    )
    u1 = velocity_dot(contacts.rows[i, 1], segment, basis.x) + bias[1] + cover[1] * z0
    u2 = velocity_dot(contacts.rows[i, 2], segment, basis.x) + bias[2] + cover[2] * z0
    lowest = 0.0
    for j in range(len(d)):
        lowest = min(lowest, d[j, 0] * u1 + d[j, 1] * u2)
    if -lowest > cover[3] * z0:
        cover[3] = -lowest / z0 * GROWTH * cover[0]  # c_n, in [1, 2], so that no two contacts are alike
    cells.state[i] = FREE


@in_callers
@kernel
def eliminate(contacts, cells, basis, lift, i):
    """γ = 0: line b → vertex b, corner b,o → edge b,o, λ is driven. φ_b = 0: edge b,o → vertex o, σ_b is."""
    d, state, b = contacts.directions, cells.state[i], cells.direction[i]
    o = neighbour(b, cells.side[i], len(d))
    room_for_force(contacts, cells, basis, i, FIRST, SECOND if state == CORNER else NO_ROLE)
    if state == EDGE:
        lift_by(contacts, lift, i, b, -1.0)
        b = o
        cells.direction[i] = o
    lift_by(contacts, lift, i, b, 1.0)
    set_normal_column(contacts, cells, basis, i, contacts.friction[i] * d[b, 0], contacts.friction[i] * d[b, 1])
    if state == CORNER:
        combine(contacts.rows, i, 0.0, d[o, 0] - d[b, 0], d[o, 1] - d[b, 1], basis.columns[cells.column[i, SECOND]])
        add_to_row(cells, basis, i, SECOND, -1.0, FIRST)  # σ_o - σ_b
    negate_row(cells, basis, i, FIRST)  # λ = -σ_b
    if state == CORNER:
        exchange_roles(cells, basis, i)
        cells.state[i] = EDGE
        return SECOND, LAMBDA
    cells.state[i] = VERTEX
    return FIRST, LAMBDA if state == LINE else SIGMA


@in_callers
@kernel
def restore(contacts, cells, basis, lift, i):
    """After λ = 0, vertex b → line b, edge b,o → corner b,o: γ, which is driven, gives way to φ_b as an unknown."""
    d, b, column = contacts.directions, cells.direction[i], cells.column[i]
    set_normal_column(contacts, cells, basis, i, 0.0, 0.0)
    lift_by(contacts, lift, i, b, -1.0)
    if cells.state[i] == LINE:
        room_for_force(contacts, cells, basis, i, FIRST, NO_ROLE)
    else:
        room_for_force(contacts, cells, basis, i, SECOND, FIRST)
        o = neighbour(b, cells.side[i], len(d))
        combine(contacts.rows, i, 0.0, d[o, 0], d[o, 1], basis.columns[column[FIRST]])
        add_to_row(cells, basis, i, FIRST, 1.0, SECOND)  # (σ_o - σ_b) + σ_b
        exchange_roles(cells, basis, i)
    combine(contacts.rows, i, 0.0, d[b, 0], d[b, 1], basis.columns[column[FIRST]])


@in_callers
@kernel
def set_normal_column(contacts, cells, basis, i, first, second):
    if cells.column[i, NORMAL] != INACTIVE:
        combine(contacts.rows, i, 1.0, first, second, basis.columns[cells.column[i, NORMAL]])


@in_callers
@sums
def lift_by(contacts, lift, i, j, sign):
    """c* gains or loses c_γ d_j of contact i."""
    d, factor = contacts.directions, sign * contacts.cover[i, 4]
    velocity_add(lift, factor * d[j, 0], contacts.rows[i, 1], contacts.segments[i])
    velocity_add(lift, factor * d[j, 1], contacts.rows[i, 2], contacts.segments[i])


@in_callers
@sums
def room_for_force(contacts, cells, basis, i, role, other):
    """The unknown p becomes μ θ + c_γ z0 - p (- the other force, if any), or is had back from that [eq. 38]."""
    K, y, size, mu, cover = basis.inverse, basis.y, basis.now[SIZE], contacts.friction[i], contacts.cover[i, 4]
    p, theta = cells.column[i, role], cells.column[i, NORMAL]
    for r in range(size):
        K[p, r] = cover * K[0, r] - K[p, r]
    y[p] = cover * y[0] - y[p]
    if theta != INACTIVE:
        for r in range(size):
            K[p, r] += mu * K[theta, r]
        y[p] += mu * y[theta]
    if other != NO_ROLE:
        q = cells.column[i, other]
        for r in range(size):
            K[p, r] -= K[q, r]
        y[p] -= y[q]


@in_callers
@sums
def impose(contacts, cells, basis, lift, i, move):
    """The driven row gives way to the row of contact i that has vanished."""
    K, size, driven = basis.inverse, basis.now[SIZE], basis.now[ROW]
    normal, first, second = move.row_normal, move.row_first, move.row_second
    cover, bias, segments = contacts.cover[i], contacts.bias[i], contacts.segments
    total = normal * cover[0] + first * cover[1] + second * cover[2] + move.margin
    combine(contacts.rows, i, normal, first, second, basis.vector)
    product = basis.product
    with_lift = total + velocity_dot(basis.vector, segments[i], lift)
    for r in range(size):
        product[r] = with_lift * K[0, r]
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


@kernel
def rebuild(contacts, cells, basis, lift):
    """The inverse from the rows and columns [Lloyd2004, eq. 42, 44, 47]; False if they are singular."""
    K, size, driven = basis.inverse, basis.now[SIZE], basis.now[ROW]
    for l in range(len(lift)):
        lift[l] = 0.0
    for i in range(len(cells.state)):
        if cells.state[i] >= VERTEX:
            lift_by(contacts, lift, i, cells.direction[i], 1.0)
    for r in range(size):
        segment = contacts.segments[basis.row_contact[r]]
        K[r, 0] = basis.row_cover[r] + velocity_dot(basis.rows[r], segment, lift)
        for q in range(1, size):
            K[r, q] = coupling(
                basis.rows[r], segment, basis.columns[q], contacts.segments[basis.column_contact[q]]
            )  # fmt: skip
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
    """The driven variable, a force or γ, from unknowns or rates y."""
    i, quantity = basis.now[CONTACT], basis.now[QUANTITY]
    column = cells.column[i]
    if quantity == THETA:
        return y[column[NORMAL]]
    if quantity == FIRST_FORCE:
        return y[column[FIRST]]
    if quantity == SECOND_FORCE:
        return y[column[SECOND]]
    room = bound_of(contacts, cells, y, i) - y[column[FIRST]]
    return room - y[column[SECOND]] if cells.state[i] == CORNER else room


@in_callers
@kernel
def bound_of(contacts, cells, y, i):
    """μ θ + c_γ z0: what the forces of contact i may sum up to."""
    theta, bound = cells.column[i, NORMAL], contacts.cover[i, 4] * y[0]
    return bound if theta == INACTIVE else bound + contacts.friction[i] * y[theta]


@kernel
def impulses(contacts, cells, y, out):
    """(n, 3) impulses of the active contacts, kept inside the pyramid."""
    d = contacts.directions
    for i in range(len(out)):
        state, column = cells.state[i], cells.column[i]
        out[i, 0] = out[i, 1] = out[i, 2] = 0.0
        if column[NORMAL] == INACTIVE:
            continue
        theta = max(y[column[NORMAL]], 0.0)
        out[i, 0] = theta
        if state <= FREE:
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

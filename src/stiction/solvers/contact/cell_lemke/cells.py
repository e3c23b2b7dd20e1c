"""The cells of a contact under pyramid friction, and the records of a path through them.

A contact's impulse is θ n + p_b d_b + p_o d_o: its normal and at most two neighbouring directions of the pyramid. Its
cell decides which of these are unknown, which velocities vanish, and which quantities must stay positive:

    state       columns              rows = 0               watched >= 0
    separated   –                    –                      ν
    smooth      n                    n                      θ                                            (μ = 0)
    free        n                    n                      θ; all σ_j = d_j·u + c_σ z0
    line b      n, d_b               n, σ_b                 p_b; μθ − p_b; σ_{b±1}
    corner b,o  n, d_b, d_o          n, σ_b, σ_o            p_b; p_o; μθ − p_b − p_o
    vertex b    n + μ d_b            n                      θ; (d_{b±1} − d_b)·u; λ = −d_b·u − c_σ z0
    edge b,o    n + μ d_b, d_o − d_b n, (d_o − d_b)·u       ψ; μθ − ψ; λ

u is the contact velocity plus c z0, ν its normal part, o = b ± 1. A watched quantity that vanishes moves the contact to
a neighbouring cell, and its counterpart (force for velocity, velocity for force) is driven next. Three methods follow
the same path through these cells, and differ in when the friction of a contact takes part:

    cells        while it is closed; the friction bound μθ has no cover
    reduced      from its first closing on, also while it is open again [Lloyd2004, §5.3, app. D]
    structural   always [Lloyd2004, §5.1, app. A]

In Lloyd's two the state describes the friction alone. Whether θ is an unknown does not depend on it, the bound is
μθ + c_γ z0, and θ is watched in every state.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import Any, NamedTuple

from stiction.arrays.compiled import in_callers, kernel
from stiction.arrays.layout import Floats, Ints, layout

CELLS, REDUCED, STRUCTURAL = range(3)  # methods
SEPARATED, SMOOTH, FREE, LINE, CORNER, VERTEX, EDGE = range(7)  # states
NU, THETA, SIGMA, FIRST_FORCE, SECOND_FORCE, ROOM, TURN, LAMBDA = range(8)  # watched quantities
NORMAL, FIRST, SECOND, NO_ROLE = *range(3), -1  # roles of a contact's columns and rows
INACTIVE = -1  # the place of θ's column if θ is not an unknown
SIZE, ROW, CONTACT, QUANTITY = range(4)  # fields of `Basis.now`
SLIDING, BOUND = range(3, 5)  # places of c_σ and c_γ in a contact's cover


class Contacts(NamedTuple):
    """The problem, in normal form: x = free + sum_i rows_iᵀ p_i, u_i = rows_i x + bias_i."""

    rows: Any  # (n, 3, K)
    segments: Any  # (n, 4)
    free: Any  # (m,)
    bias: Any  # (n, 3)
    friction: Any  # (n,)
    directions: Any  # (d, 2) of the pyramid, in the plane of the tangents
    method: Any  # CELLS, REDUCED or STRUCTURAL
    cover: Array[Floats, "n", 5]  # c along n, t1, t2, then c_σ and c_γ
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

    inverse: Array[Floats, "R", "R"]  # a row for each unknown, a column for each row of the table
    columns: Array[Floats, "R", "K"]  # what a unit of each unknown adds to x
    column_contact: Array[Ints, "R"]
    column_role: Array[Ints, "R"]
    lift: Array[Floats, "m"]  # what a unit of z0 adds to x: c* of [Lloyd2004, eq. 39]; zero in the cells
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


@in_callers
@kernel
def neighbour(j, side, count):
    """The direction after (side 1) or before (side -1) direction j of the pyramid."""
    k = j + side
    if k == count:
        return 0
    return count - 1 if k < 0 else k


@in_callers
@kernel
def is_force(quantity):
    return quantity in (THETA, FIRST_FORCE, SECOND_FORCE, ROOM)

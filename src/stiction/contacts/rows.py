"""Jacobian rows as MuJoCo lays them out, cut to the kinematic trees that they touch.

MuJoCo writes one row for each equality, friction loss and limit, in this order, then n, t1, t2 of each contact; dense
over all velocities, or compressed. A row of ours holds the velocities of one or two whole trees, given by `segments`
(start, length, start, length); a second length of 0 means that there is only one. Trees whose mass is one block
(`bodies.dynamics`) count as one, known by the first of them. A bilateral row over more than two trees has one segment
from the first of them to the last.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.bodies.dynamics import block_of
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import JOINED

SPARSE, AUTO = 1, 2  # mjJAC_SPARSE, mjJAC_AUTO
SPARSE_FROM = 60  # velocities from which AUTO means SPARSE
TOO_MANY = -2  # a row that touches more than two trees
FRICTION_OF_VELOCITY, LIMIT_OF_JOINT = 1, 3  # mjCNSTR_FRICTION_DOF, mjCNSTR_LIMIT_JOINT


@kernel
def is_sparse(model):
    """Whether MuJoCo stores the Jacobian compressed."""
    m = model[0]
    return m.jacobian == SPARSE or (m.jacobian == AUTO and m.nv >= SPARSE_FROM)


@kernel
def trees_of_row(model, data, where, row):
    """The trees that a row touches: (-1, -1) none, (t, -1) one, (t, s) two with t < s, (TOO_MANY, -1) more."""
    m, d = model[0], data[0]
    tree, J = ints(m.dof_treeid), floats(d.efc_J)

    # A joint is in one tree.
    kind, own = ints(d.efc_type)[row], ints(d.efc_id)[row]
    if kind in (FRICTION_OF_VELOCITY, LIMIT_OF_JOINT):
        return leader(where, tree[own if kind == FRICTION_OF_VELOCITY else ints(m.jnt_dofadr)[own]]), -1

    # Where the row's entries are, in either layout.
    sparse = is_sparse(model)
    if sparse:
        place, count, columns = ints(d.efc_J_rowadr)[row], ints(d.efc_J_rownnz)[row], ints(d.efc_J_colind)
    else:
        place, count, columns = row * m.nv, m.nv, ints(d.efc_J_colind)

    # Collect the distinct trees of its nonzero entries.
    first, second = -1, -1
    for e in range(count):
        if J[place + e] == 0.0:
            continue
        t = leader(where, tree[columns[place + e]] if sparse else tree[e])
        if t in (first, second):
            continue
        if first < 0:
            first = t
        elif second < 0:
            second = t
        else:
            return TOO_MANY, -1

    # In increasing order, so that equal pairs of trees get equal segments.
    if second >= 0 and second < first:
        first, second = second, first
    return first, second


@kernel
def segments_of_row(model, data, where, row, segment):
    """Write the velocity ranges of the trees that a bilateral row touches."""
    m = model[0]
    first, second = trees_of_row(model, data, where, row)
    if first != TOO_MANY:
        segment[0], segment[1] = segment_of(model, where, first)
        segment[2], segment[3] = segment_of(model, where, second)
        return

    # From the first tree with an entry to the last.
    tree, J = ints(m.dof_treeid), floats(data[0].efc_J)
    first, last = m.ntree, -1
    for k in range(m.nv):
        if entry_of_row(model, data, row, k, J) != 0.0:
            first, last = min(first, tree[k]), max(last, tree[k])
    start, _ = segment_of(model, where, leader(where, first))
    begin, length = segment_of(model, where, leader(where, last))
    segment[0], segment[1], segment[2], segment[3] = start, begin + length - start, 0, 0


@kernel
def entry_of_row(model, data, row, column, J):
    """An entry of one of MuJoCo's rows, in either layout."""
    m, d = model[0], data[0]
    if not is_sparse(model):
        return J[row * m.nv + column]
    columns, place = ints(d.efc_J_colind), ints(d.efc_J_rowadr)[row]
    for e in range(place, place + ints(d.efc_J_rownnz)[row]):
        if columns[e] == column:
            return J[e]
    return 0.0


@kernel
def leader(where, tree):
    """The first tree of a tree's block; -1, for none, stays -1."""
    if where[JOINED] > 0 and tree >= 0:
        return where[where[JOINED] + 3 * tree]
    return int(tree)


@kernel
def trees_of_contact(model, where, geom1, geom2):
    """The trees of two geoms in increasing order; a geom that cannot move belongs to none."""
    m = model[0]
    bodies, trees = ints(m.geom_bodyid), ints(m.body_treeid)
    first, second = leader(where, trees[bodies[geom1]]), leader(where, trees[bodies[geom2]])
    if first < 0 or first == second:
        return second, -1
    if second < 0:
        return first, -1
    return min(first, second), max(first, second)


@kernel
def segment_of(model, where, tree):
    """Start and length of the velocities of a block, by its first tree; (0, 0) for no tree."""
    if tree < 0:
        return 0, 0
    return block_of(model, where, tree)


@kernel
def copy_row(model, data, row, factor, segment, out):
    """Write a row of MuJoCo times a factor at the velocities of the segments; added velocities get zero."""
    m, d = model[0], data[0]
    J = floats(d.efc_J)
    start, length, other, more = segment[0], segment[1], segment[2], segment[3]

    # Compressed: a row with all velocities of both trees is copied as it is, others are scattered by column.
    if is_sparse(model):
        place, count, columns = ints(d.efc_J_rowadr)[row], ints(d.efc_J_rownnz)[row], ints(d.efc_J_colind)
        if count == length + more:  # all velocities of both trees, in their order
            for e in range(count):
                out[e] = factor * J[place + e]
        else:
            for e in range(length + more):
                out[e] = 0.0
            for e in range(place, place + count):
                column = columns[e]
                if start <= column < start + length:
                    out[column - start] = factor * J[e]
                elif other <= column < other + more:
                    out[length + column - other] = factor * J[e]
    else:
        # Dense: cut out both segments; a first segment behind MuJoCo's velocities belongs to dry friction.
        place = row * m.nv
        for e in range(length):
            out[e] = factor * J[place + start + e] if start < m.nv else 0.0
        for e in range(more):
            out[length + e] = factor * J[place + other + e]

    # Rows shorter than the widest one are padded.
    for e in range(length + more, len(out)):
        out[e] = 0.0


@kernel
def largest_entry(model, data, row, enough):
    """The largest entry of a MuJoCo row in absolute value; the search stops at one of at least `enough`."""
    m, d = model[0], data[0]
    J = floats(d.efc_J)
    if is_sparse(model):
        place, count = ints(d.efc_J_rowadr)[row], ints(d.efc_J_rownnz)[row]
    else:
        place, count = row * m.nv, m.nv
    largest = 0.0
    for e in range(place, place + count):
        largest = max(largest, abs(J[e]))
        if largest >= enough:
            break
    return largest

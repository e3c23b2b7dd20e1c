"""Mass and free velocity of a step, tree by tree.

    (M + dt D) (v_free - v) = dt f        f all forces but those of contacts and joints, D the derivative of dampers

MuJoCo's mass matrix is block diagonal: one block for each kinematic tree, six velocities for a free body. Trees that a
tendon couples in ways that no contact does are one block (`structs.joined_trees`), the first of them; the blocks of
the others are empty. Dampers of joints (their polynomials too, by their slope) and the velocity gains of actuators with
affine bias act at the end of the step, so stiff ones stay stable: D is added to the mass. In a tree without any, v_free
is MuJoCo's own.
Dry friction of a joint adds one velocity (see `contacts.gather`): blocks of size one follow those of the trees.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import back_substitute, forward_substitute, tree_factor
from stiction.bodies.pointers import flags, floats, ints
from stiction.bodies.structs import JOINED

AFFINE = 1  # mjBIAS_AFFINE
HINGE_OR_SLIDE = 2  # the first of mjJNT_SLIDE, mjJNT_HINGE
NO_DAMPERS, NO_ACTUATORS = 1 << 6, 1 << 11  # mjDSBL_DAMPER, mjDSBL_ACTUATION


class Damping(NamedTuple):
    """Scratch of `fill_blocks`, which leaves what it has factored."""

    slopes: Any  # (nv,) of the dampers
    factor: Any  # (entries,) of the blocks with dampers, as in `mass_factor.factor_left`; others begin with 0


@kernel
def block_of(model, where, tree):
    """Start and length of the velocities of a tree's block; length 0 if another tree leads it."""
    if where[JOINED] > 0:
        at = where[JOINED] + 3 * tree
        return where[at + 1], where[at + 2]
    m = model[0]
    return int(ints(m.tree_dofadr)[tree]), int(ints(m.tree_dofnum)[tree])


@kernel
def block_entries(model, where):
    """Return the number of entries of all mass blocks."""
    entries = 0
    for t in range(model[0].ntree):
        _, length = block_of(model, where, t)
        entries += length * length
    return entries


@kernel
def fill_blocks(model, data, where, starts, mass, free, scratch):
    """Write starts (ntree + 1,), blocks of M + dt D, and v_free of the trees; scratch: `Damping`."""
    # Dampers that are implicit in the velocity.
    m, d = model[0], data[0]
    velocity, smooth, force = floats(d.qvel), floats(d.qacc_smooth), floats(d.qfrc_smooth)
    dt = m.timestep
    slopes = scratch.slopes
    damper_slopes(model, data, slopes)
    place = 0

    # Assemble each tree's block: inertia, then the implicit dampers and velocity gains.
    for t in range(m.ntree):
        start, size = block_of(model, where, t)
        starts[t] = start
        block, factor = mass[place : place + size * size], scratch.factor[place : place + size * size]
        inertia_of_tree(model, data, start, size, block)
        damped = False
        for i in range(size):
            if slopes[start + i] != 0.0:
                damped = True
                block[i * size + i] += dt * slopes[start + i]
        if add_velocity_gains(model, data, start, size, block):
            damped = True

        # Only a tree with dampers needs a linear solve, (M + dt D) dv = dt f; otherwise MuJoCo's acceleration is used.
        failed = 0
        if damped:
            part = free[start : start + size]
            for i in range(size):
                part[i] = dt * force[start + i]
            failed = tree_factor(block, size, factor)
            back_substitute(factor, size, part)
            forward_substitute(factor, size, part)
            for i in range(size):
                part[i] += velocity[start + i]
        else:
            for i in range(start, start + size):
                free[i] = velocity[i] + dt * smooth[i]

        # Mark a block that has no factor yet.
        if size > 0 and failed >= 0:
            factor[0] = 0.0
        place += size * size

    # The last tree ends with the velocities.
    starts[m.ntree] = m.nv
    return place


@kernel
def inertia_of_tree(model, data, start, size, block):
    """Copy a block's inertia into a dense symmetric matrix; MuJoCo stores the lower triangle at the ancestors only."""
    m, d = model[0], data[0]
    counts, places, columns, M = ints(m.M_rownnz), ints(m.M_rowadr), ints(m.M_colind), floats(d.M)
    for e in range(size * size):
        block[e] = 0.0

    # Each entry of MuJoCo's sparse rows fills both triangles.
    for i in range(size):
        place = places[start + i]
        for e in range(place, place + counts[start + i]):
            j = columns[e] - start
            block[i * size + j] = M[e]
            block[j * size + i] = M[e]


@kernel
def damper_slopes(model, data, slopes):
    """Write d(a v + b v|v| + c v³)/dv of each velocity; an actuator's damper counts with its gear squared."""
    m, d = model[0], data[0]
    linear, higher, joints = floats(m.dof_damping), floats(m.dof_dampingpoly), ints(m.dof_jntid)
    kinds, driver, outputs = ints(m.jnt_type), ints(m.jnt_actuatorid), ints(m.actuator_outadr)
    gear, own, own_higher = floats(m.actuator_gear), floats(m.actuator_damping), floats(m.actuator_dampingpoly)
    velocity = floats(d.qvel)
    disabled = m.disableflags & NO_DAMPERS != 0
    for i in range(m.nv):
        slopes[i] = 0.0
        if disabled:
            continue
        a, b, c = linear[i], higher[2 * i], higher[2 * i + 1]

        # The actuator that drives a hinge or slide adds its own damper.
        joint = joints[i]
        u = driver[joint]
        if u >= 0 and kinds[joint] >= HINGE_OR_SLIDE:
            square = gear[6 * outputs[u]] ** 2
            a += square * own[u]
            b += square * own_higher[2 * u]
            c += square * own_higher[2 * u + 1]

        # The linear term needs no velocity; the polynomial adds its slope at the present speed.
        slopes[i] = a
        if b != 0.0 or c != 0.0:
            speed = abs(velocity[i])
            slopes[i] += 2.0 * b * speed + 3.0 * c * speed * speed


@kernel
def add_velocity_gains(model, data, start, size, block):
    """Add dt k_v gᵀg of each actuator on this tree, g its moment; a saturated actuator has zero slope. True if any."""
    m, d = model[0], data[0]
    kinds, terms = ints(m.actuator_biastype), floats(m.actuator_biasprm)
    limited, ranges, force = flags(m.actuator_forcelimited), floats(m.actuator_forcerange), floats(d.actuator_force)
    outputs, places = ints(m.actuator_outnum), ints(m.actuator_outadr)
    counts, rows, columns, moment = (
        ints(d.moment_rownnz), ints(d.moment_rowadr), ints(d.moment_colind), floats(d.actuator_moment),
    )  # fmt: skip
    groups = ints(m.actuator_group)
    added = False
    if m.disableflags & NO_ACTUATORS != 0:
        return added

    # Only affine actuators with a positive velocity gain and one output act as dampers.
    for u in range(m.nactuator):
        gain = -terms[10 * u + 2]
        if kinds[u] != AFFINE or not gain > 0.0 or outputs[u] != 1:
            continue

        # Skip disabled groups, and actuators saturated at the end of their force range.
        if 0 <= groups[u] <= 30 and m.disableactuator & (1 << groups[u]) != 0:
            continue
        out = places[u]
        if limited[u] != 0 and not ranges[2 * u] < force[out] < ranges[2 * u + 1]:
            continue

        # An actuator that acts on two trees would couple their blocks: its gain stays explicit.
        row, count = rows[out], counts[out]
        inside = count > 0
        for e in range(row, row + count):
            if not start <= columns[e] < start + size:
                inside = False

        # The rank-one term dt k_v gᵀg.
        if inside:
            added = True
            for e in range(row, row + count):
                for f in range(row, row + count):
                    here = (columns[e] - start) * size + columns[f] - start
                    block[here] += m.timestep * gain * moment[e] * moment[f]
    return added

"""The answer of a step, written where MuJoCo would have written its own.

    qacc = (v⁺ - v) / dt        efc_force = p / dt        qfrc_constraint = Jᵀ efc_force

Then `mj_contactForce`, touch and force sensors and the arrows of a viewer show our forces, and MuJoCo's Euler step
(with its own implicit damping switched off) ends at v⁺.

`mj_contactForce` asks the user's model for its cone. Where that is pyramidal, it expects 2 (dim - 1) forces f of edges
at a contact's `efc_address`, with normal force sum(f) and friction mu_i (f_2i - f_2i+1). They are written behind the
rows' own forces, at `efc_force[nefc:]`, and the contacts' `efc_address` point there; the rows stay those of the cone.
The room for them is that of `efc_KBIP`, 4 nefc numbers of soft contact, of which this needs less than 3 nefc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stiction.arrays.compiled import kernel
from stiction.bodies.inputs import MAXVAL
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import ADDRESS, CONE, DIM, FRICTION, SIZE
from stiction.contacts.body_forces import set_body_forces
from stiction.contacts.gather import CONTACT, DRY, coefficient, part_of
from stiction.errors import InvalidScene

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.bodies.structs import Memory
    from stiction.contacts.gather import Constraints

PYRAMIDAL = 0  # mjCONE_PYRAMIDAL
WRITTEN, NOT_FINITE = range(2)  # and the index of the velocity


def write_back(
    memory: Memory,
    found: Constraints,
    velocity: NDArray[np.float64],
    impulse: NDArray[np.float64],
    joint_impulse: NDArray[np.float64],
) -> None:
    """Write the answer back: velocity (m,), impulse (n, d) in N s and joint_impulse (j,) of these constraints."""
    problem = write(memory.model, memory.data, memory.where, found, velocity, impulse, joint_impulse)
    if problem != WRITTEN:
        k = int(problem) - NOT_FINITE
        raise InvalidScene(
            f"step: the velocity after it, qvel[{k}] = {velocity[k]}, must be a number of at most {MAXVAL:g}: look at "
            "forces and masses, or take a smaller timestep; nothing moved"
        )


@kernel
def write(model, data, where, of, velocity, impulse, joint_impulse):
    """Write accelerations and forces; return WRITTEN, or NOT_FINITE plus the index of a bad velocity."""
    m, d = model[0], data[0]
    n, j = len(impulse), len(joint_impulse)
    kind, address, source, rows, segments = of.kind, of.address, of.source, of.rows, of.segments
    joints, joint_segments = of.joints, of.joint_segments
    dt = m.timestep

    # Refuse a bad velocity before anything is written.
    for k in range(m.nv):
        if not abs(velocity[k]) <= MAXVAL:
            return NOT_FINITE + k

    # The edges of pyramids need the larger array (see above).
    if where[CONE] == PYRAMIDAL:
        d.efc_force = d.efc_KBIP

    # Accelerations that lead from the present velocity to the new one; forces start from zero.
    before, acceleration, total, force = floats(d.qvel), floats(d.qacc), floats(d.qfrc_constraint), floats(d.efc_force)
    for k in range(m.nv):
        acceleration[k] = (velocity[k] - before[k]) / dt
        total[k] = 0.0
    for row in range(d.nefc):
        force[row] = 0.0

    # Forces of contacts in MuJoCo's own tangents (`part_of` scaled ours), then their sum on the velocities.
    for i in range(n):
        row = address[i]
        if kind[i] == CONTACT:
            contact = d.contact + source[i] * where[SIZE]
            mu = coefficient(contact, where)
            force[row] = impulse[i, 0] / dt
            for c in range(1, min(ints(contact + where[DIM])[0], impulse.shape[1])):
                force[row + c] = part_of(contact, where, c, mu) * impulse[i, c] / dt
        elif kind[i] == DRY:
            force[row] = impulse[i, 1] / dt
        else:
            force[row] = impulse[i, 0] / dt
        for c in range(impulse.shape[1]):
            add_force(rows[i, c], segments[i], impulse[i, c] / dt, m.nv, total)

    # Forces of bilateral rows, which MuJoCo lists first.
    for i in range(j):
        force[i] = joint_impulse[i] / dt
        add_force(joints[i], joint_segments[i], force[i], m.nv, total)

    # Forces of bodies need the rows of the cone, so they come before the edges replace the addresses.
    if m.neq == 0:
        set_body_forces(model, data, where)
    if where[CONE] == PYRAMIDAL:
        write_edges(data, where)
        m.cone = PYRAMIDAL  # until the next step begins: MuJoCo then reads the forces as edges
    return WRITTEN


@kernel
def write_edges(data, where):
    """Write edge forces of pyramids that are equivalent to the forces of the contacts' rows."""
    d = data[0]
    force, edge = floats(d.efc_force), d.nefc
    for c in range(d.ncon):
        contact = d.contact + c * where[SIZE]
        address, mu = ints(contact + where[ADDRESS]), floats(contact + where[FRICTION])
        tangents = ints(contact + where[DIM])[0] - 1
        row = address[0]
        if row < 0 or tangents == 0:
            continue

        # Each pair of edges carries an equal share of the normal force, and its difference the friction.
        for i in range(tangents):
            share, across = force[row] / (2 * tangents), 0.5 * force[row + 1 + i] / mu[i]
            force[edge + 2 * i], force[edge + 2 * i + 1] = share + across, share - across
        address[0] = edge
        edge += 2 * tangents


@kernel
def add_force(row, segment, factor, nv, total):
    """total += factor · row, at MuJoCo's own velocities (not those added for dry friction)."""
    if factor != 0.0:
        if segment[0] < nv:
            for e in range(segment[1]):
                total[segment[0] + e] += factor * row[e]
        for e in range(segment[3]):
            total[segment[2] + e] += factor * row[segment[1] + e]

"""Accelerations and forces of bodies in the step just made, as `mj_rnePostConstraint` writes them.

    cfrc_ext   applied forces and those of contacts
    cacc       accelerations, with gravity as one of the world upwards
    cfrc_int   I cacc + cvel × I cvel - cfrc_ext, and that of all bodies behind: what a body's joint carries

All are spatial vectors (turning, then moving) at the centre of mass of a body's tree. MuJoCo computes them where
sensors need them, by a call of its own; here they come with every step, where the forces are at hand. A model with
equality constraints, whose forces count as external as well, is left to MuJoCo (`bodies.stages.advance`).
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import ADDRESS, DIM, FRAME, GEOM, POS, SIZE

NO_GRAVITY = 1 << 7  # mjDSBL_GRAVITY


@kernel
def set_body_forces(model, data, where):
    """Write all three; call it after `efc_force` and `qacc`, while contacts still point at the rows of the cone."""
    set_external(model, data, where)
    set_accelerations(model, data)
    set_internal(model, data)
    data[0].flg_rnepost = True


@kernel
def set_external(model, data, where):
    """External forces: those applied by the user, and those of contacts."""
    m, d = model[0], data[0]
    outer, applied, place = floats(d.cfrc_ext), floats(d.xfrc_applied), floats(d.xipos)
    force, bodies = floats(d.efc_force), ints(m.geom_bodyid)
    # Forces applied by the user act at the centre of mass of their body; `xfrc_applied` holds force, then torque.
    for a in range(6):
        outer[a] = 0.0
    for b in range(1, m.nbody):
        for a in range(3):
            outer[6 * b + a], outer[6 * b + 3 + a] = applied[6 * b + 3 + a], 0.0
        i = 6 * b
        if applied[i] != 0.0 or applied[i + 1] != 0.0 or applied[i + 2] != 0.0:
            x, y, z = place[3 * b], place[3 * b + 1], place[3 * b + 2]
            add_at(model, data, b, x, y, z, applied[i], applied[i + 1], applied[i + 2])
    # A contact pushes its second body along its force, and the first one the opposite way.
    for c in range(d.ncon):
        contact = d.contact + c * where[SIZE]
        row = ints(contact + where[ADDRESS])[0]
        if row < 0:
            continue
        frame, spot, geoms = floats(contact + where[FRAME]), floats(contact + where[POS]), ints(contact + where[GEOM])
        normal, first, second, dim = force[row], 0.0, 0.0, ints(contact + where[DIM])[0]
        if dim > 1:
            first, second = force[row + 1], force[row + 2]
        if normal == 0.0 and first == 0.0 and second == 0.0:
            continue

        # The force in world coordinates, from the contact frame.
        fx = normal * frame[0] + first * frame[3] + second * frame[6]
        fy = normal * frame[1] + first * frame[4] + second * frame[7]
        fz = normal * frame[2] + first * frame[5] + second * frame[8]
        one, two = bodies[geoms[0]], bodies[geoms[1]]
        if one > 0:
            add_at(model, data, one, spot[0], spot[1], spot[2], -fx, -fy, -fz)
        if two > 0:
            add_at(model, data, two, spot[0], spot[1], spot[2], fx, fy, fz)

        # Torsion and rolling friction are torques about the normal and the tangents.
        for c in range(3, dim):
            for a in range(3):
                turning = force[row + c] * frame[3 * (c - 3) + a]
                outer[6 * one + a] -= turning if one > 0 else 0.0
                outer[6 * two + a] += turning if two > 0 else 0.0


@kernel
def add_at(model, data, b, x, y, z, fx, fy, fz):
    """Add a force on a body at a point of the world, moved to the centre of mass of its tree."""
    outer, centre, root = floats(data[0].cfrc_ext), floats(data[0].subtree_com), 3 * ints(model[0].body_rootid)[b]
    x, y, z = x - centre[root], y - centre[root + 1], z - centre[root + 2]
    outer[6 * b] += y * fz - z * fy
    outer[6 * b + 1] += z * fx - x * fz
    outer[6 * b + 2] += x * fy - y * fx
    outer[6 * b + 3] += fx
    outer[6 * b + 4] += fy
    outer[6 * b + 5] += fz


@kernel
def set_accelerations(model, data):
    """Accelerations of bodies, from the root outwards; the world accelerates upwards in place of gravity."""
    m, d = model[0], data[0]
    total, axes, bent = floats(d.cacc), floats(d.cdof), floats(d.cdof_dot)
    velocity, acceleration = floats(d.qvel), floats(d.qacc)
    parents, starts, counts = ints(m.body_parentid), ints(m.body_dofadr), ints(m.body_dofnum)

    # The world: no rotation, and minus gravity unless it is disabled.
    for a in range(3):
        total[a] = 0.0
        total[3 + a] = 0.0 if m.disableflags & NO_GRAVITY != 0 else -m.gravity[a]

    # A body accelerates with its parent, plus the motion of its own joints.
    for b in range(1, m.nbody):
        for a in range(6):
            total[6 * b + a] = total[6 * parents[b] + a]
        for k in range(starts[b], starts[b] + counts[b]):
            for a in range(6):
                total[6 * b + a] += bent[6 * k + a] * velocity[k] + axes[6 * k + a] * acceleration[k]


@kernel
def set_internal(model, data):
    """Forces carried by the bodies' joints: Newton-Euler for each body, then summed towards the root."""
    m, d = model[0], data[0]
    inner, outer, parents = floats(d.cfrc_int), floats(d.cfrc_ext), ints(m.body_parentid)
    inertia, acceleration, velocity = floats(d.cinert), floats(d.cacc), floats(d.cvel)
    for a in range(6):
        inner[a] = 0.0

    # I a + v × I v - f of each body.
    for b in range(1, m.nbody):
        ax, ay, az, bx, by, bz = momentum(inertia, 10 * b, acceleration, 6 * b)
        px, py, pz, qx, qy, qz = momentum(inertia, 10 * b, velocity, 6 * b)
        i = 6 * b
        wx, wy, wz = velocity[i], velocity[i + 1], velocity[i + 2]
        vx, vy, vz = velocity[i + 3], velocity[i + 4], velocity[i + 5]
        inner[i] = ax + (wy * pz - wz * py) + (vy * qz - vz * qy) - outer[i]
        inner[i + 1] = ay + (wz * px - wx * pz) + (vz * qx - vx * qz) - outer[i + 1]
        inner[i + 2] = az + (wx * py - wy * px) + (vx * qy - vy * qx) - outer[i + 2]
        inner[i + 3] = bx + (wy * qz - wz * qy) - outer[i + 3]
        inner[i + 4] = by + (wz * qx - wx * qz) - outer[i + 4]
        inner[i + 5] = bz + (wx * qy - wy * qx) - outer[i + 5]
    # Each body's joint also carries the bodies behind it: add them to the parent, from the last body to the world.
    for b in range(m.nbody - 1, 0, -1):
        for a in range(6):
            inner[6 * parents[b] + a] += inner[6 * b + a]


@kernel
def momentum(inertia, i, motion, k):
    """A spatial inertia times a motion; its ten numbers are xx yy zz xy xz yz, mass times its centre, and mass."""
    wx, wy, wz, vx, vy, vz = motion[k], motion[k + 1], motion[k + 2], motion[k + 3], motion[k + 4], motion[k + 5]
    cx, cy, cz, mass = inertia[i + 6], inertia[i + 7], inertia[i + 8], inertia[i + 9]
    return (
        inertia[i] * wx + inertia[i + 3] * wy + inertia[i + 4] * wz + (cy * vz - cz * vy),
        inertia[i + 3] * wx + inertia[i + 1] * wy + inertia[i + 5] * wz + (cz * vx - cx * vz),
        inertia[i + 4] * wx + inertia[i + 5] * wy + inertia[i + 2] * wz + (cx * vy - cy * vx),
        mass * vx + (wy * cz - wz * cy),
        mass * vy + (wz * cx - wx * cz),
        mass * vz + (wx * cy - wy * cx),
    )  # fmt: skip

"""Contacts of a face brought into one plane.

MuJoCo puts a contact halfway between the two surfaces, so that where a face is about to land, points of larger gaps lie
higher. That matters where friction holds: closing the gaps turns the body about an axis in the face, and points at
different heights then move along the face at different speeds, a millionth of the motion, but more than nothing. No
motion stops them all, so that under the exact law some of them slide, at nanometres a second, and which ones is the
hardest thing to find in a heap. Anywhere between the surfaces would be as good a place. So contacts of two geoms with
one normal are moved along it to the height of the nearest one.

A contact that is moved by s along its normal n sees the other tangential velocities

    t1 · (v + s ω × n) = t1 · v + s t2 · ω,        t2 · (v + s ω × n) = t2 · v - s t1 · ω

of the second body relative to the first; its normal velocity, spin and rolling stay as they are. MuJoCo's position of
the contact and its rows are changed in place, so that forces, sensors and pictures agree.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import ADDRESS, DIM, DIST, FRAME, GEOM, POS, SIZE
from stiction.contacts.rows import is_sparse

# Difference of normals that belong to one face. Larger: contacts around an edge would be moved off their surfaces.
ONE_FACE = 1e-7
# Part of the smaller geom's radius by which a contact is moved at most: those farther away are not about to land.
FARTHEST = 0.05
# Part of a coordinate that is rounding: what has been moved once is in its plane.
LAST_DIGITS = 1e-15


@kernel
def level(model, data, where, first, end):
    """Move contacts of two geoms along their normals, until all that share a normal lie in the plane of the nearest.

    first, end: the contacts; those that lie in one plane already keep every bit
    """
    d, size = data[0], where[SIZE]
    for i in range(first, end):
        # The contact with this normal and the least gap sets the plane; each of the others is moved once.
        here = d.contact + i * size
        if ints(here + where[ADDRESS])[0] < 0 or ints(here + where[DIM])[0] < 3:
            continue
        nearest, least = i, floats(here + where[DIST])[0]
        for k in range(first, end):
            other = d.contact + k * size
            gap = floats(other + where[DIST])[0]
            if gap < least and ints(other + where[ADDRESS])[0] >= 0 and one_face(here, other, where):
                nearest, least = k, gap
        if nearest == i:
            continue

        # The distance to that plane along the normal; rounding is left alone, and so is what is far away.
        normal, position = floats(here + where[FRAME]), floats(here + where[POS])
        aim, s, rounding = floats(d.contact + nearest * size + where[POS]), 0.0, 0.0
        for a in range(3):
            s += normal[a] * (aim[a] - position[a])
            rounding += LAST_DIGITS * abs(normal[a]) * (abs(aim[a]) + abs(position[a]))
        geoms = ints(here + where[GEOM])
        if abs(s) <= rounding or abs(s) > FARTHEST * smaller_radius(model, geoms):
            continue

        # Move the contact, and change its tangential rows accordingly.
        for a in range(3):
            position[a] += s * normal[a]
        turn_rows(model, data, ints(here + where[ADDRESS])[0], geoms, normal, s)


@kernel
def one_face(contact, other, where):
    """Whether two contacts have the same normal."""
    n, m = floats(contact + where[FRAME]), floats(other + where[FRAME])
    for a in range(3):
        if abs(n[a] - m[a]) > ONE_FACE:
            return False
    return True


@kernel
def smaller_radius(model, geoms):
    """Radius about the smaller of two geoms; a plane, whose radius is given as 0, is the larger one."""
    radius = floats(model[0].geom_rbound)
    one, two = radius[geoms[0]], radius[geoms[1]]
    return max(one, two) if min(one, two) == 0.0 else min(one, two)


@kernel
def turn_rows(model, data, row, geoms, frame, s):
    """Add s t2 · ω to the row of t1, -s t1 · ω to that of t2; ω: the second body's turning relative to the first's."""
    bodies = ints(model[0].geom_bodyid)
    add_turn(model, data, row, bodies[geoms[1]], frame, s)
    add_turn(model, data, row, bodies[geoms[0]], frame, -s)


@kernel
def add_turn(model, data, row, body, frame, s):
    """The share of one body in `turn_rows`: ω sums the axes of its joints and of those between it and the root."""
    m, d = model[0], data[0]
    parents, starts, counts = ints(m.body_parentid), ints(m.body_dofadr), ints(m.body_dofnum)
    axes, J, sparse = floats(d.cdof), floats(d.efc_J), is_sparse(model)

    # Compressed rows hold their velocities in increasing order, so joints and entries are walked from the end.
    first, second = row + 1, row + 2
    place, other, left = first * m.nv, second * m.nv, 0
    columns = ints(d.efc_J_colind)
    if sparse:
        place, other = ints(d.efc_J_rowadr)[first], ints(d.efc_J_rowadr)[second]
        left = ints(d.efc_J_rownnz)[first] - 1

    # From the body to the root; what a row has no entry for does not turn it.
    while body > 0:
        for k in range(starts[body] + counts[body] - 1, starts[body] - 1, -1):
            entry = k
            if sparse:
                while left >= 0 and columns[place + left] > k:
                    left -= 1
                if left < 0 or columns[place + left] != k:
                    continue
                entry = left
            x, y, z = axes[6 * k], axes[6 * k + 1], axes[6 * k + 2]
            J[place + entry] += s * (frame[6] * x + frame[7] * y + frame[8] * z)
            J[other + entry] -= s * (frame[3] * x + frame[4] * y + frame[5] * z)
        body = parents[body]

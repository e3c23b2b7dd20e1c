"""Contacts with heightfields, without those of edges that are none.

MuJoCo looks for contacts with each prism of a heightfield by itself, so that a neighbour of the one below reports its
own edge, from the side: with a normal up to 87° wrong, within the margin, though behind the surface there is no edge.
The nearest contact of a pair is right. Another stays if its normal n is that of a face at its place t, or if no way w
along the surface leads from t towards what it touches,

    n·w <= 0   for all w,

as at a ridge or peak: otherwise t is not the nearest point.
"""

from __future__ import annotations

import math

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import floats, ints, singles
from stiction.bodies.structs import DIST, EXCLUDE, FRAME, GEOM, HFIELD, POS, SIZE

WAYS = 8  # along the surface
STRIDE = 1e-3  # of a cell
ASKEW = 3e-3  # rad: angle between normals that agree


@kernel
def sift(model, data, where):
    """Exclude the contacts of heightfields that are not nearest points of their surface."""
    m, d, size = model[0], data[0], where[SIZE]
    kinds = ints(m.geom_type)

    # The contacts of a pair come one after the other.
    first = 0
    while first < d.ncon:
        geoms = ints(d.contact + first * size + where[GEOM])
        one, two = geoms[0], geoms[1]
        best, least = first, floats(d.contact + first * size + where[DIST])[0]
        end = first + 1
        while end < d.ncon:
            others = ints(d.contact + end * size + where[GEOM])
            if others[0] != one or others[1] != two:
                break
            dist = floats(d.contact + end * size + where[DIST])[0]
            if dist < least:
                best, least = end, dist
            end += 1

        # The nearest one stays.
        if one >= 0 and two >= 0 and kinds[one] == HFIELD:
            for c in range(first, end):
                contact = d.contact + c * size
                if c != best and not on_surface(model, data, where, one, contact):
                    ints(contact + where[EXCLUDE])[0] = 1
        first = end


@kernel
def on_surface(model, data, where, geom, contact):
    """Whether the normal of a contact is one of the heightfield at its place."""
    m, d = model[0], data[0]
    dist, pos, frame = floats(contact + where[DIST])[0], floats(contact + where[POS]), floats(contact + where[FRAME])
    place, R, field = floats(d.geom_xpos), floats(d.geom_xmat), ints(m.geom_dataid)[geom]

    # Place and normal in the frame of the heightfield.
    x, y, nx, ny, nz = 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(3):
        n = frame[a]
        off = pos[a] - 0.5 * dist * n - place[3 * geom + a]
        x += off * R[9 * geom + 3 * a]
        y += off * R[9 * geom + 3 * a + 1]
        nx += n * R[9 * geom + 3 * a]
        ny += n * R[9 * geom + 3 * a + 1]
        nz += n * R[9 * geom + 3 * a + 2]
    return is_normal(model, field, x, y, nx, ny, nz)


@kernel
def is_normal(model, field, x, y, nx, ny, nz):
    """Whether a direction is that of a face of a heightfield at this place, or of a ridge or peak, in its frame."""
    m = model[0]

    # Ways along the surface, and the faces between two of them that follow each other.
    sizes, rows, columns = floats(m.hfield_size), ints(m.hfield_nrow)[field], ints(m.hfield_ncol)[field]
    stride = STRIDE * 2.0 * min(sizes[4 * field] / (columns - 1), sizes[4 * field + 1] / (rows - 1))
    here = height(model, field, x, y)
    steepest, agrees = -1.0, -1.0
    bx, by, bz = 0.0, 0.0, 0.0
    for k in range(WAYS + 1):
        turn = 2.0 * math.pi * (k % WAYS + 0.25) / WAYS
        wx, wy = stride * math.cos(turn), stride * math.sin(turn)
        wz = height(model, field, x + wx, y + wy) - here

        # A ridge or peak: no way along the surface rises along the direction.
        steepest = max(steepest, (wx * nx + wy * ny + wz * nz) / (wx * wx + wy * wy + wz * wz) ** 0.5)
        if k > 0:
            fx, fy, fz = by * wz - bz * wy, bz * wx - bx * wz, bx * wy - by * wx
            agrees = max(agrees, (fx * nx + fy * ny + fz * nz) / (fx * fx + fy * fy + fz * fz) ** 0.5)
        bx, by, bz = wx, wy, wz
    return agrees >= math.cos(ASKEW) or steepest <= math.sin(ASKEW)


@kernel
def height(model, field, x, y):
    """Height of a heightfield at a place; the triangles of a cell share the diagonal on which x and y grow."""
    m = model[0]
    sizes, rows, columns = floats(m.hfield_size), ints(m.hfield_nrow)[field], ints(m.hfield_ncol)[field]
    z, tall = singles(m.hfield_data), sizes[4 * field + 2]

    # The cell, and the place in it.
    x = min(max((x / sizes[4 * field] + 1.0) * 0.5 * (columns - 1), 0.0), columns - 1.0)
    y = min(max((y / sizes[4 * field + 1] + 1.0) * 0.5 * (rows - 1), 0.0), rows - 1.0)
    c, r = min(int(x), columns - 2), min(int(y), rows - 2)
    x, y = x - c, y - r

    # Its corners, and the triangle that the place is in.
    at = ints(m.hfield_adr)[field] + r * columns + c
    low, right, left, high = tall * z[at], tall * z[at + 1], tall * z[at + columns], tall * z[at + columns + 1]
    if x >= y:
        return low + x * (right - low) + y * (high - right)
    return low + y * (left - low) + x * (high - left)

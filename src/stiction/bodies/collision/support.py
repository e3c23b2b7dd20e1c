"""Whether a contact between two convex geoms is right, from how far they reach along its normal.

    low = min of n·x over the second geom,      high = max of n·x over the first

A plane across n in the middle of both has each geom on its own side, low - high apart (or so deep in each other). No
other direction shows a larger distance than the true one, so that a contact at distance low - high, and lies in the
middle, cannot be improved on: nearest points need not be searched for.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import floats, ints, singles
from stiction.bodies.structs import BOX, CAPSULE, CYLINDER, MESH


@kernel
def separates(model, data, one, two, dist, pos, normal, close):
    """Whether two geoms lie on either side of the plane of a contact, at its distance; close: error that may be."""
    nx, ny, nz = normal[0], normal[1], normal[2]
    high, low = reach(model, data, one, nx, ny, nz), -reach(model, data, two, -nx, -ny, -nz)
    middle = nx * pos[0] + ny * pos[1] + nz * pos[2]
    return abs(low - high - dist) <= close and abs(0.5 * (low + high) - middle) <= close


@kernel
def reach(model, data, geom, nx, ny, nz):
    """The largest n·x of a geom; infinite for shapes that are not known here."""
    m, d = model[0], data[0]
    place, R, kind = floats(d.geom_xpos), floats(d.geom_xmat), ints(m.geom_type)[geom]
    sizes, at = floats(m.geom_size), 9 * geom

    # The normal in the geom's own frame, and its place along the normal.
    x = R[at] * nx + R[at + 3] * ny + R[at + 6] * nz
    y = R[at + 1] * nx + R[at + 4] * ny + R[at + 7] * nz
    z = R[at + 2] * nx + R[at + 5] * ny + R[at + 8] * nz
    centre = place[3 * geom] * nx + place[3 * geom + 1] * ny + place[3 * geom + 2] * nz

    # The farthest point of each shape.
    a, b, c = sizes[3 * geom], sizes[3 * geom + 1], sizes[3 * geom + 2]
    if kind == CAPSULE:
        return centre + b * abs(z) + a
    if kind == CYLINDER:
        return centre + b * abs(z) + a * (x * x + y * y) ** 0.5
    if kind == BOX:
        return centre + a * abs(x) + b * abs(y) + c * abs(z)
    if kind == MESH:
        return centre + reach_of_mesh(model, ints(m.geom_dataid)[geom], x, y, z)
    return float("inf")


@kernel
def reach_of_mesh(model, mesh, x, y, z):
    """The largest product of the direction with a vertex of a mesh, of its convex hull if it has one."""
    m = model[0]
    vertex = singles(m.mesh_vert)
    first, most = 3 * ints(m.mesh_vertadr)[mesh], -float("inf")
    graph = ints(m.mesh_graphadr)[mesh]
    if graph >= 0:
        # A hull: numbers of its vertices and faces, where the edges of each vertex begin, then its vertices.
        known = ints(m.mesh_graph)
        count = known[graph]
        for k in range(graph + 2 + count, graph + 2 + 2 * count):
            v = first + 3 * known[k]
            most = max(most, x * vertex[v] + y * vertex[v + 1] + z * vertex[v + 2])
        return most

    # Without a hull, all vertices.
    for k in range(ints(m.mesh_vertnum)[mesh]):
        v = first + 3 * k
        most = max(most, x * vertex[v] + y * vertex[v + 1] + z * vertex[v + 2])
    return most

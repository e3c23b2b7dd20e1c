"""Contacts of cylinders that lie or stand on faces, from their geometry.

A disc on a face touches in the whole region that they share. The corners of this flat region represent it: points of
the disc's rim above the face, corners or points of the rim of the face below the disc, and crossings of both outlines.
At most POINTS are taken on a rim, fixed to the body, so that a resting cylinder keeps its contacts from step to step.
Two discs that share a lens touch at its two tips and at one point between them on either arc. A tilted disc also
touches with its lowest point, wherever that is. A cylinder or capsule that lies on a face touches at both ends of the
length that they share.

A point of one body above a face of the other has the normal of that face, and its true distance. Vectors are tuples;
a face is (centre, outward normal, two axes along it, half its extent along each), where half the second extent is
ROUND for a disc with the first as radius, and both are infinite for a plane. Contacts are rows of distance, position
and frame (13,).
"""

from __future__ import annotations

import math

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import CYLINDER, PLANE

POINTS = 4  # contacts on a rim: 6 or 8 rest no better and cost twice as much
FLAT = 0.1  # rad: a cylinder tilted less than this lies or stands on a face
LEANS = 1e-6  # rad: a smaller tilt is removed before MuJoCo's search
LOADED = 0.5  # of a radius: a load farther than this from the centre turns the rim's points towards it
LEVEL = 1e-8  # sine of a tilt that counts as zero
SAME = 1e-6  # of a radius: lengths that differ less count as equal
TINY = 1e-300
ROUND = -1.0
MOST = 24  # contacts that a pair can have


@kernel
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def beyond(p, s, d):
    """p + s d."""
    return p[0] + s * d[0], p[1] + s * d[1], p[2] + s * d[2]


@kernel
def at(p, s, d, t, e):
    """p + s d + t e."""
    return beyond(beyond(p, s, d), t, e)


@kernel
def minus(p, q):
    """p - q."""
    return beyond(p, -1.0, q)


@kernel
def times(s, d):
    return s * d[0], s * d[1], s * d[2]


@kernel
def put(rows, k, p, gap, normal, sense, hint, margin):
    """Add the contact of a point p at this distance from a face if it is within the margin; return the new count.

    sense: 1 if the face's normal points from the first geom to the second; hint: approximate direction of the tangent
    """
    # A point beyond the margin makes no contact.
    if not gap <= margin:
        return k
    row = rows[k]
    row[0] = gap

    # Normal from the first geom to the second, tangent along the hint, position halfway across the gap.
    n = times(sense, normal)
    t = beyond(hint, -dot(hint, n), n)
    t = times(1.0 / math.sqrt(dot(t, t)), t)
    for a in range(3):
        row[1 + a], row[4 + a], row[7 + a] = p[a] - 0.5 * gap * normal[a], n[a], t[a]
        b, c = (a + 1) % 3, (a + 2) % 3
        row[10 + a] = n[b] * t[c] - n[c] * t[b]
    return k + 1


@kernel
def on_face(face, p, slack):
    """Whether p projects into a face, or outside its outline by at most the fraction `slack` of its extent."""
    from_centre = minus(p, face[0])
    i, j, wide, deep = dot(from_centre, face[2]), dot(from_centre, face[3]), face[4], face[5]
    if deep == ROUND:
        return i * i + j * j <= (wide + slack * wide) ** 2
    return abs(i) <= wide + slack * wide and abs(j) <= deep + slack * deep


@kernel
def above(p, face):
    """Signed distance of a point from the plane of a face."""
    return dot(minus(p, face[0]), face[1])


@kernel
def lowest(disc, normal):
    """Direction in a disc's plane towards a plane with this normal, and the sine of the angle between the planes."""
    d = at((0.0, 0.0, 0.0), -1.0, normal, dot(normal, disc[1]), disc[1])
    sine = math.sqrt(dot(d, d))
    d = times(1.0 / max(sine, TINY), d)
    d = beyond(d, -dot(d, disc[1]), disc[1])  # once more: rounding counts where the lean is small
    return times(1.0 / max(math.sqrt(dot(d, d)), TINY), d), sine


@kernel
def rim(disc, turn):
    """The point of a disc's rim at an angle from its first axis."""
    return at(disc[0], disc[4] * math.cos(turn), disc[2], disc[4] * math.sin(turn), disc[3])


@kernel
def disc_on_plane(disc, other, plane, margin, rows):
    """Contacts of a cylinder with a plane: points of the end facing it, and the lowest point of each tilted end."""
    n, hint = plane[1], plane[2]
    down, sine = lowest(disc, n)

    # A tilted cylinder also touches with the lowest point of either rim.
    k = 0
    if sine > LEVEL:
        for end in (disc, other):
            p = beyond(end[0], end[4], down)
            k = put(rows, k, p, above(p, plane), n, 1.0, hint, margin)

    # Fixed points of the rim facing the plane, so that a standing cylinder keeps its contacts from step to step.
    for turn in range(POINTS):
        p = rim(disc, turn * 2.0 * math.pi / POINTS)
        # On a rolling rim, points ahead of the lowest one would stop the motion.
        if sine < FLAT or dot(minus(p, disc[0]), down) <= 0.0:
            k = put(rows, k, p, above(p, plane), n, 1.0, hint, margin)
    return k


@kernel
def disc_on_face(disc, face, sense, margin, rows):
    """Contacts of a disc facing a disc or rectangle, 0 if they share no area or overlap less sideways than in depth."""
    p, n, r = disc[0], disc[1], disc[4]
    q, m, wide, deep = face[0], face[1], face[4], face[5]

    # Sideways overlap of the outlines; when it is smaller than the penetration, the pair touches sideways instead.
    from_centre = minus(p, q)
    i, j = dot(from_centre, face[2]), dot(from_centre, face[3])
    offset = math.sqrt(i * i + j * j)
    shared = r + wide - offset if deep == ROUND else min(r + wide - abs(i), r + deep - abs(j))
    if shared <= 0.0 or -above(p, face) > shared:
        return 0
    hint = face[2]
    k = 0
    if deep == ROUND and offset > abs(r - wide) + SAME * min(r, wide):
        # The rims cross: the shared region is a lens. Seen from the centres, its tips lie at angles alpha and beta
        # from the line between them.
        x = times(1.0 / offset, at((0.0, 0.0, 0.0), i, face[2], j, face[3]))
        y = (m[1] * x[2] - m[2] * x[1], m[2] * x[0] - m[0] * x[2], m[0] * x[1] - m[1] * x[0])
        alpha = math.acos((offset**2 + r**2 - wide**2) / (2.0 * offset * r))
        beta = math.acos((offset**2 + wide**2 - r**2) / (2.0 * offset * wide))

        # Points between the tips, on the arc of either rim.
        for step in range(1, POINTS // 2):
            share = 4.0 * step / POINTS - 1.0
            w = at((0.0, 0.0, 0.0), -math.cos(share * alpha), x, math.sin(share * alpha), y)
            w = beyond(w, -dot(w, n), n)
            c = beyond(p, r / math.sqrt(dot(w, w)), w)
            k = put(rows, k, c, above(c, face), m, sense, hint, margin)
            c = at(q, wide * math.cos(share * beta), x, wide * math.sin(share * beta), y)
            k = put(rows, k, c, above(c, disc), n, -sense, hint, margin)

        # The two tips, where the rims cross.
        for step in (-1.0, 1.0):
            c = at(q, wide * math.cos(beta), x, step * wide * math.sin(beta), y)
            k = crossing(rows, k, c, disc, m, sense, hint, margin)
    elif deep == ROUND and wide < r:
        # The face is a smaller disc inside this one: use points of its rim.
        for turn in range(POINTS):
            c = rim(face, turn * 2.0 * math.pi / POINTS)
            k = put(rows, k, c, above(c, disc), n, -sense, hint, margin)
    else:
        # The rim's points above the face, and for a rectangle the corners below the disc and the crossings.
        for turn in range(POINTS):
            c = rim(disc, turn * 2.0 * math.pi / POINTS)
            if on_face(face, c, SAME):
                k = put(rows, k, c, above(c, face), m, sense, hint, margin)
        if deep != ROUND:
            k = outline(rows, k, disc, face, i, j, sense, margin)

    # A tilted disc also touches with its lowest point, and a round face with the point of its rim nearest to the disc.
    down, sine = lowest(disc, m)
    if sine > LEVEL:
        c = beyond(p, r, down)
        if on_face(face, c, 0.0):
            k = put(rows, k, c, above(c, face), m, sense, hint, margin)
        if deep == ROUND:
            down, sine = lowest(face, n)
            c = beyond(q, wide, down)
            if on_face(disc, c, 0.0):
                k = put(rows, k, c, above(c, disc), n, -sense, hint, margin)
    return k


@kernel
def crossing(rows, k, c, disc, m, sense, hint, margin):
    """Add the contact where two outlines cross at c, a point of the face with normal m."""
    gap = -above(c, disc) / dot(m, disc[1])
    return put(rows, k, beyond(c, gap, m), gap, m, sense, hint, margin)


@kernel
def outline(rows, k, disc, face, i, j, sense, margin):
    """Corners of a rectangle below a disc centred at (i, j) in the rectangle, and crossings of their outlines."""
    r, (q, m, d, e, wide, deep) = disc[4], face
    inside = r - SAME * r

    # Corners below the disc, and crossings of the rim with the two edges x = ±wide.
    for x in (-wide, wide):
        for y in (-deep, deep):
            c = at(q, x, d, y, e)
            if on_face(disc, c, -SAME):
                k = put(rows, k, c, above(c, disc), disc[1], -sense, d, margin)
        if abs(x - i) < inside:
            half = math.sqrt(r * r - (x - i) ** 2)
            for y in (j - half, j + half):
                if abs(y) <= deep:
                    k = crossing(rows, k, at(q, x, d, y, e), disc, m, sense, d, margin)

    # Crossings of the rim with the two edges y = ±deep.
    for y in (-deep, deep):
        if abs(y - j) < inside:
            half = math.sqrt(r * r - (y - j) ** 2)
            for x in (i - half, i + half):
                if abs(x) <= wide:
                    k = crossing(rows, k, at(q, x, d, y, e), disc, m, sense, d, margin)
    return k


@kernel
def line_on_face(centre, axis, half, radius, round_ends, face, sense, margin, rows):
    """Contacts of a cylinder or capsule lying on a face, at both ends of the shared length; 0 otherwise."""
    q, m, d, e, wide, deep = face
    slope = dot(axis, m)
    if abs(slope) > FLAT or dot(minus(centre, q), m) <= 0.0:
        return 0

    # The line of the side nearest to the face, parametrized by s from 0 to 2 half along the axis.
    down = times(-1.0, m)
    if not round_ends:
        down = beyond(down, slope, axis)
        down = times(1.0 / math.sqrt(dot(down, down)), down)
    first = at(centre, -half, axis, radius, down)
    from_centre = minus(first, q)
    i, j, di, dj = dot(from_centre, d), dot(from_centre, e), dot(axis, d), dot(axis, e)

    # Clip the line to the outline of the face.
    low, high = 0.0, 2.0 * half
    if deep == ROUND:  # |(i, j) + s (di, dj)| = wide
        a, b, c = di * di + dj * dj, i * di + j * dj, i * i + j * j - wide * wide
        if b * b <= a * c:
            return 0
        root = math.sqrt(b * b - a * c)
        low, high = max(low, (-b - root) / a), min(high, (-b + root) / a)
    else:
        low, high = cut(i, di, wide, low, high)
        low, high = cut(j, dj, deep, low, high)
    if not low < high:
        return 0

    # A contact at each end of the clipped line.
    k = 0
    for s in (low, high):
        p = beyond(first, s, axis)
        if deep != ROUND and 0.0 < s < 2.0 * half:
            # The line crosses an edge of the rectangle here: let the edge touch the side of the cylinder.
            x, y = i + s * di, j + s * dj
            edge = e if abs(abs(x) - wide) * deep < abs(abs(y) - deep) * wide else d
            k = edge_on_line(rows, k, beyond(p, -above(p, face), m), edge, centre, axis, radius, m, sense, margin)
        else:
            k = put(rows, k, p, above(p, face), m, sense, axis, margin)

        # Ends that coincide make one contact.
        if high - low <= SAME * radius:
            break
    return k


@kernel
def edge_on_line(rows, k, c, edge, centre, axis, radius, m, sense, margin):
    """The contact of an edge through c with the side of a cylinder or capsule, along the normal common to both."""
    # The common normal, pointing the same way as the face's normal.
    n = (
        edge[1] * axis[2] - edge[2] * axis[1],
        edge[2] * axis[0] - edge[0] * axis[2],
        edge[0] * axis[1] - edge[1] * axis[0],
    )
    n = times(sign(dot(n, m)) / math.sqrt(dot(n, n)), n)

    # The point of the edge nearest to the axis, and its distance from the side.
    between = minus(centre, c)
    cosine = dot(axis, edge)
    along = (dot(edge, between) - cosine * dot(axis, between)) / (1.0 - cosine * cosine)
    gap = dot(between, n) - radius
    return put(rows, k, at(c, along, edge, gap, n), gap, n, sense, axis, margin)


@kernel
def cut(i, di, wide, low, high):
    """The part of [low, high] in which |i + s di| <= wide."""
    if di == 0.0:
        return (low, high) if abs(i) <= wide else (1.0, 0.0)
    one, two = (-wide - i) / di, (wide - i) / di
    return max(low, min(one, two)), min(high, max(one, two))


# Shapes


@kernel
def centre_of(data, g):
    place = floats(data[0].geom_xpos)
    return place[3 * g], place[3 * g + 1], place[3 * g + 2]


@kernel
def axis_of(data, g, a):
    """Axis a of a geom's frame, in the world."""
    R = floats(data[0].geom_xmat)
    return R[9 * g + a], R[9 * g + 3 + a], R[9 * g + 6 + a]


@kernel
def end_of(model, data, g, side):
    """One end of a cylinder as a face; its first axis points towards the load if that is far from the centre.

    The load is the point where the vertical through the tree's centre of mass meets the end. A cylinder about to tip is
    then held by a contact at the point about which it tips.
    """
    sizes, axis = floats(model[0].geom_size), axis_of(data, g, 2)
    r, centre = sizes[3 * g], beyond(centre_of(data, g), side * sizes[3 * g + 1], axis)
    one, two = axis_of(data, g, 0), axis_of(data, g, 1)
    gravity, root = model[0].gravity, ints(model[0].body_rootid)[ints(model[0].geom_bodyid)[g]]
    weight, mass = (gravity[0], gravity[1], gravity[2]), floats(data[0].subtree_com)
    down = dot(weight, axis)

    # The load relative to the centre of the end: follow gravity from the centre of mass to the plane of the end.
    if down != 0.0:
        from_mass = minus(centre, (mass[3 * root], mass[3 * root + 1], mass[3 * root + 2]))
        load = beyond(times(-1.0, from_mass), dot(from_mass, axis) / down, weight)
        i, j = dot(load, one), dot(load, two)
        far = math.sqrt(i * i + j * j)

        # Turn the axes towards a load far off the centre.
        if LOADED * r < far < 2.0 * r:
            one, two = (
                at((0.0, 0.0, 0.0), i / far, one, j / far, two),
                at((0.0, 0.0, 0.0), -j / far, one, i / far, two),
            )
    return centre, times(side, axis), one, two, r, ROUND


@kernel
def side_of(model, data, g, a, side):
    """One side of a box, across its axis a."""
    sizes, b, c = floats(model[0].geom_size), (a + 1) % 3, (a + 2) % 3
    axis = axis_of(data, g, a)
    centre = beyond(centre_of(data, g), side * sizes[3 * g + a], axis)
    normal = times(side, axis)
    return centre, normal, axis_of(data, g, b), axis_of(data, g, c), sizes[3 * g + b], sizes[3 * g + c]


@kernel
def plane_of(data, g):
    """A plane as a face without bounds."""
    return centre_of(data, g), axis_of(data, g, 2), axis_of(data, g, 0), axis_of(data, g, 1), math.inf, math.inf


@kernel
def sign(x):
    """1 or -1; zero counts as positive."""
    return 1.0 if x >= 0.0 else -1.0


# Pairs


@kernel
def level(model, data, kept):
    """Set upright the cylinders tilted from a plane's normal by rounding only; the old axes are kept in (count, 4).

    MuJoCo divides by the sine of that angle: below 1e-8 it finds distances that are wrong by as much as the radius, or
    no contact at all.
    """
    m, d = model[0], data[0]
    kinds, R = ints(m.geom_type), floats(d.geom_xmat)
    count = 0

    # Keep each such geom and its axis for `unlevel`, and write the plane's normal in its place.
    for g in range(m.ngeom):
        plane = leans_on(model, data, g) if kinds[g] == CYLINDER else -1
        if plane >= 0:
            axis, normal = axis_of(data, g, 2), axis_of(data, plane, 2)
            cosine = sign(dot(axis, normal))
            kept[count, 0] = g
            for a in range(3):
                kept[count, 1 + a] = axis[a]
                R[9 * g + 3 * a + 2] = cosine * normal[a]
            count += 1
    return count


@kernel
def leans_on(model, data, cylinder):
    """The first plane to which a cylinder is perpendicular but for rounding, -1 if there is none."""
    m = model[0]
    kinds, axis = ints(m.geom_type), axis_of(data, cylinder, 2)
    for plane in range(m.ngeom):
        if kinds[plane] == PLANE:
            normal = axis_of(data, plane, 2)
            off = beyond(axis, -sign(dot(axis, normal)), normal)
            if 0.0 < dot(off, off) < LEANS * LEANS:
                return plane
    return -1


@kernel
def unlevel(data, kept, count):
    """Undo `level`."""
    R = floats(data[0].geom_xmat)
    for k in range(count):
        for a in range(3):
            R[9 * int(kept[k, 0]) + 3 * a + 2] = kept[k, 1 + a]


@kernel
def cylinder_on_plane(model, data, plane, cylinder, margin, rows):
    """Contacts of a cylinder with a plane; the end that faces the plane comes first."""
    face = plane_of(data, plane)
    side = -sign(dot(axis_of(data, cylinder, 2), face[1]))
    disc, other = end_of(model, data, cylinder, side), end_of(model, data, cylinder, -side)
    return disc_on_plane(disc, other, face, margin, rows)


@kernel
def cylinder_on_box(model, data, cylinder, box, margin, rows):
    """Contacts of an end or the side of a cylinder with a side of a box."""
    sizes, axis, centre = floats(model[0].geom_size), axis_of(data, cylinder, 2), centre_of(data, cylinder)
    from_box = minus(centre, centre_of(data, box))
    across, apart = -1, -math.inf

    # An end that faces a side of the box comes first.
    for a in range(3):
        e = axis_of(data, box, a)
        lean, height = abs(dot(axis, e)), dot(from_box, e)
        if lean * lean >= 1.0 - FLAT * FLAT:
            face = side_of(model, data, box, a, sign(height))
            disc = end_of(model, data, cylinder, -sign(dot(axis, face[1])))
            k = disc_on_face(disc, face, -1.0, margin, rows)
            if k > 0:
                return k
        # Otherwise remember the side parallel to the cylinder's axis from which it is farthest.
        elif lean <= FLAT and abs(height) - sizes[3 * box + a] > apart:
            across, apart = a, abs(height) - sizes[3 * box + a]

    # The side of the cylinder lies on that side of the box.
    if across < 0:
        return 0
    face = side_of(model, data, box, across, sign(dot(from_box, axis_of(data, box, across))))
    return line_on_face(centre, axis, sizes[3 * cylinder + 1], sizes[3 * cylinder], False, face, -1.0, margin, rows)


@kernel
def cylinder_on_cylinder(model, data, one, two, margin, rows):
    """Contacts of end on end, or of the side of one cylinder on an end of the other."""
    first, second = axis_of(data, one, 2), axis_of(data, two, 2)
    lean = dot(first, second)

    # Nearly parallel axes: the ends that face each other touch.
    if lean * lean >= 1.0 - FLAT * FLAT:
        face = end_of(model, data, two, sign(dot(minus(centre_of(data, one), centre_of(data, two)), second)))
        disc = end_of(model, data, one, -sign(dot(first, face[1])))
        return disc_on_face(disc, face, -1.0, margin, rows)

    # Otherwise either one may lie on an end of the other.
    k = line_on_end(model, data, one, two, False, -1.0, margin, rows)
    return k if k > 0 else line_on_end(model, data, two, one, False, 1.0, margin, rows)


@kernel
def line_on_end(model, data, line, cylinder, round_ends, sense, margin, rows):
    """Contacts of the side of a cylinder or capsule with the nearer end of a cylinder."""
    sizes, centre = floats(model[0].geom_size), centre_of(data, line)
    height = dot(minus(centre, centre_of(data, cylinder)), axis_of(data, cylinder, 2))
    face = end_of(model, data, cylinder, sign(height))
    return line_on_face(
        centre, axis_of(data, line, 2), sizes[3 * line + 1], sizes[3 * line], round_ends, face, sense, margin, rows
    )

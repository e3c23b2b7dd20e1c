"""MuJoCo's contacts, checked and mended where its search for contact patches errs.

Measured on MuJoCo 4.0, at random poses with gaps of 1e-5 to 1e-3 m: contacts of spheres, capsules, ellipsoids and of
boxes with each other agree with the true distance. Contacts of cylinders and meshes do not always: when MuJoCo looks
for a patch between two faces it may report them up to 2 mm too far, with normals up to 70° wrong (its search for the
single closest pair is exact). And parallel cylinders get one contact, at one end, where a log rests on a line.

Faces get four points at most, and different ones in each step where a rim is round, so that a cylinder standing on one
rocks for ever.

So a model with cylinders, meshes or heightfields is stepped with one stage more, between collision and the posing of
constraints:

- Cylinders that stand or lie on planes, boxes and each other get the contacts of `cylinders`.
- Two cylinders, or nearly parallel capsules, whose sides face each other touch where their axes are nearest; if these
  are within PARALLEL of each other, also at both ends of the part that they share.
- Of other pairs with a cylinder or mesh, one whose nearest contact does not separate the two (`support`), and is
  farther than the true distance (`mj_geomDistance`), gets the true nearest points and direction instead; others of its
  patch stay if they face the same way, else what rests on a face would rock.
- Contacts of heightfields are sifted (`heightfield`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.layout import Floats, Ints, cut, layout
from stiction.bodies.collision.check import EXACTLY_PARALLEL, FARTHER, check_pairs
from stiction.bodies.collision.cylinders import (
    MOST,
    cylinder_on_box,
    cylinder_on_cylinder,
    cylinder_on_plane,
    leans_on,
    level,
    line_on_end,
    unlevel,
)
from stiction.bodies.collision.heightfield import sift
from stiction.bodies.collision.support import separates
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import BOX, CAPSULE, CYLINDER, DIST, EXCLUDE, FRAME, GEOM, HFIELD, MESH, PLANE, POS, SIZE
from stiction.errors import InvalidScene
from stiction.optional import mujoco

if TYPE_CHECKING:
    from stiction.bodies.structs import Memory

mj = mujoco()

PARALLEL = 0.1  # rad: axes at a smaller angle get contacts at the ends of the length that they share
SOON = 3.0  # steps: links that cannot meet within these are not checked
THIN = 0.01  # of the smaller radius: a gap that is always checked

# Searches for contacts: a stage of its own, where cylinders touch; MuJoCo's in `mj_step1`, where none does; MuJoCo's.
STAGED, LEANING, WHOLE = range(3)
RIGHT, MENDABLE, MISSED = range(3)  # contacts that MuJoCo has found
SPARE = np.empty((MOST, 13))  # what is written here is not read again


class Replacements(NamedTuple):
    """Contacts in place of those that MuJoCo found, of `count` at most."""

    rows: Array[Floats, "most", 13]
    found: Array[Floats, 9]  # scratch of `check_pairs`
    plan: Array[Ints, "count", 5]


replacement_sizes, replacement_views = layout(Replacements, "count", most=f"{MOST} * count")


def needs_mending(model: Any) -> bool:
    """Whether the model has geoms whose contacts may be wrong."""
    kinds = set(model.geom_type[(model.geom_contype | model.geom_conaffinity) != 0].tolist())
    kinds |= {int(model.geom_type[g]) for g in (*model.pair_geom1, *model.pair_geom2)}
    if kinds & {HFIELD, CYLINDER, MESH}:
        return True
    capsules = (model.geom_type == CAPSULE) & ((model.geom_contype | model.geom_conaffinity) != 0)
    trees = set(model.body_treeid[model.geom_bodyid[capsules]].tolist())
    return len(trees) > 1


def search_of(model: Any) -> int:
    """How contacts are to be searched for at first."""
    return STAGED if model.nhfield else LEANING if CYLINDER in model.geom_type else WHOLE


def collide(model: Any, data: Any, memory: Memory) -> bool:
    """`mj_collision` with corrected contacts; returns whether it needed to be."""
    leaning = find(model, data, memory)
    if model.nhfield and data.ncon:
        sift(memory.model, memory.data, memory.where)
    return mend(model, data, memory) or leaning


def find(model: Any, data: Any, memory: Memory) -> bool:
    """`mj_collision`, with nearly upright cylinders set upright during the search; returns whether there are any."""
    work = workspace(4 * model.ngeom, 0)
    kept = cut(work.floats, 0, (model.ngeom, 4))
    count = level(memory.model, memory.data, kept)
    mj.mj_collision(model, data)
    if count:
        unlevel(memory.data, kept, count)
    return bool(count)


def in_order(memory: Memory) -> int:
    """Whether contacts that MuJoCo has found are RIGHT, MENDABLE, or MISSED because cylinders are nearly upright."""
    return look_over(memory.model, memory.data, memory.where, SPARE)  # type: ignore[no-any-return]


@kernel
def look_over(model, data, where, rows):
    """The same; rows: (MOST, 13) scratch."""
    m, d = model[0], data[0]
    kinds = ints(m.geom_type)
    for g in range(m.ngeom):
        if kinds[g] == CYLINDER and leans_on(model, data, g) >= 0:
            return MISSED
    first = 0
    while first < d.ncon:
        end = pair_end(data, where, first)
        found, doubt = judged(model, data, where, first, end, rows)
        if found > 0 or doubt:
            return MENDABLE
        first = end
    return RIGHT


def mend(model: Any, data: Any, memory: Memory) -> bool:
    """Correct the contacts that `mj_collision` has found; return whether any may have changed."""
    count = data.ncon
    if not count:
        return False
    rows, found, plan = replacement_views(count, *workspace(*replacement_sizes(count)))
    pairs, doubtful, more = replacements(memory.model, memory.data, memory.where, rows, plan)
    if more:
        some = data.contact[0]
        for _ in range(more):
            mj.mj_addContact(model, data, some)
        if data.ncon != count + more:
            raise InvalidScene("there is no memory for so many contacts: give the model more (<size memory=...>)")
    if pairs:
        replace(memory.data, memory.where, rows, plan, pairs, more)
    if doubtful:
        check_pairs(model, data, memory, plan[:pairs], found)
    return bool(pairs)


@kernel
def replacements(model, data, where, rows, plan):
    """Recompute contacts pair by pair; return (pairs, pairs to check, contacts to be added).

    plan: first and end of a pair's contacts, first and end of its new `rows` (empty if the old ones stay), and whether
    they may be wrong
    """
    pairs, doubtful, more, used, first = 0, 0, 0, 0, 0
    while first < data[0].ncon:
        # Record a pair if its contacts are replaced or must be checked.
        end = pair_end(data, where, first)
        found, doubt = judged(model, data, where, first, end, rows[used:])
        if found > 0 or doubt:
            plan[pairs, 0], plan[pairs, 1], plan[pairs, 2], plan[pairs, 3] = first, end, used, used + found
            plan[pairs, 4] = doubt
            pairs += 1
            doubtful += doubt
            used += found
            more += max(0, found - (end - first))
        first = end
    return pairs, doubtful, more


@kernel
def pair_end(data, where, first):
    """One past the last contact of a pair: MuJoCo lists them one after the other."""
    d = data[0]
    geoms, end = ints(d.contact + first * where[SIZE] + where[GEOM]), first + 1
    while end < d.ncon:
        others = ints(d.contact + end * where[SIZE] + where[GEOM])
        if others[0] != geoms[0] or others[1] != geoms[1]:
            break
        end += 1
    return end


@kernel
def judged(model, data, where, first, end, rows):
    """How many new contacts a pair gets, in `rows`, and whether they, or the old ones if it gets none, may be wrong.

    They are computed from the geometry where the shapes allow it; others may need a check against the true distance.
    """
    m = model[0]
    geoms = ints(data[0].contact + first * where[SIZE] + where[GEOM])
    one, two = geoms[0], geoms[1]
    if one < 0 or two < 0:
        return 0, False
    kinds, radius = ints(m.geom_type), floats(m.geom_rbound)
    found, exact = contacts_of(model, data, one, two, rows)
    doubt = not exact and angular(kinds[one], kinds[two])
    close = FARTHER * min(radius[one], radius[two])
    if found > 0 and doubt:
        doubt = not right_rows(model, data, one, two, rows[:found], close)
    elif found == 0 and doubt:
        doubt = may_meet(model, data, where, first, end, one, two)
        doubt = doubt and not nearest_separates(model, data, where, first, end, close)
    return found, doubt


@kernel
def may_meet(model, data, where, first, end, one, two):
    """Whether two geoms may meet within a few steps at their relative speed; links of one robot often move as one."""
    m, d, size = model[0], data[0], where[SIZE]
    parents, starts, counts = ints(m.body_parentid), ints(m.body_dofadr), ints(m.body_dofnum)
    trees, bodies, radius = ints(m.body_treeid), ints(m.geom_bodyid), floats(m.geom_rbound)
    b, c = bodies[one], bodies[two]
    if trees[b] < 0 or trees[b] != trees[c]:
        return True
    gap = np.inf
    for k in range(first, end):
        gap = min(gap, floats(d.contact + k * size + where[DIST])[0])

    # Relative velocity about the tree's centre: joints between both bodies and the last one that carries both. A body's
    # number is larger than its parent's.
    root = ints(m.body_rootid)[b]
    axes, velocity = floats(d.cdof), floats(d.qvel)
    wx, wy, wz, vx, vy, vz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    while b != c:
        lower, sign = max(b, c), 1.0 if b > c else -1.0
        for k in range(starts[lower], starts[lower] + counts[lower]):
            speed = sign * velocity[k]
            wx, wy, wz = wx + speed * axes[6 * k], wy + speed * axes[6 * k + 1], wz + speed * axes[6 * k + 2]
            vx, vy, vz = vx + speed * axes[6 * k + 3], vy + speed * axes[6 * k + 4], vz + speed * axes[6 * k + 5]
        b, c = (parents[b], c) if lower == b else (b, parents[c])

    # Speed of the smaller geom's points against the other geom, and what gravity adds.
    small = one if radius[one] < radius[two] else two
    place, centre, gravity, dt = floats(d.geom_xpos), floats(d.subtree_com), m.gravity, m.timestep
    rx, ry, rz = (
        place[3 * small] - centre[3 * root],
        place[3 * small + 1] - centre[3 * root + 1],
        place[3 * small + 2] - centre[3 * root + 2],
    )
    vx, vy, vz = vx + wy * rz - wz * ry, vy + wz * rx - wx * rz, vz + wx * ry - wy * rx
    fastest = math.sqrt(vx * vx + vy * vy + vz * vz) + math.sqrt(wx * wx + wy * wy + wz * wz) * radius[small]
    drop = dt * math.sqrt(gravity[0] * gravity[0] + gravity[1] * gravity[1] + gravity[2] * gravity[2])
    return not gap > THIN * radius[small] + SOON * dt * (fastest + drop)


@kernel
def nearest_separates(model, data, where, first, end, close):
    """Whether the plane of the nearest of a pair's contacts separates its geoms."""
    d, size = data[0], where[SIZE]
    best, least = d.contact + first * size, np.inf
    for c in range(first, end):
        dist = floats(d.contact + c * size + where[DIST])[0]
        if dist < least:
            best, least = d.contact + c * size, dist
    geoms, pos, frame = ints(best + where[GEOM]), floats(best + where[POS]), floats(best + where[FRAME])
    return separates(model, data, geoms[0], geoms[1], least, pos, frame, close)


@kernel
def right_rows(model, data, one, two, rows, close):
    """Whether the distance of new contacts is right.

    It is if several are equally near, as faces are parallel then, or if the plane of the nearest separates the geoms.
    """
    low, high, nearest = rows[0, 0], rows[0, 0], 0
    for k in range(1, len(rows)):
        if rows[k, 0] < low:
            low, nearest = rows[k, 0], k
        high = max(high, rows[k, 0])
    if len(rows) > 1 and high - low <= close:
        return True
    row = rows[nearest]
    return separates(model, data, one, two, low, row[1:4], row[4:], close)


@kernel
def contacts_of(model, data, one, two, rows):
    """Compute the contacts of a pair of known shapes; return their number (0: not known) and whether they are exact.

    The geoms come in MuJoCo's order of types.
    """
    m = model[0]
    a, b = ints(m.geom_type)[one], ints(m.geom_type)[two]
    margin = floats(m.geom_margin)[one] + floats(m.geom_margin)[two]
    if a == PLANE and b == CYLINDER:
        return cylinder_on_plane(model, data, one, two, margin, rows), True

    # Side by side comes first. Two capsules otherwise keep MuJoCo's own contact, which is exact.
    if a in (CAPSULE, CYLINDER) and b in (CAPSULE, CYLINDER):
        found = side_by_side(model, data, one, two, rows)
        if found > 0 or b == CAPSULE:
            return found, found == 1 or b == CAPSULE

        # No sides face each other: look for a side or an end on an end.
        if a == CAPSULE:
            return line_on_end(model, data, one, two, True, -1.0, margin, rows), False
        return cylinder_on_cylinder(model, data, one, two, margin, rows), False
    if a == CYLINDER and b == BOX:
        return cylinder_on_box(model, data, one, two, margin, rows), False
    return 0, False


@kernel
def angular(a, b):
    """Whether MuJoCo looks for a patch between these shapes and one of them is a cylinder or mesh."""
    known = (CAPSULE, CYLINDER, BOX, MESH)
    return a in known and b in known and (a in (CYLINDER, MESH) or b in (CYLINDER, MESH))


@kernel
def replace(data, where, rows, plan, pairs, more):
    """Write the new contacts in the place of MuJoCo's, from the last to the first; `more` of them are added.

    Afterwards the plan holds the new place of each pair's contacts.
    """
    d = data[0]
    size = where[SIZE]
    read = d.ncon - more  # contacts before this one have not moved yet
    for k in range(pairs - 1, -1, -1):
        first, end, begin, stop = plan[k, 0], plan[k, 1], plan[k, 2], plan[k, 3]

        # Shift the contacts behind the pair by the room still needed (and the pair's own contacts if they stay).
        kept = end if begin < stop else first
        for c in range(read - 1, kept - 1, -1):
            copy(d.contact + c * size, d.contact + (c + more) * size, size)
        read = first
        plan[k, 1] = end + more

        # New contacts copy everything but the geometry from the pair's first one; old ones left over are excluded.
        if begin < stop:
            more -= max(0, stop - begin - (end - first))
            copy(d.contact + first * size, d.contact + (first + more) * size, size)
            for c in range(max(stop - begin, end - first)):
                here = d.contact + (first + more + c) * size
                if c > 0:
                    copy(d.contact + (first + more) * size, here, size)
                write(here, where, rows[begin + min(c, stop - begin - 1)])
                if c >= stop - begin:
                    ints(here + where[EXCLUDE])[0] = 1
        plan[k, 0] = first + more


@kernel
def write(contact, where, row):
    """Write distance, position and frame of one of MuJoCo's contacts."""
    floats(contact + where[DIST])[0] = row[0]
    pos, frame = floats(contact + where[POS]), floats(contact + where[FRAME])
    for a in range(3):
        pos[a] = row[1 + a]
    for a in range(9):
        frame[a] = row[4 + a]


@kernel
def copy(source, target, size):
    """Copy `size` bytes between two addresses, in words of four."""
    if source != target:
        one, two = ints(source), ints(target)
        for k in range(size // 4):
            two[k] = one[k]


@kernel
def side_by_side(model, data, one, two, rows):
    """Contacts of two cylinders or capsules whose sides face each other: their number, 0 if ends or rims touch.

    With axes x + s u and y + t w, half lengths h and k, the nearest points of the lines are
    s = (b e - c) / (1 - b²), t = (e - b c) / (1 - b²), b = u·w, c = u·(x - y), e = w·(x - y).
    """
    m, d = model[0], data[0]
    place, R, sizes = floats(d.geom_xpos), floats(d.geom_xmat), floats(m.geom_size)

    # The nearest points of both lines; parallel lines have none.
    h, k = sizes[3 * one + 1], sizes[3 * two + 1]
    b, c, e = 0.0, 0.0, 0.0
    for a in range(3):
        u, w = R[9 * one + 3 * a + 2], R[9 * two + 3 * a + 2]
        between = place[3 * one + a] - place[3 * two + a]
        b += u * w
        c += u * between
        e += w * between
    crossed = 1.0 - b * b
    s, t = 0.0, 0.0
    if crossed > EXACTLY_PARALLEL:
        s, t = (b * e - c) / crossed, (e - b * c) / crossed
    inside = crossed > EXACTLY_PARALLEL and abs(s) < h and abs(t) < k

    # Crossed axes touch in one point; two capsules keep MuJoCo's contact, which is exact.
    if crossed > PARALLEL * PARALLEL:
        if not inside or ints(m.geom_type)[two] == CAPSULE:
            return 0
        touch(model, data, one, two, s, t, rows[0])
        return 1
    # The part of the first axis alongside the second one: t = e + b s within ±k.
    low, high = (-k - e) / b, (k - e) / b
    if low > high:
        low, high = high, low
    low, high = max(low, -h), min(high, h)
    if not low < high:
        return 0
    # End on end: the overlap along the axes is smaller than the one across them.
    middle, square = 0.5 * (low + high), 0.0
    for a in range(3):
        p = place[3 * one + a] + middle * R[9 * one + 3 * a + 2]
        q = place[3 * two + a] + (e + b * middle) * R[9 * two + 3 * a + 2]
        square += (q - p) * (q - p)
    if sizes[3 * one] + sizes[3 * two] - square**0.5 > high - low:
        return 0

    # Contacts at both ends of the shared part, and where the axes are nearest if that lies between them.
    touch(model, data, one, two, low, e + b * low, rows[0])
    touch(model, data, one, two, high, e + b * high, rows[1])
    if not (inside and low < s < high):
        return 2
    touch(model, data, one, two, s, t, rows[2])
    return 3


@kernel
def touch(model, data, one, two, s, t, row):
    """Write the contact between the points at s and t on two axes."""
    m, d = model[0], data[0]
    place, R, sizes = floats(d.geom_xpos), floats(d.geom_xmat), floats(m.geom_size)
    dist, pos, frame = row[:1], row[1:4], row[4:]

    # Gap along the line between the two points; position halfway across the gap.
    square, along = 0.0, 0.0
    for a in range(3):
        p = place[3 * one + a] + s * R[9 * one + 3 * a + 2]
        q = place[3 * two + a] + t * R[9 * two + 3 * a + 2]
        frame[a] = q - p
        pos[a] = p
        square += frame[a] * frame[a]
    length = square**0.5
    dist[0] = length - sizes[3 * one] - sizes[3 * two]
    for a in range(3):
        frame[a] /= length
        pos[a] += frame[a] * (sizes[3 * one] + 0.5 * dist[0])
        along += frame[a] * R[9 * one + 3 * a + 2]

    # Tangents: the first axis made orthogonal to the normal, and the cross product of both.
    square = 0.0
    for a in range(3):
        frame[3 + a] = R[9 * one + 3 * a + 2] - along * frame[a]
        square += frame[3 + a] * frame[3 + a]
    for a in range(3):
        frame[3 + a] /= square**0.5
    frame[6] = frame[1] * frame[5] - frame[2] * frame[4]
    frame[7] = frame[2] * frame[3] - frame[0] * frame[5]
    frame[8] = frame[0] * frame[4] - frame[1] * frame[3]

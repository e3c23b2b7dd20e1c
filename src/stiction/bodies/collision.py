"""MuJoCo's contacts, checked and mended where its search for contact patches errs.

Measured on MuJoCo 4.0, at random poses with gaps of 1e-5 to 1e-3 m: contacts of spheres, capsules, ellipsoids and of
boxes with each other agree with the true distance. Contacts of cylinders and meshes do not always: when MuJoCo looks
for a patch between two faces it may report them up to 2 mm too far, with normals up to 70° wrong (its search for the
single closest pair is exact). And parallel cylinders get one contact, at one end, where a log rests on a line.

So a model with cylinders or meshes is stepped with one stage more, between collision and the posing of constraints:

- Two cylinders, or nearly parallel capsules, whose sides face each other touch where their axes are nearest; if these
  are within PARALLEL of each other, also at both ends of the part that they share.
- A pair whose nearest contact is farther than the true distance (`mj_geomDistance`) gets the true nearest points and
  direction instead; others of its patch stay if they face the same way, else what rests on a face would rock.

Heightfields: at a margin of 5 mm MuJoCo's normals tilt up to 78° on terrain of 30°; margins are therefore small for
what moves slowly (`contacts.margins`). Terrain of boxes or meshes is better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.memory import DIST, EXCLUDE, FRAME, GEOM, POS, SIZE
from stiction.bodies.pointers import floats, ints
from stiction.compiled import kernel
from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.memory import Memory

mj = mujoco()

PLANE, HFIELD, CAPSULE, CYLINDER, BOX, MESH = 0, 1, 3, 5, 6, 7  # mjtGeom
PARALLEL = 0.1  # rad: axes that are at most so far apart get contacts at the ends of what they share
EXACTLY = 1e-12  # squared sine of an angle that is none
FARTHER = 1e-6  # of the smaller radius: error of a distance that is mended
ALIGNED = 0.999  # cosine of the angle between normals that agree
SURE = 1e-9  # m: distance below which its direction is not


def needs_mending(model: Any) -> bool:
    """Whether geoms are there whose contacts may err."""
    kinds = set(model.geom_type[(model.geom_contype | model.geom_conaffinity) != 0].tolist())
    kinds |= {int(model.geom_type[g]) for g in (*model.pair_geom1, *model.pair_geom2)}
    if kinds & {CYLINDER, MESH}:
        return True
    capsules = (model.geom_type == CAPSULE) & ((model.geom_contype | model.geom_conaffinity) != 0)
    trees = set(model.body_treeid[model.geom_bodyid[capsules]].tolist())
    return len(trees) > 1


def mend(model: Any, data: Any, memory: Memory) -> None:
    """Correct the contacts that `mj_collision` has found."""
    count = data.ncon
    if not count:
        return
    second, runs = np.empty((2 * count, 14)), np.empty((count, 2), np.int64)
    added, doubtful = mend_cylinders(memory.model, memory.data, memory.where, second, runs)
    reach = np.zeros(6)
    for first, end in runs[:doubtful]:
        contacts = data.contact
        one, two = contacts.geom[first]
        nearest = contacts.dist[first:end].min()
        radius = min(r for r in model.geom_rbound[[one, two]] if r > 0.0)
        true = mj.mj_geomDistance(model, data, one, two, nearest + radius, reach)
        if true < nearest - FARTHER * radius and abs(true) > SURE:
            # A patch that faces the same way only lacks a point between its own; another is wrong altogether.
            direction = (reach[3:] - reach[:3]) / true
            contacts.exclude[first:end] = contacts.frame[first:end, :3] @ direction < ALIGNED
            place = first + int(np.argmin(contacts.dist[first:end]))
            contacts.dist[place] = true
            contacts.pos[place] = 0.5 * (reach[:3] + reach[3:])
            contacts.frame[place] = frame(direction)
            contacts.exclude[place] = 0
    for row in second[:added]:
        contact = data.contact[int(row[13])]
        kept = (contact.dist, contact.pos.copy(), contact.frame.copy())
        contact.dist, contact.pos[:], contact.frame[:] = row[0], row[1:4], row[4:13]
        mj.mj_addContact(model, data, contact)
        contact = data.contact[int(row[13])]
        contact.dist, contact.pos[:], contact.frame[:] = kept


def frame(normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """A normal and two tangents."""
    across = np.eye(3)[np.argmin(np.abs(normal))]
    tangent = np.cross(normal, across)
    tangent /= np.linalg.norm(tangent)
    return np.concatenate([normal, tangent, np.cross(normal, tangent)])


@kernel
def mend_cylinders(model, data, where, second, runs):
    """Cylinders side by side, in place; their second contacts, and the runs of contacts of pairs left to doubt.

    second: rows of distance, position, frame and the contact that it belongs to; runs: first contact and end
    """
    m, d = model[0], data[0]
    kinds = ints(m.geom_type)
    added, doubtful = 0, 0
    first = 0
    while first < d.ncon:
        geoms = ints(d.contact + first * where[SIZE] + where[GEOM])
        one, two = geoms[0], geoms[1]
        end = first + 1
        while end < d.ncon:
            others = ints(d.contact + end * where[SIZE] + where[GEOM])
            if others[0] != one or others[1] != two:
                break
            end += 1
        if one >= 0 and two >= 0:
            a, b = kinds[one], kinds[two]
            if a == b and a in (CAPSULE, CYLINDER):
                points = side_by_side(model, data, where, first, one, two, second[added:])
                if points > 0:
                    for c in range(first + 1, end):
                        ints(d.contact + c * where[SIZE] + where[EXCLUDE])[0] = 1
                    added += points - 1
                elif a == CYLINDER:
                    runs[doubtful, 0], runs[doubtful, 1] = first, end
                    doubtful += 1
            elif (a in (CYLINDER, MESH) or b in (CYLINDER, MESH)) and angular(a) and angular(b):
                runs[doubtful, 0], runs[doubtful, 1] = first, end
                doubtful += 1
        first = end
    return added, doubtful


@kernel
def angular(kind):
    """Shapes with faces or edges, between which MuJoCo looks for patches."""
    return kind in (CAPSULE, CYLINDER, BOX, MESH)


@kernel
def side_by_side(model, data, where, contact, one, two, second):
    """Contacts of two cylinders whose sides face each other: their number, 0 if ends or rims touch.

    The first is written in place, the others to `second`. With axes x + s u and y + t w, half lengths h and k,
    the nearest points of the lines are s = (b e - c) / (1 - b²), t = (e - b c) / (1 - b²), b = u·w, c = u·(x - y),
    e = w·(x - y).
    """
    m, d = model[0], data[0]
    place, R, sizes = floats(d.geom_xpos), floats(d.geom_xmat), floats(m.geom_size)
    h, k = sizes[3 * one + 1], sizes[3 * two + 1]
    b, c, e = 0.0, 0.0, 0.0
    for a in range(3):
        u, w = R[9 * one + 3 * a + 2], R[9 * two + 3 * a + 2]
        between = place[3 * one + a] - place[3 * two + a]
        b += u * w
        c += u * between
        e += w * between
    here = d.contact + contact * where[SIZE]
    dist, pos, frame = floats(here + where[DIST]), floats(here + where[POS]), floats(here + where[FRAME])
    crossed = 1.0 - b * b
    s, t = 0.0, 0.0
    if crossed > EXACTLY:
        s, t = (b * e - c) / crossed, (e - b * c) / crossed
    inside = crossed > EXACTLY and abs(s) < h and abs(t) < k
    if crossed > PARALLEL * PARALLEL:
        if not inside or ints(m.geom_type)[one] == CAPSULE:
            return 0
        touch(model, data, one, two, s, t, dist, pos, frame)
        return 1
    # The part of the first axis beside which the second one runs: t = e + b s within ±k.
    low, high = (-k - e) / b, (k - e) / b
    if low > high:
        low, high = high, low
    low, high = max(low, -h), min(high, h)
    if not low < high:
        return 0
    # End on end: they overlap less along their axes than across them.
    middle, square = 0.5 * (low + high), 0.0
    for a in range(3):
        p = place[3 * one + a] + middle * R[9 * one + 3 * a + 2]
        q = place[3 * two + a] + (e + b * middle) * R[9 * two + 3 * a + 2]
        square += (q - p) * (q - p)
    if sizes[3 * one] + sizes[3 * two] - square**0.5 > high - low:
        return 0
    ends = second[0]
    touch(model, data, one, two, high, e + b * high, ends[:1], ends[1:4], ends[4:13])
    ends[13] = contact
    if not (inside and low < s < high):
        touch(model, data, one, two, low, e + b * low, dist, pos, frame)
        return 2
    ends = second[1]
    touch(model, data, one, two, low, e + b * low, ends[:1], ends[1:4], ends[4:13])
    ends[13] = contact
    touch(model, data, one, two, s, t, dist, pos, frame)
    return 3


@kernel
def touch(model, data, one, two, s, t, dist, pos, frame):
    """The contact between the points at s and t of two axes."""
    m, d = model[0], data[0]
    place, R, sizes = floats(d.geom_xpos), floats(d.geom_xmat), floats(m.geom_size)
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
    square = 0.0
    for a in range(3):
        frame[3 + a] = R[9 * one + 3 * a + 2] - along * frame[a]
        square += frame[3 + a] * frame[3 + a]
    for a in range(3):
        frame[3 + a] /= square**0.5
    frame[6] = frame[1] * frame[5] - frame[2] * frame[4]
    frame[7] = frame[2] * frame[3] - frame[0] * frame[5]
    frame[8] = frame[0] * frame[4] - frame[1] * frame[3]

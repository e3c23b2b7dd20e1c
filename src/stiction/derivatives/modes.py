"""The mode of each contact, as derivatives need it: how its impulse may change, and what must stay zero.

Velocities alone decide the mode. Impulses p̂ and velocities û are those of the normal form (`problems.normal_form`),
and g is where friction is on the disc, polygon or square of size one:

    mode     impulse may change by            stays zero        meaning
    OPEN     nothing                          nothing           u_n > 0
    NORMAL   n                                u_n               closed without friction
    EDGE     (1, mu g), parts that stick      u_n, these parts  slides; g = -u_t / |u_t|, or a vertex
     on the brink: all across g as well       u_t across g      sticks with friction at its bound; at kinks only
    FACE     (1, mu g) and d ⊥ g              u_n, d·u_t        slides with friction on a side of the polygon
    STICK    everything                       u                 sticks
    HELD     tangents                         u_t               without slip: opens, and is kept from sliding

On the round cone g turns with the velocity: p_t = -mu p_n u_t / |u_t| has the derivative

    dp_t = -mu dp_n t - dmu p_n t - (mu p_n / |u_t|) (I - t tᵀ) du_t,      t = u_t / |u_t|

whose last term, the compliance C, acts like a viscosity across the sliding. `Viscous` has C = viscosity · I.

With torsion and rolling u_t has five entries, along rows that are scaled so that all share one mu; bounded apart,
sliding, spin and rolling are three parts, each with a g and a C of its own, and some may stick while others slide.

The margin of a contact is the least change of velocity, in m/s, that could bring it into another mode: the opening
velocity; the sliding velocity (on a polygon, the distance to the next vertex's direction); W p_n before it opens; W
times the distance of p_t from its bound before it slides, W the contact's own inverse mass. Where contacts share a load
in many ways the impulses with the largest margins count: a kink is where no way of sharing has a margin.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.layout import Floats, Ints, layout
from stiction.problems.laws import CONE, NO_SLIP, VISCOUS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.laws import Law

    Numbers = NDArray[np.float64]

OPEN, NORMAL, EDGE, FACE, STICK, HELD = range(6)
NAMES = ("opens", "is closed", "slides", "slides", "sticks", "is held")
INFINITE = np.inf


class Outline(NamedTuple):
    """The outline of friction where mu p_n is one: a disc if there are no corners, else a polygon around zero."""

    corners: Any  # (k, 2)
    normals: Any  # (k, 2) outward, of its sides
    distance: Any  # (k,) of its sides from zero
    reach: Any  # radius of the largest disc inside


@lru_cache(maxsize=64)
def outline(law: Law, dim: int) -> Outline:
    """The outline of a law; dim 2: in the plane."""
    corners = law.corners(dim)
    if corners is None:
        return Outline(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0), 1.0)
    corners = np.array(corners, np.float64)
    normals, distance = facets(corners)
    return Outline(corners, np.array(normals), np.array(distance), float(distance.min()))


def facets(corners: Numbers) -> tuple[Numbers, Numbers]:
    """(k, 2) outward normals of a polygon's sides, and (k,) their distances from its centre."""
    if len(corners) == 2:  # in the plane
        return np.sign(corners) * [1.0, 0.0], np.abs(corners[:, 0])
    middle = 0.5 * (corners + np.roll(corners, -1, axis=0))
    distance = np.sqrt((middle**2).sum(axis=1))
    return middle / distance[:, None], distance


class Modes(NamedTuple):
    """Modes of n contacts with d directions."""

    mode: Array[Ints, "n"]  # as above
    g: Array[Floats, "n", "d - 1"]  # where friction is; zero for parts that stick
    side: Array[Floats, "n", 2]  # along the side of a polygon, of a FACE
    mu: Array[Floats, "n"]  # friction, 0 for laws without a bound
    round: Array[Ints, "n"]  # whether g turns with the sliding velocity
    brink: Array[Ints, "n", 3]  # of each part: about to slide, so that friction at its bound holds it across g
    slack: Array[Floats, "n"]  # margin that velocities leave, in m/s; infinite where they decide nothing


class Bases(NamedTuple):
    """How impulses may change, and what must stay zero: orthonormal columns, the first `count` of each contact."""

    may: Array[Floats, "n", "d", "d"]
    zero: Array[Floats, "n", "d", "d"]
    count: Array[Ints, "n"]  # type: ignore[assignment]


layout(Modes, "n", "d")
layout(Bases, "n", "d")


@kernel
def parts(apart, d):
    """How many parts friction has, each with a bound of its own."""
    return 3 if apart and d == 6 else 1


@kernel
def part_of(k, apart, d):
    """The directions of part k: from, and one past."""
    if parts(apart, d) == 1:
        return 1, d
    return (1, 3) if k == 0 else (3, 4) if k == 1 else (4, 6)


@kernel
def length_of(x, first, end):
    """Norm of some entries."""
    total = 0.0
    for c in range(first, end):
        total += x[c] * x[c]
    return total**0.5


@kernel
def set_modes(law, shape, friction, slip, u, p, small, modes):
    """The mode of each contact by its velocity; small: (n,) velocities, in m/s, that count as zero.

    shape: an `Outline`; slip: (n, 2), or (0, 2) if no direction is known; whether one presses only decides what HELD is
    """
    d = u.shape[1]
    for i in range(len(u)):
        # Nothing is known yet.
        g = modes.g[i]
        for c in range(d - 1):
            g[c] = 0.0
        modes.side[i, 0], modes.side[i, 1], modes.round[i] = 0.0, 0.0, 0
        modes.brink[i, 0], modes.brink[i, 1], modes.brink[i, 2] = 0, 0, 0
        modes.mu[i] = friction[i] if law.kind >= CONE else 0.0

        # Open; without slip it may be kept from sliding all the same.
        if u[i, 0] > small[i]:
            modes.mode[i], modes.slack[i] = OPEN, abs(u[i, 0])
            if law.kind == NO_SLIP:
                for c in range(1, d):
                    if p[i, c] != 0.0:
                        modes.mode[i] = HELD
            continue
        modes.slack[i] = INFINITE

        # Laws without a bound on friction; friction along a known direction; on a polygon; on the disc.
        if law.kind == NO_SLIP:
            modes.mode[i] = STICK
        elif law.kind < CONE or not friction[i] > 0.0:
            modes.mode[i] = NORMAL
        elif len(slip) > 0 and slip[i, 0] == slip[i, 0]:
            modes.mode[i], g[0], g[1] = EDGE, -slip[i, 0], -slip[i, 1]
        elif len(shape.corners) > 0:
            on_polygon(shape, u[i], small[i], i, modes)
        else:
            modes.mode[i] = STICK

            # Each part that slides, opposite to its velocity.
            for k in range(parts(law.apart, d)):
                first, end = part_of(k, law.apart, d)
                speed = length_of(u[i], first, end)
                if speed > small[i]:
                    for c in range(first, end):
                        g[c - 1] = -u[i, c] / speed
                    modes.mode[i], modes.round[i] = EDGE, 1
                    modes.slack[i] = min(modes.slack[i], speed)


@kernel
def on_polygon(shape, u, small, i, modes):
    """The vertices that oppose the sliding best: all of them at rest, else one or two neighbours."""
    # The most that a vertex takes from the motion; at rest none takes anything.
    corners = shape.corners
    least, most = INFINITE, 0.0
    for k in range(len(corners)):
        work = corners[k, 0] * u[1] + corners[k, 1] * u[2]
        least, most = min(least, work), max(most, abs(work))
    if most <= small:
        modes.mode[i] = STICK
        return

    # The vertices that take about as much, and the next one after them.
    first, last, next_best = -1, -1, INFINITE
    for k in range(len(corners)):
        above = corners[k, 0] * u[1] + corners[k, 1] * u[2] - least
        if above <= small:
            first, last = k if first < 0 else first, k
        else:
            next_best = min(next_best, above)

    # One vertex, or the middle of the side between two.
    one, two = corners[first], corners[last]
    modes.slack[i] = next_best
    modes.g[i, 0], modes.g[i, 1] = 0.5 * (one[0] + two[0]), 0.5 * (one[1] + two[1])
    modes.mode[i] = EDGE if first == last else FACE
    if first != last:
        x, y = two[0] - one[0], two[1] - one[1]
        length = (x * x + y * y) ** 0.5
        modes.side[i, 0], modes.side[i, 1] = x / length, y / length


@kernel
def set_bases(modes, apart, rows, bases):
    """Directions of impulses and velocities; tangents without a row (in the plane) are none. True if both are alike."""
    n, d = rows.shape[0], rows.shape[1]
    alike = True
    for i in range(n):
        may, zero, mode, g = bases.may[i], bases.zero[i], modes.mode[i], modes.g[i]

        # No direction yet.
        for c in range(d):
            for k in range(d):
                may[c, k] = zero[c, k] = 0.0
        count = 0

        # The normal; friction of a contact that slides goes with it.
        if mode != OPEN and mode != HELD:
            may[0, 0] = zero[0, 0] = 1.0
            count = 1
            if mode in (EDGE, FACE):
                # (1, mu g), of unit length.
                mu, size = modes.mu[i], 1.0
                for c in range(d - 1):
                    size += mu * mu * g[c] * g[c]
                size = size**0.5
                alike = alike and size == 1.0
                may[0, 0] = 1.0 / size
                for c in range(1, d):
                    may[c, 0] = mu * g[c - 1] / size

        # Tangents that stick; of a part that slides none, on the brink those across g.
        if mode == FACE:
            for c in range(2):
                may[1 + c, count] = zero[1 + c, count] = modes.side[i, c]
            count += 1
        elif mode in (STICK, HELD, EDGE):
            for k in range(parts(apart, d)):
                first, end = part_of(k, apart, d)
                slides = mode == EDGE and length_of(g, first - 1, end - 1) > 0.0
                # On the brink of sliding it may still change across g; what sticks, along every tangent.
                if slides and modes.brink[i, k] != 0:
                    count = add_across(g, rows[i], first, end, may, zero, count)
                for c in range(first, end if not slides else first):
                    if has_entries(rows[i, c]):
                        may[c, count] = zero[c, count] = 1.0
                        count += 1
        bases.count[i] = count
    return alike


@kernel
def add_across(g, rows, first, end, may, zero, count):
    """The directions of a part across g, by the reflection that turns g into an axis; how many columns there are."""
    # The axis that g is nearest to.
    axis = first
    for c in range(first, end):
        if abs(g[c - 1]) > abs(g[axis - 1]):
            axis = c
    size = abs(g[axis - 1])
    sign = 1.0 if g[axis - 1] >= 0.0 else -1.0

    # The images of the other axes.
    for c in range(first, end):
        if c != axis and has_entries(rows[c]):
            part = g[c - 1] / (1.0 + size)
            for a in range(first, end):
                along = g[a - 1] + (sign if a == axis else 0.0)
                may[a, count] = zero[a, count] = (1.0 if a == c else 0.0) - part * along
            count += 1
    return count


@kernel
def has_entries(row):
    """Whether any is not zero."""
    for j in range(len(row)):
        if row[j] != 0.0:
            return True
    return False


@kernel
def set_margins(law, shape, modes, p, scale, rows, margin):
    """(n,) in m/s; a contact that joints hold entirely has nothing to change."""
    for i in range(len(p)):
        left = impulse_slack(law, shape, modes, i, p[i]) / (scale[i] * scale[i])
        margin[i] = min(modes.slack[i], left)
        moving = False
        for c in range(rows.shape[1]):
            moving = moving or has_entries(rows[i, c])
        if not moving:
            margin[i] = INFINITE


@kernel
def impulse_slack(law, shape, modes, i, p):
    """The margin, in N s, that an impulse leaves; infinite for open contacts."""
    # Before it opens; without a bound on friction that is all.
    mode, mu, d = modes.mode[i], modes.mu[i], len(p)
    if mode in (OPEN, HELD):
        return INFINITE
    slack, bound = p[0], mu * p[0]
    if law.kind < CONE:
        return slack

    # Within the disc or polygon, part by part where these are bounded apart; on a side, between its vertices.
    if mode == FACE:
        along = abs(p[1] * modes.side[i, 0] + p[2] * modes.side[i, 1])
        slack = min(slack, bound * 0.5 * side_length(shape.corners, modes.side[i]) - along)
    elif mode == STICK and len(shape.corners) > 0:
        for k in range(len(shape.normals)):
            slack = min(slack, shape.distance[k] * bound - p[1] * shape.normals[k, 0] - p[2] * shape.normals[k, 1])
    elif mode == STICK or (mode == EDGE and parts(law.apart, d) > 1):
        for k in range(parts(law.apart, d)):
            first, end = part_of(k, law.apart, d)
            if mode == STICK or length_of(modes.g[i], first - 1, end - 1) == 0.0:
                slack = min(slack, bound - length_of(p, first, end))
    return slack


@kernel
def side_length(corners, way):
    """The length of the side of a polygon that lies nearest to this direction."""
    best, found, k = -1.0, 0.0, len(corners)
    for a in range(k):
        b = a + 1 if a + 1 < k else 0
        x, y = corners[b, 0] - corners[a, 0], corners[b, 1] - corners[a, 1]
        length = (x * x + y * y) ** 0.5
        along = abs(x * way[0] + y * way[1]) / length
        if along > best:
            best, found = along, length
    return found


@kernel
def set_compliance(law, modes, viscosity, p, u, scale, C):
    """(n, d, d) C in the normal form: of friction that turns, or is viscous of the final velocity; False if none is."""
    n, d = u.shape
    some = False
    for i in range(n):
        for c in range(d):
            for k in range(d):
                C[i, c, k] = 0.0
        unit = 1.0 / (scale[i] * scale[i])

        # Viscous friction resists every tangent alike.
        if law.kind == VISCOUS and law.implicit:
            C[i, 1, 1] = C[i, 2, 2] = viscosity[i] * unit
            some = True
        elif modes.round[i] != 0 and modes.mode[i] == EDGE:
            some = True

            # Friction that slides resists only what turns it: across g.
            for k in range(parts(law.apart, d)):
                first, end = part_of(k, law.apart, d)
                g = modes.g[i]
                if modes.brink[i, k] == 0 and length_of(g, first - 1, end - 1) > 0.0:
                    stiff = modes.mu[i] * max(p[i, 0], 0.0) / length_of(u[i], first, end) * unit
                    for a in range(first, end):
                        for b in range(first, end):
                            C[i, a, b] = stiff * ((1.0 if a == b else 0.0) - g[a - 1] * g[b - 1])
    return some

"""Kernels of the judge of contact (see `contact`)."""

from __future__ import annotations

import math
from typing import Annotated as Array
from typing import Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import alone, in_callers, kernel, sums
from stiction.arrays.dense import back_substitute, dot, forward_substitute, subtract_multiple
from stiction.arrays.layout import Floats, layout
from stiction.arrays.runs import add_rows, rows_dot
from stiction.arrays.vectors import (
    THREE,
    across,
    at,
    by_parts,
    largest,
    minus,
    negative,
    plus,
    put,
    roll_dot,
    slide_dot,
    spin_dot,
    times,
    times_each,
    total_size,
    with_normal,
)
from stiction.arrays.vectors import over as over_number
from stiction.problems.joints import NOISE_ROW
from stiction.problems.laws import BOX, CONE, FRICTIONLESS, NO_SLIP, PYRAMID, VISCOUS, LawNumbers
from stiction.problems.normal_form import ROUNDED, Posed, demanded, given_rate, white_sizes, white_views

OPEN, STICK, SLIDE, SPIN, ROLL = range(5)
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-250, 1e300
AT_REST = 1e-9  # a contact sliding slower than this part of the velocity scale sticks
AMPLIFIED = 100.0  # motion that overlaps and joints may cause together, over the sum of their separate demands
# A certificate before anything is judged.
NOTHING = (0.0, -1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


TRUE_CONE = LawNumbers(CONE)


class Judging(NamedTuple):
    """Scratch, for m velocities: a tree's numbers stand at its first velocity, an island's at its root."""

    unbalanced: Array[Floats, "m"]  # momentum that impulses do not account for
    whole: Array[Floats, "m"]  # free motion of a tree, (v · M v)^½
    terms: Array[Floats, "m"]  # motions from which that of a tree is left by cancellation
    energy: Array[Floats, "m"]  # free motion of an island
    after: Array[Floats, "m"]  # its motion after the step
    demand: Array[Floats, "m"]  # motion that its overlaps and joints ask for, each by itself
    reach: Array[Floats, "m"]  # motion that a contact of the island may have to resist
    heaviest: Array[Floats, "m"]  # its heaviest contact
    fastest: Array[Floats, "m"]  # its fastest free motion along a contact that can close


judging_sizes, judging_views = layout(Judging, "m")


def sample(zero: tuple[float, ...]) -> tuple[Any, ...]:
    """Arguments of `judge_problem`, for no contacts: of the kinds that it is compiled for."""
    wide, numbers, integers = np.empty((0, len(zero))), np.empty(0), np.empty(0, np.int64)
    lengths = 0, len(zero), 0, 0, 0, 0
    white = white_views(*lengths, np.empty(white_sizes(*lengths)[0]), integers)
    posed = Posed(
        numbers, integers, numbers, wide[:, :, None], np.empty((0, 4), np.int64), numbers, numbers, wide, numbers, wide
    )  # fmt: skip
    scratch = judging_views(0, numbers, integers)
    return TRUE_CONE, numbers, wide, posed, white, scratch, numbers, wide, numbers, wide, integers, zero


@alone
@kernel
def judge_problem(law, viscosity, slip, posed, white, scratch, v, impulse, joint_impulse, u, mode, zero):
    """Return the numbers of a ContactCertificate, in its order; u and mode are filled; zero: impulse of a contact."""
    rows, segments, island = posed.rows, posed.segments, white.island
    unbalanced, fastest = scratch.unbalanced, scratch.fastest

    # Motion of each tree and island, motion demanded by overlaps and joints, and the impulses that act on it.
    motions(posed.mass, posed.trees, posed.velocity, v, island, scratch)
    demands(posed, white, scratch, zero)
    own_terms(posed, white, impulse, joint_impulse, scratch, zero)

    # Velocities of the contacts, the momentum that no impulse explains, and the scale of each island.
    for i in range(len(rows)):
        put(u, i, plus(rows_dot(rows[i], segments[i], v, zero), given_rate(posed, i, zero)))
        add_rows(rows[i], segments[i], negative(at(impulse, i, zero)), unbalanced)
        size = free_speed(posed, white, i, scratch, zero)
        if segments[i, 1] > 0:
            root = island[segments[i, 0]]
            fastest[root] = max(fastest[root], size)
    for k in range(len(posed.joints)):
        subtract_multiple(unbalanced, joint_impulse[k], posed.joints[k], len(unbalanced))

    # Momentum and energy, then joints, then contacts; `found` carries the worst so far.
    bounded = len(slip) == 0 and (law.kind != VISCOUS or law.implicit)
    found = judge_trees(posed, white, bounded, scratch, NOTHING)
    found = judge_joints(posed, white, v, scratch, found)

    # A contact's share of the unexplained momentum, as a velocity; NaN must survive.
    for i in range(len(rows)):
        lost = 0.0
        for off in rows_dot(rows[i], segments[i], unbalanced, zero):
            lost = abs(off) if not abs(off) <= lost else lost
        free1, free2 = 0.0, 0.0
        if law.kind == VISCOUS:
            _, free1, free2 = plus(rows_dot(rows[i], segments[i], posed.velocity, THREE), given_rate(posed, i, THREE))

        # Judge the contact in the units of its island.
        size, against = scales(posed, white, i, scratch, zero)
        part = Part(posed.friction[i], viscosity[i], white.scale[i], direction(slip, i), free1, free2, lost)
        p, w = at(impulse, i, zero), at(u, i, zero)
        found = judge_contact(law, part, p, w, i, size, against, found)
        mode[i] = mode_of(white.scale[i], p, w, size)
    return with_scale(found, fastest)


class Part(NamedTuple):
    """The data by which one contact is judged, beside impulse and velocity."""

    friction: float
    viscosity: float
    scale: float
    slip: tuple[float, float]  # direction of sliding, NaN if it is not known
    free1: float  # free velocity along the tangents
    free2: float
    lost: float  # momentum that no impulse explains, as a velocity


@in_callers
@kernel
def scales(posed, white, i, scratch, zero):
    """The velocity scale of a contact's island, and the same with an allowance for rounding, by which it is judged."""
    segment = posed.segments[i]

    # A contact that touches nothing movable has only its gap rate.
    if segment[1] == 0:
        size = abs(posed.gap_rate[i])
        return size, size
    size = scratch.fastest[white.island[segment[0]]]
    if size == 0.0:  # nothing on its island can close: measured by how it opens
        size = largest(plus(rows_dot(posed.rows[i], segment, posed.velocity, zero), given_rate(posed, i, zero)))

    # Its velocity may be rounding of the larger motions of its two trees.
    felt = scratch.terms[segment[0]] + run_start(segment[2], segment[3], scratch.terms)
    return size, max(size, ROUNDED / white.scale[i] * felt)


@kernel
def with_scale(found, fastest):
    """Complete the certificate; if the scale is zero, it becomes that of the fastest island, or one."""
    residual, where, penetration, complementarity, cone, dissipation, momentum, joint, scale, beyond, excess = found
    for j in range(len(fastest)):
        if not found[8] > 0.0:
            scale = max(scale, fastest[j])
    scale = scale if scale > 0.0 else 1.0
    return residual, where, penetration, complementarity, cone, dissipation, momentum, joint, scale, beyond, excess


@kernel
def judge_delassus(law, friction, viscosity, slip, scale, fastest, least, free, impulse, u, mode, zero):
    """As `judge_problem`, for known u; fastest: the largest free velocity that counts; least: used if it is zero."""
    found = NOTHING
    for i in range(len(free)):
        size = fastest if fastest > 0.0 else max(largest(at(free, i, zero)), least)
        part = Part(friction[i], viscosity[i], scale[i], direction(slip, i), free[i, 1], free[i, 2], 0.0)
        p, w = at(impulse, i, zero), at(u, i, zero)
        found = judge_contact(law, part, p, w, i, size, size, found)
        mode[i] = mode_of(scale[i], p, w, size)
    return with_scale(found, free[:0, 0])


@sums
def motions(mass, trees, v_free, v, island, scratch):
    """Motion (v · M v)^½ of each tree: free in `whole`, plus that of the change in `terms`; squares summed by island.

    `unbalanced` becomes M (v - v_free), the momentum that impulses must explain.

    Divided by a contact's size, a tree's motion is the velocity that the contact would have if all of it were along the
    contact. It bounds the velocities whose difference is the contact's own, where bodies move together.
    """
    # Nothing is summed yet.
    energy, after, whole, terms = scratch.energy, scratch.after, scratch.whole, scratch.terms
    for j in range(len(v)):
        energy[j], after[j], scratch.demand[j], scratch.heaviest[j], scratch.fastest[j] = 0.0, 0.0, 0.0, 0.0, 0.0

    # Each tree: products with its block of the mass, for free motion, change and final motion.
    at = 0
    for b in range(len(trees) - 1):
        first, size = trees[b], trees[b + 1] - trees[b]
        free, moved, final = 0.0, 0.0, 0.0
        for i in range(size):
            pushed, changed = 0.0, 0.0
            for j in range(size):
                pushed += mass[at + i * size + j] * v_free[first + j]
                changed += mass[at + i * size + j] * (v[first + j] - v_free[first + j])
            scratch.unbalanced[first + i] = changed
            free += v_free[first + i] * pushed
            moved += (v[first + i] - v_free[first + i]) * changed
            final += v[first + i] * (pushed + changed)

        # A tree's motion stands at its first velocity, an island's at its root.
        if size > 0:
            whole[first] = math.sqrt(positive(free))
            terms[first] = whole[first] + math.sqrt(positive(moved))
            energy[island[first]] += positive(free)
            after[island[first]] += positive(final)
        at += size * size


@kernel
def positive(square):
    """A square, with a negative value (rounding) set to zero; NaN stays."""
    return 0.0 if square < 0.0 else square


@in_callers
@kernel
def demands(posed, white, scratch, zero):
    """For each island: the motion that overlaps, surfaces and joints demand, each by itself, and its heaviest contact.

    energy, after: squares on entry, motions on return
    """
    segments, joints, island = posed.segments, posed.joints, white.island
    energy, after, demand, heaviest = scratch.energy, scratch.after, scratch.demand, scratch.heaviest

    # An overlapping contact must separate at its gap rate, and a moving surface carries, as if the heavier side moved.
    for i in range(len(segments)):
        if segments[i, 1] > 0:
            at = island[segments[i, 0]]
            heaviest[at] = max(heaviest[at], white.heavy[i])
            demand[at] += demanded(posed, i, zero) * white.heavy[i]

    # A joint must move at its rate.
    for k in range(len(joints)):
        first = first_moved(joints[k])
        if first >= 0:
            demand[island[first]] += abs(posed.joint_rate[k]) * white.joint_size[1, k]

    # A contact of the island may have to resist all of its free motion and all demands.
    for j in range(len(island)):
        if island[j] == j:
            energy[j], after[j] = math.sqrt(energy[j]), math.sqrt(after[j])
            scratch.reach[j] = energy[j] + demand[j]


@in_callers
@kernel
def own_terms(posed, white, impulse, joint_impulse, scratch, zero):
    """Add to each tree the motion that each impulse alone gives it; the tree's own motion is what their sum leaves.

    The allowance for rounding, ROUNDED times an impulse, is at most the impulse with which the island's motion could
    press its heaviest contact: no impulse is so large that it would hide a violation.
    """
    segments, joints, trees, island = posed.segments, posed.joints, posed.trees, white.island
    joint_size, reach, terms = white.joint_size, scratch.reach, scratch.terms

    # Contacts push both of their trees.
    for i in range(len(segments)):
        if segments[i, 1] > 0:
            root = island[segments[i, 0]]
            pressed = min(largest(at(impulse, i, zero)), scratch.heaviest[root] * reach[root] / ROUNDED)
            pressed /= white.scale[i]
            terms[segments[i, 0]] += pressed
            if segments[i, 3] > 0:
                terms[segments[i, 2]] += pressed

    # Joints push every tree that they touch.
    for k in range(len(joints)):
        if joint_size[0, k] > 0.0:
            root = island[first_moved(joints[k])]
            most = joint_size[1, k] / joint_size[0, k] * reach[root] / ROUNDED
            pressed = min(abs(joint_impulse[k]) / joint_size[0, k], most)
            for b in range(len(trees) - 1):
                if moves(joints[k], trees[b], trees[b + 1]):
                    terms[trees[b]] += pressed


@in_callers
@kernel
def free_speed(posed, white, i, scratch, zero):
    """The fastest free motion along contact i, in m/s, joints held or not; 0 if it cannot close in this step."""
    rows, segment, gap_rate, scale = posed.rows[i], posed.segments[i], posed.gap_rate[i], white.scale[i]
    whole = scratch.whole
    if segment[1] == 0:
        return abs(gap_rate)

    # No motion of the island could close a gap this wide.
    if not scale * gap_rate <= 3.0**0.5 * scratch.reach[white.island[segment[0]]]:
        return 0.0

    # Free velocities and approach, without joints and with joints held; at least the rounding of its trees' motion.
    surface = with_normal(0.0, given_rate(posed, i, zero))
    u = plus(rows_dot(rows, segment, posed.velocity, zero), surface)
    size = max(largest(u), -gap_rate, -u[0] - gap_rate)
    if len(white.held) > 0:
        u = plus(rows_dot(rows, segment, white.held, zero), surface)
        size = max(size, largest(u), -u[0] - gap_rate)
    return max(size, ROUNDED / scale * (whole[segment[0]] + run_start(segment[2], segment[3], whole)))


@in_callers
@kernel
def judge_trees(posed, white, bounded, scratch, found):
    """Judge the momentum of every tree and the energy of every island; `unbalanced` becomes a velocity.

    bounded: whether the law adds no energy, so that the motion after the step, (v · M v)^½, is at most the one before
        it plus AMPLIFIED times the motion that overlaps and joints demand
    """
    residual, where, penetration, complementarity, cone, dissipation, momentum, joint, scale, beyond, excess = found
    trees, island, terms, fastest = posed.trees, white.island, scratch.terms, scratch.fastest

    # Unexplained momentum r: its motion is (r · M⁻¹ r)^½, and M⁻¹ r is the velocity left for the contacts.
    at = 0
    for b in range(len(trees) - 1):
        first, size = trees[b], trees[b + 1] - trees[b]
        part, L = scratch.unbalanced[first : first + size], white.factor[at : at + size * size]
        back_substitute(L, size, part)
        lost = math.sqrt(dot(part, part, size))
        forward_substitute(L, size, part)
        if size > 0:
            # Momentum against the motions that it is made of.
            ratio = over(lost, terms[first])
            if worse(ratio, residual):
                residual, where, scale = ratio, -1, fastest[island[first]]

            # Energy: each island once, at its root.
            if bounded and island[first] == first:
                allowed = scratch.energy[first] + AMPLIFIED * scratch.demand[first]
                gained = scratch.after[first] - (1.0 + ROUNDED) * allowed
                gained = 0.0 if gained <= 0.0 else over(gained, allowed)
                excess = gained if worse(gained, excess) else excess
                if worse(gained, residual):
                    residual, where, scale = gained, -1, fastest[first]
        at += size * size
    return residual, where, penetration, complementarity, cone, dissipation, momentum, joint, scale, beyond, excess


@in_callers
@kernel
def judge_joints(posed, white, v, scratch, found):
    """Judge the bilateral rows, each against its own free motion; a row of rounding size counts as zero."""
    residual, where, penetration, complementarity, cone, dissipation, momentum, joint, scale, beyond, excess = found
    joints, joint_rate, joint_size, trees = posed.joints, posed.joint_rate, white.joint_size, posed.trees
    m, longest = len(v), 0.0

    # Rows much shorter than the longest are rounding.
    for k in range(len(joints)):
        longest = max(longest, 1.0 / joint_size[0, k] if joint_size[0, k] > 0.0 else 0.0)
    for k in range(len(joints)):
        length = 1.0 / joint_size[0, k] if joint_size[0, k] > 0.0 else 0.0
        off, size = abs(joint_rate[k]), abs(joint_rate[k])

        # The violation, against the row's free rate and the rounding of the trees that it moves.
        if length > NOISE_ROW * longest:
            off = abs(dot(joints[k], v, m) + joint_rate[k])
            size = abs(dot(joints[k], posed.velocity, m) + joint_rate[k])
            for b in range(len(trees) - 1):
                if moves(joints[k], trees[b], trees[b + 1]):
                    size = max(size, ROUNDED * length * scratch.terms[trees[b]])
        joint = off if not off <= joint else joint  # NaN stays
        ratio = over(off, size)
        if worse(ratio, residual):
            first = first_moved(joints[k])
            residual, where, scale = ratio, -1, scratch.fastest[white.island[first]] if first >= 0 else 0.0
    return residual, where, penetration, complementarity, cone, dissipation, momentum, joint, scale, beyond, excess


@kernel
def first_moved(row):
    """The first velocity that a row moves, -1 if there is none."""
    for j in range(len(row)):
        if row[j] != 0.0:
            return j
    return -1


@kernel
def moves(row, start, end):
    """Whether a row has a nonzero entry at the velocities from start to end."""
    for j in range(start, end):
        if row[j] != 0.0:
            return True
    return False


@kernel
def worse(ratio, residual):
    """Whether a residual is larger than the largest so far; NaN counts as larger."""
    return ratio > residual or ratio != ratio


@kernel
def over(violation, size):
    """A violation over its scale; without a scale, any violation counts as 1."""
    if violation == 0.0:
        return 0.0
    return violation / size if size > 0.0 else (1.0 if violation == violation else np.nan)


@kernel
def run_start(first, length, values):
    """The value at the start of a run of velocities, 0 if it is empty."""
    return values[first] if length > 0 else 0.0


@kernel
def direction(slip, i):
    """The direction in which a contact is known to slide, NaN if it is not known."""
    if len(slip) == 0:
        return np.nan, np.nan
    return slip[i, 0], slip[i, 1]


@in_callers
@kernel
def judge_contact(law, part, impulse, u, i, size, against, found):
    """Add contact i to the certificate; size: velocity scale of its island; against: the scale it is judged by."""
    residual, where, penetration, complementarity, cone, dissipation, momentum, joint, of, beyond, excess = found

    # Violations in m/s: approach, normal complementarity, and the law of friction.
    W, lost, slip = 1.0 / (part.scale * part.scale), part.lost, part.slip
    normal, p1, p2 = impulse[0], impulse[1], impulse[2]
    through = max(-u[0], 0.0)
    gap = abs(min(u[0], W * normal))
    radius = part.friction * max(normal, 0.0)
    outside, lazy = tangential(law, part, radius, W, impulse, u)
    slides = law.kind >= CONE and slip[0] == slip[0]  # not NaN: the direction is known

    # A known direction of sliding prescribes the friction impulse.
    if slides:
        outside, lazy = 0.0, W * length(p1 + radius * slip[0], p2 + radius * slip[1])

    # The worst of them decides; NaN and infinity always fail.
    here = over(max(through, gap, outside, lazy, lost), against)
    if not math.isfinite(through + gap + outside + lazy + lost + total_size(impulse)):
        here = np.nan
    if here > residual or not math.isfinite(here) or (where < 0 and here >= residual):
        residual, where, of = here, i, size

    # Distance from Coulomb's law on the circular cone (`beyond_cone`).
    if law.kind == NO_SLIP:
        beyond = max(beyond, over(min(max(u[0], 0.0), W * length(p1, p2)), size))
    if law.kind == CONE and not slides:
        beyond = max(beyond, over(max(outside, lazy), size))
    elif law.kind > CONE and not slides:
        out, late = tangential(TRUE_CONE, part, radius, W, impulse, u)
        beyond = max(beyond, over(max(out, late), size))
    return (
        residual, where, max(penetration, through), max(complementarity, gap), max(cone, outside),
        max(dissipation, lazy), max(momentum, lost), joint, of, beyond, excess,
    )  # fmt: skip


@kernel
def mode_of(scale, impulse, u, size):
    """OPEN without impulse, SLIDE with tangential velocity, SPIN or ROLL if it only turns, else STICK."""
    W = 1.0 / (scale * scale)
    if W * impulse[0] <= AT_REST * size and W * friction_size(impulse) <= AT_REST * size:
        return OPEN
    if length(u[1], u[2]) > AT_REST * size:
        return SLIDE
    if len(u) > 3 and abs(u[3]) > AT_REST * size:
        return SPIN
    return ROLL if friction_size(u) > AT_REST * size else STICK


@kernel
def friction_size(v):
    """Length of the tangential part, without overflow and underflow of squares."""
    square = across(v, v)
    most = largest(with_normal(0.0, v))
    if SMALLEST_SQUARE < square < LARGEST_SQUARE or not 0.0 < most < math.inf:
        return math.sqrt(square)
    scaled = over_number(v, most)
    return most * math.sqrt(across(scaled, scaled))


@kernel
def length(x, y):
    """math.hypot(x, y), which is called only where squares may overflow or underflow."""
    square = x * x + y * y
    if SMALLEST_SQUARE < square < LARGEST_SQUARE or (x == 0.0 and y == 0.0):
        return math.sqrt(square)
    return math.hypot(x, y)


@in_callers
@kernel
def tangential(law, part, radius, W, impulse, u):
    """Return (distance of p_t from the set that the law allows, deviation from opposing the slip), in m/s."""
    p1, p2, u1, u2 = impulse[1], impulse[2], u[1], u[2]
    size = friction_size(impulse)

    # Laws without a friction cone.
    if law.kind == FRICTIONLESS:
        return W * size, 0.0
    if law.kind == VISCOUS:
        v1, v2 = (u1, u2) if law.implicit else (part.free1, part.free2)
        return 0.0, W * length(p1 + part.viscosity * v1, p2 + part.viscosity * v2)
    if law.kind == NO_SLIP:  # no slip, or no impulse at all
        return 0.0, min(length(u1, u2), W * (size + abs(impulse[0])))

    # Laws with a cone or an approximation of it: p_t must be the projection of p_t - u_t / W onto the allowed set.
    y = minus(impulse, over_number(u, W))
    y1, y2 = y[1], y[2]
    if law.kind == CONE and law.apart:
        outside = friction_size(minus(impulse, onto_discs(impulse, radius)))
        return W * outside, W * friction_size(minus(impulse, onto_discs(y, radius)))
    if law.kind == CONE:
        return W * max(size - radius, 0.0), W * friction_size(minus(impulse, onto_disc(y, radius)))
    if law.kind == PYRAMID:
        b1, b2 = onto_polygon(p1, p2, radius, law.facets, law.rotation)
        a1, a2 = onto_polygon(y1, y2, radius, law.facets, law.rotation)
    elif law.kind == BOX:
        side = law.side * radius
        b1, b2 = min(max(p1, -side), side), min(max(p2, -side), side)
        a1, a2 = min(max(y1, -side), side), min(max(y2, -side), side)
    else:  # a law without a case here is never certified
        return math.inf, math.inf
    return W * length(p1 - b1, p2 - b2), W * length(p1 - a1, p2 - a2)


@kernel
def onto_disc(y, radius):
    """Project the tangential part onto a disc."""
    size = friction_size(y)
    if size <= radius:
        return y
    return over_number(times(radius, y), size)


@kernel
def onto_discs(y, radius):
    """Project sliding, spin and rolling, each onto its own disc."""
    slide, spin, roll = math.sqrt(slide_dot(y, y)), math.sqrt(spin_dot(y, y)), math.sqrt(roll_dot(y, y))
    return times_each(
        by_parts(
            y, radius / slide if slide > radius else 1.0, radius / spin if spin > radius else 1.0,
            radius / roll if roll > radius else 1.0,
        ),
        y,
    )  # fmt: skip


@kernel
def onto_polygon(y1, y2, radius, facets, rotation):
    """Project onto the regular polygon with vertices at `rotation + 2 pi j / facets`."""
    # The side of the polygon in whose sector the point lies.
    step = 2.0 * math.pi / facets
    sector = math.floor((math.atan2(y2, y1) - rotation) / step)
    middle = rotation + (sector + 0.5) * step
    c, s = math.cos(middle), math.sin(middle)
    out, along = c * y1 + s * y2, -s * y1 + c * y2  # across and along the side of this sector
    apothem, half = radius * math.cos(0.5 * step), radius * math.sin(0.5 * step)

    # Inside, the point itself; outside, the nearest point of the side, vertices included.
    if out <= apothem:
        return y1, y2
    along = min(max(along, -half), half)
    return c * apothem - s * along, s * apothem + c * along

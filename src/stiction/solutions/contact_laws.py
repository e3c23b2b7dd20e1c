"""Kernels of the judge of contact (see `contact`)."""

from __future__ import annotations

import math

import numpy as np

from stiction.compiled import kernel, sums
from stiction.linear import back_substitute, dot, forward_substitute, subtract_multiple
from stiction.problems.normal_form import ROUNDED, add_rows, rows_dot

FRICTIONLESS, VISCOUS, NO_SLIP, CONE, PYRAMID, BOX = range(6)  # the order of laws.KINDS
OPEN, STICK, SLIDE = range(3)
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-250, 1e300
AT_REST = 1e-9  # sliding slower than this part of the velocity scale is sticking


@kernel
def judge_problem(
    law, facets, rotation, implicit, side, friction, viscosity, slip, scale,
    mass, trees, factor, rows, segments, gap_rate, v_free, joints, joint_rate, v, impulse, joint_impulse,
    unbalanced, u, mode,
):  # fmt: skip
    """The numbers of a ContactCertificate, in its order; u and mode are filled."""
    momenta = unbalanced  # until it is needed
    whole_motions(mass, trees, v_free, momenta)
    joint, size = 0.0, 0.0
    for k in range(len(joints)):
        off = abs(dot(joints[k], v, len(v)) + joint_rate[k])
        joint = off if not off <= joint else joint  # NaN stays
        size = max(size, abs(dot(joints[k], v_free, len(v)) + joint_rate[k]))
    for i in range(len(rows)):
        offset = gap_rate[i]
        free0, free1, free2 = rows_dot(rows[i], segments[i], v_free)
        whole = run_start(segments[i, 0], segments[i, 1], momenta) + run_start(segments[i, 2], segments[i, 3], momenta)
        whole = whole / scale[i] + abs(offset)
        size = max(size, abs(free0 + offset), abs(free1), abs(free2), ROUNDED * whole)
        u0, u1, u2 = rows_dot(rows[i], segments[i], v)
        u[i, 0], u[i, 1], u[i, 2] = u0 + offset, u1, u2
    imbalance(mass, trees, rows, segments, v, v_free, impulse, joints, joint_impulse, unbalanced)
    felt_velocity(factor, trees, unbalanced)
    found = start(joint, size)
    for i in range(len(rows)):
        lost = 0.0
        for off in rows_dot(rows[i], segments[i], unbalanced):
            lost = abs(off) if not abs(off) <= lost else lost
        free1, free2 = 0.0, 0.0
        if law == VISCOUS:
            _, free1, free2 = rows_dot(rows[i], segments[i], v_free)
        found = judge_contact(
            law, facets, rotation, implicit, side, friction[i], viscosity[i], scale[i],
            direction(slip, i), impulse[i], u[i], free1, free2, lost, i, found,
        )  # fmt: skip
        mode[i] = mode_of(scale[i], impulse[i], u[i], found[8])
    return over_size(found)


@kernel
def judge_delassus(law, facets, rotation, implicit, side, friction, viscosity, slip, scale, free, impulse, u, mode):
    """The same where u is known already."""
    size = 0.0
    for i in range(len(free)):
        for c in range(3):
            size = max(size, abs(free[i, c]))
    found = start(0.0, size)
    for i in range(len(free)):
        found = judge_contact(
            law, facets, rotation, implicit, side, friction[i], viscosity[i], scale[i],
            direction(slip, i), impulse[i], u[i], free[i, 1], free[i, 2], 0.0, i, found,
        )  # fmt: skip
        mode[i] = mode_of(scale[i], impulse[i], u[i], found[8])
    return over_size(found)


@kernel
def whole_motions(mass, trees, v, out):
    """At every velocity the size of its whole tree's motion, (v · M v)^½.

    Over a contact's size it is the velocity that the contact would have if all of that motion were along it: what
    bounds the velocities from which its own is left, where bodies move together.
    """
    at = 0
    for b in range(len(trees) - 1):
        first, size = trees[b], trees[b + 1] - trees[b]
        energy = 0.0
        for i in range(size):
            for j in range(size):
                energy += v[first + i] * mass[at + i * size + j] * v[first + j]
        for i in range(size):
            out[first + i] = max(energy, 0.0) ** 0.5
        at += size * size


@kernel
def run_start(first, length, values):
    return values[first] if length > 0 else 0.0


@sums
def imbalance(mass, trees, rows, segments, v, v_free, impulse, joints, joint_impulse, out):
    """M (v - v_free) - Nᵀ p_n - Tᵀ p_t - Jᵀ p_j."""
    at = 0
    for b in range(len(trees) - 1):
        first, size = trees[b], trees[b + 1] - trees[b]
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += mass[at + i * size + j] * (v[first + j] - v_free[first + j])
            out[first + i] = total
        at += size * size
    for i in range(len(rows)):
        add_rows(rows[i], segments[i], -impulse[i, 0], -impulse[i, 1], -impulse[i, 2], out)
    for k in range(len(joints)):
        subtract_multiple(out, joint_impulse[k], joints[k], len(out))


@kernel
def felt_velocity(factor, trees, unbalanced):
    """M⁻¹ times an unbalanced momentum, in place."""
    at = 0
    for b in range(len(trees) - 1):
        first, size = trees[b], trees[b + 1] - trees[b]
        part = unbalanced[first : first + size]
        back_substitute(factor[at:], size, part)
        forward_substitute(factor[at:], size, part)
        at += size * size


@kernel
def direction(slip, i):
    """In which a contact is known to slide, NaN if it is not."""
    if len(slip) == 0:
        return np.nan, np.nan
    return slip[i, 0], slip[i, 1]


@kernel
def start(joint, size):
    """A certificate before its first contact."""
    return joint, -1, 0.0, 0.0, 0.0, 0.0, 0.0, joint, size if size > 0.0 else 1.0, 0.0


@kernel
def over_size(found):
    worst, where, penetration, complementarity, cone, dissipation, momentum, joint, size, beyond = found
    if not np.isfinite(joint):
        worst = np.nan
    return worst / size, where, penetration, complementarity, cone, dissipation, momentum, joint, size, beyond / size


@kernel
def judge_contact(
    law, facets, rotation, implicit, side, friction, viscosity, scale, slip, impulse, u, free1, free2, lost, i, found
):
    """The certificate with contact i added, in m/s."""
    worst, where, penetration, complementarity, cone, dissipation, momentum, joint, size, beyond = found
    W = 1.0 / (scale * scale)
    normal, p1, p2, u1, u2 = impulse[0], impulse[1], impulse[2], u[1], u[2]
    through = max(-u[0], 0.0)
    gap = abs(min(u[0], W * normal))
    radius = friction * max(normal, 0.0)
    outside, lazy = tangential(
        law, facets, rotation, implicit, side, radius, viscosity, W, normal, p1, p2, u1, u2, free1, free2
    )
    slides = law >= CONE and slip[0] == slip[0]  # not NaN: the direction is known
    if slides:
        outside, lazy = 0.0, W * length(p1 + radius * slip[0], p2 + radius * slip[1])
    here = max(through, gap, outside, lazy, lost)
    if not np.isfinite(through + gap + outside + lazy + lost + normal + p1 + p2):
        here = np.nan
    if here > worst or not np.isfinite(here) or (where < 0 and here >= worst):
        worst, where = here, i
    if law == NO_SLIP:
        beyond = max(beyond, min(max(u[0], 0.0), W * length(p1, p2)))
    if law == CONE and not slides:
        beyond = max(beyond, outside, lazy)
    elif law > CONE and not slides:
        out, late = tangential(CONE, 0, 0.0, False, 1.0, radius, 0.0, W, normal, p1, p2, u1, u2, free1, free2)
        beyond = max(beyond, out, late)
    return (
        worst, where, max(penetration, through), max(complementarity, gap), max(cone, outside),
        max(dissipation, lazy), max(momentum, lost), joint, size, beyond,
    )  # fmt: skip


@kernel
def mode_of(scale, impulse, u, size):
    W = 1.0 / (scale * scale)
    if W * impulse[0] <= AT_REST * size and W * length(impulse[1], impulse[2]) <= AT_REST * size:
        return OPEN
    return SLIDE if length(u[1], u[2]) > AT_REST * size else STICK


@kernel
def length(x, y):
    """As math.hypot, which is only needed where squares are too large or too small."""
    square = x * x + y * y
    if SMALLEST_SQUARE < square < LARGEST_SQUARE or (x == 0.0 and y == 0.0):
        return square**0.5
    return math.hypot(x, y)


@kernel
def tangential(law, facets, rotation, implicit, side, radius, viscosity, W, normal, p1, p2, u1, u2, free1, free2):
    """(how far p_t lies outside of what the law allows, how far it is from opposing the sliding), in m/s."""
    size = length(p1, p2)
    if law == FRICTIONLESS:
        return W * size, 0.0
    if law == VISCOUS:
        v1, v2 = (u1, u2) if implicit else (free1, free2)
        return 0.0, W * length(p1 + viscosity * v1, p2 + viscosity * v2)
    if law == NO_SLIP:  # no slip, or no impulse at all
        return 0.0, min(length(u1, u2), W * (size + abs(normal)))
    y1, y2 = p1 - u1 / W, p2 - u2 / W
    if law == CONE:
        a1, a2 = onto_disc(y1, y2, radius)
        return W * max(size - radius, 0.0), W * length(p1 - a1, p2 - a2)
    if law == PYRAMID:
        b1, b2 = onto_polygon(p1, p2, radius, facets, rotation)
        a1, a2 = onto_polygon(y1, y2, radius, facets, rotation)
    else:
        side = side * radius
        b1, b2 = min(max(p1, -side), side), min(max(p2, -side), side)
        a1, a2 = min(max(y1, -side), side), min(max(y2, -side), side)
    return W * length(p1 - b1, p2 - b2), W * length(p1 - a1, p2 - a2)


@kernel
def onto_disc(y1, y2, radius):
    size = length(y1, y2)
    if size <= radius:
        return y1, y2
    return y1 * radius / size, y2 * radius / size


@kernel
def onto_polygon(y1, y2, radius, facets, rotation):
    """The nearest point of the regular polygon with vertices at `rotation + 2 pi j / facets`."""
    step = 2.0 * math.pi / facets
    sector = math.floor((math.atan2(y2, y1) - rotation) / step)
    middle = rotation + (sector + 0.5) * step
    c, s = math.cos(middle), math.sin(middle)
    out, along = c * y1 + s * y2, -s * y1 + c * y2  # across and along the side of this sector
    apothem, half = radius * math.cos(0.5 * step), radius * math.sin(0.5 * step)
    if out <= apothem:
        return y1, y2
    along = min(max(along, -half), half)
    return c * apothem - s * along, s * apothem + c * along

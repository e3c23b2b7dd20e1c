"""Kernels of the judge of contact (see `contact`)."""

from __future__ import annotations

import math

import numpy as np

from stiction.compiled import kernel
from stiction.linear import dot, subtract_multiple
from stiction.problems.normal_form import add_row, row_dot

FRICTIONLESS, VISCOUS, NO_SLIP, CONE, PYRAMID, BOX = range(6)  # the order of contact.KINDS
OPEN, STICK, SLIDE = range(3)
AT_REST = 1e-9  # sliding slower than this part of the velocity scale is sticking


@kernel
def contact_velocities(rows, segments, gap_rate, v, u):
    for i in range(len(rows)):
        for c in range(3):
            u[i, c] = row_dot(rows[i, c], segments[i], v)
        u[i, 0] += gap_rate[i]


@kernel
def imbalance(blocks, rows, segments, v, v_free, impulse, out):
    """M (v - v_free) - Nᵀ p_n - Tᵀ p_t."""
    size = blocks.shape[1]
    for b in range(len(blocks)):
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += blocks[b, i, j] * (v[b * size + j] - v_free[b * size + j])
            out[b * size + i] = total
    for i in range(len(rows)):
        for c in range(3):
            add_row(rows[i, c], segments[i], -impulse[i, c], out)


@kernel
def felt_velocity(factor, rows, segments, unbalanced, felt):
    """The contact velocities that an unbalanced momentum stands for; `unbalanced` becomes M⁻¹ times itself."""
    size = factor.shape[1]
    for b in range(len(factor)):
        part = unbalanced[b * size : (b + 1) * size]
        for i in range(size):
            part[i] = (part[i] - dot(factor[b, i], part, i)) / factor[b, i, i]
        for i in range(size - 1, -1, -1):
            part[i] /= factor[b, i, i]
            subtract_multiple(part, part[i], factor[b, i], i)
    for i in range(len(rows)):
        for c in range(3):
            felt[i, c] = row_dot(rows[i, c], segments[i], unbalanced)


@kernel
def judge_laws(
    law, facets, rotation, implicit, shrink, friction, viscosity, scale, u, u_free, impulse, felt, joint, mode
):
    """The numbers of a ContactCertificate, in its order; `mode` is filled."""
    n = len(friction)
    size = 0.0
    for i in range(n):
        for c in range(3):
            size = max(size, abs(u_free[i, c]))
    if not size > 0.0:
        size = 1.0
    worst, where = joint, -1
    penetration, complementarity, cone, dissipation, momentum, beyond = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        W = 1.0 / (scale[i] * scale[i])
        normal, p1, p2 = impulse[i, 0], impulse[i, 1], impulse[i, 2]
        u1, u2 = u[i, 1], u[i, 2]
        through = max(-u[i, 0], 0.0)
        gap = abs(min(u[i, 0], W * normal))
        radius = friction[i] * max(normal, 0.0)
        outside, lazy = tangential(
            law, facets, rotation, implicit, shrink, radius, viscosity[i], W, normal, p1, p2, u1, u2, u_free[i]
        )
        lost = max(abs(felt[i, 0]), abs(felt[i, 1]), abs(felt[i, 2]))
        total = through + gap + outside + lazy + lost
        if not np.isfinite(total):
            return np.nan, i, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, size, np.nan
        here = max(through, gap, outside, lazy, lost)
        if here > worst or (where < 0 and here >= worst):
            worst, where = here, i
        penetration, complementarity = max(penetration, through), max(complementarity, gap)
        cone, dissipation, momentum = max(cone, outside), max(dissipation, lazy), max(momentum, lost)
        if law >= CONE:
            outside, lazy = tangential(CONE, 0, 0.0, False, 1.0, radius, 0.0, W, normal, p1, p2, u1, u2, u_free[i])
            beyond = max(beyond, outside, lazy)
        slides = math.hypot(u1, u2) > AT_REST * size
        mode[i] = OPEN if W * normal <= AT_REST * size and W * math.hypot(p1, p2) <= AT_REST * size else STICK
        if mode[i] == STICK and slides:
            mode[i] = SLIDE
    if not np.isfinite(joint):
        worst = np.nan
    return (
        worst / size, where, penetration, complementarity, cone, dissipation, momentum, joint, size, beyond / size
    )  # fmt: skip


@kernel
def tangential(law, facets, rotation, implicit, shrink, radius, viscosity, W, normal, p1, p2, u1, u2, u_free):
    """(how far p_t lies outside of what the law allows, how far it is from opposing the sliding), in m/s."""
    size = math.hypot(p1, p2)
    if law == FRICTIONLESS:
        return W * size, 0.0
    if law == VISCOUS:
        v1, v2 = (u1, u2) if implicit else (u_free[1], u_free[2])
        return 0.0, W * math.hypot(p1 + viscosity * v1, p2 + viscosity * v2)
    if law == NO_SLIP:  # no slip, or no impulse at all
        return 0.0, min(math.hypot(u1, u2), W * (size + abs(normal)))
    y1, y2 = p1 - u1 / W, p2 - u2 / W
    if law == CONE:
        a1, a2 = onto_disc(y1, y2, radius)
        return W * max(size - radius, 0.0), W * math.hypot(p1 - a1, p2 - a2)
    if law == PYRAMID:
        b1, b2 = onto_polygon(p1, p2, radius, facets, rotation)
        a1, a2 = onto_polygon(y1, y2, radius, facets, rotation)
    else:
        side = shrink * radius
        b1, b2 = min(max(p1, -side), side), min(max(p2, -side), side)
        a1, a2 = min(max(y1, -side), side), min(max(y2, -side), side)
    return W * math.hypot(p1 - b1, p2 - b2), W * math.hypot(p1 - a1, p2 - a2)


@kernel
def onto_disc(y1, y2, radius):
    size = math.hypot(y1, y2)
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

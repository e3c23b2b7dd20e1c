"""Sliding, spin and rolling bounded apart, each by a disc of its own, as rolling is in [AcaryBourrier2021]:

    |p_slide| <= mu p_n,      |p_spin| <= mu p_n,      |p_roll| <= mu p_n

Rows of spin and rolling are multiplied by their coefficients over mu, so that one radius does for all. The map is that
of Alart and Curnier for each part; with two tangents alone there is one part, and nothing of this is needed.
"""

from __future__ import annotations

from math import sqrt

from stiction.arrays.compiled import kernel
from stiction.arrays.vectors import (
    by_parts,
    minus,
    put,
    roll_dot,
    slide_dot,
    spin_dot,
    times_each,
    with_normal,
)
from stiction.solvers.contact.cone_newton.slope import set_apart, turned_apart
from stiction.solvers.contact.cone_newton.tolerances import DEAF

STICKS = 1  # plus 1, 2 and 4 for the parts that slip


@kernel
def onto_discs(y, normal, radius):
    """y with another normal, its parts put onto the nearest points of their discs."""
    slide, spin, roll = lengths(y)
    short = by_parts(y, shortened(slide, radius), shortened(spin, radius), shortened(roll, radius))
    return with_normal(normal, times_each(short, y))


@kernel
def lengths(y):
    """Of the three parts."""
    return sqrt(slide_dot(y, y)), sqrt(spin_dot(y, y)), sqrt(roll_dot(y, y))


@kernel
def shortened(length, radius):
    """The factor that brings a length down to a radius."""
    return 1.0 if length <= radius else radius / length


@kernel
def directions(y, radius):
    """A unit vector in each part that slips, zero in others, and the mode: which of them slip."""
    slide, spin, roll = lengths(y)
    slips = slide > radius, spin > radius, roll > radius
    t = times_each(
        y,
        by_parts(y, 1.0 / slide if slips[0] else 0.0, 1.0 / spin if slips[1] else 0.0, 1.0 / roll if slips[2] else 0.0),
    )
    return t, STICKS + (1 if slips[0] else 0) + (2 if slips[1] else 0) + (4 if slips[2] else 0)


@kernel
def choose(y, mode, slipping, sticking):
    """A vector with one number in the parts that slip, another in the others."""
    slips = mode - STICKS
    return by_parts(
        y,
        slipping[0] if slips & 1 else sticking,
        slipping[1] if slips & 2 else sticking,
        slipping[2] if slips & 4 else sticking,
    )


@kernel
def linearise_apart(p, u, mu, epsilon, constant, slope, i):
    """Set dp = constant - slope du of a closed contact; returns its mode, which says what slips."""
    y, stiffness = minus(p, u), 1.0 / epsilon
    radius, normal = mu * y[0], -stiffness * u[0]
    t, mode = directions(y, radius)

    # Parts that slip: along t the impulse stays on the rim; across t, it turns with the velocity.
    slide, spin, roll = lengths(y)
    slide, spin, roll = shortened(slide, radius), shortened(spin, radius), shortened(roll, radius)
    soft = yielding(slide, epsilon), yielding(spin, epsilon), yielding(roll, epsilon)
    most = mu * (p[0] + normal)
    along = choose(y, mode, (most - slide_dot(t, p), most - spin_dot(t, p), most - roll_dot(t, p)), 0.0)
    turning = choose(y, mode, (slide / soft[0], spin / soft[1], roll / soft[2]), 0.0)
    held = choose(y, mode, (0.0, 0.0, 0.0), stiffness)

    # The others stop, softened by ε.
    moved = minus(times_each(along, t), turned_apart(t, p, choose(y, mode, soft, 1.0)))
    put(constant, i, with_normal(normal, minus(moved, times_each(held, u))))
    set_apart(slope, i, stiffness, mu, t, turning, held)
    return mode


@kernel
def yielding(part, epsilon):
    """How a part across its direction of slip gives way."""
    return 1.0 - part + part * epsilon


@kernel
def respond_apart(y, mu, stiffness, slope, i, p):
    """Set p and the slope of a closed contact by the regularised law (`proximal`); returns its mode."""
    radius = mu * y[0]
    t, mode = directions(y, radius)
    slide, spin, roll = lengths(y)
    put(p, i, onto_discs(y, y[0], radius))
    turning = (
        stiffness * shortened(slide, radius), stiffness * shortened(spin, radius), stiffness * shortened(roll, radius),
    )  # fmt: skip
    set_apart(slope, i, stiffness, mu, t, choose(y, mode, turning, 0.0), choose(y, mode, (0.0, 0.0, 0.0), stiffness))
    return mode


@kernel
def settle_turns(D, b, mu, p):
    """Spin and rolling of one contact under its normal impulse, each once; the part of a sweep that is not exact."""
    radius = mu * p[0]
    if D[3, 3] > DEAF:
        p[3] = min(max(p[3] - moved(D, b, p, 3) / D[3, 3], -radius), radius)
    if D[4, 4] > DEAF and D[5, 5] > DEAF:
        p[4] -= moved(D, b, p, 4) / D[4, 4]
        p[5] -= moved(D, b, p, 5) / D[5, 5]
        size = sqrt(p[4] * p[4] + p[5] * p[5])
        part = shortened(size, radius)
        p[4], p[5] = part * p[4], part * p[5]


@kernel
def moved(D, b, p, a):
    """Velocity a of a contact under its own impulse."""
    total = b[a]
    for k in range(len(p)):
        total += D[a, k] * p[k]
    return total

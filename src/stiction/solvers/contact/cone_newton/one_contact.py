"""One contact with Coulomb friction, solved exactly; and sweeps of that over all contacts.

In the normal form, contact i adds L_iᵀ p_i to x and sees the velocity u_i = L_i x + offset_i. Alone, it solves

    u = D p + b,      0 <= p_n ⊥ u_n >= 0,      |p_t| <= mu p_n,      p_t opposed to u_t where it slides

with D = L_i L_iᵀ and b its velocity under the impulses of the others. Either p = 0, or u = 0 (stick), or it slides:
u_n = 0 and p_t = -λ' u_t on the rim of the cone, one equation in one unknown λ', bracketed and solved by Newton's
method. Doing so contact by contact is the nonlinear Gauss–Seidel method [Jean1999, MoreauJean1992].

The residual of impulses is that of the Alart–Curnier map [AlartCurnier1991] (contacts have unit size):

    p_n - max(0, p_n - u_n),      p_t - proj(p_t - u_t, disc of radius mu max(0, p_n - u_n))
"""

from __future__ import annotations

from math import sqrt
from typing import Annotated as Array
from typing import Any, NamedTuple

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.arrays.dense import dot
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import add_rows, rows_dot
from stiction.arrays.vectors import (
    Table,
    Vector,
    across,
    at,
    inner,
    largest,
    minus,
    of_vectors,
    plus,
    put,
    times,
    total_size,
    with_normal,
)
from stiction.solvers.contact.cone_newton.apart import onto_discs, settle_turns
from stiction.solvers.contact.cone_newton.lifting import DOES, lowered
from stiction.solvers.contact.cone_newton.one_wide_contact import solve_wide
from stiction.solvers.contact.cone_newton.tolerances import BLUNT, DEAF, EXACT, MAX_ROOT_STEPS, NEAR, PART_SWEEPS, TINY


class Contacts(NamedTuple):
    """The contacts of a problem in normal form."""

    zero: Any  # of as many numbers as a contact has directions
    apart: Any  # whether sliding, spin and rolling are bounded apart
    rows: Array[Floats, "n", "d", "width"]  # L_i, at the velocities that it touches
    segments: Array[Ints, "n", 4]  # start and length of the two runs of velocities that it touches
    offset: Array[Floats, "n", "d"]  # contact velocities without impulses
    friction: Array[Floats, "n"]  # mu
    delassus: Array[Floats, "n", "d", "d"]  # D_i = L_i L_iᵀ
    stretch: Array[Floats, "n"]  # factor of rows and velocities; impulses are divided by it
    share: Array[Floats, "n"]  # how much its residual counts beside those of others, at most 1
    lifts: Array[Ints, "n"]  # whether it lifts as it slides: NEVER, MAY or DOES
    alone: Array[Floats, "3 if d > 3 else 0", "d", "d"]  # scratch of `solve_wide`


class Point(NamedTuple):
    """Impulses, and the velocities under them."""

    p: Array[Floats, "n", "d"]  # impulses n, t1, t2 and, where there are more, those of spin and rolling
    x: Array[Floats, "m"]  # sum of L_iᵀ p_i
    u: Array[Floats, "n", "d"]  # L_i x + offset_i


layout(Contacts, "n", "d", "width")
layout(Point, "n", "d", "m")


@kernel
def set_delassus(contacts):
    """D_i = L_i L_iᵀ."""
    for i in range(len(contacts.friction)):
        set_one_delassus(contacts, i)


@sums
def set_one_delassus(contacts, i):
    """D_i = L_i L_iᵀ of one contact, whose entries are summed in one pass over its velocities."""
    width = contacts.segments[i, 1] + contacts.segments[i, 3]
    r0, r1, r2, D = contacts.rows[i, 0], contacts.rows[i, 1], contacts.rows[i, 2], contacts.delassus[i]
    d00, d01, d02, d11, d12, d22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(width):
        a, b, c = r0[j], r1[j], r2[j]
        d00 += a * a
        d01 += a * b
        d02 += a * c
        d11 += b * b
        d12 += b * c
        d22 += c * c

    # D is symmetric.
    D[0, 0], D[1, 1], D[2, 2] = d00, d11, d22
    D[0, 1], D[0, 2], D[1, 2] = d01, d02, d12
    D[1, 0], D[2, 0], D[2, 1] = d01, d02, d12

    # Spin and rolling.
    for a in range(3, len(D)):
        for b in range(a + 1):
            D[a, b] = D[b, a] = dot(contacts.rows[i, a], contacts.rows[i, b], width)


@kernel
def evaluate(contacts, point):
    """Set x and u from p; returns the same as `residual`."""
    set_velocity(contacts, point)
    return residual(contacts, point)


@kernel
def set_velocity(contacts, point):
    """x = sum of L_iᵀ p_i."""
    p, x = point.p, point.x
    for j in range(len(x)):
        x[j] = 0.0
    for i in range(len(p)):
        add_rows(contacts.rows[i], contacts.segments[i], at(p, i, contacts.zero), x)


@kernel
def residual(contacts, point):
    """Set u from x; returns the Alart–Curnier residual's largest entry and squared norm. NaN is passed on."""
    most, square, zero = 0.0, 0.0, contacts.zero
    for i in range(len(point.p)):
        # u = L x + offset.
        u = rows_dot(contacts.rows[i], contacts.segments[i], point.x, zero)
        u = plus(u, at(contacts.offset, i, zero))
        put(point.u, i, u)

        # Written such that NaN becomes the largest entry.
        worst, squared = off_the_law(contacts, i, at(point.p, i, zero), u)
        square += squared
        if not worst <= most:
            most = worst
    return most, square


@kernel
def counted(contacts, point, largest, enough):
    """The residual `largest` of a point, or its largest share if that is small enough: it is all that counts."""
    if largest > NEAR:
        return largest
    most, zero = 0.0, contacts.zero
    for i in range(len(point.p)):
        worst, _ = off_the_law(contacts, i, at(point.p, i, zero), at(point.u, i, zero))
        most = max(most, contacts.share[i] * worst)
    return most if most <= enough else largest


@in_callers
@kernel
def off_the_law(contacts, i, p, u):
    """As `alart_curnier`, of contact i; if it lifts, by that law."""
    mu = contacts.friction[i]
    return alart_curnier(p, lowered(u, mu) if contacts.lifts[i] == DOES else u, mu, contacts.apart)


@kernel
def alart_curnier(p, u, mu, apart):
    """Largest entry and squared norm of the Alart–Curnier residual of a contact."""
    y = minus(p, u)
    normal = y[0] if y[0] > 0.0 else 0.0
    off = minus(p, onto_cone(y, normal, mu * normal, apart))
    return largest(off), inner(off, off)


@kernel
def onto_cone(y, normal, radius, apart):
    """y with another normal, and tangents shortened to a disc, or each part of them to its own."""
    if apart:
        return onto_discs(y, normal, radius)
    length = sqrt(across(y, y))
    part = 1.0 if length <= radius else radius / length
    return with_normal(normal, times(part, y))


@kernel
def into_cone(p, contacts):
    """Shorten tangential impulses to the rim of their cones; a contact that pulls gets no impulse."""
    for i in range(len(p)):
        q = at(p, i, contacts.zero)
        if q[0] <= 0.0:
            put(p, i, contacts.zero)
        else:
            put(p, i, onto_cone(q, q[0], contacts.friction[i] * q[0], contacts.apart))


@kernel
def sweep(contacts, point, accuracy):
    """Solve each contact once, given the others' latest impulses. Updates p and x, but not u.

    accuracy: relative error of a sliding contact's impulse; it lies on the rim of its cone in any case
    """
    p, x, zero = point.p, point.x, contacts.zero
    for i in range(len(p)):
        # Velocity under all impulses; a contact that is open and separating stays so.
        before = at(p, i, zero)
        u = plus(rows_dot(contacts.rows[i], contacts.segments[i], x, zero), at(contacts.offset, i, zero))
        if u[0] >= 0.0 and total_size(before) == 0.0:
            continue

        # Velocity without its own impulse, by which it is solved alone; x follows the change.
        D, mu = contacts.delassus[i], contacts.friction[i]
        b = minus(u, product(D, before))
        if len(zero) == 3:
            p[i, 0], p[i, 1], p[i, 2] = solve_contact(D, b[0], b[1], b[2], mu, accuracy)
        elif contacts.apart:
            solve_apart(D, b, mu, accuracy, p[i])
        else:
            solve_wide(D, b, mu, accuracy, contacts.alone, p[i])
        add_rows(contacts.rows[i], contacts.segments[i], minus(at(p, i, zero), before), x)


@kernel
def solve_apart(D, b, mu, accuracy, p):
    """The impulse of one contact whose sliding and turning are bounded apart, by solving for them in turn."""
    for _ in range(PART_SWEEPS):
        b0, b1, b2 = b[0], b[1], b[2]
        for k in range(3, len(p)):
            b0, b1, b2 = b0 + D[0, k] * p[k], b1 + D[1, k] * p[k], b2 + D[2, k] * p[k]
        p[0], p[1], p[2] = solve_contact(D, b0, b1, b2, mu, accuracy)
        settle_turns(D, b, mu, p)


@of_vectors
def product(matrix: Table, v: Vector) -> Vector:
    """A small matrix times v."""
    found = []
    for a in range(len(v)):
        total = matrix[a, 0] * v[0]
        for b in range(1, len(v)):
            total = total + matrix[a, b] * v[b]
        found.append(total)
    return found


@kernel
def solve_contact(D, b0, b1, b2, mu, accuracy):
    """The impulse of one contact with response D, free velocity b and friction mu; `accuracy` as for `sweep`.

    Without spin and rolling, in closed form but for one root; `solve_wide` is the same for any number of directions.
    """
    # Separating, or held by joints: no impulse. Without friction: the normal impulse alone.
    if b0 >= 0.0 or D[0, 0] <= DEAF:
        return 0.0, 0.0, 0.0
    if mu <= 0.0:
        return -b0 / D[0, 0], 0.0, 0.0
    # Closed: eliminating p_n by u_n = 0 leaves u_t = S p_t + c, with S regularised for the plane.
    a1, a2, inverse = D[0, 1], D[0, 2], 1.0 / D[0, 0]
    blunt = BLUNT * (D[1, 1] + D[2, 2])
    s11, s12, s22 = (
        D[1, 1] - a1 * a1 * inverse + blunt,
        D[1, 2] - a1 * a2 * inverse,
        D[2, 2] - a2 * a2 * inverse + blunt,
    )
    c1, c2 = b1 - a1 * b0 * inverse, b2 - a2 * b0 * inverse

    # Stick: u_t = 0, if this impulse lies in the cone.
    determinant = s11 * s22 - s12 * s12
    if determinant > 0.0:
        p1, p2 = (s12 * c2 - s22 * c1) / determinant, (s12 * c1 - s11 * c2) / determinant
        p0 = -(b0 + a1 * p1 + a2 * p2) * inverse
        if p0 >= 0.0 and p1 * p1 + p2 * p2 <= mu * mu * p0 * p0:
            return p0, p1, p2
    # Slide: solved in the principal axes of S, which are v and v turned by a right angle.
    large, small, v1, v2 = principal_axes(s11, s12, s22)
    d1, d2 = v1 * c1 + v2 * c2, v1 * c2 - v2 * c1
    a1, a2 = v1 * a1 + v2 * a2, v1 * a2 - v2 * a1
    x1, x2, p0 = rim(b0, d1, d2, a1, a2, inverse, large, small, mu, accuracy)
    return p0, v1 * x1 - v2 * x2, v2 * x1 + v1 * x2


@kernel
def principal_axes(s11, s12, s22):
    """Eigenvalues of a symmetric 2 × 2 matrix, the larger first, and the unit vector of the larger."""
    mean, half = 0.5 * (s11 + s22), 0.5 * (s11 - s22)
    root = sqrt(half * half + s12 * s12)
    # Of the two formulas for the vector, the one without cancellation.
    v1, v2 = (half + root, s12) if half >= 0.0 else (s12, root - half)
    length = sqrt(v1 * v1 + v2 * v2)
    if not length > TINY:
        return mean, mean, 1.0, 0.0
    return mean + root, max(mean - root, 0.0), v1 / length, v2 / length


@kernel
def rim(b0, d1, d2, a1, a2, inverse, large, small, mu, accuracy):
    """Sliding: p_t = -d / (S + λ) on |p_t| = mu p_n; returns p_t in the principal axes, and p_n.

    λ in [0, ∞) is written as σ (1 - θ) / θ with σ the mean of S. At θ = 0 the impulse is normal, inside the cone; at
    θ = 1 it would stick, outside: so a root lies between.
    """
    # First guess: the θ at which an isotropic S would give a tangential impulse of mu times the normal one.
    sigma = 0.5 * (large + small) + TINY
    lower, upper, theta = 0.0, 1.0, -mu * b0 * inverse * sigma / (sqrt(d1 * d1 + d2 * d2) + TINY)
    if not theta < 1.0:
        theta = 0.5
    x1, x2, p0, size = 0.0, 0.0, 0.0, 0.0
    for _ in range(MAX_ROOT_STEPS):
        # Impulse at θ, and its distance from the cone; narrow the bracket.
        k1, k2 = large * theta + sigma * (1.0 - theta), small * theta + sigma * (1.0 - theta)
        x1, x2 = -d1 * theta / k1, -d2 * theta / k2
        p0, size = -(b0 + a1 * x1 + a2 * x2) * inverse, sqrt(x1 * x1 + x2 * x2)
        outside = size - mu * p0
        if outside > 0.0:
            upper = theta
        else:
            lower = theta

        # Stop when it is accurate enough, or the bracket cannot shrink.
        if abs(outside) <= accuracy * (size + abs(mu * p0)) or upper - lower < EXACT * upper:
            break

        # Newton's method, or bisection if it leaves the bracket.
        y1, y2 = -d1 * sigma / (k1 * k1), -d2 * sigma / (k2 * k2)
        rate = (x1 * y1 + x2 * y2) / (size + TINY) + mu * (a1 * y1 + a2 * y2) * inverse
        step = theta - outside / rate
        if not lower < step < upper:
            step = 0.5 * (lower + upper)
        if abs(step - theta) <= EXACT * theta:
            break
        theta = step

    # Put the impulse exactly on the rim.
    p0 = max(p0, 0.0)
    part = mu * p0 / size if size > 0.0 else 0.0
    return part * x1, part * x2, p0

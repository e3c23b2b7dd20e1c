"""The slope of a contact's linearised law, dp = constant - slope du, packed into a row of `System.slope`.

First its first column, nn, 1n, 2n ..., then the upper triangle of the symmetric part of the tangents, 11, 12 ..., 22,
and its first row, n1, n2 ..., which is zero but for contacts that lift: otherwise velocities along tangents change no
normal impulse.
"""

from __future__ import annotations

from stiction.arrays.vectors import Table, Vector, none, of_vectors, part_of


def place(d: int, a: int, b: int) -> int:
    """Where the entry of tangents a and b, from 1 on, lies among those of d directions."""
    a, b = min(a, b), max(a, b)
    return d + (a - 1) * d - a * (a - 1) // 2 + b - a


def place_of_normal(d: int, a: int) -> int:
    """Where the entry of the normal and tangent a lies."""
    return d * (d + 1) // 2 + a - 1


@of_vectors
def through(slope: Table, i: int, v: Vector) -> Vector:
    """slopeᵀ v of contact i."""
    d = len(v)
    found = [v[0] * slope[i, 0]]
    for b in range(1, d):
        found[0] = found[0] + v[b] * slope[i, b]
    for a in range(1, d):
        total = v[1] * slope[i, place(d, a, 1)]
        for b in range(2, d):
            total = total + v[b] * slope[i, place(d, a, b)]
        found.append(total + v[0] * slope[i, place_of_normal(d, a)])
    return found


@of_vectors
def of_tangent(slope: Table, i: int, zero: Vector) -> float:
    """The entry 11 of contact i."""
    found: float = slope[i, place(len(zero), 1, 1)]
    return found


@of_vectors
def yielded(constant: Vector, slope: Table, i: int, u: Vector) -> Vector:
    """constant - slope u of contact i."""
    d = len(u)
    normal = constant[0] - slope[i, 0] * u[0]
    for a in range(1, d):
        normal = normal - slope[i, place_of_normal(d, a)] * u[a]
    found = [normal]
    for a in range(1, d):
        left = constant[a] - slope[i, a] * u[0]
        for b in range(1, d):
            left = left - slope[i, place(d, a, b)] * u[b]
        found.append(left)
    return found


@of_vectors
def set_stick(slope: Table, i: int, stiffness: float, zero: Vector) -> None:
    """All directions alike: slope = stiffness."""
    d, none = len(zero), zero[0]
    slope[i, 0] = stiffness
    for a in range(1, d):
        slope[i, a] = slope[i, place_of_normal(d, a)] = none
        for b in range(a, d):
            slope[i, place(d, a, b)] = stiffness if a == b else none


@of_vectors
def set_slip(slope: Table, i: int, stiffness: float, mu: float, t: Vector, turning: float) -> None:
    """The normal as above; friction follows it along t, and turns: slope = turning (1 - t tᵀ) across the tangents."""
    d = len(t)
    slope[i, 0] = stiffness
    for a in range(1, d):
        slope[i, a], slope[i, place_of_normal(d, a)] = mu * t[a] * stiffness, none(t[0])
        # 1 - t_a² without cancellation: the squares of the others.
        others = [turning * t[b] * t[b] for b in range(1, d) if b != a]
        total = others[0]
        for each in others[1:]:
            total = total + each
        slope[i, place(d, a, a)] = total
        for b in range(a + 1, d):
            slope[i, place(d, a, b)] = -turning * t[a] * t[b]


@of_vectors
def set_lift(slope: Table, i: int, along: float, mu: float, t: Vector, turning: float) -> None:
    """Along the edge of the cone at t, (1, mu t), slope = along (1, mu t) (1, mu t)ᵀ; across it as in `set_slip`."""
    d = len(t)
    slope[i, 0] = along
    for a in range(1, d):
        slope[i, a] = slope[i, place_of_normal(d, a)] = mu * t[a] * along
        own = mu * t[a] * mu * t[a] * along
        for b in range(1, d):
            if b != a:
                own = own + turning * t[b] * t[b]
        slope[i, place(d, a, a)] = own
        for b in range(a + 1, d):
            slope[i, place(d, a, b)] = mu * t[a] * mu * t[b] * along - turning * t[a] * t[b]


@of_vectors
def turned(t: Vector, p: Vector, yielding: float) -> Vector:
    """The part of p's tangents across t, (p - t (t · p)) / yielding, without cancellation; nothing along the normal."""
    found = [t[0] - t[0]]
    for a in range(1, len(t)):
        parts = [t[b] * ((t[b] * p[a] - t[a] * p[b]) / yielding) for b in range(1, len(t)) if b != a]
        total = parts[0]
        for each in parts[1:]:
            total = total + each
        found.append(total)
    return found


@of_vectors
def set_apart(slope: Table, i: int, stiffness: float, mu: float, t: Vector, turning: Vector, held: Vector) -> None:
    """The same with sliding, spin and rolling bounded apart: t is a direction in each part that slips, and zero else.

    turning, held: of each direction, the stiffness across t, and that of a part that does not slip
    """
    d = len(t)
    slope[i, 0] = stiffness
    for a in range(1, d):
        slope[i, a], slope[i, place_of_normal(d, a)] = mu * t[a] * stiffness, none(t[0])
        own = held[a]
        for b in range(1, d):
            if b != a and part_of(a) == part_of(b):
                own = own + turning[a] * t[b] * t[b]
        slope[i, place(d, a, a)] = own
        for b in range(a + 1, d):
            same = part_of(a) == part_of(b)
            slope[i, place(d, a, b)] = -turning[a] * t[a] * t[b] if same else none(t[0])


@of_vectors
def turned_apart(t: Vector, p: Vector, yielding: Vector) -> Vector:
    """As `turned`, in each part by itself."""
    found = [none(t[0])]
    for a in range(1, len(t)):
        total = none(t[0])
        for b in range(1, len(t)):
            if b != a and part_of(a) == part_of(b):
                total = total + t[b] * ((t[b] * p[a] - t[a] * p[b]) / yielding[a])
        found.append(total)
    return found

"""The linear system of the active modes, factored once.

In the normal form, with joints projected out (`problems.normal_form`), a change y of the whitened velocities and a
change a of the impulses, in the directions in which these may change, satisfy

    A y = r + Fᵀ a           A = I + Lᵀ C L: mass, and friction that turns with the velocity or is viscous
    B y = s                  B = what stays zero, row by row: Qᵀ L;   F = what pushes: Pᵀ L

Where nothing slides B = F, and A = I. Rows outnumber motions as soon as contacts share a load, so B and F are factored
with what is redundant (`factors`). With Z and Y whose columns span the null spaces of B and F,

    y = y₀ + Z w,    y₀ = B⁺ s,    (Yᵀ A Z) w = Yᵀ (r - A y₀),    a = (Fᵀ)⁺ (A y - r)

and a is the smallest of those that make the motion. The motion is determined if and only if Yᵀ A Z is square and
regular: if B and F have different ranks, the way in which contacts share their load changes the motion itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import dot, lu, lu_solve, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.derivatives.factors import (
    FREE,
    HELD_DIRECTIONS,
    LOOPS,
    Groups,
    Scratch,
    Side,
    factor,
    find_loops,
    least,
    make_groups,
    push,
    run_dot,
    subtract_row,
    without_exchange,
    write_exchanges,
    write_shared,
)
from stiction.derivatives.modes import (
    HELD,
    OPEN,
    STICK,
    VISCOUS,
    Bases,
    Modes,
    length_of,
    part_of,
    parts,
    set_bases,
    set_compliance,
    set_margins,
    set_modes,
)
from stiction.derivatives.tolerances import BETWEEN, DEPENDENT, GUESSES, PARTS, PROJECTIONS, SINGULAR, SMALLEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

IDENTITY, REGULAR, UNDETERMINED = range(3)  # what Yᵀ A Z is
NO_LOOPS = np.zeros((0, 0))


class Given(NamedTuple):
    """A solution in normal form, as kernels read it."""

    law: Any  # LawNumbers
    shape: Any  # Outline
    friction: Any  # (n,)
    slip: Any  # (n, 2), or (0, 2)
    viscosity: Any  # (n,)
    velocity: Any  # (n, d) at contacts, in m/s
    impulse: Any  # (n, d) N s
    small: Any  # (n,) velocities, in m/s, that count as zero
    rows: Any  # (n, d, width) L
    runs: Any  # (n, 4) the velocities that they touch
    trees: Any  # (b + 1,) velocities that only contacts couple
    scale: Any  # (n,) s


class Work(NamedTuple):
    """All that is known of a system of n contacts with d directions and m velocities, `width` of them at a contact."""

    modes: Modes
    bases: Bases
    groups: Groups
    zero: Side  # B
    may: Side  # F; not filled where it is B
    C: Array[Floats, "n", "d", "d"]
    impulse: Array[Floats, "n", "d"]  # in N s: the solution's, or others of the same motion further within their bounds
    margin: Array[Floats, "n"]
    inner: Array[Floats, "m", "m"]  # Yᵀ A Z
    factored: Array[Floats, "m", "m"]
    pivots: Array[Ints, "m"]
    right: Array[Ints, "m"]  # directions of Z, then those of Y: rows of O
    left: Array[Ints, "m"]
    flags: Array[Ints, 6]  # last, so that Python finds them without the rest


# Of the flags: B = F; C is not zero; what Yᵀ A Z is; columns of Z and of Y; contacts at kinks.
FLAGS = ALIKE, COMPLIANT, INNER, RIGHT, LEFT, NEAR = range(6)

work_sizes, work_views = layout(Work, "n", "d", "m", "width", most="n * d")


class Room(NamedTuple):
    """Scratch of the kernels below."""

    scratch: Scratch
    image: Array[Floats, "m", "d"]
    x: Array[Floats, 6, "m"]
    a: Array[Floats, 5, "most"]


room_sizes, room_views = layout(Room, "n", "d", "m", "width", most="n * d")


@kernel
def work_of(given, floats, ints):
    """All arrays of a system, as they lie in its buffers."""
    n, d, width = given.rows.shape
    return work_views(n, d, given.trees[len(given.trees) - 1], width, floats, ints)


@kernel
def room_of(given, floats, ints):
    """Scratch, as it lies in its buffers."""
    n, d, width = given.rows.shape
    return room_views(n, d, given.trees[len(given.trees) - 1], width, floats, ints)


@kernel
def examine(given, dependent, floats, ints, room_floats, room_ints):
    """Modes, margins, and the factored system at the solution's own impulses."""
    work, room = work_of(given, floats, ints), room_of(given, room_floats, room_ints)
    n, d = given.impulse.shape
    set_modes(
        given.law, given.shape, given.friction, given.slip, given.velocity, given.impulse, given.small, work.modes
    )  # fmt: skip
    for i in range(n):
        for c in range(d):
            work.impulse[i, c] = given.impulse[i, c]
    set_margins(given.law, given.shape, work.modes, work.impulse, given.scale, given.rows, work.margin)
    work.flags[NEAR] = count_near(work.margin, given.small)
    return assemble(given, dependent, work, room)


@kernel
def examine_modes(given, dependent, floats, ints, room_floats, room_ints):
    """The factored system of modes and impulses that the workspace has already."""
    return assemble(given, dependent, work_of(given, floats, ints), room_of(given, room_floats, room_ints))


@kernel
def reduce_again(given, floats, ints, room_floats, room_ints):
    """The reduced system at other impulses."""
    reduce(given, work_of(given, floats, ints), room_of(given, room_floats, room_ints))


@kernel
def count_near(margin, small):
    """Contacts at kinks."""
    near = 0
    for i in range(len(margin)):
        if margin[i] <= small[i]:
            near += 1
    return near


@kernel
def assemble(given, dependent, work, room):
    """Factor the rows of the modes, and reduce the system to what they leave.

    Returns rows, kinks, directions held by B and F, and loops of both.
    """
    modes, bases, groups = work.modes, work.bases, work.groups
    alike = set_bases(modes, given.law.apart, given.rows, bases)
    work.flags[ALIKE] = 1 if alike else 0
    make_groups(bases.count, given.runs, groups)
    factor(
        given.rows, given.runs, given.trees, bases.zero, bases.count, groups, dependent, work.zero, room.scratch
    )  # fmt: skip
    if not alike:
        factor(
            given.rows, given.runs, given.trees, bases.may, bases.count, groups, dependent, work.may, room.scratch
        )  # fmt: skip
    reduce(given, work, room)
    may = work.zero if alike else work.may
    return (
        groups.count[1], work.flags[NEAR], work.zero.sizes[HELD_DIRECTIONS], may.sizes[HELD_DIRECTIONS],
        work.zero.sizes[LOOPS], may.sizes[LOOPS],
    )  # fmt: skip


@kernel
def reduce(given, work, room):
    """Yᵀ A Z and its factors; C alone depends on impulses."""
    flags, inner = work.flags, work.inner
    compliant = set_compliance(
        given.law, work.modes, given.viscosity, work.impulse, given.velocity, given.scale, work.C
    )  # fmt: skip
    flags[COMPLIANT] = 1 if compliant else 0
    may = work.zero if flags[ALIKE] != 0 else work.may
    right, left = free_of(work.zero, work.right), free_of(may, work.left)
    flags[RIGHT], flags[LEFT] = right, left
    if (flags[ALIKE] != 0 and not compliant) or (right == 0 and left == 0):
        flags[INNER] = IDENTITY
        return

    # Of the mass, then of each contact whose friction turns or is viscous.
    for a in range(left):
        one = may.O[work.left[a]]
        low, high = may.low[work.left[a]], may.high[work.left[a]]
        for b in range(right):
            j = work.right[b]
            begin, end = max(low, work.zero.low[j]), min(high, work.zero.high[j])
            inner[a, b] = dot(one[begin:], work.zero.O[j, begin:], end - begin) if end > begin else 0.0
    if compliant:
        for i in range(len(work.C)):
            if has_compliance(work, i):
                add_compliance(given, work, may, i, room.image)

    # Regular only if square and well enough conditioned.
    flags[INNER] = UNDETERMINED
    if right == left:
        for a in range(right):
            for b in range(right):
                work.factored[a, b] = inner[a, b]
        if lu(work.factored, work.pivots, right):
            size = 0.0
            for b in range(right):
                total = 0.0
                for a in range(right):
                    total += abs(inner[a, b])
                size = max(size, total)
            if SINGULAR * size * inverse_norm(work.factored, work.pivots, right, room.x[0], room.x[1]) < 1.0:
                flags[INNER] = REGULAR


@kernel
def write_inner(given, out, floats, ints):
    """Copy Yᵀ A Z."""
    inner = work_of(given, floats, ints).inner
    for a in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[a, b] = inner[a, b]


@kernel
def free_of(side, which):
    """The directions that no group holds; how many."""
    count = 0
    for j in range(len(side.O)):
        if side.holder[j] == FREE:
            which[count] = j
            count += 1
    return count


@kernel
def has_compliance(work, i):
    """Whether C of contact i is not zero."""
    d = work.C.shape[1]
    for a in range(1, d):
        for b in range(1, d):
            if work.C[i, a, b] != 0.0:
                return True
    return False


@kernel
def add_compliance(given, work, may, i, image):
    """inner += (L Y)ᵀ C (L Z) of contact i."""
    d, inner, rows, run = work.C.shape[1], work.inner, given.rows[i], given.runs[i]
    for b in range(work.flags[RIGHT]):
        for c in range(1, d):
            image[b, c] = run_dot(rows[c], run, work.zero.O[work.right[b]])
    for a in range(work.flags[LEFT]):
        one = may.O[work.left[a]]
        for c in range(1, d):
            moved = run_dot(rows[c], run, one)
            if moved == 0.0:
                continue
            for e in range(1, d):
                part = moved * work.C[i, c, e]
                if part != 0.0:
                    for b in range(work.flags[RIGHT]):
                        inner[a, b] += part * image[b, e]


@kernel
def inverse_norm(A, pivots, k, x, z):
    """About the largest column sum of the inverse of a factored matrix, by Hager's guesses [Hager1984]."""
    for j in range(k):
        x[j] = 1.0 / k
    found = 0.0
    for _ in range(GUESSES):
        lu_solve(A, pivots, k, x)
        size = 0.0
        for j in range(k):
            size += abs(x[j])
            z[j] = 1.0 if x[j] >= 0.0 else -1.0
        if not size < np.inf:
            return np.inf
        if size <= found:
            break
        found = size
        lu_solve_transposed(A, pivots, k, z)
        best = 0
        for j in range(k):
            if abs(z[j]) > abs(z[best]):
                best = j
        for j in range(k):
            x[j] = 0.0
        x[best] = 1.0
    return found


@kernel
def lu_solve_transposed(A, pivots, k, x):
    """Solve Aᵀ x = x in place from `lu`."""
    for i in range(k):
        x[i] /= A[i, i]
        subtract_multiple(x[i + 1 :], x[i], A[i, i + 1 :], k - i - 1)
    for i in range(k - 1, -1, -1):
        subtract_multiple(x, x[i], A[i], i)
    for p in range(k - 1, -1, -1):
        best = pivots[p]
        x[p], x[best] = x[best], x[p]


@kernel
def spread_load(given, N, more, floats, ints, room_floats, room_ints):
    """Impulses of the same motion further within their bounds, by projections; returns how many kinks are left.

    They go back and forth between the impulses of the same motion, p₀ + null space, and cones that are smaller by a
    part of the mean load; more: times as many of them
    """
    work, room = work_of(given, floats, ints), room_of(given, room_floats, room_ints)
    n, d = given.impulse.shape
    modes, bases, groups, scale = work.modes, work.bases, work.groups, given.scale
    side = work.zero if work.flags[ALIKE] != 0 else work.may
    a, smallest, small, extra = room.a[0], room.a[1], room.a[2], room.a[3]

    # The smallest impulses.
    for i in range(n):
        for k in range(bases.count[i]):
            total = 0.0
            for c in range(d):
                total += bases.may[i, c, k] * given.impulse[i, c] / scale[i]
            smallest[groups.row[i] + k] = total
    without_exchange(side, groups, N, smallest, small, extra)
    for r in range(groups.count[1]):
        a[r] = smallest[r]
    set_impulses(given, work, a)
    load, pressing = 0.0, 0
    for i in range(n):
        if modes.mode[i] != OPEN and modes.mode[i] != HELD:
            load += work.impulse[i, 0] / scale[i]
            pressing += 1
    load = load / pressing if pressing > 0 else 0.0

    # Back and forth; margins are looked at now and then.
    for part in PARTS:
        for count in range(more * PROJECTIONS):
            if count % BETWEEN == 0:
                set_margins(given.law, given.shape, modes, work.impulse, scale, given.rows, work.margin)
                work.flags[NEAR] = count_near(work.margin, given.small)
                if work.flags[NEAR] == 0:
                    return 0
            for i in range(n):
                if bases.count[i] > 0:
                    into_cone(given.law, modes, i, given.shape.reach, part * load, scale[i], work.impulse[i])
                    for k in range(bases.count[i]):
                        total = 0.0
                        for c in range(d):
                            total += bases.may[i, c, k] * work.impulse[i, c] / scale[i]
                        a[groups.row[i] + k] = total
            for r in range(groups.count[1]):
                room.a[4, r] = a[r]
            without_exchange(side, groups, N, room.a[4], small, extra)
            for r in range(groups.count[1]):
                a[r] += smallest[r] - room.a[4, r]
            set_impulses(given, work, a)
    set_margins(given.law, given.shape, modes, work.impulse, scale, given.rows, work.margin)
    work.flags[NEAR] = count_near(work.margin, given.small)
    return work.flags[NEAR]


@kernel
def set_impulses(given, work, a):
    """Impulses, in N s, of the rows that push; viscous friction stays as it is."""
    n, d, bases = len(work.impulse), work.impulse.shape[1], work.bases
    viscous = given.law.kind == VISCOUS
    for i in range(n):
        for c in range(d):
            total = 0.0
            for k in range(bases.count[i]):
                total += bases.may[i, c, k] * a[work.groups.row[i] + k]
            work.impulse[i, c] = total * given.scale[i] + (given.impulse[i, c] if viscous and c > 0 else 0.0)


@kernel
def into_cone(law, modes, i, reach, shift, scale, p):
    """The nearest point of a contact's cone, moved inwards; of a polygon's cone, of its largest round one.

    Of a contact whose friction is bounded apart, part by part.
    """
    d = len(p)
    shift = shift * scale
    p[0] = max(p[0], shift)
    if modes.mu[i] <= 0.0 or (modes.mode[i] != STICK and parts(law.apart, d) == 1):
        return
    mu = reach * modes.mu[i]
    for k in range(parts(law.apart, d)):
        first, end = part_of(k, law.apart, d)
        if modes.mode[i] != STICK and length_of(modes.g[i], first - 1, end - 1) > 0.0:
            continue
        inwards = shift * max(1.0, 1.0 / mu)
        normal, size = p[0] - inwards, length_of(p, first, end)
        if size > mu * normal:
            along = max((normal + mu * size) / (1.0 + mu * mu), 0.0)
            p[0] = along + inwards
            for c in range(first, end):
                p[c] *= mu * along / size if size > 0.0 else 0.0


@kernel
def through(given, work, x, out):
    """out = A x."""
    for j in range(len(x)):
        out[j] = x[j]
    if work.flags[COMPLIANT] == 0:
        return
    d = work.C.shape[1]
    for i in range(len(work.C)):
        if has_compliance(work, i):
            for c in range(1, d):
                moved = run_dot(given.rows[i, c], given.runs[i], x)
                for e in range(1, d):
                    if work.C[i, e, c] != 0.0:
                        subtract_row(out, -work.C[i, e, c] * moved, given.rows[i, e], given.runs[i])


@kernel
def across(work, lowest, x, transposed, right, out):
    """out = Z (Yᵀ A Z)⁻¹ Yᵀ x, or its transpose; right: (m,) scratch."""
    flags = work.flags
    may = work.zero if flags[ALIKE] != 0 else work.may
    from_side, to_side = (work.zero, may) if transposed else (may, work.zero)
    seen, given = (work.right, flags[RIGHT]) if transposed else (work.left, flags[LEFT])
    wanted, count = (work.left, flags[LEFT]) if transposed else (work.right, flags[RIGHT])
    for j in range(len(x)):
        out[j] = 0.0

    # Along the directions that are left; the reduced system; back.
    for a in range(given):
        j = seen[a]
        low, high = from_side.low[j], from_side.high[j]
        right[a] = dot(from_side.O[j, low:], x[low:], high - low)
    if flags[INNER] == REGULAR:
        if transposed:
            lu_solve_transposed(work.factored, work.pivots, count, right)
        else:
            lu_solve(work.factored, work.pivots, count, right)
    for b in range(count):
        j, part = wanted[b], 0.0
        if flags[INNER] == UNDETERMINED:
            for a in range(given):
                part += (lowest[a, b] if transposed else lowest[b, a]) * right[a]
        else:
            part = right[b]
        low, high = to_side.low[j], to_side.high[j]
        subtract_multiple(out[low:], -part, to_side.O[j, low:], high - low)


@kernel
def answer_columns(given, N, M, lowest, pushing, r, e, f, y, p, u, off, floats, ints, room_floats, room_ints):
    """How an answer changes, for each column; what is left over of the equations, and the size of their terms.

    pushing: whether impulses are asked for; r: (columns, m) whitened momentum, overwritten; e, f: (columns, n, d)
    velocities and impulses at contacts, in their own units, as y, p and u that are found; off: (columns,) velocity that
    is left, in m/s, of what should be zero; N, M: loops of B and F
    """
    work, room = work_of(given, floats, ints), room_of(given, room_floats, room_ints)
    m, n, d = r.shape[1], e.shape[1], e.shape[2]
    groups, bases, rows, runs, C = work.groups, work.bases, given.rows, given.runs, work.C
    may = work.zero if work.flags[ALIKE] != 0 else work.may
    s, small, extra, a, here = room.a[0], room.a[1], room.a[2], room.a[3], room.a[4]
    first, second, third, fourth = room.x[0], room.x[1], room.x[2], room.x[3]
    over, size, compliant = 0.0, 0.0, work.flags[COMPLIANT] != 0
    for column in range(len(r)):
        # In the normal form: r + Lᵀ (f - C e) against Fᵀ a, and B y = -Qᵀ e.
        right, direct, given_u = r[column], p[column], u[column]
        asked = False
        off[column] = 0.0
        for i in range(n):
            for c in range(d):
                given_u[i, c] = e[column, i, c] * given.scale[i]
            for c in range(d):
                part = f[column, i, c] / given.scale[i]
                if compliant:
                    for b in range(1, d):
                        part -= C[i, c, b] * given_u[i, b]
                direct[i, c] = part
                if part != 0.0:
                    subtract_row(right, -part, rows[i, c], runs[i])
            for k in range(bases.count[i]):
                total = 0.0
                for c in range(d):
                    total -= bases.zero[i, c, k] * given_u[i, c]
                s[groups.row[i] + k] = total
                size = max(size, abs(total))
                asked = asked or total != 0.0

        # y₀ = B⁺ s, then what is left of the motion.
        for j in range(m):
            first[j], second[j] = 0.0, 0.0
        if asked:
            least(work.zero, groups, runs, N, s, first, small, extra)
            through(given, work, first, second)
        for j in range(m):
            size = max(size, abs(right[j]))
            second[j] = right[j] - second[j]
        across(work, lowest, second, False, third, fourth)
        for j in range(m):
            y[column, j] = first[j] + fourth[j]
            size = max(size, abs(y[column, j]))

        # The impulses that make it.
        if pushing:
            through(given, work, y[column], second)
            for j in range(m):
                second[j] -= right[j]
                third[j] = second[j]
            push(may, groups, runs, M, second, a, small, extra)

        # Back to contacts, in their own units; what the equations leave over.
        for i in range(n):
            for c in range(d):
                here[c] = run_dot(rows[i, c], runs[i], y[column])
            for k in range(bases.count[i]):
                total = -s[groups.row[i] + k]
                for c in range(d):
                    total += bases.zero[i, c, k] * here[c]
                over = max(over, abs(total))
                off[column] = max(off[column], abs(total) / given.scale[i])
            for c in range(d if pushing else 0):
                part = 0.0
                for k in range(bases.count[i]):
                    part += bases.may[i, c, k] * a[groups.row[i] + k]
                if part != 0.0:
                    subtract_row(third, part, rows[i, c], runs[i])
                part += direct[i, c]
                if compliant:
                    for b in range(1, d):
                        part -= C[i, c, b] * here[b]
                direct[i, c] = part * given.scale[i]
            for c in range(d):
                given_u[i, c] = (here[c] + given_u[i, c]) / given.scale[i]
        for j in range(m if pushing else 0):
            over = max(over, abs(third[j]))
    return over, size


@kernel
def solve_transposed(given, N, M, lowest, x, p, u, r, e, f, floats, ints, room_floats, room_ints):
    """What an answer is worth: gradients by momentum r, contact velocities e and contact impulses f.

    x: (m,) gradient by whitened velocities; p, u: (n, d) by impulses and velocities of contacts, in the normal form
    """
    work, room = work_of(given, floats, ints), room_of(given, room_floats, room_ints)
    m, n, d = len(x), p.shape[0], p.shape[1]
    groups, bases, rows, runs, C = work.groups, work.bases, given.rows, given.runs, work.C
    may = work.zero if work.flags[ALIKE] != 0 else work.may
    s, small, extra = room.a[0], room.a[1], room.a[2]
    y, pushed, image, right = room.x[0], room.x[1], room.x[2], room.x[3]

    # Velocities at contacts follow from motions, and impulses from both.
    for j in range(m):
        y[j] = x[j]
    some = False
    for i in range(n):
        for k in range(bases.count[i]):
            total = 0.0
            for c in range(d):
                total += bases.may[i, c, k] * p[i, c]
            s[groups.row[i] + k] = total
            some = some or total != 0.0
        for c in range(d):
            part = u[i, c]
            if work.flags[COMPLIANT] != 0:
                for b in range(1, d):
                    part -= C[i, b, c] * p[i, b]
            if part != 0.0:
                subtract_row(y, -part, rows[i, c], runs[i])

    # Through the transposed system.
    for j in range(m):
        pushed[j] = 0.0
    if some:
        least(may, groups, runs, M, s, pushed, small, extra)
        through(given, work, pushed, image)
        for j in range(m):
            y[j] += image[j]
    across(work, lowest, y, True, right, r)
    through(given, work, r, image)
    for j in range(m):
        y[j] -= image[j]
        r[j] -= pushed[j]
    push(work.zero, groups, runs, N, y, s, small, extra)

    # Impulses and velocities at contacts.
    for i in range(n):
        for c in range(d):
            f[i, c] = p[i, c] + run_dot(rows[i, c], runs[i], r)
        for c in range(d):
            total = u[i, c]
            for k in range(bases.count[i]):
                total -= bases.zero[i, c, k] * s[groups.row[i] + k]
            if work.flags[COMPLIANT] != 0:
                for b in range(1, d):
                    total -= C[i, b, c] * f[i, b]
            e[i, c] = total


@kernel
def write_loops(given, of_may, N, floats, ints, room_floats, room_ints):
    """Fill N, of B or of F."""
    work, room = work_of(given, floats, ints), room_of(given, room_floats, room_ints)
    find_loops(work.may if of_may else work.zero, work.groups, given.runs, N, room.x[0])


@kernel
def write_sharing(given, of_may, N, shared, floats, ints, room_floats, room_ints):
    """(n,) the largest part of a contact's unit impulses, or rates, that can be exchanged for others."""
    work, room = work_of(given, floats, ints), room_of(given, room_floats, room_ints)
    of_rows = room.a[0]
    write_shared(work.may if of_may else work.zero, work.groups, N, of_rows)
    for i in range(len(shared)):
        shared[i] = 0.0
        for k in range(work.bases.count[i]):
            shared[i] = max(shared[i], of_rows[work.groups.row[i] + k])


@kernel
def exchanges_of(given, of_may, N, out, spread, floats, ints):
    """(k, n, d) impulses that move nothing, each of unit size in the normal form; out: (k, rows) scratch."""
    work = work_of(given, floats, ints)
    groups, bases, d = work.groups, work.bases, spread.shape[2]
    count = write_exchanges(work.may if of_may else work.zero, groups, N, out)
    for number in range(count):
        for i in range(spread.shape[1]):
            for c in range(d):
                total = 0.0
                for k in range(bases.count[i]):
                    total += bases.may[i, c, k] * out[number, groups.row[i] + k]
                spread[number, i, c] = total * given.scale[i]


class System:
    """A, B and F of a solution's modes, factored; Python's side of the kernels above.

    rows: active rows; near: contacts at kinks; ranks and loops: of B and of F
    """

    def __init__(self, given: Given, shape: tuple[int, ...], floats: Numbers, ints: NDArray[np.int64]) -> None:
        self.given, self.shape, self.buffers = given, shape, (floats, ints)

    @classmethod
    def examined(cls, given: Given) -> System:
        """Of the modes that velocities tell, at the solution's own impulses."""
        n, d, width = given.rows.shape
        shape = n, d, int(given.trees[-1]), width
        floats, ints = work_sizes(*shape)
        system = cls(given, shape, np.empty(floats), np.empty(ints, np.int64))
        system.found(examine(given, DEPENDENT, *system.buffers, *system.room()))
        return system

    def with_modes(self, dependent: float = DEPENDENT, **changes: Any) -> System:
        """Of other modes, or impulses, that are arrays of `work.modes` or `impulse`."""
        floats, ints = self.buffers
        other = System(self.given, self.shape, floats.copy(), ints.copy())
        for name, value in changes.items():
            (other.work.impulse if name == "impulse" else getattr(other.work.modes, name))[:] = value
        other.found(examine_modes(self.given, dependent, *other.buffers, *other.room()))
        return other

    def found(self, numbers: tuple[int, ...]) -> None:
        self.rows, self.near, self.rank_zero, self.rank_may, self.loops_zero, self.loops_may = numbers

    def room(self) -> Any:
        return workspace(*room_sizes(*self.shape))

    @cached_property
    def work(self) -> Work:
        """All arrays, as they lie in the buffers."""
        return work_views(*self.shape, *self.buffers)  # type: ignore[no-any-return]

    @property
    def flags(self) -> NDArray[np.int64]:
        return self.buffers[1][-len(FLAGS) :]

    @property
    def alike(self) -> bool:
        """Whether B = F."""
        return bool(self.flags[ALIKE])

    @property
    def determined(self) -> bool:
        """Whether the motion is."""
        return bool(self.flags[INNER] != UNDETERMINED)

    @property
    def left(self) -> int:
        """Dimensions of motion that active contacts leave."""
        return int(self.flags[RIGHT])

    @cached_property
    def lowest(self) -> Numbers:
        """Pseudo-inverse of Yᵀ A Z where the motion is not determined."""
        if self.determined:
            return NO_LOOPS
        inner = np.empty((int(self.flags[LEFT]), int(self.flags[RIGHT])))
        write_inner(self.given, inner, *self.buffers)
        if not inner.size:
            return np.zeros(inner.shape[::-1])
        U, sizes, Vt = np.linalg.svd(inner, full_matrices=False)
        count = int((sizes > SMALLEST * sizes[0]).sum())
        return np.ascontiguousarray((Vt[:count].T / sizes[:count]) @ U[:, :count].T)

    @cached_property
    def loops(self) -> tuple[Numbers, Numbers]:
        """N of B and of F: what can be exchanged between groups without moving anything."""
        N = self.loops_in(False, self.rank_zero, self.loops_zero)
        return N, N if self.alike else self.loops_in(True, self.rank_may, self.loops_may)

    def loops_in(self, of_may: bool, rank: int, count: int) -> Numbers:
        if not count:
            return NO_LOOPS
        N = np.empty((count, rank + count))
        write_loops(self.given, of_may, N, *self.buffers, *self.room())
        return N

    @cached_property
    def exchanges(self) -> Numbers:
        """(k, n, d) impulses, in N s, that move nothing, each of unit size in the normal form."""
        n, d = self.shape[:2]
        count, spread = self.rows - self.rank_may, np.zeros((self.rows - self.rank_may, n, d))
        if count:
            exchanges_of(
                self.given, not self.alike, self.loops[1], np.empty((count, self.rows)), spread, *self.buffers
            )  # fmt: skip
        return spread

    def shared(self, pushing: bool) -> Numbers:
        """(n,) the part of a contact's unit impulses (pushing) or rates that can be exchanged for others."""
        result, of_may = np.zeros(self.shape[0]), pushing and not self.alike
        if self.rows > (self.rank_may if of_may else self.rank_zero):
            write_sharing(self.given, of_may, self.loops[of_may], result, *self.buffers, *self.room())
        return result

    def spread_load(self, more: int) -> int:
        """Impulses of the same motion further within their bounds; returns how many kinks are left."""
        self.near = spread_load(self.given, self.loops[1], more, *self.buffers, *self.room())
        self.reduce()
        return self.near

    def take(self, impulse: Numbers) -> None:
        """Other impulses of the same motion."""
        self.work.impulse[:] = impulse
        self.reduce()

    def reduce(self) -> None:
        """C, and with it the reduced system, at the impulses that there are now."""
        if self.flags[COMPLIANT]:
            reduce_again(self.given, *self.buffers, *self.room())
            self.__dict__.pop("lowest", None)

    def answers(
        self, r: Numbers, e: Numbers, f: Numbers, pushing: bool = True
    ) -> tuple[Numbers, Numbers, Numbers, Numbers, float]:
        """y (columns, m), impulses and velocities of contacts (columns, n, d), what is left of those that should be
        zero (columns,), and the residual.

        r: (columns, m) whitened momentum, overwritten; e, f: (columns, n, d) velocities and impulses at contacts
        """
        y, p, u, off = np.empty(r.shape), np.empty(e.shape), np.empty(e.shape), np.empty(len(r))
        over, size = answer_columns(
            self.given, *self.loops, self.lowest, pushing, r, e, f, y, p, u, off, *self.buffers, *self.room()
        )  # fmt: skip
        return y, p, u, off, over / size if size > 0.0 else 0.0

    def transposed(self, x: Numbers, p: Numbers, u: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Gradients by momentum (m,), contact velocities and contact impulses (n, d), all in the normal form."""
        r, e, f = np.empty(len(x)), np.empty(p.shape), np.empty(p.shape)
        solve_transposed(self.given, *self.loops, self.lowest, x, p, u, r, e, f, *self.buffers, *self.room())
        return r, e, f

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

from typing import Annotated as Array
from typing import Any, NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot, inverse_norm, lu
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import row_dot
from stiction.derivatives.factors import (
    FREE,
    HELD_DIRECTIONS,
    LOOPS,
    Groups,
    Scratch,
    Side,
    factor,
    make_groups,
)
from stiction.derivatives.modes import Bases, Modes, set_bases, set_compliance, set_margins, set_modes
from stiction.derivatives.tolerances import SINGULAR

IDENTITY, REGULAR, UNDETERMINED = range(3)  # what Yᵀ A Z is


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


class Memory(NamedTuple):
    """Where the two lie."""

    floats: Any
    ints: Any
    room_floats: Any
    room_ints: Any


@kernel
def work_of(given, memory):
    """All arrays of a system, as they lie in its buffers."""
    n, d, width = given.rows.shape
    return work_views(n, d, given.trees[len(given.trees) - 1], width, memory.floats, memory.ints)


@kernel
def room_of(given, memory):
    """Scratch, as it lies in its buffers."""
    n, d, width = given.rows.shape
    return room_views(n, d, given.trees[len(given.trees) - 1], width, memory.room_floats, memory.room_ints)


@kernel
def examine(given, dependent, memory):
    """Modes, margins, and the factored system at the solution's own impulses."""
    work, room = work_of(given, memory), room_of(given, memory)
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
def examine_modes(given, dependent, memory):
    """The factored system of modes and impulses that the workspace has already."""
    return assemble(given, dependent, work_of(given, memory), room_of(given, memory))


@kernel
def reduce_again(given, memory):
    """The reduced system at other impulses."""
    reduce(given, work_of(given, memory), room_of(given, memory))


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

    # The part of the mass, then that of each contact with compliant friction.
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
def write_inner(given, out, memory):
    """Copy Yᵀ A Z."""
    inner = work_of(given, memory).inner
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

    # L Z of this contact ...
    for b in range(work.flags[RIGHT]):
        for c in range(1, d):
            image[b, c] = row_dot(rows[c], run, work.zero.O[work.right[b]])

    # ... and, row by row of L Y, the products.
    for a in range(work.flags[LEFT]):
        one = may.O[work.left[a]]
        for c in range(1, d):
            moved = row_dot(rows[c], run, one)
            if moved == 0.0:
                continue
            for e in range(1, d):
                part = moved * work.C[i, c, e]
                if part != 0.0:
                    for b in range(work.flags[RIGHT]):
                        inner[a, b] += part * image[b, e]

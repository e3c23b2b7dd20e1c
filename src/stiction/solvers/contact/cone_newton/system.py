"""The linear system of a Newton step in velocity space: (I + sum of L_iᵀ slope_i L_i) dx = right.

It has as many unknowns as there are velocities, for any number of contacts, and is factored by the fronts that contacts
couple (`elimination`, `blocks`). Dry friction has a velocity of its own, which is its normal: no other contact and no
tangent acts on it, so that it is known at once, and enters the right-hand side of the others.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import in_callers, kernel
from stiction.arrays.dense import subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.problems.normal_form import SMALL
from stiction.solvers.contact.cone_newton.blocks import (
    add_gathered,
    add_singles,
    begin_group,
    clear,
    factor_blocks,
    gather_rows,
    lay_single,
    same_blocks,
    solve_blocks,
)
from stiction.solvers.contact.cone_newton.elimination import (
    CLOSED,
    FEW,
    FRONTS,
    KNOWN,
    ROW,
    TOUCHED,
    VELOCITY,
    WIDTH,
    Blocks,
    Elements,
    blocks_of,
    find_sole,
    order_bodies,
)
from stiction.solvers.contact.cone_newton.slope import of_tangent
from stiction.solvers.contact.cone_newton.tolerances import AT_ONCE, STILL_CLOSED, TOGETHER

OPEN, STICK, SLIP, LIFT = range(4)


class System(NamedTuple):
    """The linearised law of each contact, dp = constant - slope du, and the system that they make."""

    constant: Array[Floats, "n", "d"]
    # Entries nn, 1n, 2n ..., then 11, 12 = 21 ..., 22 ... of the tangents, and n1, n2 ... (`slope`).
    slope: Array[Floats, "n", "d * (d + 1) // 2 + d - 1"]
    mode: Array[Ints, "n"]  # OPEN, STICK, SLIP or LIFT
    right: Array[Floats, "m"]  # right-hand side, then solution
    blocks: Blocks  # I + sum of L_iᵀ slope_i L_i, then its factors
    elements: Elements  # scratch


layout(System, "n", "d", "m", "width")


@kernel
def solve_system(contacts, system):
    """right = matrix⁻¹ right; False if the matrix is singular. Its factors are kept for `solve_again`."""
    keep_order(contacts, system)
    assemble(contacts, system)
    regular = factor_blocks(system.blocks)
    if regular:
        solve_again(contacts, system, system.right)
    return regular


@in_callers
@kernel
def keep_order(contacts, system):
    """Put the blocks of closed contacts in order, unless there is an order that fits.

    Open contacts couple nothing: in a heap half of them leave a fifth of the work.
    """
    blocks, n = system.blocks, len(system.mode)
    if not order_fits(system.mode, blocks.covered, blocks.total):
        find_sole(contacts.rows[:n], contacts.segments[:n], blocks, system.elements.found)
        cover(system.mode, contacts.segments, blocks.total[FEW] != 0, blocks.covered, blocks.total)
        order_bodies(contacts.rows[:n], contacts.segments[:n], blocks, system.elements)


@kernel
def order_fits(mode, covered, total):
    """Whether an order covers all contacts that are closed, and most of those that it was made for still are."""
    closed, known = 0, total[KNOWN]
    for i in range(len(mode)):
        if mode[i] != OPEN:
            closed += 1
            if i >= known or covered[i] == 0:
                return False
    return known > 0 and (total[FEW] != 0 or closed >= STILL_CLOSED * total[CLOSED])


@kernel
def cover(mode, segments, small, covered, total):
    """Cover what is closed, and other contacts of the same free bodies; of few velocities, all."""
    closed = 0
    for i in range(len(mode)):
        closed += 1 if mode[i] != OPEN else 0
        covered[i] = 1 if small or mode[i] != OPEN else 0
        if i > 0 and covered[i] != covered[i - 1] and same_bodies(segments[i], segments[i - 1]):
            covered[i] = 1
            k = i - 1
            while k >= 0 and covered[k] == 0 and same_bodies(segments[i], segments[k]):
                covered[k] = 1
                k -= 1
    total[KNOWN], total[CLOSED] = len(mode), closed


@kernel
def same_bodies(one, other):
    """Whether two contacts have the same runs of velocities, which are whole bodies."""
    for a in range(4):
        if one[a] != other[a] or (a % 2 == 1 and one[a] > SMALL):
            return False
    return True


@kernel
def assemble(contacts, system):
    """I + sum of L_iᵀ slope_i L_i; an open contact has no slope."""
    blocks, d, held, count = system.blocks, len(contacts.zero), 0, 0
    clear(blocks)
    together = blocks.total[FRONTS] == 1 and blocks.fronts[0, WIDTH] <= TOGETHER
    if together:
        assemble_single(contacts, system)

    # Contacts in a row that touch the same blocks are added at once, a few at most.
    for i in range(len(system.mode)):
        if system.mode[i] == OPEN or (together and blocks.sole[i, ROW] >= 0):
            continue
        found = blocks_of(contacts.rows[i], contacts.segments[i], blocks, blocks.lists[TOUCHED])
        if held == AT_ONCE or not same_blocks(blocks, found, count):
            add_gathered(blocks, held * d, count)
            begin_group(blocks, found)
            held, count = 0, found
        gather_rows(
            contacts.rows[i], contacts.segments[i], system.slope, i, held * d, count, contacts.zero, blocks
        )  # fmt: skip
        held += 1
    add_gathered(blocks, held * d, count)


@in_callers
@kernel
def assemble_single(contacts, system):
    """Add contacts of one row, where all velocities are in one front; dry friction that slips has no part in it."""
    blocks, held = system.blocks, 0
    for i in range(len(system.mode)):
        row = blocks.sole[i, ROW]
        if row < 0 or system.mode[i] == OPEN:
            continue
        slope = system.slope[i, 0] if row == 0 else of_tangent(system.slope, i, contacts.zero)
        if slope != 0.0:
            held = lay_single(blocks, contacts.rows[i, row], contacts.segments[i], slope, held)
    add_singles(blocks, held)


@kernel
def solve_again(contacts, system, x):
    """x = matrix⁻¹ x from the factors."""
    blocks = system.blocks
    for i in range(len(system.mode)):
        own = blocks.sole[i, VELOCITY]
        if own < 0 or system.mode[i] == OPEN:
            continue
        # A velocity of its own first; a tangent whose impulse follows the normal's acts on the others.
        segment, rows = contacts.segments[i], contacts.rows[i]
        begins = segment[0] == own
        normal = rows[0, 0] if begins else rows[0, segment[1]]
        x[own] /= 1.0 + system.slope[i, 0] * normal * normal
        follows = system.slope[i, 1] * normal * x[own]
        if follows != 0.0:
            first, length, at = (segment[2], segment[3], 1) if begins else (segment[0], segment[1], 0)
            subtract_multiple(x[first:], follows, rows[1, at:], length)
    solve_blocks(blocks, x)

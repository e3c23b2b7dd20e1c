"""The linear system of a Newton step in velocity space: (I + sum of L_iᵀ slope_i L_i) dx = right.

It has as many unknowns as there are velocities, for any number of contacts, and is factored by the fronts that contacts
couple (`elimination`, `blocks`).
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.layout import Floats, Ints, layout
from stiction.solvers.contact.cone_newton.blocks import (
    add_gathered,
    begin_group,
    clear,
    factor_blocks,
    gather_rows,
    same_blocks,
    solve_blocks,
)
from stiction.solvers.contact.cone_newton.elimination import AT_ONCE, TOUCHED, Blocks, blocks_of

OPEN, STICK, SLIP = 0, 1, 2


class System(NamedTuple):
    """The linearised law of each contact, dp = constant - slope du, and the system that they make."""

    constant: Array[Floats, "n", "d"]
    # Entries nn, 1n, 2n ..., then 11, 12 = 21 ..., 22 ... of the tangents; those at n1, n2 ... are zero.
    slope: Array[Floats, "n", "d * (d + 1) // 2"]
    mode: Array[Ints, "n"]  # OPEN, STICK or SLIP
    right: Array[Floats, "m"]  # right-hand side, then solution
    blocks: Blocks  # I + sum of L_iᵀ slope_i L_i, then its factors


layout(System, "n", "d", "m", "width")


@kernel
def solve_system(contacts, system):
    """right = matrix⁻¹ right; False if the matrix is singular. Its factors are kept for `solve_again`."""
    assemble(contacts, system)
    regular = factor_blocks(system.blocks)
    if regular:
        solve_again(system, system.right)
    return regular


@kernel
def assemble(contacts, system):
    """I + sum of L_iᵀ slope_i L_i; an open contact has no slope."""
    # Contacts in a row that touch the same blocks are added at once, a few at most.
    blocks, d, held, count = system.blocks, len(contacts.zero), 0, 0
    clear(blocks)
    for i in range(len(system.mode)):
        if system.mode[i] == OPEN:
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


@kernel
def solve_again(system, x):
    """x = matrix⁻¹ x from the factors."""
    solve_blocks(system.blocks, x)

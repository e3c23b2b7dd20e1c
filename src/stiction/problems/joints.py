"""Bilateral rows of the normal form: which of them are independent, and what the others must not contradict.

They are made orthonormal one by one; one that depends on those before it, or that is rounding beside the largest of
them, is left out (Drumwright's FIND-INDICES [Drumwright2013, Algorithm 2], in O(m²) a row). Arrays are those of
`normal_form.White`.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot, subtract_multiple

DEPENDENT = 1e-9  # a bilateral row is redundant if a smaller part of it is independent of the others
LOOSELY = 1e-5  # the same in a step: decimals of a model leave as much of a plane loop's third row
ABOUT, DECIDED = 0.01, -1.0  # a row with this part of the largest remaining square is as good; marks a row as done
AGAIN = 0.1  # part of a row's square that is left, below which rounding errors count and it is projected once more
NOISE_ROW = 1e-10  # a bilateral row smaller than this, over the largest, is rounding: a plane loop's third row
SPANNED = (
    1e-14  # part of a redundant row beyond the others' span that is rounding: fast joints times this is its violation
)
CONTRADICTION = 1e-8  # error of a redundant row, over its own terms, that is more than rounding


@kernel
def row_sizes(row, trees):
    """1 / |row| of a whitened bilateral row, and 1 / |part| on the tree that it moves least; 0 if it is zero."""
    total, least = 0.0, np.inf
    for b in range(len(trees) - 1):
        part = row[trees[b] : trees[b + 1]]
        square = dot(part, part, len(part))
        total += square
        if square > 0.0:
            least = min(least, square)
    return (1.0 / sqrt(total), 1.0 / sqrt(least)) if total > 0.0 else (0.0, 0.0)


@kernel
def choose_rows(joints, m, dependent, basis, kept, triangle, left, square):
    """Orthonormal rows that span the whitened bilateral ones, except rows of rounding size; returns their number.

    m: velocities that they touch at most; left, square: (rows,) scratch
    """
    least = NOISE_ROW / dependent * longest(joints)
    return gram_schmidt(joints, m, dependent, least, basis, kept, triangle, left, square)


@kernel
def gram_schmidt(white, m, dependent, least, basis, kept, triangle, left, square):
    """Write orthonormal rows that span those of `white`; return their number, the rank.

    The next row is the first one with about the largest remaining part: rows that nearly depend on others come last
    and do not spoil the basis with their rounding errors.

    m: velocities that rows touch at most
    left, square: (rows,) scratch: remaining part of each row's square, and what it is a part of
    """
    # At first all of each row remains; `least` keeps rows of rounding size small.
    for i in range(len(white)):
        own = dot(white[i], white[i], m)
        square[i] = max(own, least * least)
        left[i] = own / square[i] if square[i] > 0.0 else DECIDED
    rank = 0
    while rank < len(basis):
        i = next_row(left)
        if i < 0:
            break
        # Subtract its components along the basis so far, once more if that leaves little of it.
        rest, along = basis[rank], triangle[rank]
        for j in range(len(rest)):
            rest[j] = white[i, j]
        own = dot(rest, rest, m)
        for u in range(rank):
            along[u] = 0.0
        for again in range(2):
            if again == 0 or dot(rest, rest, m) <= AGAIN * own:
                for u in range(rank):
                    part = dot(basis[u], rest, m)
                    along[u] += part
                    subtract_multiple(rest, part, basis[u], m)

        # Compare the remaining part with the estimate by which the row was chosen.
        length = sqrt(dot(rest, rest, m))
        part = length * length / square[i]
        if part <= dependent * dependent:
            left[i] = DECIDED
        elif part < 0.25 * left[i]:  # less than estimated: another row may have more left
            left[i] = part
        else:
            # Accept it: normalize, then update what remains of the undecided rows.
            along[rank], kept[rank], left[i] = length, i, DECIDED
            for j in range(m):
                rest[j] /= length
            for k in range(len(white)):
                if left[k] >= 0.0:
                    part = dot(white[k], rest, m)
                    left[k] = max(left[k] - part * part / square[k], 0.0)
            rank += 1
    return rank


@kernel
def next_row(left):
    """Return the first row with about the largest remaining part, -1 if all are decided."""
    most = DECIDED
    for i in range(len(left)):
        most = max(most, left[i])
    if most >= 0.0:
        for i in range(len(left)):
            if left[i] >= ABOUT * most:
                return i
    return -1


@kernel
def longest(rows):
    """The largest norm of a row."""
    largest = 0.0
    for i in range(len(rows)):
        largest = max(largest, dot(rows[i], rows[i], rows.shape[1]))
    return sqrt(largest)


@kernel
def set_wanted(rate, kept, triangle, rank, wanted):
    """Velocities along the basis at which the kept rows have their rates, by forward substitution."""
    for u in range(rank):
        wanted[u] = (-rate[kept[u]] - dot(triangle[u], wanted, u)) / triangle[u, u]


@kernel
def make_consistent(white, rank, joints, rate):
    """Give redundant rows the rates that the kept ones imply; rows of rounding size become zero.

    Errors of redundant rows never agree to the last digit, and rows that contradict each other cannot all be held. In a
    step, rates only correct errors, so redundant rows may follow the others. For the same reason a row that is not
    redundant to the last digit loses what is left of it, a part smaller than LOOSELY that enormous forces would hold.
    """
    m, left = joints.shape[1], white.joint_size[2]
    noise = NOISE_ROW * longest(white.joints)

    # Mark the redundant rows.
    for i in range(len(rate)):
        left[i] = 1.0
    for u in range(rank):
        left[white.kept[u]] = 0.0

    # Their rates follow from the velocities along the basis.
    for i in range(len(rate)):
        if left[i] == 0.0:
            continue
        moved = 0.0
        for u in range(rank):
            white.share[u] = dot(white.joints[i], white.basis[u], m)
            moved += white.share[u] * white.wanted[u]
        rate[i] = -moved

        # A row that is rounding asks for nothing; one that is nearly spanned follows the others.
        size = dot(white.joints[i], white.joints[i], m)
        if size <= noise * noise:
            rate[i] = 0.0
            for j in range(m):
                joints[i, j] = 0.0
        elif not spanned(white, rank, i, size):
            combine_rows(white, rank, i, joints, rate)


@kernel
def spanned(white, rank, i, size):
    """Whether a redundant row lies in the span of the kept ones but for rounding; size: its square."""
    rest = 0.0
    for j in range(white.joints.shape[1]):
        part = white.joints[i, j]
        for u in range(rank):
            part -= white.share[u] * white.basis[u, j]
        rest += part * part
    return rest <= SPANNED * SPANNED * size


@kernel
def combine_rows(white, rank, i, joints, rate):
    """Replace row i and its rate by the combination of kept rows that is nearest to it."""
    share, T = white.share, white.triangle

    # From parts along the basis to parts of the kept rows, by back substitution.
    for u in range(rank - 1, -1, -1):
        for w in range(u + 1, rank):
            share[u] -= T[w, u] * share[w]
        share[u] /= T[u, u]

    # Their sum.
    rate[i] = 0.0
    for j in range(joints.shape[1]):
        joints[i, j] = 0.0
    for u in range(rank):
        k = white.kept[u]
        rate[i] += share[u] * rate[k]
        subtract_multiple(joints[i], -share[u], joints[k], joints.shape[1])

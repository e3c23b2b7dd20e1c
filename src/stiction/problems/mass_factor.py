"""The factor of the mass, M = G Gᵀ, tree by tree, and what is multiplied by it or its inverse.

G is upper triangular: velocities of a tree are numbered from its root, so that neither the factor nor a row ever
touches more than a body's ancestors. Blocks are flat, one after the other, as Gᵀ with an inverted diagonal.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.dense import back_substitute, dot, forward_substitute, tree_factor


@kernel
def factor_blocks(mass, trees, factor, place):
    """M = Lᵀ L of each block, L with inverted diagonal; returns the first row that fails, -1 if none does."""
    at = 0
    for b in range(len(trees) - 1):
        size = trees[b + 1] - trees[b]
        if size > 0:
            factor[at] = 0.0
        at += size * size
    return factor_left(mass, trees, factor, place)


@kernel
def factor_left(mass, trees, factor, place):
    """The same, where blocks whose factor does not begin with 0 have theirs already."""
    at = 0
    for b in range(len(trees) - 1):
        size = trees[b + 1] - trees[b]
        if size > 0:  # an empty tree has no velocity at which to store its place
            place[trees[b]] = at
            if factor[at] == 0.0:
                failed = tree_factor(mass[at : at + size * size], size, factor[at : at + size * size])
                if failed >= 0:
                    return trees[b] + failed
        at += size * size
    return -1


@kernel
def whiten_rows(factor, place, rows, segment, out):
    """out = G⁻¹ of a contact's rows; each segment is a whole block."""
    # The rows as they are.
    for c in range(len(rows)):
        for j in range(rows.shape[1]):
            out[c, j] = rows[c, j]

    # Each side has its own block of the factor.
    first, second = segment[1], segment[3]
    if first > 0:
        whiten_side(factor[place[segment[0]] :], first, 0, out)
    if second > 0:
        whiten_side(factor[place[segment[2]] :], second, first, out)


@kernel
def whiten_side(L, k, start, rows):
    """Multiply the rows of a contact at k velocities from `start` on by G⁻¹ in place.

    A limit has a normal only, and dry friction a tangent: these are done alone.
    """
    r0, r1, r2 = rows[0, start:], rows[1, start:], rows[2, start:]
    if is_zero(r2, k) and is_zero(r1, k):
        back_substitute(L, k, r0)
    elif is_zero(r2, k) and is_zero(r0, k):
        back_substitute(L, k, r1)
    else:
        back_substitute_rows(L, k, r0, r1, r2)
    for c in range(3, len(rows)):
        back_substitute(L, k, rows[c, start:])


@sums
def is_zero(row, k):
    """Whether the first k entries are zero; one sum tells faster than a look at each."""
    total = 0.0
    for j in range(k):
        total += abs(row[j])
    return total == 0.0


@kernel
def spread(factor, place, rows, segment, out):
    """As `whiten_rows`, with the result over all velocities."""
    for c in range(len(rows)):
        for j in range(out.shape[1]):
            out[c, j] = 0.0

    # Put each side at its velocities and whiten it there.
    taken = 0
    for s in range(2):
        start, length = segment[2 * s], segment[2 * s + 1]
        if length > 0:
            for c in range(len(rows)):
                for j in range(length):
                    out[c, start + j] = rows[c, taken + j]
            whiten_side(factor[place[start] :], length, start, out)
            taken += length


@sums
def back_substitute_rows(L, k, r0, r1, r2):
    """Multiply three rows by G⁻¹ in place; velocities that they do not touch are skipped."""
    for i in range(k - 1, -1, -1):
        if r0[i] == 0.0 and r1[i] == 0.0 and r2[i] == 0.0:
            continue
        row = L[i * k : i * k + i + 1]
        x0, x1, x2 = r0[i] * row[i], r1[i] * row[i], r2[i] * row[i]
        r0[i], r1[i], r2[i] = x0, x1, x2
        for j in range(i):
            r0[j] -= x0 * row[j]
            r1[j] -= x1 * row[j]
            r2[j] -= x2 * row[j]


@kernel
def whiten_dense(factor, trees, row):
    """G⁻¹ of a row over all velocities, in place."""
    at = 0
    for b in range(len(trees) - 1):
        size = trees[b + 1] - trees[b]
        back_substitute(factor[at:], size, row[trees[b] :])
        at += size * size


@sums
def whiten_velocity(factor, trees, v, x):
    """x = Gᵀ v."""
    at = 0
    for b in range(len(trees) - 1):
        start, size = trees[b], trees[b + 1] - trees[b]
        for i in range(size):
            row = factor[at + i * size : at + i * size + i + 1]
            x[start + i] = dot(row, v[start:], i) + v[start + i] / row[i]
        at += size * size


@kernel
def unwhiten_velocity(factor, trees, x, v):
    """v = G⁻ᵀ x."""
    at = 0
    for b in range(len(trees) - 1):
        start, size = trees[b], trees[b + 1] - trees[b]
        part = v[start : start + size]
        for i in range(size):
            part[i] = x[start + i]
        forward_substitute(factor[at:], size, part)
        at += size * size

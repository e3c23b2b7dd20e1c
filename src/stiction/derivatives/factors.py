"""Rows of active contacts, factored along the bodies that they join, redundant ones and all.

Contacts that touch the same velocities are a group, and rows of a group are few motions: four contacts under a box have
twelve rows and six motions. Each group is made that small first,

    rows = V T,      V (rows, k) orthonormal columns, T (k, width) of full rank

by orthogonalizing columns, the largest first. Then groups come one after the other. O (m, m) is orthogonal and begins
as the identity; its rows are directions that no group holds yet. A group couples the trees that it touches, and turns
those directions of theirs that are left (Householder, the largest row first), so that it holds as many as it can and
does not feel the others: T Oᵀ = [S 0], S lower triangular at its pivots. What nothing holds at the end spans the null
space of all rows; what a group holds is new to it, so that

    the smallest x with rows x = s        goes through the groups forward
    the smallest a with rowsᵀ a = x       goes back, from the last group

A group of which more rows are left than it holds closes a loop. N spans what can be exchanged between groups without
moving anything, one impulse for each such row. Bodies that hang on the ground have no direction left, so that a
tower costs as much as its storeys, and not as its height to the third power.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import add_row, row_dot, same_runs
from stiction.derivatives.tolerances import NEW

FREE = -1  # a direction that no group holds
COMPRESSED, HELD_DIRECTIONS, LOOPS = range(3)  # numbers of a side: rows of all T, directions held, rows of N


class Groups(NamedTuple):
    """Contacts that touch the same velocities, those that touch one tree only first."""

    order: Array[Ints, "n"]  # contacts, group by group
    begin: Array[Ints, "n + 1"]  # where each group begins in `order`
    row: Array[Ints, "n"]  # first row of each contact
    rows: Array[Ints, "n + 1"]  # where the rows of each group begin
    group: Array[Ints, "n"]  # of each contact, -1 if it is open
    leader: Array[Ints, "n"]  # first contact of each group
    count: Array[Ints, 2]  # type: ignore[assignment]  # groups, rows


class Side(NamedTuple):
    """Factored rows: those that stay zero, or those that push."""

    V: Array[Floats, "most", "width"]
    T: Array[Floats, "most", "width"]
    S: Array[Floats, "most", "width"]
    O: Array[Floats, "m", "m"]
    compressed: Array[Ints, "n + 1"]  # where the rows of each group begin in T and S
    rank: Array[Ints, "n"]  # directions that each group holds
    pivot: Array[Ints, "most"]  # rows of T that hold them, from where those of their group begin
    held: Array[Ints, "most"]  # the directions: rows of O
    holder: Array[Ints, "m"]  # the group that holds a direction, FREE if none does
    low: Array[Ints, "m"]  # where a direction has its first entry, and one past its last
    high: Array[Ints, "m"]
    sizes: Array[Ints, 3]


class Scratch(NamedTuple):
    """Scratch arrays of a factorization."""

    columns: Array[Floats, "width", "most"]
    chosen: Array[Floats, "width", "most"]
    seen: Array[Floats, "width", "m"]  # T Oᵀ of a group
    turn: Array[Floats, "m"]
    image: Array[Floats, "m"]
    label: Array[Ints, "m"]  # the trees that are coupled so far
    left: Array[Ints, "m"]  # directions that a group may hold
    used: Array[Ints, "width"]


layout(Groups, "n")
layout(Side, "n", "most", "m", "width")
layout(Scratch, "n", "most", "m", "width")


@kernel
def make_groups(count, runs, groups):
    """Sort contacts with active rows into groups; count: (n,) rows of each."""
    n, number, leader = len(count), 0, groups.leader

    # No contact has a group yet.
    for i in range(n):
        groups.group[i] = -1

    # Find each contact's group among those before it, the latest first.
    for coupling in range(2):
        for i in range(n):
            if count[i] == 0 or (1 if runs[i, 3] > 0 else 0) != coupling:
                continue
            found = -1
            for g in range(number - 1, -1, -1):
                if same_runs(runs[leader[g]], runs[i]):
                    found = g
                    break
            if found < 0:
                found = number
                leader[number] = i
                number += 1
            groups.group[i] = found

    # Number contacts and rows group by group.
    begin = groups.begin
    for g in range(number + 1):
        begin[g] = 0

    # Contacts in the order of their groups: count, add up, fill in.
    for i in range(n):
        if groups.group[i] >= 0:
            begin[groups.group[i] + 1] += 1
    for g in range(number):
        begin[g + 1] += begin[g]
    for i in range(n):
        g = groups.group[i]
        if g >= 0:
            groups.order[begin[g]] = i
            begin[g] += 1

    # Filling has moved each beginning to the next group's.
    for g in range(number, 0, -1):
        begin[g] = begin[g - 1]
    begin[0] = 0

    # Rows in that order.
    total = 0
    for g in range(number):
        groups.rows[g] = total
        for k in range(begin[g], begin[g + 1]):
            groups.row[groups.order[k]] = total
            total += count[groups.order[k]]
    groups.rows[number] = total
    groups.count[0], groups.count[1] = number, total


@kernel
def factor(rows, runs, trees, directions, count, groups, dependent, side, scratch):
    """Factor the rows `directions`ᵀ L of all groups.

    rows: (n, d, width) L; directions: (n, d, d) in columns, the first `count` of each contact; dependent: part of the
    largest row of a group below which one is redundant
    """
    O, label = side.O, scratch.label
    m = len(O)

    # Every direction is free, and no tree coupled with another.
    for j in range(m):
        for k in range(m):
            O[j, k] = 0.0
        O[j, j] = 1.0
        side.holder[j], side.low[j], side.high[j] = FREE, j, j + 1
    for b in range(len(trees) - 1):
        for j in range(trees[b], trees[b + 1]):
            label[j] = b

    # Group by group: make its rows few, then let it hold what it can.
    total, rank = 0, 0
    for g in range(groups.count[0]):
        first, run = groups.rows[g], runs[groups.leader[g]]
        number, width = groups.rows[g + 1] - first, run[1] + run[3]
        spread_columns(rows, directions, count, groups, g, width, scratch.columns)
        k = compress(number, width, dependent, side.V[first:], side.T[total:], scratch)
        side.compressed[g] = total
        side.rank[g] = hold(g, run, k, dependent, side, scratch)
        total += k
        rank += side.rank[g]

    # Sizes, for those who go through the groups.
    side.compressed[groups.count[0]] = total
    side.sizes[COMPRESSED], side.sizes[HELD_DIRECTIONS], side.sizes[LOOPS] = total, rank, total - rank


@sums
def spread_columns(rows, directions, count, groups, g, width, columns):
    """Columns of a group's rows, one after the other in memory."""
    d = rows.shape[1]
    for place in range(groups.begin[g], groups.begin[g + 1]):
        i = groups.order[place]
        at = groups.row[i] - groups.rows[g]
        for k in range(count[i]):
            for j in range(width):
                columns[j, at + k] = 0.0
            for c in range(d):
                part = directions[i, c, k]
                if part != 0.0:
                    for j in range(width):
                        columns[j, at + k] += part * rows[i, c, j]


@sums
def compress(number, width, dependent, V, T, scratch):
    """columns = V T by Gram and Schmidt, the largest column first; returns how many directions there are."""
    columns, chosen = scratch.columns, scratch.chosen
    k, start = 0, 0.0
    while k < min(number, width):
        # The column of which most is left.
        best, size = -1, 0.0
        for j in range(width):
            square = dot(columns[j], columns[j], number)
            if square > size:
                best, size = j, square
        start = size if k == 0 else start
        if not size > dependent * dependent * start:
            break

        # A unit vector, orthogonal to those before it to the last digit.
        unit = chosen[k]
        for i in range(number):
            unit[i] = columns[best, i]
        for t in range(k):
            subtract_multiple(unit, dot(chosen[t], unit, number), chosen[t], number)
        length = dot(unit, unit, number) ** 0.5
        for i in range(number):
            unit[i] /= length

        # Its part of all columns.
        for j in range(width):
            part = dot(unit, columns[j], number)
            T[k, j] = part
            subtract_multiple(columns[j], part, unit, number)
        k += 1
    for i in range(number):
        for t in range(k):
            V[i, t] = chosen[t, i]
    return k


@kernel
def hold(g, run, k, dependent, side, scratch):
    """Turn the free directions that a group touches so that it holds as many as it can; returns how many."""
    label, left, seen, used = scratch.label, scratch.left, scratch.seen, scratch.used
    O, m, first = side.O, len(side.O), side.compressed[g]
    width = run[1] + run[3]
    if k == 0 or width == 0:
        return 0

    # The trees that it touches are coupled from now on.
    one = label[run[0]]
    if run[3] > 0 and label[run[2]] != one:
        other = label[run[2]]
        for j in range(m):
            if label[j] == other:
                label[j] = one

    # Their free directions, and what the group feels of them.
    c, low, high = 0, m, 0
    for j in range(m):
        if label[j] == one and side.holder[j] == FREE:
            left[c] = j
            low, high = min(low, side.low[j]), max(high, side.high[j])
            c += 1

    # How much each row of the group feels of them.
    largest = 0.0
    for r in range(k):
        row = side.T[first + r]
        largest = max(largest, dot(row, row, width))
        for q in range(c):
            seen[r, q] = row_dot(row, run, O[left[q]])
        used[r] = 0

    # The row that feels most of what is left takes a direction, until none feels anything.
    rank = 0
    while rank < min(k, c):
        best, size = -1, 0.0
        for r in range(k):
            if used[r] == 0:
                square = dot(seen[r, rank:], seen[r, rank:], c - rank)
                if square > size:
                    best, size = r, square
        if not size > dependent * dependent * largest:
            break

        # It holds that direction from now on.
        reflect(seen, k, used, best, rank, c, size**0.5, scratch, O, low, high)
        used[best] = 1
        side.pivot[first + rank], side.held[first + rank] = best, left[rank]
        side.holder[left[rank]] = g
        for r in range(k):
            side.S[first + r, rank] = seen[r, rank]
        rank += 1

    # Directions that were turned reach over all trees of the group.
    if rank > 0:
        for q in range(c):
            side.low[left[q]], side.high[left[q]] = low, high
    return rank


@sums
def reflect(seen, k, used, best, rank, c, size, scratch, O, low, high):
    """Turn the directions left by the reflection that leaves row `best` one entry."""
    turn, image, left = scratch.turn, scratch.image, scratch.left
    row, count = seen[best], c - rank
    for q in range(count):
        turn[q] = row[rank + q]
    alpha = -size if turn[0] >= 0.0 else size
    turn[0] -= alpha
    square = dot(turn, turn, count)

    # What the rows that are left feel.
    factor = 2.0 / square
    for r in range(k):
        if used[r] == 0 and r != best:
            tail = seen[r, rank:]
            subtract_multiple(tail, factor * dot(turn, tail, count), turn, count)
    for q in range(count):
        row[rank + q] = 0.0
    row[rank] = alpha

    # The directions themselves.
    for j in range(low, high):
        image[j] = 0.0
    for q in range(count):
        if turn[q] != 0.0:
            subtract_multiple(image[low:], -turn[q], O[left[rank + q], low:], high - low)
    for q in range(count):
        if turn[q] != 0.0:
            subtract_multiple(O[left[rank + q], low:], factor * turn[q], image[low:], high - low)


@kernel
def pushes(side, groups, runs, x, a):
    """Impulses a of the rows of T, at their pivots, with Tᵀ a = x as nearly as can be; x is what is left of it."""
    for r in range(side.sizes[COMPRESSED]):
        a[r] = 0.0
    for g in range(groups.count[0] - 1, -1, -1):
        first, run = side.compressed[g], runs[groups.leader[g]]

        # The directions that only this group holds, from the last; S is triangular.
        for t in range(side.rank[g] - 1, -1, -1):
            j = side.held[first + t]
            low, high = side.low[j], side.high[j]
            part = dot(side.O[j, low:], x[low:], high - low)
            for later in range(t + 1, side.rank[g]):
                row = first + side.pivot[first + later]
                part -= side.S[row, t] * a[row]
            row = first + side.pivot[first + t]
            a[row] = part / side.S[row, t]

        # What is left for the groups before.
        for t in range(side.rank[g]):
            row = first + side.pivot[first + t]
            add_row(side.T[row], run, -a[row], x)


@kernel
def moves(side, groups, runs, a, x):
    """x, the smallest with T x = a at the pivots: the transpose of `pushes`."""
    for j in range(len(x)):
        x[j] = 0.0
    for g in range(groups.count[0]):
        first, run = side.compressed[g], runs[groups.leader[g]]

        # What the groups before do not move already.
        for t in range(side.rank[g]):
            row = first + side.pivot[first + t]
            a[row] -= row_dot(side.T[row], run, x)

        # Along the directions that this group holds; S is triangular.
        for t in range(side.rank[g]):
            row = first + side.pivot[first + t]
            part = a[row] / side.S[row, t]
            for later in range(t + 1, side.rank[g]):
                other = first + side.pivot[first + later]
                a[other] -= side.S[other, t] * part
            j = side.held[first + t]
            low, high = side.low[j], side.high[j]
            subtract_multiple(x[low:], -part, side.O[j, low:], high - low)


@kernel
def find_loops(side, groups, runs, N, x):
    """N: orthonormal impulses of the rows of T that move nothing; x: (m,) scratch."""
    total, number = side.sizes[COMPRESSED], 0
    for g in range(groups.count[0]):
        first, run = side.compressed[g], runs[groups.leader[g]]
        for r in range(first, side.compressed[g + 1]):
            # Rows that hold no direction of their own close a loop.
            is_pivot = False
            for t in range(side.rank[g]):
                is_pivot = is_pivot or side.pivot[first + t] == r - first
            if is_pivot:
                continue

            # The row alone, held back by the others, orthogonal to those before it.
            for j in range(len(x)):
                x[j] = 0.0
            add_row(side.T[r], run, -1.0, x)
            pushes(side, groups, runs, x, N[number])
            N[number, r] += 1.0
            for _ in range(2):
                for other in range(number):
                    subtract_multiple(N[number], dot(N[other], N[number], total), N[other], total)
            length = dot(N[number], N[number], total) ** 0.5
            for k in range(total):
                N[number, k] /= length
            number += 1


@kernel
def leave_loops(N, total, a, x):
    """Remove what moves nothing from impulses of the rows of T; x: scratch."""
    for r in range(len(N)):
        x[r] = dot(N[r], a, total)
    for r in range(len(N)):
        subtract_multiple(a, x[r], N[r], total)


@sums
def into_groups(side, groups, a, small):
    """small = Vᵀ a: of rows, as impulses of the rows of T."""
    for g in range(groups.count[0]):
        first, k = side.compressed[g], side.compressed[g + 1] - side.compressed[g]
        for t in range(k):
            small[first + t] = 0.0
        for r in range(groups.rows[g], groups.rows[g + 1]):
            for t in range(k):
                small[first + t] += side.V[r, t] * a[r]


@sums
def expand_groups(side, groups, small, a):
    """a = V small."""
    for g in range(groups.count[0]):
        first, k = side.compressed[g], side.compressed[g + 1] - side.compressed[g]
        for r in range(groups.rows[g], groups.rows[g + 1]):
            a[r] = dot(side.V[r], small[first:], k)


@kernel
def least(side, groups, runs, N, s, x, small, scratch):
    """x, the smallest with rows x = s, or as nearly as can be; small: (rows,) scratch."""
    into_groups(side, groups, s, small)
    leave_loops(N, side.sizes[COMPRESSED], small, scratch)
    moves(side, groups, runs, small, x)


@kernel
def push(side, groups, runs, N, x, a, small, scratch):
    """a, the smallest with rowsᵀ a = x, or as nearly as can be: the transpose of `least`. x is overwritten."""
    pushes(side, groups, runs, x, small)
    leave_loops(N, side.sizes[COMPRESSED], small, scratch)
    expand_groups(side, groups, small, a)


@kernel
def without_exchange(side, groups, N, a, small, scratch):
    """Remove from impulses of rows, in place, what moves nothing."""
    into_groups(side, groups, a, small)
    leave_loops(N, side.sizes[COMPRESSED], small, scratch)
    expand_groups(side, groups, small, a)


@kernel
def write_shared(side, groups, N, shared):
    """shared: (rows,) the part of each unit impulse that can be exchanged for others without moving anything."""
    for g in range(groups.count[0]):
        first, k = side.compressed[g], side.compressed[g + 1] - side.compressed[g]
        for r in range(groups.rows[g], groups.rows[g + 1]):
            row = side.V[r]
            shared[r] = 1.0 - dot(row, row, k)
            for q in range(len(N)):
                part = dot(N[q, first:], row, k)
                shared[r] += part * part


@kernel
def write_exchanges(side, groups, N, out):
    """Orthonormal impulses of rows that move nothing: those within each group, then those between groups; how many.

    out: (rows - directions held, rows)
    """
    total = groups.count[1]
    number = 0

    # As many within a group as it has rows beyond its motions.
    for g in range(groups.count[0]):
        first, begin, end = side.compressed[g], groups.rows[g], groups.rows[g + 1]
        k = side.compressed[g + 1] - first
        wanted = number + end - begin - k
        r = begin
        while number < wanted and r < end:
            # A unit impulse without what moves something, orthogonal to those before it.
            new = out[number]
            for q in range(total):
                new[q] = 0.0
            new[r] = 1.0

            # Twice, because once leaves rounding.
            for _ in range(2):
                for t in range(k):
                    part = 0.0
                    for q in range(begin, end):
                        part += side.V[q, t] * new[q]
                    for q in range(begin, end):
                        new[q] -= part * side.V[q, t]
                for other in range(number):
                    subtract_multiple(new, dot(out[other], new, total), out[other], total)
            length = dot(new, new, total) ** 0.5
            if length * length > NEW / (end - begin):
                for q in range(total):
                    new[q] /= length
                number += 1
            r += 1

    # Those between groups.
    for loop in range(len(N)):
        expand_groups(side, groups, N[loop], out[number])
        number += 1
    return number

"""Kernel of the judge: the componentwise backward error of an answer (`certificate` states its definition).

    S_k = |q_k| + sum_j |H_kj z_j|      the terms of row k
    s_k = min(S_k, 1000 Q_k)            how much of them counts
    |w_i| / s_i                         row i, if z_i lies between its bounds
    max(-w_i, 0) / s_i                  row i, if z_i lies at its lower bound; max(w_i, 0) / s_i at its upper one
    max_k |H_ki| d / s_k                the change caused by moving z_i by d to its bound; at least d / (hi_i - lo_i)
    sum_i |H_ki| d_i / s_k              the change in row k caused by all these moves together

Q_k is what the given numbers are worth in row k: |q_k| and the terms of variables that lie at their bounds, and what
the other variables, the unknowns, make of them. Each unknown is determined by one of the unknowns' rows: the pairs
are those whose entries have the largest product, a choice that no scaling of rows and columns changes and no entry
of the size of rounding takes part in. With the unit Q_i / |H_ij| for the unknown j of row i, Q is the smallest vector
with Q_k >= |H_kj| unit_j for all unknowns. Nothing given at all (a homogeneous part): no limit.

Answers carry noise: a variable that differs from a bound (a free one: from zero) by less than 1e-12 of its unit may be
put there first, which counts as that error. Its unit is the largest value that exceeds no row's worth, at most the
width of its box.

Everything is made of terms and of ratios of terms, so scaling rows or columns by powers of two changes no bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, sums, workspace
from stiction.arrays.layout import Floats, Ints, cut, layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]


CAP = 1e3  # terms count up to this many times the given numbers: an enormous z must not pass, cancellation may
NOISE = 1e-12  # part of its unit by which a variable may miss a bound, or zero, by rounding
SETTLED = 1e-12  # propagation of Q ends below this relative growth: cycles of equal entries leave rounding


def natural_map(H: Matrix, vectors: Matrix, z: Vector, w: Vector) -> tuple[float, int, float, float, float, float]:
    """(residual, index, lower, upper, complementarity, residual with its noise) of `z`; `w` is filled."""
    return judge_and_forgive(H, vectors, z, w, np.empty((2, len(z))), *workspace(*scratch(len(z))))  # type: ignore[no-any-return]


def denoised(H: Matrix, vectors: Matrix, z: Vector) -> Vector:
    """A finite `z` without its noise."""
    clean, w = np.empty((2, len(z)))
    without_noise(H, vectors, z, w, clean, *workspace(*scratch(len(z))))
    return clean


class Judging(NamedTuple):
    """Scratch arrays of the judge."""

    size: Array[Floats, "n"]  # how much of each row's terms counts
    worth: Array[Floats, "n"]  # of the given numbers in each row
    unit: Array[Floats, "n"]  # of each unknown

    # Of the pairing of unknowns with rows (`determine`).
    cost: Array[Floats, "n * n"]
    row_price: Array[Floats, "n + 1"]
    price: Array[Floats, "n + 1"]
    nearest: Array[Floats, "n + 1"]

    unknowns: Array[Ints, "n"]
    row_of: Array[Ints, "n"]  # the row that determines each unknown
    taken: Array[Ints, "n + 1"]
    before: Array[Ints, "n + 1"]
    visited: Array[Ints, "n + 1"]


scratch, judging = layout(Judging, "n")


@kernel
def judge_and_forgive(H, vectors, z, w, spare, floats, ints):
    """Judge `z`, or `z` without its noise if that is better; that one and its w are written to `spare`."""
    clean, clean_w = spare[0], spare[1]
    residual, index, lower, upper, complementarity = judge_into(H, vectors, z, w, floats, ints)

    # Above the noise level, try again with the noise removed; removing it counts as an error of its size.
    if residual > NOISE:
        changed = without_noise(H, vectors, z, w, clean, floats, ints)
        if changed > 0.0:
            better, where, below, above, gap = judge_into(H, vectors, clean, clean_w, floats, ints)
            if max(better, changed) < residual:
                return max(better, changed), where, below, above, max(gap, changed), residual
    return residual, index, lower, upper, complementarity, residual


@kernel
def without_noise(H, vectors, z, w, clean, floats, ints):
    """Move variables that miss a bound (or zero, if free) by noise onto it; return the largest move in its units."""
    n = len(z)
    lo, hi, t = vectors[1], vectors[2], judging(n, floats, ints)

    # The worth of each row, from which the units follow.
    row_terms(H, vectors[0], z, w, t.size)
    limit_terms(H, vectors, z, t)
    most = 0.0

    # The nearer bound is the target, zero where it is infinite.
    for j in range(n):
        target = lo[j] if abs(z[j] - lo[j]) <= abs(z[j] - hi[j]) else hi[j]
        if not np.isfinite(target):
            target = 0.0
        clean[j] = z[j]
        distance = abs(z[j] - target)

        # Snap it if the distance is noise in units of the largest value that no row's worth forbids.
        if distance > 0.0:
            unit = largest_within_worth(H, t.worth, j)
            if hi[j] > lo[j]:
                unit = min(unit, hi[j] - lo[j])
            if distance <= NOISE * unit:
                clean[j], most = target, max(most, distance / unit)
    return most


@kernel
def judge_into(H, vectors, z, w, floats, ints):
    """Judge `z` and fill `w` in the given scratch; its first n floats hold how much of each row's terms counts."""
    n = len(z)
    t = judging(n, floats, ints)
    q, lo, hi, size = vectors[0], vectors[1], vectors[2], t.size

    # w, and the terms of each row; a value that is not finite fails.
    row_terms(H, q, z, w, size)
    for i in range(n):
        if not (np.isfinite(z[i]) and np.isfinite(size[i])):
            return np.nan, i, np.nan, np.nan, np.nan

    # Where some row's terms exceed its q by far, they count only up to the worth of all given numbers there.
    if exceeds(q, size) and not clearly_within_worth(H, vectors, z, t):
        limit_terms(H, vectors, z, t)
        for i in range(n):
            if size[i] == CAP * t.worth[i]:  # it was reduced: rounding of the terms may be as large as what is left
                w[i] = row_exactly(H[i], q[i], z)

    # The error of each variable is that of the cheapest correction: its row, or a move to a bound.
    moves = t.worth
    for k in range(n):
        moves[k] = 0.0
    residual, index, lower, upper, complementarity = 0.0, -1, 0.0, 0.0, 0.0
    for i in range(n):
        row = abs(w[i]) / size[i] if w[i] != 0.0 else 0.0
        best, distance, width = row, 0.0, hi[i] - lo[i]
        if best > 0.0 and np.isfinite(lo[i]):
            error = at_bound(H, size, i, abs(z[i] - lo[i]), width, row if w[i] < 0.0 else 0.0, best)
            if error < best:
                best, distance = error, abs(z[i] - lo[i])
        if best > 0.0 and np.isfinite(hi[i]):
            error = at_bound(H, size, i, abs(z[i] - hi[i]), width, row if w[i] > 0.0 else 0.0, best)
            if error < best:
                best, distance = error, abs(z[i] - hi[i])

        # A variable outside its bounds must move back, whatever its row.
        below, above = 0.0, 0.0
        if z[i] < lo[i]:
            below, distance = moved(H, size, i, lo[i] - z[i], width), max(distance, lo[i] - z[i])
        elif z[i] > hi[i]:
            above, distance = moved(H, size, i, z[i] - hi[i], width), max(distance, z[i] - hi[i])

        # Sum the moves of all variables in each row.
        if distance > 0.0:
            for k in range(n):
                moves[k] += abs(H[k, i]) * distance

        # Keep the worst of each kind.
        worst = max(best, below, above)
        if not np.isfinite(below + above + best):
            return np.nan, i, np.nan, np.nan, np.nan
        if worst > residual or index < 0:
            residual, index = worst, i
        lower, upper, complementarity = max(lower, below), max(upper, above), max(complementarity, best)

    # Many small moves add up in a row.
    for k in range(n):
        if moves[k] > 0.0 and moves[k] > residual * size[k] and size[k] > 0.0:
            residual, index = moves[k] / size[k], k
            complementarity = max(complementarity, residual)
    return residual, index, lower, upper, complementarity


@sums
def row_terms(H, q, z, w, size):
    """w = H z + q, and the size of the terms that make up each row."""
    n = len(z)
    for i in range(n):
        # The rounding error of the row is relative to `size`, not to w.
        total, terms = 0.0, 0.0
        for j in range(n):
            term = H[i, j] * z[j]
            total += term
            terms += abs(term)
        w[i] = total + q[i]
        size[i] = terms + abs(q[i])


@kernel
def row_exactly(row, q, z):
    """row . z + q in twice the precision, from the errors of all products and sums [OgitaRumpOishi2005, algorithm 5.3].

    An enormous z can cancel to 0.0 in doubles where the true row is off by all the given numbers.
    """
    total, error = q, 0.0
    for j in range(len(z)):
        product = row[j] * z[j]
        # Halves of 26 bits, whose products are exact; beyond 1e300 splitting would overflow.
        if abs(row[j]) < 1e300 and abs(z[j]) < 1e300:
            a, b = upper_half(row[j]), upper_half(z[j])
            c, d = row[j] - a, z[j] - b
            error += c * d - (((product - a * b) - c * b) - a * d)

        # The rounding error of the sum, exactly.
        before = total
        total = before + product
        added = total - before
        error += (before - (total - added)) + (product - added)
    return total + error


@kernel
def upper_half(x):
    """The first 26 bits of `x`."""
    spread = 134217729.0 * x  # 2^27 + 1
    return spread - (spread - x)


@kernel
def at_bound(H, size, i, distance, width, violation, enough):
    """The error of placing variable i at a bound, with this violation of its row; exact only below `enough`."""
    if distance == 0.0 or violation >= enough:
        return violation
    # Its own row alone often shows that the bound is too far away, without looking at the column.
    if abs(H[i, i]) * distance >= enough * size[i]:
        return enough
    return max(violation, moved(H, size, i, distance, width))


@kernel
def moved(H, size, i, distance, width):
    """The change caused by moving variable i: the largest relative to a row's terms, or to the width of its box."""
    most, felt = 0.0, False
    for k in range(len(size)):
        change = abs(H[k, i]) * distance
        if change > 0.0:
            felt = True
            most = max(most, change / size[k] if size[k] > 0.0 else 1.0)
    if 0.0 < width < np.inf:
        most, felt = max(most, distance / width), True
    return most if felt else 1.0  # a variable without any effect is either right or wrong


@kernel
def exceeds(q, size):
    """Whether the terms of some row exceed CAP times its own q."""
    for k in range(len(q)):
        if size[k] > CAP * abs(q[k]):
            return True
    return False


@kernel
def find_unknowns(vectors, z, unknowns):
    """Collect the variables that are nonzero and not at a bound; return their number."""
    count = 0
    for j in range(len(z)):
        if z[j] != 0.0 and z[j] != vectors[1, j] and z[j] != vectors[2, j]:
            unknowns[count] = j
            count += 1
    return count


@kernel
def clearly_within_worth(H, vectors, z, t):
    """Whether a sufficient test shows, without a pairing, that every row's terms are within their limit.

    |H_ij|² <= |H_ii| |H_jj| proves that the diagonal has the largest product. Then no unit is below |q_j| / |H_jj|.
    """
    q, size, unit, unknowns = vectors[0], t.size, t.unit, t.unknowns
    count = find_unknowns(vectors, z, unknowns)

    # The diagonal must dominate in this sense; it gives a lower bound of each unit.
    for e in range(count):
        i = unknowns[e]
        diagonal = abs(H[i, i])
        if not diagonal > 0.0:
            return False
        unit[e] = abs(q[i]) / diagonal
        row, inverse = H[i], 1.0 / diagonal
        for u in range(count):
            j = unknowns[u]
            if not abs(row[j]) * inverse * abs(row[j]) <= abs(H[j, j]):
                return False

    # Each row's terms must stay below the limit that these units imply.
    for k in range(len(z)):
        if size[k] > CAP * abs(q[k]):
            worth = abs(q[k])
            for e in range(count):
                worth = max(worth, abs(H[k, unknowns[e]]) * unit[e])
            if not size[k] < 0.5 * CAP * worth:  # half, lest rounding decide
                return False
    return True


@kernel
def limit_terms(H, vectors, z, t):
    """Fill the worth of each row and reduce `size` to at most CAP times the worth of the given numbers in each row."""
    n = len(z)
    q, lo, hi = vectors[0], vectors[1], vectors[2]
    size, worth, unit, unknowns = t.size, t.worth, t.unit, t.unknowns

    # The unknowns lie between their bounds; q and the terms of all others are given.
    count = find_unknowns(vectors, z, unknowns)
    for k in range(n):
        worth[k] = abs(q[k])
    for j in range(n):
        if z[j] != 0.0 and (z[j] == lo[j] or z[j] == hi[j]):
            for k in range(n):
                worth[k] += abs(H[k, j] * z[j])

    # Each unknown takes its unit from the row that determines it; the worth of rows spreads through these units.
    determine(H, z, count, t)
    for j in range(count):
        unit[j] = 0.0
    spread(H, unknowns, count, t.row_of, unit, worth)

    # Rows still worth nothing take the worth of their unknowns, each as large as the other rows allow.
    missing = True
    while missing:
        missing = False
        for j in range(count):
            if unit[j] == 0.0:
                unit[j] = largest_within_worth(H, worth, unknowns[j])
        for k in range(n):
            if worth[k] == 0.0:
                for j in range(count):
                    if H[k, unknowns[j]] != 0.0:
                        worth[k] = max(worth[k], abs(H[k, unknowns[j]]) * unit[j])
                missing = missing or worth[k] > 0.0

    # Where nothing is given, any multiple of an answer is an answer: no limit.
    for k in range(n):
        if worth[k] > 0.0:
            size[k] = min(size[k], CAP * worth[k])


@kernel
def spread(H, unknowns, count, row_of, unit, worth):
    """Raise each row's worth to the smallest one with worth_k >= |H_kj| unit_j for all unknowns; fill the units."""
    n = len(worth)

    # The pairing leaves no cycle that grows but by rounding, so `count + 1` sweeps suffice, as in Bellman-Ford.
    for _ in range(count + 1):
        grown = False
        for j in range(count):
            i, column = row_of[j], unknowns[j]
            if i >= 0:
                now = worth[i] / abs(H[i, column])
                if now > unit[j] * (1.0 + SETTLED):
                    unit[j], grown = now, True
                    for k in range(n):
                        if k != i and H[k, column] != 0.0:
                            worth[k] = max(worth[k], abs(H[k, column]) * now)
        if not grown:
            return


@kernel
def largest_within_worth(H, worth, column):
    """The largest value of a variable whose terms exceed no row's worth; 0 if no row has a worth."""
    least = np.inf
    for k in range(len(worth)):
        if worth[k] > 0.0 and H[k, column] != 0.0:
            least = min(least, worth[k] / abs(H[k, column]))
    return least if least < np.inf else 0.0


@kernel
def determine(H, z, count, t):
    """Pair each unknown with one of the unknowns' rows, so that the product of their entries is largest.

    Hungarian method with shortest augmenting paths; a cost is -log2 of a term's part of its row. Slots are numbered
    from one, 0 is the row being placed. row_of[j] is -1 where the pattern of zeros leaves no row for unknown j.
    """
    m, size, unknowns = count, t.size, t.unknowns
    cost = cut(t.cost, 0, (m, m))
    row_price, price, nearest = t.row_price, t.price, t.nearest
    taken, before, visited = t.taken, t.before, t.visited

    # Costs, and first prices: the cheapest row of each column.
    for j in range(m + 1):
        row_price[j], price[j], taken[j], nearest[j] = 0.0, np.inf, 0, 0.0
    for i in range(m):
        row = unknowns[i]
        for j in range(m):
            part = abs(H[row, unknowns[j]] * z[unknowns[j]]) / size[row] if H[row, unknowns[j]] != 0.0 else 0.0
            cost[i, j] = -math.log2(part) if part > 0.0 else np.inf
            price[j + 1] = min(price[j + 1], cost[i, j])
    price[0] = 0.0
    for j in range(1, m + 1):
        price[j] = price[j] if price[j] < np.inf else 0.0

    # Place one row after the other along the shortest augmenting path to a free column.
    for i in range(1, m + 1):
        taken[0] = i
        for j in range(m + 1):
            nearest[j], visited[j] = np.inf, 0
        column = 0

        # Dijkstra's search over reduced costs, from the row to be placed.
        while taken[column] != 0:
            visited[column] = 1
            row, shortest, following = taken[column], np.inf, -1
            for j in range(1, m + 1):
                if visited[j] == 0:
                    reduced = cost[row - 1, j - 1] - row_price[row] - price[j]
                    if reduced < nearest[j]:
                        nearest[j], before[j] = reduced, column
                    if nearest[j] < shortest:
                        shortest, following = nearest[j], j
            if following < 0:  # no column left for this row
                break

            # Update the prices so that reduced costs stay nonnegative.
            for j in range(m + 1):
                if visited[j] == 1:
                    row_price[taken[j]] += shortest
                    price[j] -= shortest
                else:
                    nearest[j] -= shortest
            column = following

        # Reassign the rows along the path; without a free column the row stays unplaced.
        if taken[column] == 0:
            while column != 0:
                taken[column] = taken[before[column]]
                column = before[column]

    # Slots back to rows.
    for j in range(m):
        t.row_of[j] = unknowns[taken[j + 1] - 1] if taken[j + 1] > 0 else -1

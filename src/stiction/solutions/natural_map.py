"""Kernel of the judge: the scaled natural map (see `certificate`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stiction.compiled import kernel, sums, workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]


# A row's terms count as no less than this part of the problem's own scale, and no more than this many times it.
SMALLEST = 1e-300
LEAST, MOST = 1e-5, 1e3


def natural_map(
    H: Matrix, vectors: Matrix, symmetric: bool, z: Vector, w: Vector
) -> tuple[float, int, float, float, float]:
    """(residual, index, lower, upper, complementarity) of `z`; `w` is filled."""
    return judge_into(H, vectors, symmetric, z, w, *workspace(5 * len(z), 2 * len(z)))  # type: ignore[no-any-return]


@kernel
def judge_into(H, vectors, symmetric, z, w, floats, ints):
    """The same, with scratch of 5 n floats and 2 n ints."""
    n = len(z)
    q, lo, hi = vectors[0], vectors[1], vectors[2]
    scale, weight = floats[:n], floats[n : 2 * n]
    row_terms(H, q, z, w, scale)
    row, column, largest = floats[2 * n : 3 * n], floats[3 * n : 4 * n], floats[4 * n : 5 * n]
    clip_to_problem_scale(H, q, symmetric, scale, row, column, largest, ints[:n], ints[n : 2 * n])
    felt_weights(H, scale, weight)

    residual, index, lower, upper, complementarity = 0.0, -1, 0.0, 0.0, 0.0
    for i in range(n):
        reach = max(finite_size(lo[i]), finite_size(hi[i]))
        if not weight[i] > 0.0:  # a variable that no row feels: measured by its bounds, or by itself
            size = max(reach, abs(z[i]))
            weight[i] = 1.0 / size if size > 0.0 else 1.0
        # A violated bound counts relative to the bounds as well, however little the rows feel it.
        strictness = max(weight[i], 1.0 / reach if reach > 0.0 else 0.0)
        below, above = strictness * max(lo[i] - z[i], 0.0), strictness * max(z[i] - hi[i], 0.0)
        row = w[i] / scale[i] if scale[i] > 0.0 else 0.0  # no terms at all: exactly zero
        inside = min(max(z[i], lo[i]), hi[i])
        gap = min(max(row, weight[i] * (inside - hi[i])), weight[i] * (inside - lo[i]))  # z - mid(lo, hi, z - w)
        worst = below + above + abs(gap)
        if not (np.isfinite(z[i]) and np.isfinite(scale[i]) and np.isfinite(worst)):
            return np.nan, i, np.nan, np.nan, np.nan
        worst = max(below, above, abs(gap))
        if worst > residual or index < 0:
            residual, index = worst, i
        lower, upper, complementarity = max(lower, below), max(upper, above), max(complementarity, abs(gap))
    return residual, index, lower, upper, complementarity


@sums
def row_terms(H, q, z, w, scale):
    """w = H z + q, and the size of the terms that make up each row."""
    n = len(z)
    for i in range(n):
        total, size = 0.0, 0.0
        for j in range(n):
            term = H[i, j] * z[j]
            total += term
            size += abs(term)
        w[i] = total + q[i]
        scale[i] = size + abs(q[i])


@kernel
def clip_to_problem_scale(H, q, symmetric, scale, row, column, largest, island, queue):
    """Keep each row's scale within a factor of the largest |q| on its island, compared after equilibration."""
    n = len(q)
    if not (symmetric and unit_diagonal(H, row)):
        geometric_means(H, row, column)
    find_islands(H, island, queue)
    for i in range(n):
        largest[i] = 0.0
    for i in range(n):
        largest[island[i]] = max(largest[island[i]], row[i] * abs(q[i]))
    for i in range(n):
        size = largest[island[i]] / row[i]
        if size > 0.0:
            scale[i] = min(max(scale[i], LEAST * size), MOST * size)


@kernel
def find_islands(H, island, queue):
    """island[i] is the first row that row i is connected with, through variables that they share."""
    n = len(island)
    for i in range(n):
        island[i] = -1
    found = 0
    for first in range(n):
        if found == n:
            return
        if island[first] < 0:
            island[first], queue[0] = first, first
            head, tail = 0, 1
            while head < tail and found + tail < n:
                i = queue[head]
                head += 1
                for j in range(n):
                    if island[j] < 0 and (H[i, j] != 0.0 or H[j, i] != 0.0):
                        island[j], queue[tail] = first, j
                        tail += 1
            found += tail


@kernel
def unit_diagonal(H, row):
    """Row scales that, applied to both sides, make the diagonal one; False if it is not positive."""
    for i in range(len(row)):
        if not H[i, i] > 0.0:
            return False
        row[i] = 1.0 / math.sqrt(H[i, i])
    return True


@kernel
def geometric_means(H, row, column):
    """Row scales that remain when every column, then every row, is divided by the geometric mean of its entries.

    Scaling rows or columns of a matrix without zeros changes nothing but these scales themselves. Logarithms are read
    off the bits of a number: exact at powers of two, linear between them.
    """
    n = len(row)
    bits = H.view(np.int64)
    for i in range(n):
        row[i] = column[i] = 0.0  # numbers of non-zeros, and sums of logarithms, by column
    for i in range(n):
        for j in range(n):
            if H[i, j] != 0.0:
                column[j] += logarithm(bits[i, j])
                row[j] += 1.0
    for j in range(n):
        column[j] = column[j] / row[j] if row[j] > 0.0 else 0.0
    for i in range(n):
        total, count = 0.0, 0.0
        for j in range(n):
            if H[i, j] != 0.0:
                total += logarithm(bits[i, j]) - column[j]
                count += 1.0
        row[i] = 2.0 ** (-total / count) if count > 0.0 else 1.0


@kernel
def logarithm(bits):
    """log2 of a double's magnitude, from its bits; off by at most 0.09."""
    return (bits & 0x7FFFFFFFFFFFFFFF) * 2.0**-52 - 1023.0


@kernel
def felt_weights(H, scale, weight):
    """weight_j = max_i |H_ij| / s_i: how strongly some row feels variable j."""
    n = len(scale)
    weight[:] = 0.0
    for i in range(n):
        if scale[i] > SMALLEST:
            inverse = 1.0 / scale[i]
            for j in range(n):
                weight[j] = max(weight[j], abs(H[i, j]) * inverse)
        elif scale[i] > 0.0:  # whose reciprocal overflows
            for j in range(n):
                weight[j] = max(weight[j], min(abs(H[i, j]) / scale[i], 1.0 / SMALLEST))


@kernel
def finite_size(bound):
    return abs(bound) if np.isfinite(bound) else 0.0

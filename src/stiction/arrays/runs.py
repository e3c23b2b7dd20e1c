"""Rows over two runs of velocities: a contact or a joint touches only a few of all velocities.

A row has entries at `segment[1]` velocities from `segment[0]` on, and at `segment[3]` more from `segment[2]` on.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.vectors import add_multiple, column, inner, total_size


@kernel
def same_runs(one, two):
    """Whether two rows touch the same velocities."""
    return one[0] == two[0] and one[1] == two[1] and one[2] == two[2] and one[3] == two[3]


@kernel
def row_dot(row, segment, x):
    """A contact's row times x."""
    length = segment[1]
    total = dot(row, x[segment[0] :], length)
    if segment[3] > 0:
        total += dot(row[length:], x[segment[2] :], segment[3])
    return total


@sums
def rows_dot(rows, segment, x, zero):
    """A contact's rows times x; zero: as many of them as there are."""
    u = zero
    start, length = segment[0], segment[1]
    for j in range(length):
        u = add_multiple(u, x[start + j], column(rows, j, zero))
    other = segment[2] - length
    for j in range(length, length + segment[3]):
        u = add_multiple(u, x[other + j], column(rows, j, zero))
    return u


@kernel
def add_row(row, segment, factor, x):
    """x += factor times a contact's row."""
    length = segment[1]
    subtract_multiple(x[segment[0] :], -factor, row, length)
    if segment[3] > 0:
        subtract_multiple(x[segment[2] :], -factor, row[length:], segment[3])


@sums
def add_rows(rows, segment, p, x):
    """x += a contact's rows times p."""
    if total_size(p) == 0.0:
        return
    start, length = segment[0], segment[1]
    for j in range(length):
        x[start + j] += inner(p, column(rows, j, p))
    other = segment[2] - length
    for j in range(length, length + segment[3]):
        x[other + j] += inner(p, column(rows, j, p))


@kernel
def spread_row(row, segment, whole):
    """Write a row where it belongs among all velocities; the rest of `whole` is left alone."""
    start, length, other = segment[0], segment[1], segment[2]
    for j in range(length):
        whole[start + j] = row[j]
    for j in range(segment[3]):
        whole[other + j] = row[length + j]

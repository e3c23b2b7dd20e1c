"""Rows over two runs of velocities: what a contact or a joint touches of all the velocities there are.

A row has entries at `segment[1]` velocities from `segment[0]` on, and at `segment[3]` more from `segment[2]` on.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.dense import dot, subtract_multiple


@kernel
def row_dot(row, segment, x):
    """A contact's row times x."""
    length = segment[1]
    total = dot(row, x[segment[0] :], length)
    if segment[3] > 0:
        total += dot(row[length:], x[segment[2] :], segment[3])
    return total


@sums
def rows_dot(rows, segment, x):
    """A contact's three rows times x."""
    r0, r1, r2 = rows[0], rows[1], rows[2]
    u0, u1, u2 = 0.0, 0.0, 0.0
    start, length = segment[0], segment[1]
    for j in range(length):
        xj = x[start + j]
        u0 += r0[j] * xj
        u1 += r1[j] * xj
        u2 += r2[j] * xj
    other = segment[2] - length
    for j in range(length, length + segment[3]):
        xj = x[other + j]
        u0 += r0[j] * xj
        u1 += r1[j] * xj
        u2 += r2[j] * xj
    return u0, u1, u2


@kernel
def add_row(row, segment, factor, x):
    """x += factor times a contact's row."""
    length = segment[1]
    subtract_multiple(x[segment[0] :], -factor, row, length)
    if segment[3] > 0:
        subtract_multiple(x[segment[2] :], -factor, row[length:], segment[3])


@sums
def add_rows(rows, segment, p0, p1, p2, x):
    """x += a contact's three rows times p."""
    if p0 == 0.0 and p1 == 0.0 and p2 == 0.0:
        return
    r0, r1, r2 = rows[0], rows[1], rows[2]
    start, length = segment[0], segment[1]
    for j in range(length):
        x[start + j] += p0 * r0[j] + p1 * r1[j] + p2 * r2[j]
    other = segment[2] - length
    for j in range(length, length + segment[3]):
        x[other + j] += p0 * r0[j] + p1 * r1[j] + p2 * r2[j]


@kernel
def spread_row(row, segment, whole):
    """Write a row where it belongs among all velocities; the rest of `whole` is left alone."""
    start, length, other = segment[0], segment[1], segment[2]
    for j in range(length):
        whole[start + j] = row[j]
    for j in range(segment[3]):
        whole[other + j] = row[length + j]

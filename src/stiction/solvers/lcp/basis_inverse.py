"""The inverse K of a changing basis matrix B: rows and columns come and go one at a time, in O(k²).

K has a row for each column of B (an unknown) and a column for each row of B (an equation). Each update divides by the
pivot that is named in its argument list; the callers choose pivots that are safely away from zero.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import subtract_multiple


@kernel
def border(K, k, column, row, pivot):
    """B gains a column a and a row r: column = K a, row = r K, pivot = corner - r K a."""
    # The rest changes by the product of column and row; both, over the pivot, are the new border.
    for i in range(k):
        factor = column[i] / pivot
        subtract_multiple(K[i], -factor, row, k)
        K[i, k] = -factor
    for j in range(k):
        K[k, j] = -row[j] / pivot
    K[k, k] = 1.0 / pivot


@kernel
def strike(K, k, unknown, equation):
    """B loses a column (row `unknown` of K) and a row (column `equation`); the last ones move into their places.

    The pivot is K[unknown, equation].
    """
    # Undo the border; a column whose work is done takes the last one's entry.
    last = k - 1
    pivot = K[unknown, equation]
    row = K[unknown]
    for i in range(k):
        if i != unknown:
            subtract_multiple(K[i], K[i, equation] / pivot, row, k)
            K[i, equation] = K[i, last]
    if unknown != last:
        for j in range(last):
            K[unknown, j] = K[last, j]


@kernel
def exchange_column(K, k, unknown, column):
    """The column of B that belongs to `unknown` is replaced by a, column = K a; the pivot is column[unknown]."""
    row = K[unknown]
    inverse = 1.0 / column[unknown]
    for j in range(k):
        row[j] *= inverse
    for i in range(k):
        if i != unknown and column[i] != 0.0:
            subtract_multiple(K[i], column[i], row, k)


@kernel
def exchange_row(K, k, equation, row):
    """The row of B that belongs to `equation` is replaced by r, row = r K; the pivot is row[equation]."""
    pivot = row[equation]
    for i in range(k):
        factor = K[i, equation] / pivot
        subtract_multiple(K[i], factor, row, k)
        K[i, equation] = factor

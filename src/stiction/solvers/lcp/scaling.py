"""The problem without units: rows and columns scaled by powers of two, which adds no rounding, so that the same
tolerances suit every problem.

With z = s τ ẑ and w = τ ŵ / r the problem keeps its form, Ĥ = r H s, q̂ = r q / τ. A symmetric matrix is scaled
symmetrically to a diagonal near one; any other by the largest entries of its rows and columns in turn. |q̂| is at
most one.
"""

from __future__ import annotations

import math

from stiction.arrays.compiled import kernel
from stiction.solvers.lcp.tolerances import LARGEST_EXPONENT, SCALING_ROUNDS


@kernel
def power_of_two_below(x):
    """2^-e with x 2^-e in [1/2, 1); 1 for zero. Kept where squares neither overflow nor vanish."""
    if not x > 0.0:
        return 1.0
    return math.ldexp(1.0, -min(max(math.frexp(x)[1], -LARGEST_EXPONENT), LARGEST_EXPONENT))


@kernel
def equilibrate(H, vectors, symmetric, columns, q, lo, hi, row, col):
    """Fill the scaled problem: `columns` holds Ĥ by columns (columns[j] is column j). Returns τ."""
    # The matrix. A row of a semidefinite matrix without a diagonal is empty; of others the largest entry counts.
    n = len(q)
    if symmetric:
        for i in range(n):
            size = H[i, i]
            if not size > 0.0:
                for j in range(n):
                    size = max(size, abs(H[i, j]))
            row[i] = col[i] = power_of_two_below(math.sqrt(size))
        for i in range(n):
            for j in range(n):
                columns[i, j] = row[i] * H[i, j] * col[j]
    # Any other matrix by rows and columns in turn.
    else:
        row_and_column_scales(H, row, col)
        for i in range(n):
            for j in range(n):
                columns[j, i] = row[i] * H[i, j] * col[j]
    # q, to a largest entry near one, and the bounds in the units that z has then.
    size = 0.0
    for i in range(n):
        size = max(size, row[i] * abs(vectors[0, i]))
    inverse = power_of_two_below(size)
    for i in range(n):
        q[i] = row[i] * vectors[0, i] * inverse
        lo[i] = vectors[1, i] * (inverse / col[i])
        hi[i] = vectors[2, i] * (inverse / col[i])
    return 1.0 / inverse


@kernel
def row_and_column_scales(H, row, col):
    """Scale rows, then columns, to a largest entry near one, in some rounds."""
    n = len(row)
    for j in range(n):
        col[j] = 1.0
    for _ in range(SCALING_ROUNDS):
        # rows
        for i in range(n):
            size = 0.0
            for j in range(n):
                size = max(size, abs(H[i, j]) * col[j])
            row[i] = power_of_two_below(size)
        # columns
        for j in range(n):
            col[j] = 0.0
        for i in range(n):
            for j in range(n):
                col[j] = max(col[j], abs(H[i, j]) * row[i])
        for j in range(n):
            col[j] = power_of_two_below(col[j])

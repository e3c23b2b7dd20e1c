"""Linear algebra for kernels: small dense factors and products, in place, without allocation.

Matrices are row-major; a leading block of size k of a larger array is meant wherever k is given.
"""

from __future__ import annotations

from math import inf, sqrt

from stiction.arrays.compiled import kernel, sums

TINY = 1e-300  # a pivot whose inverse may overflow
NOT_DEFINITE = 1e-14  # part of a diagonal entry at which what is left of it is rounding: not positive definite
GUESSES = 5  # at the norm of an inverse; a fifth changes nothing on the families of contact problems


@kernel
def is_symmetric(A):
    """Whether A equals its transpose exactly."""
    for i in range(len(A)):
        for j in range(i):
            if A[i, j] != A[j, i]:
                return False
    return True


@sums
def dot(x, y, k):
    """Sum of x_i y_i over i < k."""
    total = 0.0
    for i in range(k):
        total += x[i] * y[i]
    return total


@sums
def times(A, x, k, out):
    """out = A x, four rows at a time."""
    # Four rows share each load of x.
    i = 0
    while i + 4 <= k:
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        r0, r1, r2, r3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        for j in range(k):
            s0 += r0[j] * x[j]
            s1 += r1[j] * x[j]
            s2 += r2[j] * x[j]
            s3 += r3[j] * x[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
        i += 4

    # The rows left over.
    while i < k:
        out[i] = dot(A[i], x, k)
        i += 1


@sums
def transposed_times(A, x, k, out):
    """out = Aᵀ x, four rows at a time."""
    # Four rows share each load and store of out.
    for j in range(k):
        out[j] = 0.0
    i = 0
    while i + 4 <= k:
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        r0, r1, r2, r3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        for j in range(k):
            out[j] += x0 * r0[j] + x1 * r1[j] + x2 * r2[j] + x3 * r3[j]
        i += 4

    # The rows left over.
    while i < k:
        xi, row = x[i], A[i]
        for j in range(k):
            out[j] += xi * row[j]
        i += 1


@sums
def add_columns(columns, which, x, k, n, out):
    """out += sum over i < k of x_i columns[which_i]: a product with chosen columns, stored as rows."""
    # Four columns share each load and store of out.
    i = 0
    while i + 4 <= k:
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        c0, c1, c2, c3 = columns[which[i]], columns[which[i + 1]], columns[which[i + 2]], columns[which[i + 3]]
        for j in range(n):
            out[j] += x0 * c0[j] + x1 * c1[j] + x2 * c2[j] + x3 * c3[j]
        i += 4

    # The columns left over.
    while i < k:
        xi, column = x[i], columns[which[i]]
        for j in range(n):
            out[j] += xi * column[j]
        i += 1


@sums
def subtract_multiple(y, factor, x, k):
    """y -= factor x."""
    for j in range(k):
        y[j] -= factor * x[j]


@sums
def cholesky(A, k):
    """A = L Lᵀ in the lower triangle; returns the index of the first column that fails, k if none does."""
    for i in range(k):
        # Entries left of the diagonal, from the rows above.
        row = A[i]
        for j in range(i):
            other = A[j]
            total = 0.0
            for l in range(j):
                total += row[l] * other[l]
            row[j] = (row[j] - total) / other[j]

        # A diagonal that is negative, or rounding compared with A's own.
        square = row[i] - dot(row, row, i)
        if not square > NOT_DEFINITE * abs(row[i]):
            return i
        row[i] = sqrt(square)
    return k


@sums
def cholesky_solve(L, k, x):
    """Solve L Lᵀ x = x in place."""
    # L y = x from the top, then Lᵀ x = y from the bottom.
    for i in range(k):
        x[i] = (x[i] - dot(L[i], x, i)) / L[i, i]
    for i in range(k - 1, -1, -1):
        x[i] /= L[i, i]
        subtract_multiple(x, x[i], L[i], i)


@sums
def tree_factor(A, k, L):
    """A = Lᵀ L, flat, in the lower triangle of L with its diagonal inverted; returns the first row that fails, or -1.

    The rows are eliminated from the last to the first. If A belongs to a tree numbered from its root, entries that
    couple separate branches are zero and stay zero.
    """
    for i in range(k):
        for j in range(i * k, i * k + i + 1):
            L[j] = A[j]

    # From the last row on. A pivot may be negative, or rounding compared with A's own.
    for i in range(k - 1, -1, -1):
        row = L[i * k : i * k + i + 1]
        if not row[i] > NOT_DEFINITE * abs(A[i * k + i]):
            return i
        inverse = 1.0 / sqrt(row[i])
        row[i] = inverse
        for j in range(i):
            row[j] *= inverse

        # Eliminate it from the rows of its ancestors; zeros need no work.
        for j in range(i):
            if row[j] != 0.0:
                subtract_multiple(L[j * k :], row[j], row, j + 1)
    return -1


@sums
def back_substitute(L, k, x):
    """x = L⁻ᵀ x from `tree_factor`; zero entries are skipped."""
    for i in range(k - 1, -1, -1):
        if x[i] != 0.0:
            row = L[i * k : i * k + i + 1]
            x[i] *= row[i]
            subtract_multiple(x, x[i], row, i)


@sums
def forward_substitute(L, k, x):
    """x = L⁻¹ x from `tree_factor`."""
    for i in range(k):
        row = L[i * k : i * k + i + 1]
        x[i] = (x[i] - dot(row, x, i)) * row[i]


@kernel
def bring_largest(A, pivots, k, p, least):
    """Exchange rows so that the largest entry of column p, from the diagonal down, is the pivot; False if it is at most
    `least`."""
    best = p
    for i in range(p + 1, k):
        if abs(A[i, p]) > abs(A[best, p]):
            best = i
    pivots[p] = best
    if not abs(A[best, p]) > least:
        return False
    if best != p:
        for j in range(k):
            A[p, j], A[best, j] = A[best, j], A[p, j]
    return True


@kernel
def lu(A, pivots, k):
    """P A = L U in place with partial pivoting; False if a column has no nonzero pivot."""
    for p in range(k):
        if not bring_largest(A, pivots, k, p, 0.0):
            return False
        # Eliminate the column below the pivot; the factors are stored in its place.
        inverse = 1.0 / A[p, p]
        for i in range(p + 1, k):
            factor = A[i, p] * inverse
            A[i, p] = factor
            if factor != 0.0:
                subtract_multiple(A[i, p + 1 :], factor, A[p, p + 1 :], k - p - 1)
    return True


@kernel
def lu_solve(A, pivots, k, x):
    """Solve A x = x in place from `lu`."""
    # The row exchanges of the factorization, then L from the top and U from the bottom.
    for p in range(k):
        best = pivots[p]
        x[p], x[best] = x[best], x[p]
    for i in range(k):
        x[i] -= dot(A[i], x, i)
    for i in range(k - 1, -1, -1):
        x[i] = (x[i] - dot(A[i, i + 1 :], x[i + 1 :], k - i - 1)) / A[i, i]


@kernel
def lu_solve_transposed(A, pivots, k, x):
    """Solve Aᵀ x = x in place from `lu`."""
    for i in range(k):
        x[i] /= A[i, i]
        subtract_multiple(x[i + 1 :], x[i], A[i, i + 1 :], k - i - 1)
    for i in range(k - 1, -1, -1):
        subtract_multiple(x, x[i], A[i], i)
    for p in range(k - 1, -1, -1):
        best = pivots[p]
        x[p], x[best] = x[best], x[p]


@kernel
def inverse_norm(A, pivots, k, x, z):
    """Estimate the largest column sum of the inverse of a factored matrix [Hager1984]."""
    for j in range(k):
        x[j] = 1.0 / k
    found = 0.0
    for _ in range(GUESSES):
        # The size of A⁻¹ x; a guess that is not larger was the last.
        lu_solve(A, pivots, k, x)
        size = 0.0
        for j in range(k):
            size += abs(x[j])
            z[j] = 1.0 if x[j] >= 0.0 else -1.0
        if not size < inf:
            return inf
        if size <= found:
            break
        found = size

        # The unit vector along which it grows fastest is the next guess.
        lu_solve_transposed(A, pivots, k, z)
        best = 0
        for j in range(k):
            if abs(z[j]) > abs(z[best]):
                best = j
        for j in range(k):
            x[j] = 0.0
        x[best] = 1.0
    return found


@kernel
def invert(A, pivots, k):
    """A = A⁻¹ in place by Gauss–Jordan with partial pivoting; False if a column has no pivot above TINY."""
    for p in range(k):
        if not bring_largest(A, pivots, k, p, TINY):
            return False
        # Scale the pivot row; the column of the inverse takes the place of the eliminated one.
        inverse = 1.0 / A[p, p]
        A[p, p] = 1.0
        for j in range(k):
            A[p, j] *= inverse

        # Eliminate the column from all other rows.
        for i in range(k):
            if i != p:
                factor = A[i, p]
                if factor != 0.0:
                    A[i, p] = 0.0
                    subtract_multiple(A[i], factor, A[p], k)

    # Row exchanges of A are column exchanges of its inverse, undone in reverse order.
    for p in range(k - 1, -1, -1):
        best = pivots[p]
        if best != p:
            for i in range(k):
                A[i, p], A[i, best] = A[i, best], A[i, p]
    return True

"""Lemke's method as textbooks print it: the whole tableau, every entry of it changed at every pivot.

    w = q + M z + c z0,      all basic variables written in the nonbasic ones: N rows of N + 2 entries

A pivot costs N² multiplications however few variables are basic, and nothing is ever refactored: what users of a plain
implementation have, and what `Lemke` is measured against. The cover c is random, so that the path has no ties but at
its end, where z0 wins them. [CottlePangStone1992, §4.4]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import subtract_multiple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.lcp import LCP

SMALL = 1e-11  # rates that do not block
TIE = 1e-12  # steps closer than this are equal: the fastest blocks


class Tableau:
    """The method set up for one LCP: `solve()` returns z and the number of pivots, which is 0 if it failed."""

    def __init__(self, problem: LCP, seed: int = 1) -> None:
        n = problem.n
        self.M, self.q = np.ascontiguousarray(problem.M), np.ascontiguousarray(problem.q)
        self.cover = np.random.default_rng(seed).uniform(1.0, 2.0, n)
        self.tableau, self.labels, self.z = np.empty((n, n + 2)), np.empty(2 * n + 1, np.int64), np.empty(n)

    def solve(self) -> tuple[NDArray[np.float64], int]:
        pivots = tableau_lemke(self.M, self.q, self.cover, 20 * len(self.q) + 200, self.tableau, self.labels, self.z)
        return self.z.copy(), int(pivots)


@kernel
def tableau_lemke(M, q, cover, max_pivots, tableau, labels, z):
    """Pivots to a solution, or 0 if there was a ray or no end.

    labels: (2 n + 1,) what is basic in each row, then nonbasic in each column; i is w_i, n + i is z_i, 2 n is z0
    """
    # The tableau of w = M z + cover z0 + q; z0 enters at the row that needs it most.
    n = len(q)
    row, least = -1, 0.0
    for i in range(n):
        for j in range(n):
            tableau[i, j] = M[i, j]
        tableau[i, n], tableau[i, n + 1] = cover[i], q[i]
        labels[i], labels[n + i], z[i] = i, n + i, 0.0
        if q[i] / cover[i] < least:
            row, least = i, q[i] / cover[i]
    labels[2 * n] = 2 * n
    if row < 0:
        return 1  # q >= 0: z = 0
    column = n
    for pivots in range(1, max_pivots + 1):
        leaving = labels[row]
        exchange(tableau, labels, row, column, n)

        # z0 has left: an answer.
        if leaving == 2 * n:
            for i in range(n):
                if labels[i] >= n:
                    z[labels[i] - n] = max(tableau[i, n + 1], 0.0)
            return pivots

        # The complement of what has left enters.
        column = 0
        while labels[n + column] != (leaving + n) % (2 * n):
            column += 1
        row = blocking(tableau, labels, column, n)
        if row < 0:
            return 0
    return 0


@kernel
def exchange(tableau, labels, row, column, n):
    """The variables of a row and of a column change places."""
    pivot = tableau[row]
    inverse = 1.0 / pivot[column]
    for j in range(n + 2):
        pivot[j] *= -inverse
    pivot[column] = inverse
    for i in range(n):
        if i != row:
            factor = tableau[i, column]
            tableau[i, column] = 0.0
            subtract_multiple(tableau[i], -factor, pivot, n + 2)
    labels[row], labels[n + column] = labels[n + column], labels[row]


@kernel
def blocking(tableau, labels, column, n):
    """The row whose variable first vanishes as the entering one grows, -1 if none does."""
    # The shortest step.
    least = np.inf
    for i in range(n):
        if tableau[i, column] < -SMALL:
            least = min(least, max(tableau[i, n + 1], 0.0) / -tableau[i, column])

    # Of ties, z0 if it is among them, else the fastest.
    row, fastest = -1, 0.0
    for i in range(n):
        rate = -tableau[i, column]
        if rate > SMALL and max(tableau[i, n + 1], 0.0) <= least * rate + TIE * rate:
            if labels[i] == 2 * n:
                return i
            if rate > fastest:
                row, fastest = i, rate
    return row

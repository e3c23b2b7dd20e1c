"""A referee in exact arithmetic, written independently of the package: floats are taken at their word.

A problem becomes one of integers: every row is multiplied by a power of two, every variable divided by one. `exists`
decides whether there is a solution, by all basic solutions; `backward_error` says how far the data of a problem must
change, entry by entry and relative to each entry, for an answer to be exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

AT_LOWER, AT_UPPER, BETWEEN = "lower", "upper", "between"


def exponent(values) -> int:
    """The smallest k such that all values times 2^k are integers."""
    return max((Fraction(v).denominator.bit_length() - 1 for v in values if math.isfinite(v)), default=0)


class Exact:
    """lo <= z <= hi, w = H z + q in integers; None stands for an infinite bound."""

    def __init__(self, H, q, lo, hi):
        n = self.n = len(q)
        H = [[float(x) for x in row] for row in H]
        q, lo, hi = ([float(x) for x in v] for v in (q, lo, hi))
        self.column = [exponent((lo[j], hi[j])) for j in range(n)]  # z_j = integer / 2^column
        scaled = [[Fraction(H[i][j]) / 2 ** self.column[j] for j in range(n)] for i in range(n)]
        self.H, self.q = [], []
        for i in range(n):
            k = max((x.denominator.bit_length() - 1 for x in (*scaled[i], Fraction(q[i]))), default=0)
            self.H.append([int(x * 2**k) for x in scaled[i]])
            self.q.append(int(Fraction(q[i]) * 2**k))
        self.lo, self.hi = (
            [int(Fraction(b[j]) * 2 ** self.column[j]) if math.isfinite(b[j]) else None for j in range(n)]
            for b in (lo, hi)
        )

    def sides(self, i):
        """What variable i can be."""
        sides = [AT_LOWER] if self.lo[i] is not None else []
        if self.hi[i] is not None and self.hi[i] != self.lo[i]:
            sides.append(AT_UPPER)
        return sides if self.lo[i] is not None and self.lo[i] == self.hi[i] else [*sides, BETWEEN]

    def exists(self) -> bool:
        """Whether there is a solution."""
        singular = []
        for sides in product(*(self.sides(i) for i in range(self.n))):
            found = self.basic_solution(sides, (True,) * self.n)
            if found:
                return True
            if found is None:
                singular.append(sides)
        # A feasible side has a basic point: there some of its quantities are zero or at a bound, the others unique.
        return any(
            self.basic_solution(sides, basic)
            for sides in singular
            for basic in product((True, False), repeat=self.n)
            if not all(basic)
        )

    def basic_solution(self, sides, basic):
        """Whether the sides hold with the quantities that are not basic at zero (w) or at rest (z); None if not unique.

        The quantity of i is z_i between its bounds, else w_i. A z_i at rest is at any finite bound, or zero.
        """
        n = self.n
        resting = [[None] if sides[i] != BETWEEN or basic[i] else self.resting(i) for i in range(n)]
        for rest in product(*resting):
            columns, right, free_sign = [], [-x for x in self.q], []
            for i in range(n):
                at = rest[i] if rest[i] is not None else {AT_LOWER: self.lo[i], AT_UPPER: self.hi[i]}.get(sides[i])
                if at is not None and at != 0:
                    for k in range(n):
                        right[k] -= self.H[k][i] * at
                if basic[i]:
                    if sides[i] == BETWEEN:
                        columns.append([self.H[k][i] for k in range(n)])
                    else:
                        columns.append([-1 if k == i else 0 for k in range(n)])
                    free_sign.append(i)
            values = unique_solution(columns, right)
            if values is None:
                return None
            if values and all(self.allowed(i, sides[i], *value) for i, value in zip(free_sign, values[1], strict=True)):
                return True
        return False

    def resting(self, i):
        finite = [b for b in (self.lo[i], self.hi[i]) if b is not None]
        return finite or [0]

    def allowed(self, i, side, numerator, denominator):
        """Whether the fraction (denominator > 0) is a value that this side allows for its quantity."""
        if side == BETWEEN:
            low, high = self.lo[i], self.hi[i]
            return (low is None or numerator >= low * denominator) and (high is None or numerator <= high * denominator)
        if self.lo[i] == self.hi[i]:
            return True
        return numerator >= 0 if side == AT_LOWER else numerator <= 0

    def backward_error(self, z, near=Fraction(1, 10**7)) -> float:
        """Relative change of entries of H and q that makes the answer exact, with what is near a bound put there.

        Near is what no row feels by more than this part of its terms; putting it there counts as that change.
        """
        n = self.n
        z = [float(x) for x in z]
        if not all(map(math.isfinite, z)):
            return math.inf
        k = max(exponent(z), max(self.column, default=0), 0)
        z = [int(Fraction(x) * 2**k) << self.column[j] for j, x in enumerate(z)]  # all over 2^k
        lo, hi = ([None if b is None else b << k for b in bounds] for bounds in (self.lo, self.hi))
        terms = self.terms(z, k)
        error = Fraction(0)
        for i in range(n):
            bounds = [bound for bound in (lo[i], hi[i]) if bound is not None]
            if bounds and z[i] not in bounds:
                bound = min(bounds, key=lambda b, i=i: abs(z[i] - b))
                changes = [(abs(self.H[m][i]) * abs(z[i] - bound), terms[m]) for m in range(n) if self.H[m][i]]
                if not changes and len(bounds) == 2:  # felt by no row: in its box, this part of its width
                    changes = [(abs(z[i] - bound), bounds[1] - bounds[0])]
                if changes and all(change <= near * size for change, size in changes):
                    error = max(error, *(Fraction(change, size) for change, size in changes))
                    z[i] = bound
        terms = self.terms(z, k)
        for i in range(n):
            w = sum(h * x for h, x in zip(self.H[i], z, strict=True)) + (self.q[i] << k)
            if (lo[i] is not None and z[i] < lo[i]) or (hi[i] is not None and z[i] > hi[i]):
                return math.inf
            may_be_positive, may_be_negative = z[i] == lo[i], z[i] == hi[i]
            if (w > 0 and not may_be_positive) or (w < 0 and not may_be_negative):
                error = max(error, Fraction(abs(w), terms[i]))
        return float(error)

    def terms(self, z, k):
        return [
            sum(abs(h * x) for h, x in zip(row, z, strict=True)) + (abs(q) << k)
            for row, q in zip(self.H, self.q, strict=True)
        ]


def unique_solution(columns, right):
    """Solve integer columns x = right: None if x is not unique, () if there is none, else (True, fractions)."""
    rows, size = [list(r) for r in zip(*columns, right, strict=True)] if columns else [[r] for r in right], len(columns)
    previous = 1
    for p in range(size):  # fraction-free Gauss-Jordan elimination
        pivot = next((i for i in range(p, len(rows)) if rows[i][p]), None)
        if pivot is None:
            return None
        rows[p], rows[pivot] = rows[pivot], rows[p]
        top = rows[p][p]
        for i in range(len(rows)):
            if i != p:
                factor = rows[i][p]
                rows[i] = [(top * a - factor * b) // previous for a, b in zip(rows[i], rows[p], strict=True)]
        previous = top
    if any(row[size] for row in rows[size:]):
        return ()
    sign = 1 if previous > 0 else -1
    return True, [(sign * rows[p][size], sign * rows[p][p]) for p in range(size)]

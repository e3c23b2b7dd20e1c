"""Products over the velocities that contacts touch: one or two runs of x each.

`segment` holds start and length of both runs; the second may be empty. Free bodies have runs of six, and those are
written out.
"""

from __future__ import annotations

from stiction.arrays.compiled import in_callers, sums
from stiction.arrays.dense import dot


@in_callers
@sums
def run_dot(a, b, length):
    if length == 6:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]
    return dot(a, b, length)


@in_callers
@sums
def run_add(x, factor, a, length):
    if length == 6:
        x[0] += factor * a[0]
        x[1] += factor * a[1]
        x[2] += factor * a[2]
        x[3] += factor * a[3]
        x[4] += factor * a[4]
        x[5] += factor * a[5]
    else:
        for l in range(length):
            x[l] += factor * a[l]


@in_callers
@sums
def velocity_dot(vector, segment, x):
    """vector · x over the runs of a contact."""
    length, more = segment[1], segment[3]
    total = run_dot(vector, x[segment[0] :], length)
    if more > 0:
        total += run_dot(vector[length:], x[segment[2] :], more)
    return total


@in_callers
@sums
def velocity_add(x, factor, vector, segment):
    """x += factor vector over the runs of a contact."""
    length, more = segment[1], segment[3]
    run_add(x[segment[0] :], factor, vector, length)
    if more > 0:
        run_add(x[segment[2] :], factor, vector[length:], more)


@in_callers
@sums
def coupling(a, one, b, two):
    """a·b over the runs that two contacts share: runs are equal or disjoint."""
    total = 0.0
    # The first run of one, with either of two ...
    if one[0] == two[0]:
        total += run_dot(a, b, min(one[1], two[1]))
    elif two[3] > 0 and one[0] == two[2]:
        total += run_dot(a, b[two[1] :], one[1])
    # ... and the second run.
    if one[3] > 0:
        if one[2] == two[0]:
            total += run_dot(a[one[1] :], b, one[3])
        elif two[3] > 0 and one[2] == two[2]:
            total += run_dot(a[one[1] :], b[two[1] :], one[3])
    return total


@in_callers
@sums
def combine(rows, i, factors, out):
    """out = factors · (n, t1, t2) of contact i."""
    n, t1, t2 = rows[i, 0], rows[i, 1], rows[i, 2]
    normal, first, second = factors
    for l in range(len(out)):
        out[l] = normal * n[l] + first * t1[l] + second * t2[l]

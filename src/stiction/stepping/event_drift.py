"""Correction of integration errors: contacts that bear stay closed, those that stick do not creep.

Forces keep N a + Ṅv = 0 at the beginning of a piece of motion; at its end gaps and velocities are off by the error of
the integration. The corrections are the smallest in the metric of the mass (`event_nearest`):

    min |dq|_M   with   N dq = -gap,  J dq = -error          min |dv|_M   with   N (v + dv) = 0,  T (v + dv) = 0

Overlaps that were there before, such as those that a scene begins with, are corrected too, at a bounded speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.runs import row_dot
from stiction.contacts.gather import DRY, clear
from stiction.problems.laws import Frictionless
from stiction.solvers.solve import solve
from stiction.stepping.event_forces import pose
from stiction.stepping.event_nearest import nearing_views, room, set_nearest
from stiction.stepping.event_rows import select

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints


def back_in_place(
    found: Constraints, mass: NDArray[np.float64], closed: NDArray[np.bool_], most: float, exact: float
) -> tuple[NDArray[np.float64] | None, float]:
    """(m,) displacement that closes these contacts and joints, each by `most` at most, and by how much the farthest.

    exact: errors that are left as they are; None if none is larger
    """
    shift, (floats, ints) = np.empty(found.free.size), room(found, found.n)
    farthest = close(found, mass, closed, most, exact, floats, ints, shift)
    return (shift, farthest) if farthest > 0.0 else (None, 0.0)


def back_at_rest(
    found: Constraints, mass: NDArray[np.float64], v: NDArray[np.float64], closed: NDArray[np.bool_],
    stuck: NDArray[np.bool_], exact: float,
) -> NDArray[np.float64] | None:  # fmt: skip
    """(m,) velocities at which these contacts do not open, or not slide; None if v is such, up to `exact`."""
    velocity, (floats, ints) = np.empty(found.free.size), room(found, 3 * found.n)
    moves = rest(found, mass, v, closed, stuck, exact, floats, ints, velocity)
    return velocity if moves else None


def pushed_apart(
    found: Constraints, mass: NDArray[np.float64], most: float, exact: float
) -> tuple[NDArray[np.float64] | None, float]:
    """(m,) least displacement after which no contact overlaps, and by how much the farthest moved.

    0 <= p ⊥ N dq + gap >= 0: contacts may open, so those that contradict each other, such as both sides of an edge that
    something runs over, do no harm. exact: overlaps that are left as they are; None if none is larger, or no way out is
    found.
    """
    rigid = select(found, np.flatnonzero(found.kind != DRY))
    gap, error = np.maximum(rigid.gap, -most), np.clip(rigid.joint_gap, -most, most)
    farthest = float(max(-gap.min(initial=0.0), np.abs(error).max(initial=0.0)))
    if farthest <= exact:
        return None, 0.0
    still = np.zeros(found.free.size)
    problem = pose(rigid, mass, Frictionless(), velocity=still, gap_rate=gap, joint_rate=error)
    solution = solve(problem, throw=False)
    return (solution.velocity if solution.ok else None), farthest


@kernel
def close(found, mass, closed, most, exact, floats, ints, shift):
    """Fill the displacement of `back_in_place`; return how far the farthest goes, 0 if nothing has to move."""
    n, m, j = len(found.gap), len(found.free), len(found.joint_gap)
    work = nearing_views(n, m, j, len(mass), floats, ints)

    # Errors, each as far as it may be corrected.
    k, farthest = 0, 0.0
    for i in range(n):
        if closed[i]:
            work.which[k, 0], work.which[k, 1] = i, 0
            work.target[k] = min(max(-found.gap[i], -most), most)
            farthest = max(farthest, abs(work.target[k]))
            k += 1
    for i in range(j):
        work.rate[i] = min(max(found.joint_gap[i], -most), most)
        farthest = max(farthest, abs(work.rate[i]))
    if farthest <= exact:
        return 0.0
    clear(work.still)
    set_nearest(found, mass, work.still, k, farthest, work, shift)
    return farthest


@kernel
def rest(found, mass, v, closed, stuck, exact, floats, ints, velocity):
    """Fill the velocities of `back_at_rest`; return whether they differ from v."""
    n, m, j = len(found.gap), len(found.free), len(found.joint_gap)
    work = nearing_views(3 * n, m, j, len(mass), floats, ints)

    # Rows that should not move, and the fastest of them.
    k, fastest = 0, 0.0
    for i in range(n):
        for c in range(3):
            if (closed[i] and c == 0) or (stuck[i] and c > 0):
                work.which[k, 0], work.which[k, 1], work.target[k] = i, c, 0.0
                fastest = max(fastest, abs(row_dot(found.rows[i, c], found.segments[i], v)))
                k += 1
    for i in range(j):
        work.rate[i] = 0.0
        fastest = max(fastest, abs(row_dot(found.joints[i], found.joint_segments[i], v)))
    if fastest <= exact:
        return False
    set_nearest(found, mass, v, k, fastest, work, velocity)
    return True

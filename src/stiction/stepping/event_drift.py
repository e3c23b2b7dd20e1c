"""Drift of the integration, taken back: contacts that bear stay closed, those that stick do not creep.

Forces keep N a + Ṅv = 0 at the beginning of a piece of motion; at its end gaps and velocities are off by what the
method of integration leaves. The nearest positions and velocities, in the metric of the mass, at which they are not:

    min |dq|_M   with   N dq = -gap,  J dq = -error          min |dv|_M   with   N (v + dv) = 0,  T (v + dv) = 0

by least squares, since contacts are redundant as a rule. Overlaps that no force is to blame for, such as those that a
scene begins with, are taken back too, at a bounded speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.contacts.gather import DRY
from stiction.problems.laws import Frictionless
from stiction.solvers.solve import solve
from stiction.stepping.event_forces import pose
from stiction.stepping.event_rows import joint_speeds, select, set_speeds, speeds, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints
    from stiction.problems.contact import ContactProblem

DEPENDENT = (1e-12, 1e-8, 1e-4)  # eigenvalues, over the largest, of dependent rows, tried in turn
FARTHER = 10.0  # times the largest error: how far a contact may move when errors are taken back


def back_in_place(
    found: Constraints, mass: NDArray[np.float64], closed: NDArray[np.int64], most: float, exact: float
) -> tuple[NDArray[np.float64] | None, float]:
    """(m,) displacement that closes these contacts and joints, each by `most` at most, and by how much the farthest.

    exact: errors that are left as they are; None if none is larger
    """
    target = np.clip(-found.gap[closed], -most, most)
    error = np.clip(found.joint_gap, -most, most)
    farthest = float(max(np.abs(target).max(initial=0.0), np.abs(error).max(initial=0.0)))
    if farthest <= exact:
        return None, 0.0
    problem = pose(found, mass, Frictionless(), velocity=np.zeros(found.free.size), joint_rate=error)
    return nearest(problem, closed, np.zeros(closed.size, np.int64), target, farthest), farthest


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


def back_at_rest(
    found: Constraints, mass: NDArray[np.float64], v: NDArray[np.float64], closed: NDArray[np.int64],
    stuck: NDArray[np.int64], exact: float,
) -> NDArray[np.float64] | None:  # fmt: skip
    """(m,) velocities at which these contacts do not open, or not slide; None if v is such, up to `exact`."""
    u = speeds(found, v)
    contacts = np.concatenate([closed, stuck, stuck])
    parts = np.repeat([0, 1, 2], [closed.size, stuck.size, stuck.size])
    off = max(np.abs(u[contacts, parts]).max(initial=0.0), np.abs(joint_speeds(found, v)).max(initial=0.0))
    if off <= exact:
        return None
    problem = pose(found, mass, Frictionless(), velocity=v)
    return nearest(problem, contacts, parts, np.zeros(contacts.size), float(off))


def nearest(
    problem: ContactProblem,
    contacts: NDArray[np.int64],
    parts: NDArray[np.int64],
    target: NDArray[np.float64],
    off: float,
) -> NDArray[np.float64]:
    """The velocity nearest to the free one at which the joints hold and these rows have their targets.

    Rows that depend on each other but for a little could ask for a long way: those are left out that would move any
    contact much farther than `off`, the largest error.
    """
    impulse = np.zeros((problem.n, 3))
    start = problem.respond(impulse)[0]
    if not contacts.size:
        return start
    white = problem.whitened
    rows, size = np.zeros((contacts.size, problem.m)), white.scale[contacts]
    spread(white.rows[contacts, parts], white.segments[contacts], rows)
    values, vectors = np.linalg.eigh(rows @ rows.T)
    before, after = np.empty((2, problem.n, 3))
    set_speeds(problem.rows, problem.segments, start, before)
    for dependent in DEPENDENT:
        large = values > dependent * values[-1]
        some = vectors[:, large]
        impulse[:], after[:] = 0.0, before
        for _ in range(2):
            wanted = size * (target - after[contacts, parts])
            np.add.at(impulse, (contacts, parts), size * (some @ ((some.T @ wanted) / values[large])))
            velocity = problem.respond(impulse)[0]
            set_speeds(problem.rows, problem.segments, velocity, after)
        if np.abs(after - before).max() <= FARTHER * off:
            return velocity
    return start

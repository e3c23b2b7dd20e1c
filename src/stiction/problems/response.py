"""The response to contact impulses: velocities, and the impulses of the joints that are held meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import in_callers, kernel
from stiction.arrays.dense import dot
from stiction.arrays.layout import Floats, layout
from stiction.arrays.runs import add_rows
from stiction.arrays.vectors import at, over
from stiction.problems.following import follow_on
from stiction.problems.joints import CONTRADICTION, NOISE_ROW
from stiction.problems.mass_factor import unwhiten_velocity, whiten_dense, whiten_velocity
from stiction.problems.normal_form import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem


class Scratch(NamedTuple):
    """For m velocities and j bilateral rows."""

    x: Array[Floats, "m"]  # whitened velocities
    alone: Array[Floats, "m if j > 0 else 0"]  # the same as if there were no joints
    along: Array[Floats, "min(j, m)"]  # impulses of the independent bilateral rows
    pushed: Array[Floats, "m if j > 0 else 0"]  # what impulses change of these


scratch_sizes, scratch_views = layout(Scratch, "m", "j")


def response(problem: ContactProblem, impulse: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """v = M⁻¹ of all impulses from v_free, and the joint impulses that keep J v + joint_rate = 0."""
    velocity, joint_impulse = np.empty(problem.m), np.zeros(len(problem.joints))
    if problem.mass is None:  # nothing but contacts is known to move
        return velocity, joint_impulse
    white = problem.whitened
    if white.record is not None:
        sizes = problem.m, len(problem.joints)
        scratch = scratch_views(*sizes, np.empty(scratch_sizes(*sizes)[0]), NONE)
        respond(
            problem.posed, white.record, white.tau, len(white.kept), impulse, scratch, velocity, joint_impulse,
            problem.zero,
        )  # fmt: skip
    return velocity, joint_impulse


def contradictions(problem: ContactProblem) -> NDArray[np.int64]:
    """Redundant bilateral rows whose rates contradict the rows that they depend on."""
    white = problem.whitened
    if len(white.kept) == len(problem.joints) or white.record is None:
        return NONE
    wrong = np.empty(len(problem.joints), np.int64)
    mark_contradictions(problem.posed, white.record, len(white.kept), wrong)
    return np.flatnonzero(wrong)


@kernel
def mark_contradictions(posed, white, rank, wrong):
    """Mark redundant bilateral rows whose rates contradict the rows that they depend on; return how many do.

    rank: number of independent rows
    """
    # Rows that are not redundant, or ask for no motion, never do.
    count, asks, least = len(wrong), False, np.inf
    for i in range(count):
        wrong[i] = 1
        asks = asks or posed.joint_rate[i] != 0.0
        if white.joint_size[0, i] > 0.0:
            least = min(least, white.joint_size[0, i])
    for u in range(rank):
        wrong[white.kept[u]] = 0
    found = 0
    for i in range(count):
        if wrong[i] == 0 or not asks:
            wrong[i] = 0
            continue
        # Its rate with joints held, without, and the terms that make it up; a row of rounding size has none.
        row, rate, size = posed.joints[i], posed.joint_rate[i], white.joint_size[0, i]
        off, asked, terms = rate, rate, abs(rate)
        if 0.0 < NOISE_ROW * size < least:
            for j in range(len(row)):
                off, asked = off + row[j] * white.held[j], asked + row[j] * posed.velocity[j]
                terms += abs(row[j] * white.held[j])
        wrong[i] = 1 if abs(off) > CONTRADICTION * max(abs(asked), terms) else 0
        found += wrong[i]
    return found


@kernel
def respond(posed, white, tau, rank, impulse, scratch, velocity, joint_impulse, zero):
    """Fill velocity and joint_impulse; rank: number of independent bilateral rows; zero: impulse of a contact."""
    # Whitened velocity: free motion, where it is not added later, plus the contacts' rows, both with joints held.
    x, following = scratch.x, len(joint_impulse) > 0 and white.following.used[0] != 0
    for j in range(len(x)):
        x[j] = 0.0 if following else white.free[j] * tau
    for i in range(len(impulse)):
        add_rows(white.rows[i], white.runs[i], over(at(impulse, i, zero), white.scale[i]), x)
    if following:
        follow_on(white, posed.trees, rank, x, velocity)
    else:
        unwhiten_velocity(white.factor, posed.trees, x, velocity)

    # Joint impulses follow from the difference to the motion without joints.
    if len(joint_impulse) > 0:
        move_unheld(posed, white, impulse, scratch, zero)
        hold(white, rank, scratch, joint_impulse)


@in_callers
@kernel
def move_unheld(posed, white, impulse, scratch, zero):
    """Write the whitened velocities that free motion and contact impulses would give without joints."""
    # All impulses on the velocities, whitened together.
    pushed, alone = scratch.pushed, scratch.alone
    for j in range(len(pushed)):
        pushed[j] = 0.0
    for i in range(len(impulse)):
        add_rows(posed.rows[i], posed.segments[i], at(impulse, i, zero), pushed)
    whiten_dense(white.factor, posed.trees, pushed)

    # With the free motion.
    whiten_velocity(white.factor, posed.trees, posed.velocity, alone)
    for j in range(len(pushed)):
        alone[j] += pushed[j]


@in_callers
@kernel
def hold(white, rank, scratch, joint_impulse):
    """Impulses of the bilateral rows, from the difference between x with joints held and x without joints."""
    m, along, following = len(scratch.x), scratch.along, white.following.used[0] != 0
    for i in range(len(joint_impulse)):
        joint_impulse[i] = 0.0
    # Solve with the transposed triangle of the independent rows, from the last one.
    for u in range(rank - 1, -1, -1):
        held = white.wanted[u] if following else dot(white.basis[u], scratch.x, m)
        total = held - dot(white.basis[u], scratch.alone, m)
        for w in range(u + 1, rank):
            total -= white.triangle[w, u] * along[w]
        along[u] = total / white.triangle[u, u]
        joint_impulse[white.kept[u]] = along[u]

"""Proximal steps of contact with friction, in velocity space.

About a centre c, friction is made a function of the velocity by ε > 0:

    p(u) = (max(0, y_n), proj(y_t, disc of radius mu max(0, y_n))),      y = c - u / ε

and x = sum of L_iᵀ p_i(L_i x + offset_i) is an equation in m unknowns. Newton's method solves it with the matrix
I + sum of L_iᵀ G_i L_i, G_i = -dp_i/du_i: regular where the Delassus matrix is not, and no larger with more contacts.
Its answer becomes the next centre, and ε shrinks: the method of multipliers. A stage is easier than the problem itself
and ends nearer to an answer, from where Newton's method on the problem may go on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stiction.compiled import kernel, sums
from stiction.linear import subtract_multiple
from stiction.solvers.one_contact import add_impulse, contact_velocity, into_cone, set_velocity

STAGES = 8
FIRST_EPSILON, SHRINK = 0.1, 0.5
MAX_STEPS = 12  # of Newton's method in a stage
TRIALS = 8  # of a step, each half as long as the one before
DECREASE = 1e-3  # part of the squared residual that a step must take away

OPEN, STICK, SLIP = 0, 1, 2


class System(NamedTuple):
    """The linearised law of each contact, dp = constant - slope du, and the system that they make."""

    constant: Any  # (n, 3)
    slope: Any  # (n, 6) its entries nn, 1n, 2n, 11, 12 = 21, 22; those at n1 and n2 are zero
    mode: Any  # (n,) OPEN, STICK or SLIP
    matrix: Any  # (m, m) I + sum of L_iᵀ slope_i L_i
    right: Any  # (m,) right-hand side, then solution
    reach: Any  # (m,) one past the last entry of each row of the matrix that is not zero


@kernel
def proximal(contacts, now, trial, centre, step, system, enough):
    """Bring `now` nearer to an answer; a stage ends when its residual is at most `enough`. Returns Newton steps."""
    m = len(now.x)
    into_cone(now.p, contacts.friction)
    set_velocity(contacts, now)
    steps, epsilon = 0, FIRST_EPSILON
    for _ in range(STAGES):
        copy_rows(now.p, centre)
        square = respond(contacts, now, centre, epsilon, system)
        for _ in range(MAX_STEPS):
            if square <= enough * enough:
                break
            assemble(contacts, system)
            steps += 1
            if not eliminate(system):
                break
            for j in range(m):
                step[j] = system.right[j]
            length, before = 1.0, square
            for _ in range(TRIALS):
                for j in range(m):
                    trial.x[j] = now.x[j] + length * step[j]
                square = respond(contacts, trial, centre, epsilon, system)
                if square <= before * (1.0 - DECREASE * length):
                    break
                length *= 0.5
            copy_rows(trial.p, now.p)
            for j in range(m):
                now.x[j] = trial.x[j]
            if not square < before:
                break
        set_velocity(contacts, now)
        epsilon *= SHRINK
    return steps


@kernel
def respond(contacts, point, centre, epsilon, system):
    """Set p from x by the regularised law, its slope, and right = sum of L_iᵀ p_i - x; returns |right|²."""
    p, x, right, slope, offset = point.p, point.x, system.right, system.slope, contacts.offset
    stiffness = 1.0 / epsilon
    for j in range(len(x)):
        right[j] = -x[j]
    for i in range(len(p)):
        u0, u1, u2 = contact_velocity(contacts.rows[i], contacts.segments[i], x)
        y0 = centre[i, 0] - stiffness * (u0 + offset[i, 0])
        y1 = centre[i, 1] - stiffness * (u1 + offset[i, 1])
        y2 = centre[i, 2] - stiffness * (u2 + offset[i, 2])
        if y0 <= 0.0:
            system.mode[i] = OPEN
            p[i, 0], p[i, 1], p[i, 2] = 0.0, 0.0, 0.0
            continue
        radius, length = contacts.friction[i] * y0, (y1 * y1 + y2 * y2) ** 0.5
        slope[i, 0] = stiffness
        if length <= radius:
            system.mode[i] = STICK
            p[i, 0], p[i, 1], p[i, 2] = y0, y1, y2
            slope[i, 1], slope[i, 2] = 0.0, 0.0
            slope[i, 3], slope[i, 4], slope[i, 5] = stiffness, 0.0, stiffness
        else:
            system.mode[i] = SLIP
            t1, t2, turning = y1 / length, y2 / length, stiffness * radius / length
            p[i, 0], p[i, 1], p[i, 2] = y0, radius * t1, radius * t2
            slope[i, 1], slope[i, 2] = contacts.friction[i] * t1 * stiffness, contacts.friction[i] * t2 * stiffness
            slope[i, 3], slope[i, 4], slope[i, 5] = turning * t2 * t2, -turning * t1 * t2, turning * t1 * t1
        add_impulse(contacts.rows[i], contacts.segments[i], p[i, 0], p[i, 1], p[i, 2], right)
    square = 0.0
    for j in range(len(x)):
        square += right[j] * right[j]
    return square


@kernel
def assemble(contacts, system):
    """matrix = I + sum of L_iᵀ slope_i L_i."""
    matrix, reach = system.matrix, system.reach
    m = len(reach)
    for j in range(m):
        for k in range(m):
            matrix[j, k] = 0.0
        matrix[j, j] = 1.0
        reach[j] = j + 1
    for i in range(len(system.mode)):
        if system.mode[i] != OPEN:
            add_contact(contacts.rows[i], contacts.segments[i], system.slope[i], matrix, reach)


@sums
def add_contact(rows, segment, slope, matrix, reach):
    """matrix += Lᵀ slope L."""
    r0, r1, r2 = rows[0], rows[1], rows[2]
    length = segment[1]
    width = length + segment[3]
    end = max(segment[0] + length, segment[2] + segment[3])
    first, other = segment[0], segment[2] - length
    for j in range(width):
        a0 = r0[j] * slope[0] + r1[j] * slope[1] + r2[j] * slope[2]
        a1 = r1[j] * slope[3] + r2[j] * slope[4]
        a2 = r1[j] * slope[4] + r2[j] * slope[5]
        at = first + j if j < length else other + j
        reach[at] = max(reach[at], end)
        row = matrix[at]
        for k in range(length):
            row[first + k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k]
        for k in range(length, width):
            row[other + k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k]


@kernel
def eliminate(system):
    """right = matrix⁻¹ right by Gauss with partial pivoting, within the reach of each row; False if a pivot vanishes.

    A stack's matrix is banded, and stays so.
    """
    A, b, reach = system.matrix, system.right, system.reach
    m = len(b)
    for p in range(m):
        best, size = p, abs(A[p, p])
        for i in range(p + 1, m):
            if abs(A[i, p]) > size:
                best, size = i, abs(A[i, p])
        if not size > 0.0:
            return False
        if best != p:
            end = max(reach[p], reach[best])
            for j in range(p, end):
                A[p, j], A[best, j] = A[best, j], A[p, j]
            b[p], b[best] = b[best], b[p]
            reach[p], reach[best] = reach[best], reach[p]
        inverse, end = 1.0 / A[p, p], reach[p]
        for i in range(p + 1, m):
            if A[i, p] != 0.0:
                factor = A[i, p] * inverse
                subtract_multiple(A[i, p + 1 :], factor, A[p, p + 1 :], end - p - 1)
                b[i] -= factor * b[p]
                reach[i] = max(reach[i], end)
    for p in range(m - 1, -1, -1):
        total = b[p]
        for j in range(p + 1, reach[p]):
            total -= A[p, j] * b[j]
        b[p] = total / A[p, p]
    return True


@kernel
def copy_rows(source, target):
    for i in range(len(source)):
        target[i, 0], target[i, 1], target[i, 2] = source[i, 0], source[i, 1], source[i, 2]

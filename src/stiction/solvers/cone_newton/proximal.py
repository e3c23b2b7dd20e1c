"""Proximal steps of contact with friction, in velocity space.

About a centre c, friction is made a function of the velocity by ε > 0:

    p(u) = (max(0, y_n), proj(y_t, disc of radius mu max(0, y_n))),      y = c - u / ε

and x = sum of L_iᵀ p_i(L_i x + offset_i) is an equation in m unknowns. Newton's method solves it with the matrix
I + sum of L_iᵀ G_i L_i, G_i = -dp_i/du_i: regular where the Delassus matrix is not, and no larger with more contacts.
Its answer becomes the next centre, and ε shrinks: the method of multipliers. A stage is easier than the problem itself
and ends nearer to an answer, from where Newton's method on the problem may go on.
"""

from __future__ import annotations

from stiction.compiled import kernel
from stiction.solvers.cone_newton.one_contact import add_impulse, contact_velocity, into_cone, set_velocity
from stiction.solvers.cone_newton.system import OPEN, SLIP, STICK, solve_system

STAGES = 8
FIRST_EPSILON, SHRINK = 0.1, 0.5
MAX_STEPS = 12  # of Newton's method in a stage
TRIALS = 8  # of a step, each half as long as the one before
DECREASE = 1e-3  # part of the squared residual that a step must take away


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
            steps += 1
            if not solve_system(contacts, system):
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
def copy_rows(source, target):
    for i in range(len(source)):
        target[i, 0], target[i, 1], target[i, 2] = source[i, 0], source[i, 1], source[i, 2]

"""Newton's method for box friction, in velocity space.

    p_n = max(0, p_n - u_n),      p_t = mid(-side, side, p_t - u_t),      side = bound max(0, p_n - u_n)

With u = L x + offset the map is piecewise linear. Linearised where it is, each contact says dp = constant - slope du:
open ones give up their impulse, closed ones stop their normal velocity, tangents that stick stop theirs, both softened
by ε, and tangents that slide follow the normal impulse. With dx = Lᵀ dp this is a system of size m, (I + sum of
L_iᵀ slope_i L_i) dx = sum of L_iᵀ constant_i, regular where the matrices of the passes are not. Once each contact is on
the right piece of the map, a step without ε is exact; so ε follows the residual to zero, faster when no piece changes.

Steps are searched against the largest of the last merits; a search that fails is answered by a full step, three times.

[AlartCurnier1991]; nonmonotone search [GrippoLamparielloLucidi1986].
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import Any, NamedTuple

from stiction.compiled import kernel, sums
from stiction.layout import Floats, Ints, layout
from stiction.linear import lu, lu_solve
from stiction.runs import add_row, row_dot
from stiction.solvers.cone_newton.step import MEMORY, highest, move, remember_only

LARGEST_EPSILON, SMALLEST_EPSILON = 0.1, 1e-10
CUT, SMALLEST_SOFTNESS = 0.05, 1e-7  # of the softness, after a full step that changes no piece
TRIALS = 9  # of a step, each half as long as the one before
DECREASE = 1e-4  # part of the merit that a step must take away
WATCHDOG = 3  # full steps that are taken although the search failed
PROGRESS = 0.8  # merit, over the lowest so far, that counts as progress
DIVERGED = 1e100

OPEN = 0  # the piece of a contact without impulse; else 1 + 3 first + second, of its tangents
STICKS, UPPER, LOWER = 0, 1, 2  # pieces of a tangent


class Contacts(NamedTuple):
    """The contacts of a problem in normal form, stretched."""

    rows: Any  # (n, 3, k) L_i, at the velocities that it touches
    segments: Any  # (n, 4) start and length of the two runs of velocities that it touches
    offset: Any  # (n, 3) contact velocities without impulses
    bound: Any  # (n,) largest tangential impulse over the normal one


class Point(NamedTuple):
    """Impulses and what follows from them."""

    p: Array[Floats, "n", 3]  # impulses n, t1, t2
    u: Array[Floats, "n", 3]  # L_i x + offset_i
    x: Array[Floats, "m"]  # sum of L_iᵀ p_i


class Step(NamedTuple):
    """The linearised law of each contact, and the system that they make."""

    constant: Array[Floats, "n", 3]
    slope: Array[Floats, "n", 5]  # entries nn, 1n, 2n, 11, 22; the others are zero
    direction: Array[Floats, "n", 3]  # dp
    merits: Array[Floats, "memory"]  # of the last steps, -1 where there is none
    matrix: Array[Floats, "m", "m"]
    right: Array[Floats, "m"]  # right-hand side, then dx
    piece: Array[Ints, "n"]  # of the map
    pivots: Array[Ints, "m"]


class Work(NamedTuple):
    """All of it."""

    now: Point
    trial: Point
    step: Step
    best: Array[Floats, "n", 3]
    rows: Array[Floats, "n", 3, "width"]
    offset: Array[Floats, "n", 3]


layout(Point, "n", "m")
layout(Step, "n", "m", memory=f"{MEMORY}")
sizes, carve = layout(Work, "n", "m", "width")


@kernel
def box_newton(rows, segments, m, offset, bound, stretch, softness, enough, max_steps, floats, ints, p):
    """From p to the best impulses found, in p. Returns the number of steps.

    stretch: (n,) by which rows and velocities are multiplied and impulses divided
    softness: ε over the residual
    """
    n, width = len(p), rows.shape[2]
    work = carve(n, m, width, floats, ints)
    contacts, now, best = Contacts(work.rows, segments, work.offset, bound), work.now, work.best
    for i in range(n):
        for c in range(3):
            contacts.offset[i, c] = stretch[i] * offset[i, c]
            now.p[i, c] = best[i, c] = p[i, c] / stretch[i]
            for k in range(width):
                contacts.rows[i, c, k] = stretch[i] * rows[i, c, k]
    steps = search(contacts, now, work.trial, work.step, best, softness, enough, max_steps)
    for i in range(n):
        for c in range(3):
            p[i, c] = stretch[i] * best[i, c]
    return steps


@kernel
def search(contacts, now, trial, step, best, softness, enough, max_steps):
    """From `now`; `best` keeps the impulses of least residual. Returns the number of steps."""
    for i in range(len(best)):
        step.piece[i] = -1
    largest, merit = evaluate(contacts, now)
    remember_only(merit, step.merits)
    least, lowest, slow, failures, soft = largest, merit, 0, 0, softness
    for count in range(1, max_steps + 1):
        if least <= enough:
            return count - 1
        epsilon = min(LARGEST_EPSILON, max(SMALLEST_EPSILON, soft * largest))
        changed = linearise(contacts, now, epsilon, step)
        if not newton_direction(contacts, step):
            return count
        length, before, reference = 1.0, largest, highest(step.merits)
        for _ in range(TRIALS):
            move(now, length, step.direction, trial)
            largest, merit = evaluate(contacts, trial)
            if merit <= reference * (1.0 - DECREASE * length):
                break
            length *= 0.5
        else:
            failures += 1
            if failures > WATCHDOG:
                return count
            move(now, 1.0, step.direction, trial)
            largest, merit = evaluate(contacts, trial)
            remember_only(-1.0, step.merits)
        now, trial = trial, now
        step.merits[count % MEMORY] = merit
        if not merit < DIVERGED:
            return count
        if largest < least:
            least = largest
            for i in range(len(best)):
                for c in range(3):
                    best[i, c] = now.p[i, c]
        # The right pieces make the map linear: there is nothing left to soften.
        soft = max(CUT * soft, SMALLEST_SOFTNESS) if changed == 0 and length == 1.0 and largest < before else softness
        slow = 0 if merit < PROGRESS * lowest else slow + 1
        lowest = merit if slow == 0 else lowest
        if slow > MEMORY + WATCHDOG:
            return count
    return max_steps


@kernel
def evaluate(contacts, point):
    """Set x and u from p; returns the map's largest entry and its square."""
    p, u, x = point.p, point.u, point.x
    for j in range(len(x)):
        x[j] = 0.0
    for i in range(len(p)):
        for c in range(3):
            if p[i, c] != 0.0:
                add_row(contacts.rows[i, c], contacts.segments[i], p[i, c], x)
    largest, square = 0.0, 0.0
    for i in range(len(p)):
        for c in range(3):
            u[i, c] = row_dot(contacts.rows[i, c], contacts.segments[i], x) + contacts.offset[i, c]
        normal = max(p[i, 0] - u[i, 0], 0.0)
        side = contacts.bound[i] * normal
        f0 = abs(p[i, 0] - normal)
        f1 = abs(p[i, 1] - min(max(p[i, 1] - u[i, 1], -side), side))
        f2 = abs(p[i, 2] - min(max(p[i, 2] - u[i, 2], -side), side))
        largest, square = max(largest, f0, f1, f2), square + f0 * f0 + f1 * f1 + f2 * f2
    return largest, square


@kernel
def linearise(contacts, point, epsilon, step):
    """dp = constant - slope du of each contact; returns how many changed their piece of the map."""
    p, u, constant, slope = point.p, point.u, step.constant, step.slope
    stiffness, changed = 1.0 / epsilon, 0
    for i in range(len(p)):
        normal, piece = p[i, 0] - u[i, 0], OPEN
        if normal <= 0.0:
            constant[i, 0], constant[i, 1], constant[i, 2] = -p[i, 0], -p[i, 1], -p[i, 2]
        else:
            constant[i, 0], slope[i, 0] = -stiffness * u[i, 0], stiffness
            piece = 1
            for t in range(1, 3):
                y, side = p[i, t] - u[i, t], contacts.bound[i] * normal
                tangent = UPPER if y > side else LOWER if y < -side else STICKS
                piece += tangent * (3 if t == 1 else 1)
                if tangent == STICKS:
                    constant[i, t], slope[i, t], slope[i, 2 + t] = -stiffness * u[i, t], 0.0, stiffness
                else:
                    rate = contacts.bound[i] if tangent == UPPER else -contacts.bound[i]
                    constant[i, t] = rate * (p[i, 0] + constant[i, 0]) - p[i, t]
                    slope[i, t], slope[i, 2 + t] = rate * stiffness, 0.0
        if piece != step.piece[i]:
            step.piece[i] = piece
            changed += 1
    return changed


@kernel
def newton_direction(contacts, step):
    """dp from (I + sum of L_iᵀ slope_i L_i) dx = sum of L_iᵀ constant_i; False if that is singular."""
    constant, slope, direction, right, matrix = step.constant, step.slope, step.direction, step.right, step.matrix
    for j in range(len(right)):
        right[j] = 0.0
        for k in range(len(right)):
            matrix[j, k] = 0.0
        matrix[j, j] = 1.0
    for i in range(len(constant)):
        for c in range(3):
            if constant[i, c] != 0.0:
                add_row(contacts.rows[i, c], contacts.segments[i], constant[i, c], right)
        if step.piece[i] != OPEN:
            add_contact(contacts.rows[i], contacts.segments[i], slope[i], matrix)
    if not lu(matrix, step.pivots, len(right)):
        return False
    lu_solve(matrix, step.pivots, len(right), right)
    for i in range(len(constant)):
        direction[i, 0], direction[i, 1], direction[i, 2] = constant[i, 0], constant[i, 1], constant[i, 2]
        if step.piece[i] != OPEN:
            normal = row_dot(contacts.rows[i, 0], contacts.segments[i], right)
            direction[i, 0] -= slope[i, 0] * normal
            for t in range(1, 3):
                along = row_dot(contacts.rows[i, t], contacts.segments[i], right)
                direction[i, t] -= slope[i, t] * normal + slope[i, 2 + t] * along
    return True


@sums
def add_contact(rows, segment, slope, matrix):
    """matrix += Lᵀ slope L."""
    r0, r1, r2 = rows[0], rows[1], rows[2]
    first, length = segment[0], segment[1]
    other, width = segment[2] - length, length + segment[3]
    for j in range(width):
        a0 = r0[j] * slope[0] + r1[j] * slope[1] + r2[j] * slope[2]
        a1, a2 = r1[j] * slope[3], r2[j] * slope[4]
        row = matrix[first + j if j < length else other + j]
        for k in range(length):
            row[first + k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k]
        for k in range(length, width):
            row[other + k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k]

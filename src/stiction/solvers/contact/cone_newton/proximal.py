"""Proximal steps of contact with friction, in velocity space.

About a centre c, friction is made a function of the velocity by ε > 0:

    p(u) = (max(0, y_n), proj(y_t, disc of radius mu max(0, y_n))),      y = c - u / ε

and x = sum of L_iᵀ p_i(L_i x + offset_i) is an equation in m unknowns. Newton's method solves it with the matrix
I + sum of L_iᵀ G_i L_i, G_i = -dp_i/du_i: regular where the Delassus matrix is not, and no larger with more contacts.
Its answer becomes the next centre: the method of multipliers.

A heap in motion can have more sticking contact rows than velocities, with gaps that are slightly inconsistent. Then no
impulses stop all of these contacts; which of them yield, at a millionth of the other velocities, depends on changes of
impulses as large as the impulses themselves. Newton's method on the law itself does not reach so far, but here such
contacts change impulses by u / ε in each stage, until one of them slides or opens. ε is chosen for stages of moderate
length. If a stage fails, ε grows until one succeeds, since for large ε there always is a solution.

Without friction the equation of a stage is the gradient of a convex function, whose decrease along a step is the
residual's power. With friction it is nearly so. A search by that power makes steps that a search by the size of the
residual shortens to nothing, as soon as one contact among hundreds would slide the other way: the residual jumps by
its whole friction, the function hardly. Such a contact then sticks in the next step (`hold_crossed`); otherwise it
slides to and fro. Both together halve the stages of walls and heaps.

Where friction locks, as in a wedge, a Newton step goes uphill: more load means more friction, which means more load.
The step is then solved again with friction that depends half as much on its load, in the matrix alone (`loosen`), as
often as it takes; so is the next one. Without that dependence the matrix is symmetric, and the step goes downhill. Such
a stage ends with the same answer, some steps later, where it would have had none.

Stages of small ε are worth many steps: since friction is not monotone, the method of multipliers converges only where
its steps are long enough, and otherwise turns in circles.
"""

from __future__ import annotations

from math import sqrt

from stiction.arrays.compiled import in_callers, kernel, once
from stiction.arrays.dense import dot
from stiction.arrays.runs import add_rows, rows_dot
from stiction.arrays.vectors import across, at, inner, minus, negative, over, plus, put, times, with_normal
from stiction.solvers.contact.cone_newton.apart import respond_apart
from stiction.solvers.contact.cone_newton.lifting import DOES, onto_friction_cone, respond_lifting
from stiction.solvers.contact.cone_newton.one_contact import counted, evaluate, into_cone, onto_cone
from stiction.solvers.contact.cone_newton.slope import set_slip, set_stick
from stiction.solvers.contact.cone_newton.system import LIFT, OPEN, SLIP, STICK, solve_system
from stiction.solvers.contact.cone_newton.tolerances import (
    CAREFUL,
    DIVERGED,
    GROW,
    HURRY,
    LARGEST_EPSILON,
    LARGEST_STAGE,
    LEAST_PART,
    LOOSENINGS,
    SHORT,
    SMALLEST_STAGE,
    SPENT,
    STAGE_LENGTH,
    STAGE_PART,
    STAGE_ROUNDING,
    STAGE_STEPS,
    TRIALS,
    UNSPENT,
)


@once
@kernel
def proximal(contacts, search, system, least, enough, max_steps):
    """Proximal stages from search.best, of residual `least`, which keeps the best impulses.

    Returns (residual of search.best, Newton steps).
    """
    now, trial, best, centre = search.now, search.trial, search.best, search.direction

    # The first centre: the best impulses, put into their cones.
    copy_rows(best, now.p)
    into_cone(now.p, contacts)
    largest, _ = evaluate(contacts, now)
    copy_rows(now.p, centre)
    steps, epsilon, least_shrink = 0, min(LARGEST_EPSILON, largest / STAGE_LENGTH), 0.0
    while steps < max_steps and least > enough:
        # One stage; if it has no solution near by, try again with a larger ε.
        aim = max(STAGE_PART * largest, STAGE_ROUNDING)
        solved, count = stage(contacts, now, trial, centre, search.spare, system, epsilon, aim, False)
        steps += count + 1
        if not solved:
            epsilon, least_shrink = min(LARGEST_STAGE, GROW * epsilon), CAREFUL
            continue

        # The solution is the next centre.
        length = distance(now.p, centre)
        copy_rows(now.p, centre)
        largest, _ = evaluate(contacts, now)
        seen = counted(contacts, now, largest, enough)
        if seen < least:
            least = seen
            copy_rows(now.p, best)

        # Choose ε for changes of about STAGE_LENGTH; after a failure, reduce it with care.
        epsilon = max(SMALLEST_STAGE, epsilon * max(least_shrink, min(0.5, length / STAGE_LENGTH)))
        least_shrink = 0.0
    return least, steps


@once
@kernel
def stage(contacts, now, trial, centre, step, system, epsilon, enough, farther):
    """Solve the regularised law about `centre`, where velocities are now.u, up to a residual `enough`.

    Returns (whether it is solved, Newton steps); impulses in now.p. Here now.x is a change from the centre, because
    rounding of whole velocities would be divided by ε.
    farther: whether steps that are loosened may be longer than one
    """
    # Begin at the centre. Contact velocities are linear along a step: only its end needs products with rows.
    m, moved, along = len(now.x), trial.u, system.constant
    for j in range(m):
        now.x[j] = 0.0
    for i in range(len(moved)):
        put(moved, i, contacts.zero)
    square = respond(contacts, moved, now, centre, epsilon, system)
    locked, shorts = False, 0
    for count in range(STAGE_STEPS):
        # Newton direction, and the power of the residual along it. Without any there is no way on.
        if square <= enough * enough:
            return True, count
        for j in range(m):
            step[j] = system.right[j]
        locked, power = stage_direction(contacts, step, system, locked)
        if not 0.0 < power < DIVERGED:
            return False, count + 1
        set_change(contacts, step, along)

        # How far; where steps stay short, modes change with each of them: a larger ε finds them sooner.
        length = length_along(contacts, now, moved, step, along, centre, epsilon, power, farther and locked)
        shorts = shorts + 1 if length < SHORT else 0
        if shorts >= HURRY:
            return False, count + 1

        # Accept the step; contacts that it has taken through their discs are linearised as sticking.
        for j in range(m):
            now.x[j] += length * step[j]
        for i in range(len(moved)):
            put(moved, i, plus(at(moved, i, contacts.zero), times(length, at(along, i, contacts.zero))))
        square = respond(contacts, moved, now, centre, epsilon, system)
        hold_crossed(contacts, now.u, moved, along, length, centre, epsilon, system)
    return square <= enough * enough, STAGE_STEPS


@kernel
def stage_direction(contacts, step, system, locked):
    """Newton direction for the residual `step`, which it replaces; locked: whether friction locked in the last step.

    Returns (whether it locks in this one, the residual's power along the direction, 0 if there is no direction).
    """
    m, right = len(step), system.right
    if locked:
        loosen(system)
    if not solve_system(contacts, system):
        return locked, 0.0
    power = dot(step, right, m)
    locked, times = not power > 0.0, 0
    while not power > 0.0 and times < LOOSENINGS:
        # Friction locks: loosen it, in this step and the next.
        times += 1
        loosen(system)
        for j in range(m):
            right[j] = step[j]
        if not solve_system(contacts, system):
            return locked, 0.0
        power = dot(step, right, m)
    for j in range(m):
        step[j] = right[j]
    return locked, power


@kernel
def length_along(contacts, now, moved, step, along, centre, epsilon, power, farther):
    """Length of a step at which the residual's power along it is nearly spent; farther: it may be longer than one."""
    m, length, near, near_power, far, far_power = len(step), 1.0, 0.0, power, 0.0, 0.0
    done, per_length = dot(now.x, step, m), dot(step, step, m)
    for attempt in range(TRIALS):
        # What is left of it. Where a solution ends, dozens of loosened steps would lead away from it to the next one.
        left = push(contacts, now.u, moved, along, length, centre, epsilon) - done - length * per_length
        longer = farther and attempt < LOOSENINGS and left > UNSPENT * power
        if abs(left) <= SPENT * power or (left > 0.0 and far == 0.0 and not longer):
            break

        # Farther, or between the last two of either sign.
        if left > 0.0:
            near, near_power = length, left
        else:
            far, far_power = length, left
        if far == 0.0:
            length *= GROW
        else:
            part = near_power / (near_power - far_power)
            length = near + (far - near) * min(max(part, LEAST_PART), 1.0 - LEAST_PART)
    return length


@kernel
def set_change(contacts, step, along):
    """along = L step: how contact velocities change along a step."""
    for i in range(len(along)):
        put(along, i, rows_dot(contacts.rows[i], contacts.segments[i], step, contacts.zero))


@kernel
def push(contacts, u, moved, along, length, centre, epsilon):
    """Power along a step, at this part of it, of what impulses have changed from the centre."""
    stiffness, zero, total = 1.0 / epsilon, contacts.zero, 0.0
    for i in range(len(along)):
        c, way = at(centre, i, zero), at(along, i, zero)
        y = regularised(c, at(u, i, zero), plus(at(moved, i, zero), times(length, way)), stiffness)
        if contacts.lifts[i] == DOES:
            total += inner(minus(onto_friction_cone(y, contacts.friction[i]), c), way)
        elif y[0] > 0.0:
            total += inner(minus(onto_cone(y, y[0], contacts.friction[i] * y[0], contacts.apart), c), way)
        elif c[0] != 0.0:
            total -= inner(c, way)
    return total


@kernel
def loosen(system):
    """Let friction depend on its load half as much, in the matrix alone: a step goes downhill then, mostly."""
    for i in range(len(system.mode)):
        if system.mode[i] != OPEN and system.mode[i] != LIFT:
            for a in range(1, system.constant.shape[1]):
                system.slope[i, a] *= 0.5


@kernel
def hold_crossed(contacts, u, moved, along, length, centre, epsilon, system):
    """Let contacts stick that slide now, and slid the other way before, and correct the right-hand side for that.

    Friction of a sliding contact does not depend on its speed, so that a Newton step may reverse it, and the next one
    reverse it again. What it passed on its way is sticking.
    """
    if contacts.apart:
        return
    stiffness, zero = 1.0 / epsilon, contacts.zero
    for i in range(len(u)):
        if system.mode[i] != SLIP:
            continue
        # y now, and the way to it from before.
        y = regularised(at(centre, i, zero), at(u, i, zero), at(moved, i, zero), stiffness)
        way = times(-stiffness * length, at(along, i, zero))
        old = minus(y, way)

        # The least distance from the axis on the way from one to the other, if it is not at one of the ends.
        square, forth = across(way, way), -across(old, way)
        if not 0.0 < forth < square:
            continue
        radius = contacts.friction[i] * max(0.0, min(y[0], old[0]))
        if across(old, old) - forth * forth / square >= radius * radius:
            continue

        # The linear law of sticking, p = y, in place of its projection.
        q = with_normal(y[0], times(contacts.friction[i] * y[0] / sqrt(across(y, y)), y))
        system.mode[i] = STICK
        set_stick(system.slope, i, stiffness, zero)
        add_rows(contacts.rows[i], contacts.segments[i], minus(y, q), system.right)


@kernel
def distance(p, q):
    """Largest difference between impulses."""
    largest = 0.0
    for i in range(len(p)):
        for c in range(p.shape[1]):
            largest = max(largest, abs(p[i, c] - q[i, c]))
    return largest


@in_callers
@kernel
def regularised(c, u, moved, stiffness):
    """y = c - u / ε of a contact, where velocities have moved from u."""
    return minus(c, times(stiffness, plus(u, moved)))


@kernel
def respond(contacts, moved, point, centre, epsilon, system):
    """Set p by the regularised law at the change x, its slope, and right = sum of L_iᵀ (p_i - c_i) - x.

    point.u: velocities at the centre; moved: L x. Returns |right|².
    """
    p, x, right, slope, zero = point.p, point.x, system.right, system.slope, contacts.zero
    stiffness = 1.0 / epsilon
    for j in range(len(x)):
        right[j] = -x[j]
    for i in range(len(p)):
        c = at(centre, i, zero)
        y = regularised(c, at(point.u, i, zero), at(moved, i, zero), stiffness)

        # What lifts as it slides; open or not.
        if contacts.lifts[i] == DOES:
            system.mode[i] = respond_lifting(y, contacts.friction[i], stiffness, slope, i, p, zero)
            add_rows(contacts.rows[i], contacts.segments[i], minus(at(p, i, zero), c), right)
            continue

        # Open: no impulse.
        if y[0] <= 0.0:
            system.mode[i] = OPEN
            put(p, i, zero)
            if c[0] != 0.0:
                add_rows(contacts.rows[i], contacts.segments[i], negative(c), right)
            continue

        # Closed: inside its cone it sticks; outside, it is projected onto the disc, and slides.
        radius, length = contacts.friction[i] * y[0], sqrt(across(y, y))
        if contacts.apart:
            system.mode[i] = respond_apart(y, contacts.friction[i], stiffness, slope, i, p)
        elif length <= radius:
            system.mode[i] = STICK
            put(p, i, y)
            set_stick(slope, i, stiffness, zero)
        else:
            system.mode[i] = SLIP
            t = over(y, length)
            put(p, i, with_normal(y[0], times(radius, t)))
            set_slip(slope, i, stiffness, contacts.friction[i], t, stiffness * radius / length)
        add_rows(contacts.rows[i], contacts.segments[i], minus(at(p, i, zero), c), right)

    # Squared residual of the equation in x.
    square = 0.0
    for j in range(len(x)):
        square += right[j] * right[j]
    return square


@kernel
def copy_rows(source, target):
    """target = source."""
    for i in range(len(source)):
        for c in range(source.shape[1]):
            target[i, c] = source[i, c]

"""One run of Newton's method on the Alart–Curnier map (see `cone_newton`) or that of a box, in velocity space.

The line search is nonmonotone, against the largest of the last merits. If it fails, a full step is taken, up to three
times in a run. Few contacts that have a start begin with full steps, and then proximal stages (`settle`).
"""

from __future__ import annotations

from math import sqrt
from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel, once
from stiction.arrays.layout import Floats, layout
from stiction.arrays.runs import add_rows, rows_dot
from stiction.arrays.vectors import across, at, minus, negative, over, put, times, with_normal
from stiction.solvers.contact.cone_newton.apart import linearise_apart
from stiction.solvers.contact.cone_newton.box_map import evaluate_box, linearise_box
from stiction.solvers.contact.cone_newton.one_contact import Point, counted, evaluate
from stiction.solvers.contact.cone_newton.proximal import copy_rows, proximal
from stiction.solvers.contact.cone_newton.slope import set_slip, set_stick, turned, yielded
from stiction.solvers.contact.cone_newton.system import OPEN, SLIP, STICK, solve_again, solve_system
from stiction.solvers.contact.cone_newton.tolerances import (
    CUT,
    DECREASE,
    DIVERGED,
    FELT,
    GAIN,
    HURRY,
    IDLE,
    LARGEST_EPSILON,
    LEAP,
    LEAST_SOFTNESS,
    LONGER,
    LONGEST,
    MANY,
    MARGIN,
    MERITS,
    NEAR,
    ON_RIM,
    PROGRESS,
    REFINEMENTS,
    ROUGH,
    RUN,
    SAME,
    SMALLEST_EPSILON,
    STAGED,
    TRIALS,
    WATCHDOG,
)


class Search(NamedTuple):
    """The state of a solve."""

    now: Point
    trial: Point
    best: Array[Floats, "n", "d"]  # impulses of the least residual so far
    direction: Array[Floats, "n", "d"]
    merits: Array[Floats, "memory"]  # of the last steps, -1 where there is none
    spare: Array[Floats, "m"]


layout(Search, "n", "d", "m", memory=f"{MERITS}")


@once
@kernel
def newton(contacts, search, system, least, enough, fair, softness, max_steps, box):
    """Newton's method from search.now; search.best, of residual `least`, keeps the best impulses.

    Returns (residual of search.best, Newton steps).
    fair: residual, at least `enough`, from which on a step that gains little ends the run
    box: whether friction is bounded by a box, not by a disc
    """
    # The merit is the squared norm of the residual.
    now, trial, merits = search.now, search.trial, search.merits
    largest, merit = evaluate_map(contacts, now, box)
    moving = fair > enough and largest > NEAR  # what is nearly at rest is to come to rest: all digits count
    fair = fair if moving else enough
    if largest < least:
        least = largest
        copy_rows(now.p, search.best)
    remember_only(merit, merits)
    lowest, slow, failures, soft = merit, 0, 0, softness
    least_epsilon, patience = SMALLEST_EPSILON, MERITS + WATCHDOG
    for step in range(1, max_steps + 1):
        if least <= enough:
            return least, step - 1

        # Direction from the linearised laws, softened by ε in proportion to the residual.
        epsilon = min(LARGEST_EPSILON, max(least_epsilon, soft * largest))
        changed = linearise_map(contacts, now, epsilon, system, box)
        if not newton_direction(contacts, system, search.direction):
            return least, step

        # Nonmonotone line search by halving [GrippoLamparielloLucidi1986]; the full step is refined first.
        length, before = 1.0, largest
        reference = min(highest(merits), LEAP * merit) if moving and least <= NEAR else highest(merits)
        for attempt in range(TRIALS):
            largest, merit = try_step(contacts, search, system, now, trial, length, enough, box)
            if merit <= reference * (1.0 - DECREASE * length):
                break
            if attempt == 0 and epsilon < NEAR and not box and len(now.p) <= MANY:
                # Contacts that hold each other ask for rates that disagree by δ, and δ / ε is beyond any impulse. From
                # now on ε is at least NEAR, so that a δ that is no motion moves impulses by one at most.
                epsilon = least_epsilon = NEAR
                patience = HURRY
                linearise(contacts, now, epsilon, system, False)
                if not newton_direction(contacts, system, search.direction):
                    return least, step
                move(now, length, search.direction, trial)
                largest, merit = evaluate_map(contacts, trial, box)
                if merit <= reference * (1.0 - DECREASE * length):
                    break
            length *= 0.5
        else:
            # The search failed: take the full step all the same, a few times, and forget the merits.
            if least <= fair:
                return least, step
            failures += 1
            if failures > WATCHDOG:
                return least, step
            move(now, 1.0, search.direction, trial)
            largest, merit = evaluate_map(contacts, trial, box)
            remember_only(-1.0, merits)

        # Accept the step; keep the best impulses.
        now, trial = trial, now
        circles = was_there(merit, merits)
        merits[step % MERITS] = merit
        if not largest < DIVERGED:
            return least, step
        gained = least
        if largest < least:
            least = largest
            copy_rows(now.p, search.best)
        if circles or (gained <= fair and least > GAIN * gained):
            return least, step
        # After a full step that repeats the active set the map is smooth: soften less. Else as at first.
        soft = max(CUT * soft, LEAST_SOFTNESS) if changed == 0 and length == 1.0 and largest < before else softness

        # End the run if the lowest merit has not improved for long.
        slow = 0 if merit < PROGRESS * lowest else slow + 1
        lowest = merit if slow == 0 else lowest
        if slow > patience:
            return least, step
    return least, max_steps


@kernel
def settle(contacts, search, system, least, enough, fair, softness, max_steps):
    """As `newton`, for few contacts and from a start: full steps, then proximal stages of moderate length.

    search.now and search.best are the start, and `least` its residual.
    """
    if least > NEAR:  # what is nearly at rest is to come to rest: all digits count
        enough = max(enough, MARGIN * fair)
    least, steps = full_steps(contacts, search, system, least, enough, softness, min(RUN, max_steps))
    if enough < least < 1.0:
        least, more = proximal(contacts, search, system, least, enough, min(STAGED, max_steps - steps))
        steps += more
    return least, steps


@once
@kernel
def full_steps(contacts, search, system, least, enough, softness, max_steps):
    """Newton steps of full length from search.now, of residual `least`; search.best keeps the best impulses.

    Modes of few contacts are found soonest without a search, as long as no impulse changes by far more than the
    residual asks for. At least one step is made: what is at rest creeps with what is left of the start. Returns
    (residual of search.best as far as it counts, Newton steps).
    """
    now, trial, direction = search.now, search.trial, search.direction
    largest, factored, epsilon, ease, slow = least, False, 0.0, 1.0, 0
    for step in range(1, max_steps + 1):
        if least <= enough and step > 1:
            return least, step - 1

        # If no mode has changed since the last factors, they still hold, and a second solve with them will do.
        changed = linearise(contacts, now, epsilon, system, False) if factored else 1
        allowed = max(LONGEST * largest_of(now.p), LONGER * largest)
        if changed == 0:
            set_right(contacts, system)
            solve_again(contacts, system, system.right)
            set_direction(contacts, system, direction)
        else:
            # A step leaves ε times the change of impulses: ε as large as `enough` allows, or as modes are wrong.
            epsilon = max(min(NEAR, enough / largest), softness * largest * min(1.0, largest / ROUGH))
            epsilon = max(ease * min(LARGEST_EPSILON, epsilon), SMALLEST_EPSILON)
            changed = max(linearise(contacts, now, epsilon, system, step == 1), 0 if factored else 1)
            if not newton_direction(contacts, system, direction):
                return least, step

            # Contacts that hold each other ask for rates that disagree by δ, and for impulses of δ / ε: soften them.
            # That may take more than once, as long as it halves them.
            length, before = largest_of(direction), DIVERGED
            while allowed < length < GAIN * before:
                epsilon = min(LARGEST_EPSILON, epsilon * length / (0.5 * allowed))
                linearise(contacts, now, epsilon, system, step == 1)
                if not newton_direction(contacts, system, direction):
                    return least, step
                length, before = largest_of(direction), length

        # The full step, refined; sliding contacts go along their rims.
        before = largest
        largest, _ = try_step(contacts, search, system, now, trial, 1.0, enough, False)
        slides = largest > enough and onto_rims(contacts, system, trial.p)
        if slides:
            largest, _ = evaluate(contacts, trial)

        # Keep the best impulses: those of the least residual, or the first whose residual counts no more.
        now, trial = trial, now
        if not largest < DIVERGED:
            return least, step
        slow = 0 if largest < GAIN * least else slow + 1
        seen = counted(contacts, now, largest, enough)
        if seen < least:
            least = seen
            copy_rows(now.p, search.best)
        if slow > IDLE:
            return least, step

        # Impulses that are not unique move on at the same pace, until one of them changes its mode.
        factored = not slides and largest < GAIN * before
        if changed == 0 and largest > GAIN * before:
            ease *= min(1.0, max(CUT, largest_of(direction) / (0.5 * allowed)))
    return least, max_steps


@kernel
def onto_rims(contacts, system, p):
    """Put sliding contacts back onto the rims of their cones, which a straight step leaves; returns whether any slide.

    What has one direction only, as dry friction, leaves no rim.
    """
    slides, zero = False, contacts.zero
    for i in range(len(p)):
        q = at(p, i, zero)
        if system.mode[i] == SLIP and not contacts.apart and across(q, q) != q[1] * q[1]:
            length, radius = sqrt(across(q, q)), contacts.friction[i] * q[0]
            slides = True
            if radius > 0.0 and length > 0.0:
                put(p, i, with_normal(q[0], times(radius / length, q)))
    return slides


@kernel
def largest_of(p):
    """The largest entry in absolute value."""
    most = 0.0
    for i in range(len(p)):
        for c in range(p.shape[1]):
            most = max(most, abs(p[i, c]))
    return most


@kernel
def try_step(contacts, search, system, now, trial, length, enough, box):
    """Go this part of the direction from `now` to `trial`; a full step is refined. Returns as `evaluate_map`."""
    move(now, length, search.direction, trial)
    largest, merit = evaluate_map(contacts, trial, box)
    for _ in range(REFINEMENTS if length == 1.0 else 0):
        if not refine(contacts, now, trial, enough, largest, search.direction, search.spare, system):
            break
        move(now, length, search.direction, trial)
        largest, merit = evaluate_map(contacts, trial, box)
    return largest, merit


@kernel
def evaluate_map(contacts, point, box):
    """Set x and u from p; returns the largest entry of the map's residual and its squared norm."""
    return evaluate_box(contacts, point) if box else evaluate(contacts, point)


@kernel
def linearise_map(contacts, point, epsilon, system, box):
    """As `linearise`, of the same map."""
    if box:
        return linearise_box(contacts, point, epsilon, system)
    return linearise(contacts, point, epsilon, system, False)


@kernel
def linearise(contacts, point, epsilon, system, as_before):
    """Set dp = constant - slope du of each contact; returns how many contacts changed their mode.

    as_before: whether impulses are those of the last step, and contacts that press are to go on as they did then
    """
    constant, slope, zero = system.constant, system.slope, contacts.zero
    stiffness, changed = 1.0 / epsilon, 0
    for i in range(len(point.p)):
        p, u, mu = at(point.p, i, zero), at(point.u, i, zero), contacts.friction[i]
        goes_on = as_before and p[0] > max(u[0], 0.0) and not contacts.apart
        y = continued(p, u, mu) if goes_on else minus(p, u)
        length = sqrt(across(y, y))

        # Open: the impulse vanishes. Closed: u_n + du_n + ε dp_n = 0.
        if y[0] <= 0.0:
            mode = OPEN
            put(constant, i, negative(p))
        elif contacts.apart:
            mode = linearise_apart(p, u, mu, epsilon, constant, slope, i)
        elif length <= mu * y[0]:
            # Stick: the same for the tangents.
            mode = STICK
            put(constant, i, times(-stiffness, u))
            set_stick(slope, i, stiffness, zero)
        else:
            # Slip: along t = y_t / |y_t| the impulse stays on the rim; across t, it turns with the velocity.
            mode = SLIP
            t, part, normal = over(y, length), mu * y[0] / length, -stiffness * u[0]
            yielding = 1.0 - part + part * epsilon
            along = mu * (p[0] + normal) - across(t, p)
            beside = times(part, u) if goes_on else p  # both are the same where y is p - u
            put(constant, i, with_normal(normal, minus(times(along, t), turned(t, beside, yielding))))
            set_slip(slope, i, stiffness, mu, t, part / yielding)

        # Count changes of the active set.
        if mode != system.mode[i]:
            system.mode[i] = mode
            changed += 1
    return changed


@kernel
def continued(p, u, mu):
    """p - u of a contact that presses, if its mode is what its impulse says: on the rim it slides, inside it sticks.

    Velocities under the impulses of the last step hardly tell: each lacks the changes of all other impulses.
    """
    size, radius = sqrt(across(p, p)), mu * p[0]
    if size < ON_RIM * radius:
        return p
    if size == 0.0:
        return with_normal(p[0], minus(p, u))
    return with_normal(p[0], times(1.0 + sqrt(across(u, u)) / size, p))


@kernel
def newton_direction(contacts, system, direction):
    """Newton direction dp from (I + sum of L_iᵀ slope_i L_i) dx = Lᵀ constant; False if the matrix is singular."""
    set_right(contacts, system)
    if not solve_system(contacts, system):
        return False
    set_direction(contacts, system, direction)
    return True


@kernel
def set_right(contacts, system):
    """Right-hand side Lᵀ constant."""
    constant, right = system.constant, system.right
    for j in range(len(right)):
        right[j] = 0.0
    for i in range(len(constant)):
        add_rows(contacts.rows[i], contacts.segments[i], at(constant, i, contacts.zero), right)


@kernel
def set_direction(contacts, system, direction):
    """dp = constant - slope L dx."""
    right, zero = system.right, contacts.zero
    for i in range(len(direction)):
        constant = at(system.constant, i, zero)
        # An open contact does not depend on dx.
        if system.mode[i] == OPEN:
            put(direction, i, constant)
        else:
            u = rows_dot(contacts.rows[i], contacts.segments[i], right, zero)
            put(direction, i, yielded(constant, system.slope, i, u))


@kernel
def refine(contacts, now, trial, enough, largest, direction, error, system):
    """Correct the direction if the error of its linear system contributes to the residual `largest`.

    Returns whether it was corrected. In a full step the change of x by the new impulses, Lᵀ dp, should equal dx; the
    difference is the residual of the linear system. Solving for it with the same factors gives the correction of dx.
    """
    # Residual of the linear system.
    right = system.right
    missing = 0.0
    for j in range(len(right)):
        error[j] = trial.x[j] - now.x[j] - right[j]
        missing = max(missing, abs(error[j]))
    if not missing > max(FELT * largest, 0.1 * enough):
        return False

    # One step of iterative refinement.
    solve_again(contacts, system, error)
    for j in range(len(right)):
        right[j] += error[j]
    set_direction(contacts, system, direction)
    return True


@kernel
def move(point, length, direction, target):
    """Impulses of `target` = impulses of `point` + length · direction."""
    for i in range(len(direction)):
        for c in range(direction.shape[1]):
            target.p[i, c] = point.p[i, c] + length * direction[i, c]


@kernel
def remember_only(merit, merits):
    """Forget all merits but this one (-1: none)."""
    for k in range(MERITS):
        merits[k] = -1.0
    merits[0] = merit


@kernel
def was_there(merit, merits):
    """Whether one of the last merits was the same, to SAME: Newton's method goes in circles, or nowhere."""
    for k in range(MERITS):
        if abs(merits[k] - merit) <= SAME * merit:
            return True
    return False


@kernel
def highest(merits):
    """The largest of the last merits."""
    result = merits[0]
    for k in range(1, MERITS):
        result = max(result, merits[k])
    return result

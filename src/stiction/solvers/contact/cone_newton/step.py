"""One run of Newton's method on the Alart–Curnier map (see `cone_newton`) or that of a box, in velocity space.

The line search is nonmonotone, against the largest of the last merits. If it fails, a full step is taken, up to three
times in a run.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.layout import Floats, layout
from stiction.arrays.runs import add_rows, rows_dot
from stiction.solvers.contact.cone_newton.box_map import evaluate_box, linearise_box
from stiction.solvers.contact.cone_newton.one_contact import Point, evaluate
from stiction.solvers.contact.cone_newton.proximal import copy_rows
from stiction.solvers.contact.cone_newton.system import OPEN, SLIP, STICK, solve_again, solve_system
from stiction.solvers.contact.cone_newton.tolerances import (
    CUT,
    DECREASE,
    DIVERGED,
    FELT,
    LARGEST_EPSILON,
    LEAST_SOFTNESS,
    MERITS,
    PROGRESS,
    REFINEMENTS,
    SMALLEST_EPSILON,
    TRIALS,
    WATCHDOG,
)


class Search(NamedTuple):
    """The state of a solve."""

    now: Point
    trial: Point
    best: Array[Floats, "n", 3]  # impulses of the least residual so far
    direction: Array[Floats, "n", 3]
    merits: Array[Floats, "memory"]  # of the last steps, -1 where there is none
    spare: Array[Floats, "m"]


layout(Search, "n", "m", memory=f"{MERITS}")


@kernel
def newton(contacts, search, system, least, enough, softness, max_steps, box):
    """Newton's method from search.now; search.best, of residual `least`, keeps the best impulses.

    Returns (residual of search.best, Newton steps).

    box: whether friction is bounded by a box, not by a disc
    """
    # The merit is the squared norm of the residual.
    now, trial, merits = search.now, search.trial, search.merits
    largest, merit = evaluate_map(contacts, now, box)
    if largest < least:
        least = largest
        copy_rows(now.p, search.best)
    remember_only(merit, merits)
    lowest, slow, failures, soft = merit, 0, 0, softness
    for step in range(1, max_steps + 1):
        if least <= enough:
            return least, step - 1

        # Direction from the linearised laws, softened by ε in proportion to the residual.
        epsilon = min(LARGEST_EPSILON, max(SMALLEST_EPSILON, soft * largest))
        changed = linearise_box(contacts, now, epsilon, system) if box else linearise(contacts, now, epsilon, system)
        if not newton_direction(contacts, system, search.direction):
            return least, step

        # Nonmonotone line search by halving [GrippoLamparielloLucidi1986]; the full step is refined first.
        length, before = 1.0, largest
        reference = highest(merits)
        for attempt in range(TRIALS):
            move(now, length, search.direction, trial)
            largest, merit = evaluate_map(contacts, trial, box)
            if attempt == 0:
                for _ in range(REFINEMENTS):
                    if not refine(contacts, now, trial, enough, largest, search.direction, search.spare, system):
                        break
                    move(now, length, search.direction, trial)
                    largest, merit = evaluate_map(contacts, trial, box)
            if merit <= reference * (1.0 - DECREASE * length):
                break
            length *= 0.5
        else:
            # The search failed: take the full step all the same, a few times, and forget the merits.
            failures += 1
            if failures > WATCHDOG:
                return least, step
            move(now, 1.0, search.direction, trial)
            largest, merit = evaluate_map(contacts, trial, box)
            remember_only(-1.0, merits)

        # Accept the step; keep the best impulses.
        now, trial = trial, now
        merits[step % MERITS] = merit
        if not largest < DIVERGED:
            return least, step
        if largest < least:
            least = largest
            copy_rows(now.p, search.best)
        # After a full step that repeats the active set the map is smooth: soften less. Else as at first.
        soft = max(CUT * soft, LEAST_SOFTNESS) if changed == 0 and length == 1.0 and largest < before else softness

        # End the run if the lowest merit has not improved for long.
        slow = 0 if merit < PROGRESS * lowest else slow + 1
        lowest = merit if slow == 0 else lowest
        if slow > MERITS + WATCHDOG:
            return least, step
    return least, max_steps


@kernel
def evaluate_map(contacts, point, box):
    """Set x and u from p; returns the largest entry of the map's residual and its squared norm."""
    return evaluate_box(contacts, point) if box else evaluate(contacts, point)


@kernel
def linearise(contacts, point, epsilon, system):
    """Set dp = constant - slope du of each contact; returns how many contacts changed their mode."""
    p, u, constant, slope = point.p, point.u, system.constant, system.slope
    stiffness, changed = 1.0 / epsilon, 0
    for i in range(len(p)):
        y0, y1, y2 = p[i, 0] - u[i, 0], p[i, 1] - u[i, 1], p[i, 2] - u[i, 2]
        mu, length = contacts.friction[i], (y1 * y1 + y2 * y2) ** 0.5

        # Open: the impulse vanishes. Closed: u_n + du_n + ε dp_n = 0.
        if y0 <= 0.0:
            mode = OPEN
            constant[i, 0], constant[i, 1], constant[i, 2] = -p[i, 0], -p[i, 1], -p[i, 2]
        else:
            constant[i, 0], slope[i, 0] = -stiffness * u[i, 0], stiffness
            if length <= mu * y0:
                # Stick: the same for the tangents.
                mode = STICK
                constant[i, 1], constant[i, 2] = -stiffness * u[i, 1], -stiffness * u[i, 2]
                slope[i, 1], slope[i, 2] = 0.0, 0.0
                slope[i, 3], slope[i, 4], slope[i, 5] = stiffness, 0.0, stiffness
            else:
                mode = SLIP
                # Slip: along t = y_t / |y_t| the impulse stays on the rim; across t, it turns with the velocity.
                t1, t2, part = y1 / length, y2 / length, mu * y0 / length
                yielding = 1.0 - part + part * epsilon
                along = mu * (p[i, 0] + constant[i, 0]) - (t1 * p[i, 1] + t2 * p[i, 2])
                across = (t2 * p[i, 1] - t1 * p[i, 2]) / yielding
                turning = part / yielding
                constant[i, 1], constant[i, 2] = t1 * along - t2 * across, t2 * along + t1 * across
                slope[i, 1], slope[i, 2] = mu * t1 * stiffness, mu * t2 * stiffness
                slope[i, 3], slope[i, 4], slope[i, 5] = turning * t2 * t2, -turning * t1 * t2, turning * t1 * t1

        # Count changes of the active set.
        if mode != system.mode[i]:
            system.mode[i] = mode
            changed += 1
    return changed


@kernel
def newton_direction(contacts, system, direction):
    """Newton direction dp from (I + sum of L_iᵀ slope_i L_i) dx = Lᵀ constant; False if the matrix is singular."""
    constant, right = system.constant, system.right

    # Right-hand side Lᵀ constant.
    for j in range(len(right)):
        right[j] = 0.0
    for i in range(len(constant)):
        if constant[i, 0] != 0.0 or constant[i, 1] != 0.0 or constant[i, 2] != 0.0:
            add_rows(contacts.rows[i], contacts.segments[i], constant[i, 0], constant[i, 1], constant[i, 2], right)

    # dx, then dp.
    if not solve_system(contacts, system):
        return False
    set_direction(contacts, system, direction)
    return True


@kernel
def set_direction(contacts, system, direction):
    """dp = constant - slope L dx."""
    constant, slope, right = system.constant, system.slope, system.right
    for i in range(len(constant)):
        # An open contact does not depend on dx.
        if system.mode[i] == OPEN:
            direction[i, 0], direction[i, 1], direction[i, 2] = constant[i, 0], constant[i, 1], constant[i, 2]
            continue
        u0, u1, u2 = rows_dot(contacts.rows[i], contacts.segments[i], right)
        direction[i, 0] = constant[i, 0] - slope[i, 0] * u0
        direction[i, 1] = constant[i, 1] - slope[i, 1] * u0 - slope[i, 3] * u1 - slope[i, 4] * u2
        direction[i, 2] = constant[i, 2] - slope[i, 2] * u0 - slope[i, 4] * u1 - slope[i, 5] * u2


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
    solve_again(system, error)
    for j in range(len(right)):
        right[j] += error[j]
    set_direction(contacts, system, direction)
    return True


@kernel
def move(point, length, direction, target):
    """Impulses of `target` = impulses of `point` + length · direction."""
    for i in range(len(direction)):
        for c in range(3):
            target.p[i, c] = point.p[i, c] + length * direction[i, c]


@kernel
def remember_only(merit, merits):
    """Forget all merits but this one (-1: none)."""
    for k in range(MERITS):
        merits[k] = -1.0
    merits[0] = merit


@kernel
def highest(merits):
    """The largest of the last merits."""
    result = merits[0]
    for k in range(1, MERITS):
        result = max(result, merits[k])
    return result

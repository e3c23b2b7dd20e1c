"""Newton's method for Coulomb friction on the circular cone.

    p_n = max(0, p_n - u_n),      p_t = proj(p_t - u_t, disc of radius mu max(0, p_n - u_n)),      u = L Lᵀ p + offset

(Alart and Curnier's map; contacts have unit size.) Linearised where it is, each contact says dp = a - G du: open ones
give up their impulse, sticking and sliding ones stop their velocity, softened by ε, and the impulse of a sliding one
turns with its velocity. With dx = Lᵀ dp this is a system in velocity space, (I + sum of L_iᵀ G_i L_i) dx = Lᵀ a, of
size m however many contacts there are; the 3n × 3n Delassus matrix may be singular. ε follows the residual to zero.

Sweeps of exact one-contact solves come first. Steps are searched against the largest of the last merits, and a search
that fails is answered by a full step, three times. What then stalls goes into cycles from the best point: more sweeps,
Anderson-accelerated sweeps, a proximal stage, a perturbation, each followed by Newton's method again. After a round of
these, contacts are scaled by what they bear, the best point is forgotten, and the next round begins afresh. Nothing is
guaranteed, since friction is not monotone; a solve that ends without reaching its tolerance says so.

[AlartCurnier1991]; nonmonotone search [GrippoLamparielloLucidi1986]; sweeps [Jean1999].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stiction.compiled import kernel, workspace
from stiction.solvers.anderson import accelerated_sweeps, carve_memory, memory_size
from stiction.solvers.contract import STATUS, ContactProposal, Contract
from stiction.solvers.one_contact import (
    EXACT,
    Contacts,
    Point,
    add_impulse,
    alart_curnier,
    contact_velocity,
    evaluate,
    into_cone,
    set_delassus,
    set_velocity,
    sweep,
)
from stiction.solvers.principal import MAX_ITERATIONS, SOLVED
from stiction.solvers.proximal import OPEN, SLIP, STICK, System, assemble, copy_rows, eliminate, proximal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.problems.normal_form import Whitened

STAGES = 5  # of a round: afresh; sweeps; accelerated sweeps; a proximal stage; a perturbation
FIRST_SWEEPS, ROUGH = 4, 1e-2  # and how accurate they are
MORE_SWEEPS, MOST_SWEEPS = 50, 800  # of the first cycle that sweeps again, and of the last
PRESSURE = 0.05  # normal impulse that a perturbation adds at most
SOFTNESS = 0.01  # ε over the residual
LARGEST_EPSILON, SMALLEST_EPSILON = 0.1, 1e-10
CUT, SMALLEST_SOFTNESS = 0.05, 1e-7  # of the softness, after a full step that repeats the active set
MEMORY = 20  # merits that a step is searched against
TRIALS = 9  # of a step, each half as long as the one before
DECREASE = 1e-4  # part of the merit that a step must take away
WATCHDOG = 3  # full steps that are taken although the search failed
PROGRESS = 0.8  # merit, over the lowest so far, that counts as progress
DIVERGED = 1e100
NOISE = 1e-15  # residual, in units of the largest impulse, that rounding leaves
MARGIN = 0.5  # part of the tolerance that Newton's method aims at, because impulses are put into their cones after it
ROUNDING = 1e-13  # residual, in units of the normal form, below which only rounding is left
CORRECTIONS = 8  # solves for what is not symmetric in a Delassus matrix
NEGLIGIBLE = 1e-13  # velocity, in units of the normal form, that needs no correction
NONE = np.empty((0, 3))


@dataclass(frozen=True)
class ConeNewton:
    """Newton's method for contact with Coulomb friction on the circular cone.

    max_cycles: Newton's method is begun so many times at most
    max_steps: Newton steps in a cycle, one m × m system each
    tolerance: violation, in units of the largest free contact velocity, at which a solve ends
    """

    max_cycles: int = 40
    max_steps: int = 80
    tolerance: float = 1e-10

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="none, since friction is not monotone; in practice nearly always, also with redundant contacts",
        cost="5 to 20 systems of size m, O(m³) for coupled and less for stacked bodies; linear in n",
        choose="friction is meant on the circular cone",
        warm=True,
        laws=("cone",),
    )

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        white = problem.whitened
        p = np.zeros((problem.n, 3))
        first = NONE if start is None else np.ascontiguousarray(white.scaled(start))
        status, steps = self._solve(white, white.bias, first, p)
        if problem.delassus is not None and problem.n:
            status, steps = self._correct(problem, white, status, steps, p)
        return ContactProposal(STATUS[status], steps, white.impulse(p))

    def _solve(
        self, white: Whitened, bias: NDArray[np.float64], start: NDArray[np.float64], p: NDArray[np.float64]
    ) -> tuple[int, int]:
        n, m = len(bias), len(white.free)
        segments = white.segments
        if segments.flags.writeable:  # one compiled kernel, not one for each kind of array
            segments = segments.view()
            segments.flags.writeable = False
        work = workspace(memory_size(n) + m * m + 4 * m + (40 + 3 * white.rows.shape[2]) * n + MEMORY, n + m)
        status, steps = cone_newton(
            white.rows, segments, white.free, bias, white.friction, white.scale, start,
            self.max_cycles, self.max_steps, self.tolerance, *work, p,
        )  # fmt: skip
        return status, steps

    def _correct(
        self, problem: ContactProblem, white: Whitened, status: int, steps: int, p: NDArray[np.float64]
    ) -> tuple[int, int]:
        """Solve again with E p added to the free velocities, E = W - L Lᵀ, until that changes nothing."""
        assert problem.delassus is not None
        n = problem.n
        size = np.repeat(white.scale, 3)
        rows = white.rows.reshape(3 * n, -1)
        rest = size[:, None] * problem.delassus * size - rows @ rows.T
        added = np.zeros(3 * n)
        for _ in range(CORRECTIONS):
            wanted = rest @ p.ravel()
            if status != SOLVED or np.abs(wanted - added).max() <= NEGLIGIBLE:
                break
            added = wanted
            status, more = self._solve(white, white.bias + added.reshape(n, 3), p.copy(), p)
            steps += more
        return status, steps


class Search(NamedTuple):
    """The state of a solve."""

    now: Point
    trial: Point
    best: Any  # (n, 3) impulses of the least residual so far
    direction: Any  # (n, 3)
    merits: Any  # (MEMORY,) of the last steps, -1 where there is none
    spare: Any  # (m,)


@kernel
def cone_newton(rows, segments, free, bias, friction, scale, start, max_cycles, max_steps, tolerance, floats, ints, p):
    """Returns (status, Newton steps); impulses of the normal form in p."""
    n, m = len(p), len(free)
    contacts, search, system, memory = carve(segments, friction, n, m, rows.shape[2], floats, ints)
    now, best = search.now, search.best
    enough = begin(contacts, rows, free, bias, scale, tolerance)
    warm = begin_at(start, search, system)
    least, _ = evaluate(contacts, now)
    violation = keep_better(contacts, now, DIVERGED, p)
    steps, sweeps, seed = 0, MORE_SWEEPS, 1
    for cycle in range(max_cycles):
        if negligible(violation, enough, p):
            break
        stage = cycle % STAGES
        if cycle == 0:
            sweep_often(contacts, now, 0 if warm else FIRST_SWEEPS, ROUGH)
        elif stage == 0:
            balance(contacts, p)
            seed, least = begin_again(p, cycle % 2, seed, contacts, search), DIVERGED
            sweep_often(contacts, now, FIRST_SWEEPS, ROUGH)
        elif stage == 1:
            sweep_often(contacts, now, sweeps, EXACT)
        elif stage == 2:
            least, _ = accelerated_sweeps(contacts, now, best, least, memory, enough, sweeps)
            copy_rows(best, now.p)
            sweeps = min(4 * sweeps, MOST_SWEEPS)
        elif stage == 3:
            steps += proximal(contacts, now, search.trial, search.direction, search.spare, system, 0.01 * least)
        else:
            seed = perturb(now.p, seed)
        softness = SOFTNESS * (1.0 if cycle % 3 == 0 else 0.1 if cycle % 3 == 1 else 10.0)
        least, count = newton(contacts, search, system, least, MARGIN * enough, softness, max_steps)
        steps += count
        copy_rows(best, now.p)
        into_cone(now.p, friction)
        evaluate(contacts, now)
        violation = keep_better(contacts, now, violation, p)
    return SOLVED if negligible(violation, enough, p) else MAX_ITERATIONS, steps


@kernel
def begin(contacts, rows, free, bias, scale, tolerance):
    """Set all of `contacts`; returns the residual, in units of the normal form, that is small enough.

    The judge measures velocities against the largest of the problem; the normal form, each by its contact's size.
    """
    width = rows.shape[2]
    for i in range(len(rows)):
        contacts.stretch[i] = 1.0
        for a in range(3):
            for k in range(width):
                contacts.rows[i, a, k] = rows[i, a, k]
    set_delassus(contacts)
    slowest, fastest = 0.0, 0.0
    for i in range(len(bias)):
        u0, u1, u2 = contact_velocity(contacts.rows[i], contacts.segments[i], free)
        u0, u1, u2 = u0 + bias[i, 0], u1 + bias[i, 1], u2 + bias[i, 2]
        contacts.offset[i, 0], contacts.offset[i, 1], contacts.offset[i, 2] = u0, u1, u2
        unit = 1.0 / scale[i]
        slowest, fastest = max(slowest, unit), max(fastest, unit * max(abs(u0), abs(u1), abs(u2)))
    return max(tolerance * min(1.0, fastest / slowest), ROUNDING) if slowest > 0.0 else tolerance


@kernel
def begin_at(start, search, system):
    """Begin at `start` if there is one and it is finite, else at zero; returns whether there was."""
    now, best = search.now, search.best
    warm = len(start) == len(best)
    for i in range(len(start)):
        for c in range(3):
            warm = warm and abs(start[i, c]) < DIVERGED
    for i in range(len(best)):
        system.mode[i] = OPEN
        for c in range(3):
            now.p[i, c] = best[i, c] = start[i, c] if warm else 0.0
    return warm


@kernel
def begin_again(p, part, seed, contacts, search):
    """Begin at this part of p, perturbed; returns the next seed."""
    now = search.now
    for i in range(len(p)):
        for c in range(3):
            now.p[i, c] = part * p[i, c] / contacts.stretch[i]
    seed = perturb(now.p, seed)
    set_velocity(contacts, now)
    copy_rows(now.p, search.best)
    return seed


@kernel
def negligible(violation, enough, p):
    """Whether a violation is small enough, or what rounding leaves of velocities after impulses as large as these."""
    largest = 0.0
    for i in range(len(p)):
        largest = max(largest, abs(p[i, 0]), abs(p[i, 1]), abs(p[i, 2]))
    return violation <= max(enough, NOISE * largest)


@kernel
def keep_better(contacts, point, violation, p):
    """Keep the point's impulses in p, without stretches, if they violate the law less; returns the lesser violation."""
    largest = 0.0
    for i in range(len(p)):
        c = contacts.stretch[i]
        q, u = point.p[i], point.u[i]
        worst, _ = alart_curnier(c * q[0], c * q[1], c * q[2], u[0] / c, u[1] / c, u[2] / c, contacts.friction[i])
        if not worst <= largest:
            largest = worst
    if not largest < violation:
        return violation
    for i in range(len(p)):
        for c in range(3):
            p[i, c] = contacts.stretch[i] * point.p[i, c]
    return largest


@kernel
def sweep_often(contacts, point, times, accuracy):
    for _ in range(times):
        sweep(contacts, point, accuracy)


@kernel
def balance(contacts, p):
    """Stretch contacts that carry far more than moves them, so that impulses and velocities are of one size again.

    A light block between heavy ones gives way easily by itself, but bears their load: measured by its own response, its
    velocity would hardly ever decide its mode.
    """
    for i in range(len(p)):
        stretch = max(abs(p[i, 0]), abs(p[i, 1]), abs(p[i, 2]), 1.0) ** 0.5
        factor = stretch / contacts.stretch[i]
        contacts.stretch[i] = stretch
        for a in range(3):
            contacts.offset[i, a] *= factor
            for b in range(3):
                contacts.delassus[i, a, b] *= factor * factor
            for k in range(contacts.rows.shape[2]):
                contacts.rows[i, a, k] *= factor


@kernel
def perturb(p, seed):
    """Multiply each contact's impulse by a random number up to two, and press a little; returns the next seed."""
    for i in range(len(p)):
        seed = seed * 16807 % 2147483647  # Lehmer's generator
        chance = seed / 2147483647.0
        for c in range(3):
            p[i, c] *= 2.0 * chance
        p[i, 0] += PRESSURE * chance
    return seed


@kernel
def newton(contacts, search, system, least, enough, softness, max_steps):
    """From search.now; search.best, of residual `least`, keeps the best. Returns (its residual, Newton steps)."""
    now, trial, merits = search.now, search.trial, search.merits
    largest, merit = evaluate(contacts, now)
    if largest < least:
        least = largest
        copy_rows(now.p, search.best)
    remember_only(merit, merits)
    lowest, slow, failures, soft = merit, 0, 0, softness
    for step in range(1, max_steps + 1):
        if least <= enough:
            return least, step - 1
        epsilon = min(LARGEST_EPSILON, max(SMALLEST_EPSILON, soft * largest))
        changed = linearise(contacts, now, epsilon, system)
        if not newton_direction(contacts, system, search.direction):
            return least, step
        length, before = 1.0, largest
        reference = highest(merits)
        for _ in range(TRIALS):
            move(now, length, search.direction, trial)
            largest, merit = evaluate(contacts, trial)
            if merit <= reference * (1.0 - DECREASE * length):
                break
            length *= 0.5
        else:
            failures += 1
            if failures > WATCHDOG:
                return least, step
            move(now, 1.0, search.direction, trial)
            largest, merit = evaluate(contacts, trial)
            remember_only(-1.0, merits)
        now, trial = trial, now
        merits[step % MEMORY] = merit
        if not largest < DIVERGED:
            return least, step
        if largest < least:
            least = largest
            copy_rows(now.p, search.best)
        # The right active set makes the map smooth: there is nothing left to soften.
        soft = max(CUT * soft, SMALLEST_SOFTNESS) if changed == 0 and length == 1.0 and largest < before else softness
        slow = 0 if merit < PROGRESS * lowest else slow + 1
        lowest = merit if slow == 0 else lowest
        if slow > MEMORY + WATCHDOG:
            return least, step
    return least, max_steps


@kernel
def linearise(contacts, point, epsilon, system):
    """dp = constant - slope du of each contact; returns how many contacts changed their mode."""
    p, u, constant, slope = point.p, point.u, system.constant, system.slope
    stiffness, changed = 1.0 / epsilon, 0
    for i in range(len(p)):
        y0, y1, y2 = p[i, 0] - u[i, 0], p[i, 1] - u[i, 1], p[i, 2] - u[i, 2]
        mu, length = contacts.friction[i], (y1 * y1 + y2 * y2) ** 0.5
        if y0 <= 0.0:
            mode = OPEN
            constant[i, 0], constant[i, 1], constant[i, 2] = -p[i, 0], -p[i, 1], -p[i, 2]
        else:
            constant[i, 0], slope[i, 0] = -stiffness * u[i, 0], stiffness
            if length <= mu * y0:
                mode = STICK
                constant[i, 1], constant[i, 2] = -stiffness * u[i, 1], -stiffness * u[i, 2]
                slope[i, 1], slope[i, 2] = 0.0, 0.0
                slope[i, 3], slope[i, 4], slope[i, 5] = stiffness, 0.0, stiffness
            else:
                mode = SLIP
                # Along t = y_t / |y_t| the impulse stays on the rim; across, it turns with the velocity.
                t1, t2, part = y1 / length, y2 / length, mu * y0 / length
                yielding = 1.0 - part + part * epsilon
                along = mu * (p[i, 0] + constant[i, 0]) - (t1 * p[i, 1] + t2 * p[i, 2])
                across = (t2 * p[i, 1] - t1 * p[i, 2]) / yielding
                turning = part / yielding
                constant[i, 1], constant[i, 2] = t1 * along - t2 * across, t2 * along + t1 * across
                slope[i, 1], slope[i, 2] = mu * t1 * stiffness, mu * t2 * stiffness
                slope[i, 3], slope[i, 4], slope[i, 5] = turning * t2 * t2, -turning * t1 * t2, turning * t1 * t1
        if mode != system.mode[i]:
            system.mode[i] = mode
            changed += 1
    return changed


@kernel
def newton_direction(contacts, system, direction):
    """dp from (I + sum of L_iᵀ slope_i L_i) dx = Lᵀ constant; False if that is singular."""
    constant, slope, right = system.constant, system.slope, system.right
    for j in range(len(right)):
        right[j] = 0.0
    for i in range(len(constant)):
        if constant[i, 0] != 0.0 or constant[i, 1] != 0.0 or constant[i, 2] != 0.0:
            add_impulse(contacts.rows[i], contacts.segments[i], constant[i, 0], constant[i, 1], constant[i, 2], right)
    assemble(contacts, system)
    if not eliminate(system):
        return False
    for i in range(len(constant)):
        if system.mode[i] == OPEN:
            direction[i, 0], direction[i, 1], direction[i, 2] = constant[i, 0], constant[i, 1], constant[i, 2]
            continue
        u0, u1, u2 = contact_velocity(contacts.rows[i], contacts.segments[i], right)
        direction[i, 0] = constant[i, 0] - slope[i, 0] * u0
        direction[i, 1] = constant[i, 1] - slope[i, 1] * u0 - slope[i, 3] * u1 - slope[i, 4] * u2
        direction[i, 2] = constant[i, 2] - slope[i, 2] * u0 - slope[i, 4] * u1 - slope[i, 5] * u2
    return True


@kernel
def move(point, length, direction, target):
    """Impulses of `target`: those of `point`, a step on."""
    for i in range(len(direction)):
        for c in range(3):
            target.p[i, c] = point.p[i, c] + length * direction[i, c]


@kernel
def remember_only(merit, merits):
    for k in range(MEMORY):
        merits[k] = -1.0
    merits[0] = merit


@kernel
def highest(merits):
    result = merits[0]
    for k in range(1, MEMORY):
        result = max(result, merits[k])
    return result


@kernel
def carve(segments, friction, n, m, width, floats, ints):
    f = (40 + 3 * width) * n
    g = f + m * m + 4 * m
    contacts = Contacts(
        floats[40 * n : f].reshape((n, 3, width)),
        segments,
        floats[: 3 * n].reshape((n, 3)),
        friction,
        floats[3 * n : 12 * n].reshape((n, 3, 3)),
        floats[39 * n : 40 * n],
    )
    search = Search(
        Point(floats[12 * n : 15 * n].reshape((n, 3)), floats[f : f + m], floats[15 * n : 18 * n].reshape((n, 3))),
        Point(
            floats[18 * n : 21 * n].reshape((n, 3)), floats[f + m : f + 2 * m], floats[21 * n : 24 * n].reshape((n, 3))
        ),
        floats[24 * n : 27 * n].reshape((n, 3)),
        floats[27 * n : 30 * n].reshape((n, 3)),
        floats[g : g + MEMORY],
        floats[f + 2 * m : f + 3 * m],
    )
    system = System(
        floats[30 * n : 33 * n].reshape((n, 3)),
        floats[33 * n : 39 * n].reshape((n, 6)),
        ints[:n],
        floats[f + 4 * m : g].reshape((m, m)),
        floats[f + 3 * m : f + 4 * m],
        ints[n : n + m],
    )
    return contacts, search, system, carve_memory(n, floats[g + MEMORY :])

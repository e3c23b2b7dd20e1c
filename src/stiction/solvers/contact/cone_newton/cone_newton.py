"""Newton's method for Coulomb friction on the circular cone.

    p_n = max(0, p_n - u_n),      p_t = proj(p_t - u_t, disc of radius mu max(0, p_n - u_n)),      u = L Lᵀ p + offset

(Alart and Curnier's map; contacts have unit size.) Linearised at the present point, the law of a contact is
dp = a - G du: an open contact loses its impulse, a closed one stops its normal velocity and, if it sticks, its
tangential one, softened by ε; the friction of a sliding one stays on the cone and turns with its velocity. With
dx = Lᵀ dp this is a system in velocity space, (I + sum of L_iᵀ G_i L_i) dx = Lᵀ a, of size m for any number of
contacts; the Delassus matrix of all contacts may be singular. ε follows the residual to zero. Torsion and rolling are
three more tangents: the disc is a ball in five directions, or one for each part (`apart`).

Where many contacts join the same bodies, Newton's method is tried on a working set first (`working_set`). On all
contacts, sweeps of exact one-contact solves come first; few contacts that press already begin with full steps instead
(`settle`). If Newton's method stalls, cycles start it again from the best point after more sweeps, a walk of proximal
stages in units of the loads (`walk`), or a perturbation. After a round of these, contacts are scaled by their loads,
the best point is forgotten, and a new round begins. On large islands walks are all that follows: where one is lost, no
effort mends it, but another mostly arrives. The next one leads through answers in which contacts that slide slowly
lift, if they may (`lifting`); otherwise it begins from a perturbation. There is no guarantee, since friction is not
monotone; a solve that misses its tolerance returns MAX_ITERATIONS, and `Auto` then starts from solutions for friction
pyramids, and tries more cycles.

[AlartCurnier1991]; nonmonotone search [GrippoLamparielloLucidi1986]; sweeps [Jean1999].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import alone, in_callers, kernel, once, workspace
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import add_rows, rows_dot
from stiction.arrays.vectors import THREE, ZEROS, at, largest, over, plus, put, times
from stiction.problems.islands import joining
from stiction.problems.normal_form import SMALL, trim
from stiction.solvers.contact.cone_newton.elimination import forget_order
from stiction.solvers.contact.cone_newton.lifting import MAY, NEVER, allow_lifts, any_lifts, lift_of, may_lift
from stiction.solvers.contact.cone_newton.one_contact import (
    Contacts,
    alart_curnier,
    evaluate,
    into_cone,
    set_delassus,
    set_velocity,
    sweep,
)
from stiction.solvers.contact.cone_newton.proximal import copy_rows
from stiction.solvers.contact.cone_newton.step import Search, largest_of, newton, settle
from stiction.solvers.contact.cone_newton.system import OPEN, System
from stiction.solvers.contact.cone_newton.tolerances import (
    BURDEN,
    CORRECTIONS,
    CROWD,
    DIGIT,
    DIVERGED,
    EASE,
    EXACT,
    FIRST_SWEEPS,
    LARGE,
    LARGE_SOFTNESS,
    LAST_DIGIT,
    LEAST_RESIDUAL,
    MANY,
    MARGIN,
    MORE_SWEEPS,
    MOST_SWEEPS,
    NEAR,
    NEGLIGIBLE,
    PART,
    PRESSURE,
    ROUGH,
    RUN,
    SOFTNESS,
    STALL_EASE,
    STALL_FACTOR,
    STALL_LIMIT,
    STILL,
    WALK_STEPS,
    WARM_SOFTNESS,
    WIDE_SWEEP,
)
from stiction.solvers.contact.cone_newton.walk import balance, keep_better, walk, walk_by_lifts
from stiction.solvers.contact.cone_newton.working_set import group, solve_by_working_set
from stiction.solvers.contact.delassus import corrected
from stiction.solvers.contract import MAX_ITERATIONS, SOLVED, STATUS, ContactProposal, Contract
from stiction.solvers.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.problems.normal_form import Whitened

NONE = np.empty((0, 3))
NO_LIFT = np.empty(0)
# What comes before Newton's method in the cycles of a round.
AFRESH, SWEEPS, WALK, PERTURBED = range(4)
ROUND = 4


@dataclass(frozen=True)
class ConeNewton:
    """Newton's method for contact with Coulomb friction on the circular cone.

    max_cycles: starts of Newton's method
    max_steps: Newton steps in a cycle, one m × m system each
    max_work: Newton steps in all, sweeps counted by what they take, after which nothing more is begun
    tolerance: violation, in units of the largest free contact velocity, at which a solve stops; after a stall, a
        hundred times that is accepted, but never more than 1e-9. From a start, islands of more than 200 contacts are
        solved to a thousandth of the start's violation, if that is more, but at most a thousand times this, five
        thousand times after a stall
    """

    max_cycles: int = 20
    max_steps: int = 80
    tolerance: float = 1e-10
    max_work: float = inf

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="none, since friction is not monotone; in practice nearly always, also with redundant contacts",
        cost="2 to 20 systems of size m, sparse as contacts couple bodies and trees; linear in n",
        choose="friction is meant on the circular cone",
        warm=True,
        laws=("cone",),
        turning=True,
    )

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        white = trimmed(problem.whitened)
        begin = NONE if start is None else np.ascontiguousarray(start)
        apart = problem.law.numbers.apart

        def solve(added: NDArray[np.float64], before: Answer | None) -> Answer:
            found = self._run(white, white.bias + added, begin if before is None else before.impulse, apart)
            return found if before is None else found._replace(steps=found.steps + before.steps)

        def impulse(answer: Answer) -> NDArray[np.float64] | None:
            return white.scaled(answer.impulse) if answer.status == SOLVED else None

        answer = corrected(problem, solve, impulse, CORRECTIONS, NEGLIGIBLE)
        return ContactProposal(STATUS[answer.status], answer.steps, answer.impulse)

    def _run(self, white: Whitened, bias: NDArray[np.float64], start: NDArray[np.float64], apart: bool) -> Answer:
        n, d, width = white.rows.shape
        impulse = np.empty((n, d))
        given = Given(
            white.rows, white.segments, white.free, bias, white.friction, white.scale, white.pace, NO_LIFT, apart, False
        )
        status, steps, violation = cone_newton(
            given, white.tau, start, self.max_cycles, self.max_steps, float(self.max_work), self.tolerance,
            *workspace(*sizes(n, d, len(white.free), width)), impulse, ZEROS[d],
        )  # fmt: skip
        return Answer(status, steps, violation, impulse)


def trimmed(white: Whitened) -> Whitened:
    """The same problem with the runs of velocities trimmed (`trim`)."""
    if white.record is None or not ((white.segments[:, 3] == 0) & (white.segments[:, 1] > SMALL)).any():
        return white
    rows, runs = white.rows.copy(), white.segments.copy()
    trim(rows, runs)
    runs.flags.writeable = False
    return white._replace(rows=rows, segments=runs)


class Answer(NamedTuple):
    """Result of the kernel."""

    status: int
    steps: int
    violation: float  # of the law, over the largest free contact velocity, as the judge measures it
    impulse: NDArray[np.float64]  # (n, d) N s


class Given(NamedTuple):
    """A problem in normal form, as the kernel reads it."""

    rows: Any  # (n, d, k)
    segments: Any  # (n, 4)
    free: Any  # (m,)
    bias: Any  # (n, d)
    friction: Any  # (n,)
    scale: Any  # (n,)
    pace: Any  # (n,)
    lift: Any  # (n,) 0 of contacts that may lift as they slide, -1 of others; set to the speed, m/s; or none may: (0,)
    apart: Any  # whether sliding, spin and rolling are bounded apart
    brief: Any  # whether few contacts that move are to be settled soon, to `relaxed` digits: steps go on from there


def sample(zero: tuple[float, ...]) -> tuple[Any, ...]:
    """Arguments of the kernel, for no contacts: of the kinds that it is compiled for."""
    wide, numbers, integers = np.empty((0, len(zero))), np.empty(0), np.empty(0, np.int64)
    runs = np.empty((0, 4), np.int64)
    given = Given(wide[:, :, None], runs, numbers, wide, numbers, numbers, numbers, numbers, False, False)
    return given, 0.0, wide, 0, 0, 0.0, 0.0, numbers, integers, wide, zero


class Whole(NamedTuple):
    """All contacts of a problem, as they came."""

    rows: Any  # (n, d, k)
    segments: Any  # (n, 4)
    offset: Any  # (n, d) contact velocities without impulses
    friction: Any  # (n,)
    share: Any  # (n,) how much the residual of each counts beside the others', at most 1
    lift: Any  # (n,) or (0,) as given


class Work(NamedTuple):
    """The workspace, for n contacts with d directions and m velocities."""

    contacts: Contacts
    search: Search
    system: System
    weight: Array[Floats, "n"]
    share: Array[Floats, "n"]
    offset: Array[Floats, "n", "d"]
    spare: Array[Floats, "n", "d"]
    groups: Array[Ints, "n + 1"]
    chosen: Array[Ints, "n"]
    taken: Array[Ints, "n"]


sizes, carve = layout(Work, "n", "d", "m", "width")


@alone
@kernel
def cone_newton(given, tau, start, max_cycles, max_steps, most, tolerance, floats, ints, p, zero):
    """Returns (status, Newton steps, violation); impulses in p, in N s as those of `start`; zero: of a contact.

    most: Newton steps in all; if there is a bound, sweeps count, too, here and in what is returned
    """
    n, m, segments = len(p), len(given.free), given.segments

    # Bodies at rest need no solve: the impulses of the start are the solution. Nothing is laid out for that.
    violation = of_start(given, tau, start, floats[:m], zero)
    if violation <= (tolerance if n > MANY else STILL * tolerance):
        copy_rows(start, p)
        return SOLVED, 0, violation

    contacts, search, system, weight, share, offset, spare, groups, chosen, taken = carve(
        n, len(zero), m, given.rows.shape[2], zero, given.apart, floats, ints
    )

    # Units of the normal form: contact velocities without impulses, the residual that is small enough, the start.
    whole = Whole(given.rows, segments, offset, given.friction, share, given.lift)
    enough = survey(given, tau, tolerance, offset, weight, share, zero)
    warm = begin_at(start, given.scale, tau, p)
    forget_order(system.blocks)

    # Where many contacts join the same bodies, try a working set of few.
    found, steps, violation = False, 0, DIVERGED
    runs, crowded = group(segments, groups)
    if 2 * crowded > n:
        fair = enough * stall_factor(tolerance)
        found, steps, violation = solve_by_working_set(
            whole, groups, runs, warm, enough, fair, max_steps, contacts, search, system, (chosen, taken), p
        )

    # Otherwise cycles of Newton's method on all contacts.
    if not found:
        begin(whole, contacts)
        forget_order(system.blocks)
        more, violation, fair = cycles(
            contacts, search, system, spare, weight, warm, given.brief, enough, tolerance,
            (max_cycles, max_steps, most), p,
        )  # fmt: skip
        steps += more
        found = negligible(violation, fair, weight, p, zero)
        keep_lifts(contacts, search.now, given, tau, p)

    # Back to N s.
    for i in range(n):
        put(p, i, times(given.scale[i] * tau, at(p, i, zero)))
    return SOLVED if found else MAX_ITERATIONS, steps, violation


@once
@kernel
def cycles(contacts, search, system, spare, weight, warm, brief, enough, tolerance, limits, p):
    """Cycles of Newton's method from p; the best impulses in p.

    Returns (Newton steps, violation, the violation that is accepted after a stall).
    limits: cycles, steps of each, of all
    """
    now, best, (max_cycles, max_steps, most) = search.now, search.best, limits
    least, violation = begin_open(contacts, search, system, weight, p)

    # Few contacts that press already need few steps. A large island in motion is solved softly, and not too exactly.
    large = joining(contacts.segments, CROWD) > LARGE if brief else len(p) > MANY
    begun = warm and brief and not large and largest_of(p) > 0.0
    soft, max_steps = SOFTNESS, min(2 * RUN, max_steps) if warm and large else max_steps
    if warm and large and violation > NEAR:
        soft = LARGE_SOFTNESS
    ease, accepted = aims(violation, tolerance, warm and large)
    tolerance, enough = ease * tolerance, ease * enough
    steps, sweeps, seed, fair = 0, MORE_SWEEPS, 1, enough * (accepted / tolerance if tolerance > 0.0 else 1.0)
    strict = enough
    for cycle in range(max_cycles):
        # After a stall a larger violation is accepted.
        if cycle == 1:
            enough = fair
            tolerance = accepted
        aim = STILL * tolerance if begun and cycle == 0 else tolerance
        if steps >= most or negligible(violation, aim, weight, p, contacts.zero):
            break

        # Starting point of this cycle: the start itself, or what its stage makes of the best point, mostly by sweeps.
        if cycle == (1 if warm else 0):
            set_delassus(contacts)
        stage = cycle % ROUND
        if large and cycle > 0:
            stage = WALK  # walks solve nearly all that is left
        softness = soft * (1.0 if cycle % 3 == 0 else DIGIT if cycle % 3 == 1 else 1.0 / DIGIT)

        # The first cycle: a start is taken as it is, unless some contact carries far more than moves it.
        if cycle == 0 and warm:
            softness = soft if soft > SOFTNESS else WARM_SOFTNESS
            if burdened(p, contacts.zero):
                balance(contacts, p)
                least = begin_balanced(p, contacts, search)
        elif cycle == 0:
            steps += sweep_often(contacts, now, FIRST_SWEEPS, ROUGH, most - steps)
        elif stage == AFRESH:
            balance(contacts, p)
            seed, least = begin_again(seed, contacts, search), DIVERGED
            steps += sweep_often(contacts, now, FIRST_SWEEPS, ROUGH, most - steps)
        # The others, by their stage.
        elif stage == SWEEPS:
            steps += sweep_often(contacts, now, sweeps, EXACT, most - steps)
            sweeps = min(4 * sweeps, MOST_SWEEPS)
        elif stage == WALK:
            # On large islands, where one walk is lost, the next leads through answers in which contacts lift, if they
            # may; otherwise it goes on from elsewhere.
            again, bounds = large and cycle > 1, walk_limits(contacts, cycle, most - steps)
            if again and allow_lifts(contacts, now, weight):
                violation, count = walk_by_lifts(contacts, search, system, spare, weight, tolerance, strict, bounds, p)
            else:
                seed = perturb(now.p, seed) if again else seed
                violation, count = walk(
                    contacts, search, system, weight, violation, tolerance, strict, bounds, False, p
                )
            steps += count
            if any_lifts(contacts):
                continue  # no run of Newton's method knows lifts
            copy_rows(now.p, best)
            least, _ = evaluate(contacts, now)
        else:
            seed = perturb(now.p, seed)

        # Newton's method from there; the best impulses are put into their cones and kept.
        target, left = max(MARGIN * enough, rounding(contacts, now.p)), int(min(max_steps, max(most - steps, 1.0)))
        if cycle == 0 and begun:
            least, count = settle(contacts, search, system, least, target, fair, softness, left)
        else:
            least, count = newton(contacts, search, system, least, target, fair, softness, left, False)
        steps += count
        violation = keep_best(contacts, search, weight, violation, p)
    return steps, violation, accepted


@kernel
def aims(violation, tolerance, moving):
    """How many times the tolerance an island in motion is solved to, and the violation that is accepted after a stall.

    moving: whether it is large and has a start, of this violation: what changes in a step. Others are solved to the
    tolerance itself.
    """
    if not moving or not PART * violation > tolerance > 0.0:
        return 1.0, relaxed(tolerance)
    ease = min(EASE, PART * violation / tolerance)
    return ease, max(relaxed(tolerance), STALL_EASE * ease * tolerance)


@kernel
def walk_limits(contacts, cycle, left):
    """Newton steps of a walk, of those that are left, and of those in which the violation has to be halved.

    The first walk is given up sooner where the next one lifts contacts, which mostly arrives.
    """
    many = max(len(contacts.friction), MANY)
    return int(min(WALK_STEPS * many, left)), MANY if cycle == 1 and may_lift(contacts) else many


@kernel
def keep_best(contacts, search, weight, violation, p):
    """Put the best impulses into their cones and keep them in p if they violate the law less; returns the lesser."""
    copy_rows(search.best, search.now.p)
    into_cone(search.now.p, contacts)
    evaluate(contacts, search.now)
    violation, _ = keep_better(contacts, search.now, weight, violation, p)
    return violation


@kernel
def begin_open(contacts, search, system, weight, p):
    """Begin at p, with all contacts open; returns its residual and violation."""
    copy_rows(p, search.now.p)
    copy_rows(p, search.best)
    for i in range(len(p)):
        system.mode[i] = OPEN
    least, _ = evaluate(contacts, search.now)
    violation, _ = keep_better(contacts, search.now, weight, DIVERGED, p)
    return least, violation


@kernel
def relaxed(tolerance):
    """Tolerance after a stall: the last digits of a heap in motion cost the most steps."""
    return max(tolerance, min(STALL_FACTOR * tolerance, STALL_LIMIT))


@kernel
def stall_factor(tolerance):
    """The same over the tolerance."""
    return relaxed(tolerance) / tolerance if tolerance > 0.0 else 1.0


@in_callers
@kernel
def of_start(given, tau, start, x, zero):
    """Violation of the law by the impulses of the start, DIVERGED if there are none or it is large; x: scratch."""
    bias, scale = given.bias, given.scale
    if len(start) != len(bias):
        return DIVERGED

    # x = free + Lᵀ p.
    for k in range(len(x)):
        x[k] = given.free[k]
    for i in range(len(start)):
        unit = 1.0 / (scale[i] * tau)
        add_rows(given.rows[i], given.segments[i], times(unit, at(start, i, zero)), x)

    # Violation in the judge's units: velocities over the pace of the contact.
    worst = 0.0
    for i in range(len(start)):
        unit = 1.0 / (scale[i] * tau)
        u = plus(rows_dot(given.rows[i], given.segments[i], x, zero), at(bias, i, zero))
        off, _ = alart_curnier(times(unit, at(start, i, zero)), u, given.friction[i], given.apart)
        if not off <= STALL_LIMIT:
            return DIVERGED
        worst = max(worst, off * tau / (scale[i] * given.pace[i]))
    return worst


@in_callers
@kernel
def survey(given, tau, tolerance, offset, weight, share, zero):
    """Set the free contact velocities, and weights; returns the residual of the normal form at which to stop.

    The judge measures velocities against the largest of a contact's island; the normal form, each by its contact's
    size. A contact's weight is the ratio of the two units. Its share is the same beside the heaviest: what the judge
    hardly sees need not be solved to as many digits.
    """
    bias, heaviest = given.bias, 0.0
    for i in range(len(bias)):
        put(offset, i, plus(rows_dot(given.rows[i], given.segments[i], given.free, zero), at(bias, i, zero)))
        weight[i] = tau / (given.scale[i] * given.pace[i])
        heaviest = max(heaviest, weight[i])
    heaviest = max(heaviest, 1.0)
    for i in range(len(bias)):
        share[i] = weight[i] / heaviest if len(bias) <= MANY else 1.0
    return max(tolerance / heaviest, LEAST_RESIDUAL)


@kernel
def begin_at(start, scale, tau, p):
    """p = `start` in units of the normal form if it is given and finite, else zero. Returns whether it was used."""
    warm = len(start) == len(p) and len(p) > 0
    for i in range(len(start)):
        for c in range(start.shape[1]):
            warm = warm and abs(start[i, c]) < DIVERGED * scale[i] * tau
    for i in range(len(p)):
        for c in range(p.shape[1]):
            p[i, c] = start[i, c] / (scale[i] * tau) if warm else 0.0
    return warm


@kernel
def begin(whole, contacts):
    """Copy all contacts, without stretch; `set_delassus` is left to those who sweep."""
    for i in range(len(whole.friction)):
        contacts.stretch[i], contacts.friction[i], contacts.share[i] = 1.0, whole.friction[i], whole.share[i]
        contacts.lifts[i] = MAY if len(whole.lift) > 0 and whole.lift[i] >= 0.0 else NEVER
        for a in range(4):
            contacts.segments[i, a] = whole.segments[i, a]
        for a in range(whole.rows.shape[1]):
            contacts.offset[i, a] = whole.offset[i, a]
            for k in range(whole.segments[i, 1] + whole.segments[i, 3]):
                contacts.rows[i, a, k] = whole.rows[i, a, k]


@kernel
def keep_lifts(contacts, point, given, tau, p):
    """Set the speeds at which contacts lift under the impulses p; where none does, they are zero as they are given."""
    if len(given.lift) == 0 or not any_lifts(contacts):
        return
    for i in range(len(p)):
        put(point.p, i, over(at(p, i, contacts.zero), contacts.stretch[i]))
    evaluate(contacts, point)
    for i in range(len(p)):
        if given.lift[i] >= 0.0:
            given.lift[i] = lift_of(contacts, point, i) / contacts.stretch[i] * tau / given.scale[i]


@kernel
def begin_again(seed, contacts, search):
    """Begin at nothing, perturbed; returns the next seed."""
    now = search.now
    for i in range(len(now.p)):
        put(now.p, i, contacts.zero)
    seed = perturb(now.p, seed)
    set_velocity(contacts, now)
    copy_rows(now.p, search.best)
    return seed


@kernel
def negligible(violation, tolerance, weight, p, zero):
    """Whether a violation is within the tolerance, or within rounding for impulses as large as p."""
    most = 0.0
    for i in range(len(p)):
        most = max(most, weight[i] * largest(at(p, i, zero)))
    return violation <= max(tolerance, ROUNDING * most)


@kernel
def rounding(contacts, p):
    """Rounding of contact velocities under the largest impulse, in stretched units."""
    most = 0.0
    for i in range(len(p)):
        square = contacts.stretch[i] * contacts.stretch[i]
        most = max(most, square * largest(at(p, i, contacts.zero)))
    return LAST_DIGIT * most


@kernel
def sweep_often(contacts, point, times, accuracy, most):
    """Several sweeps, one at least, worth no more than `most` Newton steps; returns how many they are worth.

    None, if there may be any number of them.
    """
    worth = 1.0 if len(contacts.zero) == len(THREE) else WIDE_SWEEP * len(point.p)
    times = int(min(times, max(most / worth, 1.0)))
    for _ in range(times):
        sweep(contacts, point, accuracy)
    return int(worth * times) if most < inf else 0


@kernel
def burdened(p, zero):
    """Whether some contact carries an impulse far larger than the one that would stop it alone."""
    for i in range(len(p)):
        if largest(at(p, i, zero)) > BURDEN:
            return True
    return False


@kernel
def begin_balanced(p, contacts, search):
    """Begin at p in the units of stretched contacts; returns the residual."""
    now = search.now
    for i in range(len(p)):
        for c in range(p.shape[1]):
            now.p[i, c] = p[i, c] / contacts.stretch[i]
    copy_rows(now.p, search.best)
    least, _ = evaluate(contacts, now)
    return least


@kernel
def perturb(p, seed):
    """Multiply each contact's impulse by a random number up to two, and press a little; returns the next seed."""
    for i in range(len(p)):
        seed = seed * 16807 % 2147483647  # Lehmer's generator
        chance = seed / 2147483647.0
        for c in range(p.shape[1]):
            p[i, c] *= 2.0 * chance
        p[i, 0] += PRESSURE * chance
    return seed

"""Baraff's method: Dantzig's algorithm with friction. One contact after the other is driven until its conditions hold,
while all contacts that satisfy theirs keep doing so.

    0 <= p_n  ⊥  u_n >= 0,     |p_t| <= mu p_n,     p_t·u_t <= 0,     |u_t| (mu p_n - |p_t|) = 0

Driving the normal impulse of a contact until u_n = 0, or its friction until u_t = 0 or the cone is reached, moves every
other impulse in proportion; the first contact that would violate its own conditions stops the motion and changes its
index sets. Without friction this ends with a solution after about one drive a contact. With static friction steps of
length zero can alternate: the contact concerned is given up for the time being and driven again later; termination is
not proven. With dynamic friction (`problem.slip`: p_t = -mu p_n s) a drive can be unbounded: the problem need not have
a solution, and the direction of the drive is returned as `ray`, to be applied as an impulse by `impulse_along`. The
pair (u, p) is acceleration and force, or velocity and impulse, or (in a first-order world, where forces cause
velocities) velocity and force; the equations are the same.

In space the conditions above do not fix the direction of friction at a sliding contact: the paper keeps the direction
in which the impulse reached the cone. Coulomb's law requires that friction opposes u_t; `realign` turns the recorded
directions until it does (see `turn`). In the plane there is nothing to turn. The paper keeps bilateral rows clamped;
here they are projected out in the normal form, which is equivalent: eliminating always-clamped rows from A leaves the
Schur complement, which is the Delassus matrix of the projected rows.

[Baraff1994, sec. 4–6].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stiction.arrays.compiled import alone, kernel, workspace
from stiction.errors import InvalidProblem
from stiction.solvers.contact.baraff.sets import (
    CLOSED,
    HALF,
    IGNORED,
    KNOWN,
    LOOSE,
    OPEN,
    SLIDING,
    STUCK,
    Given,
    advance,
    begin,
    direct,
    join,
    join_driven,
    place_contact,
    rounding,
    settle,
    sizes,
    work_views,
)
from stiction.solvers.contact.baraff.steps import (
    ARRIVES,
    CLOSES,
    NOTHING,
    OPENS,
    PRESS,
    RUB,
    SLIPS,
    TURN,
    UNLOAD,
    first_event,
    moving_row,
)
from stiction.solvers.contact.baraff.tolerances import DRIFT, MOST_NOISE, NOISE, PATIENCE, REFINE, TURNS
from stiction.solvers.contact.baraff.turn import aim, misaligned, turn
from stiction.solvers.contact.cone_newton.tolerances import CORRECTIONS
from stiction.solvers.contact.delassus import corrected
from stiction.solvers.contract import MAX_ITERATIONS, RAY, SINGULAR, SOLVED, STALLED, STATUS, ContactProposal, Contract
from stiction.solvers.tolerances import HYSTERESIS, pivot_limit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

STEPS, DRIVES, GIVEN_UP, TURNED, TRIES = range(5)  # entries of `counts`


@dataclass(frozen=True)
class Baraff:
    """Dantzig's algorithm for contact, without friction or on the circular cone.

    realign: turn the friction of sliding contacts against their sliding; if not, only p_t·u_t <= 0 as in the paper
    tries: number of attempts; each one after the first drives the contacts in another order
    max_steps: limit of steps in one try; 50 n + 200 if not given
    """

    realign: bool = True
    tries: int = 8
    max_steps: int | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="frictionless: always; static friction: none known, seldom fails; known slip: a solution or a ray",
        cost="about n drives of O(n m + k²), k members",
        choose="contacts that already slide; few contacts; forces where impulses may be needed",
        boxes=False,
        laws=("frictionless", "cone"),
        slip=True,
    )

    def __post_init__(self) -> None:
        for name, value, least in (("tries", self.tries, 1), ("max_steps", self.max_steps, 0)):
            if value is not None and not (isinstance(value, int) and value >= least):
                raise InvalidProblem(f"Baraff: {name} must be a whole number of at least {least}, got {value!r}")

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        n, white = problem.n, problem.whitened
        m, w = white.free.size, white.rows.shape[2]
        frictionless = problem.law.kind == "frictionless" or not problem.friction.any()
        slip = np.full((n, 2), np.nan) if problem.slip is None else np.array(problem.slip)
        limit = pivot_limit(n) if self.max_steps is None else self.max_steps
        work = workspace(*sizes(n, m, w))
        counts = np.zeros(5, np.int64)

        def solve(added: NDArray[np.float64], before: Found | None) -> Found:
            p, ray = np.zeros((2, n, 3))
            given = Given(white.rows, white.segments, white.bias + added, white.friction, white.free, slip)
            status = compute_forces(
                given, 1 if frictionless else 3, self.realign and problem.dim == 3, self.tries, limit, *work, p, ray,
                counts,
            )  # fmt: skip
            return Found(status, p, ray)

        def impulse(found: Found) -> NDArray[np.float64] | None:
            return found.p if found.status == SOLVED else None

        status, p, ray = corrected(problem, solve, impulse, CORRECTIONS, NOISE)
        direction = ray * white.scale[:, None] if status == RAY else None
        return ContactProposal(STATUS[status], int(counts[STEPS]), white.impulse(p), direction, (summary(counts),))


def summary(counts: NDArray[np.int64]) -> str:
    """The counts of a solve, as a line of its trace."""
    return (
        f"{counts[DRIVES]} drives, {counts[GIVEN_UP]} contacts given up, {counts[TURNED]} turns, {counts[TRIES]} tries"
    )


class Found(NamedTuple):
    """The result of the kernel: impulses, or a ray, of the normal form."""

    status: int
    p: NDArray[np.float64]
    ray: NDArray[np.float64]


class Blow(NamedTuple):
    """An impulse along a ray, and its effect.

    size: factor by which the ray is multiplied
    impulse: (n, 3) n, t1, t2
    velocity: (m,) after the impulse
    contact: index of the contact that stops sliding
    """

    size: float
    impulse: NDArray[np.float64]
    velocity: NDArray[np.float64]
    contact: int


def impulse_along(problem: ContactProblem, ray: Any, velocity: Any) -> Blow:
    """Apply the impulse of a ray until the first contact that slides under it comes to rest.

    problem: of forces, with `slip` where contacts slide; velocity: (m,) the velocities at this moment. Where no forces
    exist, impulses along the ray stop the sliding in no time (impact without collision). From there on that contact's
    slip is no longer known: pose the problem of impulses at the new velocity, without its slip, and solve that.
    """
    direction = np.array(ray, dtype=np.float64)
    before = np.array(velocity, dtype=np.float64)
    if direction.shape != (problem.n, 3) or before.shape != (problem.m,):
        raise InvalidProblem(
            f"impulse_along: ray and velocity must have shapes ({problem.n}, 3) and ({problem.m},), "
            f"got {direction.shape} and {before.shape}"
        )
    if problem.slip is None or problem.mass is None:
        raise InvalidProblem("impulse_along: needs a problem with mass and slip; only contacts that slide make rays")
    rest = problem.respond(np.zeros((problem.n, 3)))[0]
    change = problem.respond(direction)[0] - rest
    tangents = problem.dense_rows()[:, 1:]
    slip = np.nan_to_num(problem.slip)
    sliding = np.einsum("ic,icm,m->i", slip, tangents, before)
    slowing = -np.einsum("ic,icm,m->i", slip, tangents, change)
    stops = (sliding > 0.0) & (slowing > 0.0) & (direction[:, 0] > 0.0)
    if not stops.any():
        raise InvalidProblem("impulse_along: no contact that slides is slowed by an impulse along this ray")
    times = np.where(stops, sliding / np.where(stops, slowing, 1.0), np.inf)
    contact = int(np.argmin(times))
    size = float(times[contact])
    return Blow(size, size * direction, before + size * change, contact)


@alone
@kernel
def compute_forces(given, parts, realign, tries, limit, floats, ints, p, ray, counts):
    """compute-forces [Baraff1994, sec. 4.3, 5.5], repeated in other orders if the first fails. Returns a status."""
    t, turning = work_views(given, parts, floats, ints)
    n, slip = len(given.mu), given.slip
    jacobian, angle, which, pivots = turning

    # Does any contact have dynamic friction? Only then can a drive be unbounded [Baraff1994, sec. 6].
    status, known = STALLED, False
    for i in range(n):
        known = known or slip[i, 0] == slip[i, 0]
    for order in range(tries):
        # f = 0, a = b, C = NC = empty [Baraff1994, sec. 4.3].
        counts[TRIES] += 1
        begin(t, slip, NOISE)
        status, k, drives, turns, crooked, stop = SOLVED, 0, 0, 0, np.inf, counts[STEPS] + limit
        while True:
            # The contact to drive next. Before accepting that there is none, or driving one whose violation may be
            # accumulated rounding, refine the members and look again.
            i = violated(t, order)
            if i < 0 or (parts == 1 and normal_violation(t, i, rounding(t)) < DRIFT * t.level[1]):
                settle(t, k)
                i = violated(t, order)
            # A violated contact leaves its sets and is driven. After unusually many drives the violations are probably
            # rounding: raise the level below which they are ignored.
            what, count = TURN, 0
            if i >= 0:
                drives += 1
                crooked = np.inf
                if drives > 3 * n + 20 and drives % (n // 2 + 5) == 0:
                    t.level[0] = min(2.0 * t.level[0], MOST_NOISE)
                what = release(t, i)
                # A half-held contact keeps its members: only the direction across e is driven.
                if t.grip[i] != HALF:
                    k = place_contact(t, k, i)
                push(t, i, what)
            else:
                # All conditions hold: done, unless friction must still be turned against the sliding. Stop within
                # rounding, or near it once a turn no longer gains a factor of four.
                before, crooked, tol = crooked, misaligned(t) if realign else 0.0, rounding(t)
                if crooked <= tol or (crooked <= 100.0 * tol and crooked > 0.25 * before):
                    break
                if turns >= TURNS:
                    status = STALLED
                    break
                turns += 1
                count = aim(t, k, jacobian, angle, which, pivots)
            # Drive, then remove the rounding that the steps have accumulated.
            status, k = drive(t, k, i, what, angle, which, count, stop, counts)
            settle(t, k)
            if status != SOLVED:
                break

        # A ray without dynamic friction is an effect of rounding: then another order may succeed.
        counts[DRIVES] += drives
        counts[TURNED] += turns
        if status == SOLVED or (status == RAY and known):
            break
    return copy_answer(t, p, ray, status)


@kernel
def copy_answer(t, p, ray, status):
    """Copy impulses to p and the last direction to `ray`; SINGULAR and p = 0 if an impulse is not finite."""
    for i in range(len(t.mu)):
        for c in range(t.parts):
            p[i, c], ray[i, c] = t.p[i, c], t.p_rate[i, c]
            if not np.isfinite(p[i, c]):
                p[:, :] = 0.0
                return SINGULAR
        p[i, 0] = max(p[i, 0], 0.0)
    return status


@kernel
def preference(i, order):
    """Weight in (0, 1] of contact i in the choice of the worst violation: 1 for order 0, pseudo-random for others."""
    if order == 0:
        return 1.0
    scrambled = ((i + 1) * (7919 * order + 104729) * 40503) % 65536
    return (scrambled + 1.0) / 65536.0


@kernel
def normal_violation(t, i, tol):
    """Violation of 0 <= p_n ⊥ u_n >= 0 [Baraff1994, eq. 15]; zero if it is within rounding."""
    u = t.u[i, 0]

    # Closed: u_n = 0, p_n >= 0.
    if t.normal[i] == CLOSED:
        return max(abs(u) if abs(u) > HYSTERESIS * tol else 0.0, -t.p[i, 0] if t.p[i, 0] < -tol else 0.0)

    # Open or ignored: u_n >= 0, and p_n = 0 where u_n > 0.
    if u < -tol:
        return -u
    return u if t.p[i, 0] > 0.0 and u > tol else 0.0


@kernel
def friction_violation(t, i, tol):
    """Violation of the friction conditions [Baraff1994, eq. 16, 21, 22]; zero if it is within rounding.

    A loose or half-held contact that satisfies them within rounding becomes stuck.
    """
    size, slides = math.hypot(t.p[i, 1], t.p[i, 2]), math.hypot(t.u[i, 1], t.u[i, 2])

    # Dynamic friction is tied to p_n and holds by construction. An open contact must have no friction.
    if t.grip[i] == KNOWN:
        return 0.0
    if t.normal[i] != CLOSED:
        return size

    # Sliding: friction must not point along u_t. Stuck: no sliding, and inside the cone.
    outside = size - t.mu[i] * t.p[i, 0]
    if t.grip[i] == SLIDING:
        along = t.direction[i, 0] * t.u[i, 1] + t.direction[i, 1] * t.u[i, 2]
        return along if along > HYSTERESIS * tol else 0.0
    if t.grip[i] == STUCK:
        return max(slides, outside) if slides > HYSTERESIS * tol or outside > HYSTERESIS * tol else 0.0

    # Loose or half-held: not driven if it neither slides nor leaves the cone.
    if slides <= tol and outside <= tol:
        if t.grip[i] == LOOSE:
            t.direction[i, 0], t.direction[i, 1] = 1.0, 0.0
        t.grip[i] = STUCK
        return 0.0
    return max(slides, outside)


@kernel
def violated(t, order):
    """The contact with the largest violation, -1 if there is none.

    At each contact the normal conditions must hold before those of friction are considered [Baraff1994, sec. 5.5].
    """
    # Preferences differ from try to try, so that another contact comes first.
    tol = rounding(t)
    worst, which = 0.0, -1
    for i in range(len(t.mu)):
        amount = normal_violation(t, i, tol)
        if amount == 0.0 and t.parts == 3:
            amount = friction_violation(t, i, tol)
        amount *= preference(i, order)
        if amount > worst:
            worst, which = amount, i
    return which


@kernel
def release(t, i):
    """Take a contact out of the index sets whose conditions it violates; returns what to drive there.

    Normal conditions come before those of friction. Friction that was given up is driven to zero before its conditions
    are established again [Baraff1994, sec. 5.5]. So is p_n < 0, or friction along the sliding, which a turn can leave.
    """
    # The normal conditions are violated: the contact leaves all sets.
    if normal_violation(t, i, rounding(t)) > 0.0:
        t.normal[i] = IGNORED
        if t.grip[i] != KNOWN:
            t.grip[i] = LOOSE
        return UNLOAD if t.p[i, 0] < 0.0 else PRESS

    # Only the friction conditions are violated: the contact stays closed or open.
    if t.grip[i] == STUCK or t.grip[i] == SLIDING:
        t.grip[i] = LOOSE
    return UNLOAD if t.grip[i] == LOOSE and (t.p[i, 1] != 0.0 or t.p[i, 2] != 0.0) else RUB


@kernel
def push(t, i, what):
    """Set `pushed`, the direction of the impulse that is driven: f_d of fdirection [Baraff1994, sec. 4.3, 5.5]."""
    for j in range(len(t.mu)):
        for c in range(3):
            t.pushed[j, c] = 0.0

    # PRESS: raise p_n against u_n < 0, or lower it while u_n > 0; dynamic friction stays tied to it.
    d1, d2 = t.direction[i, 0], t.direction[i, 1]
    if what == PRESS:
        sense = 1.0 if t.u[i, 0] < 0.0 else -1.0
        tie = t.mu[i] if t.grip[i] == KNOWN else 0.0
        t.pushed[i, 0], t.pushed[i, 1], t.pushed[i, 2] = sense, sense * tie * d1, sense * tie * d2
    elif what == UNLOAD:
        # UNLOAD: straight to zero friction, and to zero p_n as well where that is negative.
        normal = t.p[i, 0] if t.normal[i] != CLOSED and t.p[i, 0] < 0.0 else 0.0
        size = math.sqrt(normal * normal + t.p[i, 1] * t.p[i, 1] + t.p[i, 2] * t.p[i, 2])
        t.pushed[i, 0], t.pushed[i, 1], t.pushed[i, 2] = -normal / size, -t.p[i, 1] / size, -t.p[i, 2] / size
    elif t.grip[i] == LOOSE:
        # RUB, first drive: against the sliding. Any sliding that remains is perpendicular to this direction.
        slides = math.hypot(t.u[i, 1], t.u[i, 2])
        t.pushed[i, 1], t.pushed[i, 2] = -t.u[i, 1] / slides, -t.u[i, 2] / slides
    else:
        # RUB, second drive: across the direction of the first [Baraff1994, sec. 5.6].
        sense = -1.0 if d1 * t.u[i, 2] - d2 * t.u[i, 1] > 0.0 else 1.0
        t.pushed[i, 1], t.pushed[i, 2] = -sense * d2, sense * d1


@kernel
def drive(t, k, driven, what, angle, which, count, stop, counts):
    """drive-to-zero [Baraff1994, sec. 4.3, 5.5]. Returns (status, number of members).

    A turn drives the `count` contacts `which` at once, by their `angle`. It ends at its first step, because it is not
    linear.
    """
    watch_again(t)
    while counts[STEPS] <= stop:
        # fdirection and maxstep: the direction, and the first contact that limits the step.
        k, fastest = directed(t, k)
        event, contact, step = first_event(t, fastest, driven, what)
        counts[STEPS] += 1

        # Nothing limits the step: an unbounded ray [Baraff1994, sec. 6].
        if event == NOTHING:
            return RAY, k
        if what != TURN:
            advance(t, step)

        # A step of positive length is progress: changes are counted only between steps of length zero.
        if step * max(fastest, 1.0) > HYSTERESIS * REFINE * t.level[1]:
            for i in range(len(t.mu)):
                t.changes[i] = 0

        # Turn the directions. If the whole angle was turned, or `turn` shortened it, no contact changes its sets.
        if what == TURN:
            k, whole = turn(t, k, step, angle, which, count)
            if event == ARRIVES or not whole:
                return SOLVED, k

        # The driven contact takes its place in the sets, or the limiting contact changes its sets. A contact that
        # alternates without progress is given up for now [Baraff1994, sec. 5.4].
        ends = event == ARRIVES or what == TURN or (contact == driven and what != UNLOAD)
        if event == ARRIVES:
            arrive(t, driven, what)
            if what == UNLOAD:
                return SOLVED, k
            if t.parts == 1 and t.pushed[driven, 0] > 0.0:
                return SOLVED, join_driven(t, k, driven)
        else:
            t.changes[contact] += 1
            give_up = t.changes[contact] > PATIENCE
            if give_up:
                counts[GIVEN_UP] += 1
            change(t, contact, event, give_up)

        # Update the members, and go on unless the drive has ended.
        k = place_contact(t, k, contact)
        if ends:
            return SOLVED, k
    return MAX_ITERATIONS, k


@kernel
def watch_again(t):
    """Forget changes without progress, and watch again the rows that an earlier drive could not hold (-2)."""
    for i in range(len(t.mu)):
        t.changes[i] = 0
        for c in range(3):
            t.place[i, c] = max(t.place[i, c], -1)


@kernel
def directed(t, k):
    """Rates of all impulses and velocities. Returns (members, largest rate of an impulse).

    Redundant rows are not members; one that would start to move joins, and the rates are computed again.
    """
    while True:
        fastest = direct(t, k)
        row, part = moving_row(t, fastest)
        if row < 0:
            return k, fastest
        more = join(t, k, row, part)
        if more == k:
            t.place[row, part] = -2  # it cannot be held: ignore its motion for the rest of this drive
        k = more


@kernel
def arrive(t, i, what):
    """The driven contact has reached its condition: assign it to the index set of that condition."""
    tol = rounding(t)
    if what == UNLOAD:
        # Unloaded: remove the rounding that is left.
        t.p[i, 1] = t.p[i, 2] = 0.0
        if t.pushed[i, 0] != 0.0:
            t.p[i, 0] = 0.0
    elif what == PRESS:
        # p_n has fallen to zero: open. Otherwise u_n has reached zero: closed.
        if t.pushed[i, 0] < 0.0 and t.p[i, 0] <= tol:
            open_contact(t, i)
        else:
            t.normal[i], t.u[i, 0] = CLOSED, 0.0
    elif t.grip[i] == LOOSE:
        # First drive of friction: the sliding along e has stopped, perhaps all of it.
        t.direction[i, 0], t.direction[i, 1] = t.pushed[i, 1], t.pushed[i, 2]
        t.grip[i] = STUCK if math.hypot(t.u[i, 1], t.u[i, 2]) <= tol else HALF
    else:
        t.grip[i] = STUCK


@kernel
def slide(t, i):
    """Record the direction of friction on reaching the cone, or of its rate at the apex [Baraff1994, sec. 5.6]."""
    d1, d2 = t.p[i, 1], t.p[i, 2]
    rate = math.hypot(t.p_rate[i, 1], t.p_rate[i, 2])
    if math.hypot(d1, d2) <= REFINE * t.level[1] and rate > 0.0:
        d1, d2 = t.p_rate[i, 1], t.p_rate[i, 2]
    size = math.hypot(d1, d2)
    if not size > 0.0:
        d1, size = 1.0, 1.0
    t.grip[i], t.direction[i, 0], t.direction[i, 1] = SLIDING, d1 / size, d2 / size


@kernel
def open_contact(t, i):
    """p_n = 0 and p_t = 0, except that friction which was given up stays until it is unloaded."""
    t.normal[i], t.p[i, 0] = OPEN, 0.0
    if t.grip[i] != LOOSE:
        t.p[i, 1] = t.p[i, 2] = 0.0
    if t.grip[i] != KNOWN:
        t.grip[i] = LOOSE


@kernel
def change(t, i, event, give_up):
    """Move a contact between index sets after an event, or out of them if it is given up."""
    # Normal: between closed and open (C and NC of the paper); ignored if it is given up.
    if event == OPENS:
        open_contact(t, i)
        if give_up:
            t.normal[i] = IGNORED
    elif event == CLOSES:
        t.u[i, 0] = 0.0
        if give_up:
            t.normal[i] = IGNORED
        else:
            close_contact(t, i)
    elif give_up:
        # Friction is given up: p_t stays constant until it is unloaded.
        t.grip[i] = LOOSE
    elif event == SLIPS:
        slide(t, i)
    else:  # in space it may still slide across d: a later drive stops that
        t.grip[i] = STUCK if math.hypot(t.u[i, 1], t.u[i, 2]) <= rounding(t) else HALF


@kernel
def close_contact(t, i):
    """u_n = 0: a contact without friction so far starts with friction opposed to its sliding, or stuck."""
    t.normal[i] = CLOSED
    if t.grip[i] != KNOWN and t.p[i, 1] == 0.0 and t.p[i, 2] == 0.0:
        slides = math.hypot(t.u[i, 1], t.u[i, 2])
        if slides > rounding(t):
            t.grip[i] = SLIDING
            t.direction[i, 0], t.direction[i, 1] = -t.u[i, 1] / slides, -t.u[i, 2] / slides
        else:
            t.grip[i], t.direction[i, 0], t.direction[i, 1] = STUCK, 1.0, 0.0

"""Lemke's method on the contact LCP without its matrix [Lloyd2004]: the structural and the reduced variant.

The LCP of a friction pyramid (`problems.pyramid`) has n (d + 2) pairs, but its matrix is a product of thin factors.
`basis` keeps the almost complementary basis with all that can be eliminated by hand eliminated, so that
what remains is no larger than the number of velocities plus two. A pivot computes the velocities x and their rates
from the few unknowns, and from those every basic variable in one scan over the contacts [eq. 36].

    structural   all pairs are there from the start [§5.1, app. A]: about n pivots of O(n + m²)
    reduced      a contact is frictionless until it first becomes active, when its friction pairs join, with a cover
                 that keeps them feasible [§5.3, app. D]: about m pivots of O(n + m²)

The inverse of what remains is updated, its equations are checked at every pivot, and it is rebuilt when they have
drifted; on demand (`afresh`) small ones are computed anew at every pivot, as the paper proposes for few bodies.
Guaranteed in exact arithmetic to end in a solution (or in a ray, if the contacts contradict each other). In floating
point the rules are those of `CellLemke`: a random cover a contact, Harris'
two-pass ratio test, z0 leaves as soon as z0 = 0 violates nothing by more than the slack, and a path that fails, or
whose answer fails the natural map, is followed again with another cover and other tolerances.

`Lemke` on `pyramid_lcp(problem)` is the standard method of the paper's comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stiction.compiled import in_callers, kernel, sums, workspace
from stiction.linear import times
from stiction.problems.pyramid import directions_of
from stiction.solutions.status import Status
from stiction.solvers.cell_lemke.cell_lemke import (
    ACCEPT,
    ARTIFICIAL,
    COVER_TANGENT,
    NOTHING,
    POLISH,
    REFACTOR,
    REFINE,
    add_product,
    advance,
    advance_random,
    carve,
    copy_impulse,
    correct,
    fixed,
    harris,
    largest_of,
    natural_map,
    normal_velocities,
    note,
    polish,
    prepare,
    sizes,
    start_random,
    tolerances,
    uniform,
    velocities,
)
from stiction.solvers.cell_lemke.cells import (
    CORNER,
    EDGE,
    FIRST,
    FIRST_FORCE,
    FREE,
    LAMBDA,
    LINE,
    NO_ROLE,
    NORMAL,
    NU,
    QUANTITY,
    ROOM,
    ROW,
    SECOND,
    SECOND_FORCE,
    SIGMA,
    SIZE,
    SMOOTH,
    THETA,
    TURN,
    VERTEX,
    is_force,
    neighbour,
    velocity_add,
    velocity_dot,
)
from stiction.solvers.contract import STATUS, ContactProposal, Contract
from stiction.solvers.structured_lemke.basis import INACTIVE, bound_of, driven_force, impulses, pivot, rebuild

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

SOLVED, RAY, MAX_ITERATIONS, SINGULAR = (
    int(s) for s in (Status.SOLVED, Status.RAY, Status.MAX_ITERATIONS, Status.SINGULAR)
)

COVER_SLIDING, COVER_BOUND = 10.0, 0.3  # sizes of c_σ and c_γ; c_n is in [1, 2]


@dataclass(frozen=True)
class StructuredLemke:
    """Lloyd's fast Lemke method, for `Coulomb(facets=d)`.

    reduced: contacts get their friction when they first become active; else all have it from the start
    seed: of the random covers; the same seed gives the same answer
    tries: paths followed before giving up
    max_pivots: limit of one path; 50 (n + m) + 50 if not given
    afresh: systems of up to this many unknowns are inverted again at every pivot; 8 covers one body, and takes 1.7
        times as long as updating, with the same answers
    """

    reduced: bool = True
    seed: int = 1
    tries: int = 24
    max_pivots: int | None = None
    afresh: int = 0

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="a solution or a ray, on pyramids with any number of facets",
        cost="about m (structural: n) pivots of O(n + k²), k <= m unknowns",
        choose="Lloyd's method itself, or a second opinion on pyramids",
        laws=("pyramid",),
    )

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        directions, white = directions_of(problem), problem.whitened
        n, _, width = white.rows.shape
        m = white.free.size
        limit = 50 * (n + m) + 50 if self.max_pivots is None else self.max_pivots
        work = workspace(*sizes(n, m, width, len(directions)))
        impulse, ray = np.empty((2, n, 3))
        status, pivots, used, _ = structured_lemke(
            white.rows, fixed(white.segments), white.free, white.bias, fixed(white.friction), white.scale,
            directions, self.reduced, self.seed % 2**32, max(1, self.tries), limit, self.afresh, *work, impulse, ray,
        )  # fmt: skip
        trace = (f"{used} covers tried",) if used > 1 else ()
        direction = white.impulse(ray) if status == RAY else None
        return ContactProposal(STATUS[status], pivots, white.impulse(impulse), direction, trace)


@kernel
def structured_lemke(
    rows, segments, free, bias, friction, scale, directions, reduced, seed, tries, max_pivots, afresh, floats, ints,
    impulse, ray,
):  # fmt: skip
    """Follow paths until an answer is good. Returns (status, pivots, paths, natural map).

    impulse, ray: (n, 3) the best answer, and the direction of the last path that did not end
    """
    contacts, cells, basis, watch, lift, candidate = carve(
        rows, segments, free, bias, friction, directions, floats, ints
    )
    prepare(contacts, watch, scale, impulse)
    status, pivots, residual = SINGULAR, 0, np.inf
    random = start_random(seed)
    for attempt in range(tries):
        slack, slow, size = tolerances(attempt)
        random = draw_cover(contacts, random, size)
        ended, count = follow(
            contacts, cells, basis, watch, lift, reduced, slack, slow, attempt > 0, max_pivots, afresh
        )
        pivots += count
        if ended != SOLVED:
            if residual == np.inf:
                status = ended
            if ended == RAY:
                impulses(contacts, cells, basis.rate, ray)
            continue
        impulses(contacts, cells, basis.y, candidate)
        found = natural_map(contacts, basis, watch, candidate)
        if found > POLISH and basis.now[SIZE] > 0:
            polish(contacts, basis, watch)
            impulses(contacts, cells, basis.y, candidate)
            found = natural_map(contacts, basis, watch, candidate)
        if found < residual:
            status, residual = SOLVED, found
            copy_impulse(candidate, impulse)
        if residual <= ACCEPT:
            return status, pivots, attempt + 1, residual
    return status, pivots, tries, residual


@kernel
def draw_cover(contacts, random, size):
    """c_n in [1, 2], |c_t| at most a quarter, c_σ and c_γ in their sizes times [1, 2]; no two contacts alike."""
    for i in range(len(contacts.cover)):
        cover, tangent = contacts.cover[i], COVER_TANGENT / max(1.0, contacts.friction[i])
        random = advance_random(random)
        cover[0] = 1.0 + uniform(random)
        random = advance_random(random)
        cover[1] = tangent * (2.0 * uniform(random) - 1.0)
        random = advance_random(random)
        cover[2] = tangent * (2.0 * uniform(random) - 1.0)
        random = advance_random(random)
        cover[3] = max(size * COVER_SLIDING, 2.0 * COVER_TANGENT) * (1.0 + uniform(random))
        random = advance_random(random)
        cover[4] = size * COVER_BOUND * (1.0 + uniform(random))
    return random


@kernel
def follow(contacts, cells, basis, watch, lift, reduced, slack, slow, precise, max_pivots, afresh):
    """The path from z0 = infinity to z0 = 0. Returns (status, pivots)."""
    quantity, i, which = enter(contacts, cells, basis, watch, lift, reduced)
    if i < 0:
        return SOLVED, 0
    for pivots in range(1, max_pivots + 1):
        if not pivot(contacts, cells, basis, lift, quantity, i, which):
            return SINGULAR, pivots
        if not hold_equations(contacts, cells, basis, lift, afresh):
            return SINGULAR, pivots
        rates(contacts, basis, lift)
        if precise:
            refine(contacts, cells, basis, watch, lift, basis.y, basis.x, 1.0)
            refine(contacts, cells, basis, watch, lift, basis.rate, basis.x_rate, 0.0)
        hit, step, lost = blocking(contacts, cells, basis, watch, slack, slow)
        if lost:
            return SINGULAR, pivots
        if hit == NOTHING:
            return RAY, pivots
        advance(basis, step)
        if hit == ARTIFICIAL:
            basis.y[0] = 0.0
            return SOLVED, pivots
        quantity, i, which = watch.quantity[hit], watch.contact[hit], watch.which[hit]
    return MAX_ITERATIONS, max_pivots


@kernel
def enter(contacts, cells, basis, watch, lift, reduced):
    """z0 enters at the least value that makes all w >= 0. Returns the (quantity, contact, which) that it just does.

    contact: -1 if w >= 0 without z0
    """
    d = contacts.directions
    for l in range(len(basis.x)):
        basis.x[l] = contacts.free[l]
        lift[l] = 0.0
    normal_velocities(contacts, watch, basis.x, watch.normal)
    quantity, deepest, which, z0 = NU, -1, 0, 0.0
    for i in range(len(cells.state)):
        cover, bias = contacts.cover[i], contacts.bias[i]
        cells.column[i, NORMAL] = INACTIVE
        needed = -(watch.normal[i] + bias[0]) / cover[0]
        if needed > z0:
            quantity, deepest, which, z0 = NU, i, 0, needed
        cells.state[i] = SMOOTH
        if not reduced and contacts.friction[i] > 0.0:
            cells.state[i] = FREE
            u1 = velocity_dot(contacts.rows[i, 1], contacts.segments[i], basis.x) + bias[1]
            u2 = velocity_dot(contacts.rows[i, 2], contacts.segments[i], basis.x) + bias[2]
            for j in range(len(d)):
                needed = -(d[j, 0] * u1 + d[j, 1] * u2) / (d[j, 0] * cover[1] + d[j, 1] * cover[2] + cover[3])
                if needed > z0:
                    quantity, deepest, which, z0 = SIGMA, i, j, needed
    basis.now[SIZE], basis.now[ROW] = 0, 0
    if deepest >= 0:
        basis.now[SIZE] = 1
        basis.column_contact[0], basis.column_role[0] = 0, 0
        basis.row_contact[0], basis.row_role[0] = deepest, NO_ROLE
        basis.inverse[0, 0] = 1.0
        basis.y[0] = z0
    return quantity, deepest, which


@in_callers
@kernel
def hold_equations(contacts, cells, basis, lift, afresh):
    """Small inverses afresh, larger ones if the equations have drifted. False if the matrix is singular."""
    if basis.now[SIZE] <= afresh and not rebuild(contacts, cells, basis, lift):
        return False
    drift = residuals(contacts, basis, lift)
    if drift <= REFINE:
        return True
    correct(basis)
    drift = residuals(contacts, basis, lift)
    if drift <= REFACTOR:
        return True
    if not rebuild(contacts, cells, basis, lift):
        return False
    correct(basis)
    residuals(contacts, basis, lift)
    return True


@in_callers
@sums
def residuals(contacts, basis, lift):
    """x and the values of all rows but the driven one, from the unknowns; the largest of them."""
    segments = contacts.segments
    size, driven, z0 = basis.now[SIZE], basis.now[ROW], basis.y[0]
    for l in range(len(basis.x)):
        basis.x[l] = contacts.free[l] + z0 * lift[l]
    for q in range(1, size):
        velocity_add(basis.x, basis.y[q], basis.columns[q], segments[basis.column_contact[q]])
    worst = 0.0
    for r in range(size):
        basis.residual[r] = 0.0
        if r != driven:
            value = basis.row_cover[r] * z0 + basis.row_bias[r]
            value += velocity_dot(basis.rows[r], segments[basis.row_contact[r]], basis.x)
            basis.residual[r] = value
            worst = max(worst, abs(value))
    return worst


@in_callers
@sums
def rates(contacts, basis, lift):
    """Of all unknowns and of x, as the driven variable grows."""
    rate, driven = basis.rate, basis.now[ROW]
    for q in range(basis.now[SIZE]):
        rate[q] = basis.inverse[q, driven]
    for l in range(len(basis.x)):
        basis.x_rate[l] = rate[0] * lift[l]
    for q in range(1, basis.now[SIZE]):
        velocity_add(basis.x_rate, rate[q], basis.columns[q], contacts.segments[basis.column_contact[q]])


@in_callers
@kernel
def blocking(contacts, cells, basis, watch, slack, slow):
    """What the path meets first. Returns (which entry of `watch`, step, whether the path is lost)."""
    fastest, largest = largest_of(basis.rate, basis.now[SIZE]), largest_of(basis.y, basis.now[SIZE])
    count = approaching(contacts, cells, basis, watch, slow * fastest)
    return harris(basis, watch, count, slack, fastest, largest)


@in_callers
@sums
def approaching(contacts, cells, basis, watch, slow):
    """Collect the basic variables that fall faster than `slow`; how many [Lloyd2004, eq. 36]."""
    y, rate, d = basis.y, basis.rate, contacts.directions
    z0, z0_rate = y[0], rate[0]
    normal_velocities(contacts, watch, basis.x, watch.normal)
    normal_velocities(contacts, watch, basis.x_rate, watch.normal_rate)
    count = 0
    for i in range(len(cells.state)):
        state, cover, column = cells.state[i], contacts.cover[i], cells.column[i]
        if column[NORMAL] == INACTIVE:
            nu_rate = watch.normal_rate[i] + cover[0] * z0_rate
            if nu_rate < -slow:
                nu = watch.normal[i] + contacts.bias[i, 0] + cover[0] * z0
                count = note(watch, count, nu, nu_rate, slow, NU, i, 0)
        else:
            count = note(watch, count, y[column[NORMAL]], rate[column[NORMAL]], slow, THETA, i, 0)
        if state == SMOOTH:
            continue
        if state != FREE and state != VERTEX:  # line, corner, edge
            p = column[FIRST]
            count = note(watch, count, y[p], rate[p], slow, FIRST_FORCE, i, 0)
            room, room_rate = bound_of(contacts, cells, y, i) - y[p], bound_of(contacts, cells, rate, i) - rate[p]
            if state == CORNER:
                p = column[SECOND]
                count = note(watch, count, y[p], rate[p], slow, SECOND_FORCE, i, 0)
                room, room_rate = room - y[p], room_rate - rate[p]
            count = note(watch, count, room, room_rate, slow, ROOM, i, 0)
            if state == CORNER:
                continue
        u1, u1_rate = velocities(contacts, basis, i, 1)
        u2, u2_rate = velocities(contacts, basis, i, 2)
        if state == FREE:
            for j in range(len(d)):
                sigma_rate = d[j, 0] * u1_rate + d[j, 1] * u2_rate + cover[3] * z0_rate
                sigma = d[j, 0] * u1 + d[j, 1] * u2 + cover[3] * z0
                count = note(watch, count, sigma, sigma_rate, slow, SIGMA, i, j)
            continue
        b = cells.direction[i]
        if state != LINE:
            lam_rate = -d[b, 0] * u1_rate - d[b, 1] * u2_rate - cover[3] * z0_rate
            lam = -d[b, 0] * u1 - d[b, 1] * u2 - cover[3] * z0
            count = note(watch, count, lam, lam_rate, slow, LAMBDA, i, 0)
        if state != EDGE:
            for side in (1, -1):
                j = neighbour(b, side, len(d))
                if state == LINE:
                    sigma_rate = d[j, 0] * u1_rate + d[j, 1] * u2_rate + cover[3] * z0_rate
                    sigma = d[j, 0] * u1 + d[j, 1] * u2 + cover[3] * z0
                    count = note(watch, count, sigma, sigma_rate, slow, SIGMA, i, j)
                else:
                    first, second = d[j, 0] - d[b, 0], d[j, 1] - d[b, 1]
                    sigma, sigma_rate = first * u1 + second * u2, first * u1_rate + second * u2_rate
                    count = note(watch, count, sigma, sigma_rate, slow, TURN, i, side)
    return count


@kernel
def refine(contacts, cells, basis, watch, lift, y, x, constant):
    """Unknowns (constant 1) or rates (constant 0) by refinement with doubled residuals, while that gains anything."""
    size, driven, last = basis.now[SIZE], basis.now[ROW], np.inf
    force = is_force(basis.now[QUANTITY])
    for _ in range(6):
        precise_residuals(contacts, basis, watch, lift, y, x, constant)
        if force:
            basis.residual[driven] = driven_force(contacts, cells, basis, y)
        basis.residual[driven] -= 1.0 - constant
        worst, largest = largest_of(basis.residual, size), max(constant, largest_of(y, size))
        if worst <= 1e-16 * largest or worst > 0.5 * last:
            return
        last = worst
        times(basis.inverse, basis.residual, size, basis.product)
        for q in range(size):
            y[q] -= basis.product[q]


@kernel
def precise_residuals(contacts, basis, watch, lift, y, x, constant):
    """x and all velocity rows in doubled precision: of the unknowns (constant 1) or of their rates (constant 0)."""
    size, low = basis.now[SIZE], watch.low
    for l in range(len(x)):
        x[l], low[l] = add_product(y[0], lift[l], constant * contacts.free[l], 0.0)
    for q in range(1, size):
        segment, column = contacts.segments[basis.column_contact[q]], basis.columns[q]
        place = 0
        for s in range(2):
            for l in range(segment[2 * s], segment[2 * s] + segment[2 * s + 1]):
                x[l], low[l] = add_product(y[q], column[place], x[l], low[l])
                place += 1
    for r in range(size):
        segment, row = contacts.segments[basis.row_contact[r]], basis.rows[r]
        high, rest = add_product(basis.row_cover[r], y[0], constant * basis.row_bias[r], 0.0)
        place = 0
        for s in range(2):
            for l in range(segment[2 * s], segment[2 * s] + segment[2 * s + 1]):
                high, rest = add_product(row[place], x[l], high, rest)
                rest += row[place] * low[l]
                place += 1
        basis.residual[r] = high + rest
    for l in range(len(x)):
        x[l] += low[l]

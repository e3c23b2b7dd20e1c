"""Lemke's path through the cells of the contacts: the pyramid law without its d + 2 complementary pairs a contact.

With an artificial variable z0 and a cover c of each contact, u_i = rows_i x + bias_i + c_i z0. For large z0 all
contacts are separated; the path is followed from there to z0 = 0, and each contact is in one cell of `cells` meanwhile.
So the basis has at most as many unknowns as there are velocities (and z0), however many contacts and facets there are.
The cover is zero on the rows of the friction bound: the copositivity argument needs only c_n > mu |c_t|, and no cover
has to grow.

Guaranteed in exact arithmetic to end in a solution or in a ray, as Lemke's method on the pyramid LCP (copositive). In
floating point: a random cover a contact, so that structured problems have no ties; Harris' two-pass ratio test; z0
leaves as soon as z0 = 0 violates nothing by more than the slack; the equations are checked at each pivot; a path that
fails, or whose answer fails the natural map, is followed again with another cover, other tolerances and residuals in
doubled precision.

[Lloyd2004, §5 and appendix D] for the reduced method that this one restates; [Lemke1965].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.compiled import in_callers, kernel, sums, workspace
from stiction.layout import Floats, Ints, layout
from stiction.linear import invert, times
from stiction.problems.box_friction import as_pyramid
from stiction.problems.laws import BoxFriction, Coulomb
from stiction.problems.pyramid import pyramid_directions
from stiction.solutions.status import Status
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
    SEPARATED,
    SIGMA,
    SIZE,
    SMOOTH,
    THETA,
    TURN,
    VERTEX,
    Basis,
    Cells,
    Contacts,
    coupling,
    cross,
    driven_force,
    impulses,
    is_force,
    neighbour,
    velocity_add,
    velocity_dot,
)
from stiction.solvers.cell_lemke.start import recall, sector
from stiction.solvers.contract import STATUS, ContactProposal, Contract

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

SOLVED, RAY, MAX_ITERATIONS, SINGULAR = (
    int(s) for s in (Status.SOLVED, Status.RAY, Status.MAX_ITERATIONS, Status.SINGULAR)
)
NOTHING, ARTIFICIAL = -1, -2  # what blocks, besides the watched quantities

SLACK = 1e-10  # how far a watched quantity may overshoot zero
SLACK_OF_LARGEST = 1e-15  # the same, in units of the largest unknown
SLOW = 1e-10  # slower quantities do not block, in units of the fastest unknown
STANDS = 1e-14  # z0 that falls slower stands still, in the same units: the path is a ray
SAFE = 1.0 + 4e-16  # rounding of a ratio
LOST = 1e-5  # a watched quantity more negative than this has left the path
REFINE, REFACTOR = 1e-13, 1e-11  # equation residuals at which the unknowns are corrected, and the inverse rebuilt
POLISH = 1e-13  # natural map above which the final basis is refined in doubled precision
NONE = np.empty((0, 3))
ACCEPT = 1e-9  # natural map of an answer that needs no further try
COVER_TANGENT, COVER_MARGIN = 0.25, 10.0  # sizes of c_t (over mu, if mu > 1) and c_d; c_n is in [1, 2]


@dataclass(frozen=True)
class CellLemke:
    """Lemke's method on the contact cells, for `Coulomb(facets=d)`.

    seed: of the random covers; the same seed gives the same answer
    tries: paths followed before giving up
    max_pivots: limit of one path; 20 (n + m) + 50 if not given
    """

    seed: int = 1
    tries: int = 8
    max_pivots: int | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="a solution or a ray, on pyramids with any number of facets",
        cost="about as many pivots as contacts close or slide, each O(n + k²), k <= m unknowns",
        choose="friction pyramids and boxes: the default",
        warm=True,
        laws=("pyramid", "box"),
    )

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        if isinstance(problem.law, BoxFriction):
            problem = as_pyramid(problem)  # a box is a pyramid with four facets: the same law, impulse by impulse
        law = problem.law
        assert isinstance(law, Coulomb)
        assert law.facets is not None
        white = problem.whitened
        directions = pyramid_directions(law.facets, law.rotation, problem.dim)
        n, _, width = white.rows.shape
        m = white.free.size
        limit = 20 * (n + m) + 50 if self.max_pivots is None else self.max_pivots
        work = workspace(*sizes(n, m, width, len(directions)))
        impulse, ray = np.empty((2, n, 3))
        first = NONE if start is None else white.scaled(start)
        status, pivots, used, _ = cell_lemke(
            white.rows, fixed(white.segments), white.free, white.bias, fixed(white.friction), white.scale,
            directions, first, self.seed % 2**32, max(1, self.tries), limit, *work, impulse, ray,
        )  # fmt: skip
        trace = (f"{used} covers tried",) if used > 1 else ()
        direction = white.impulse(ray) if status == RAY else None
        return ContactProposal(STATUS[status], pivots, white.impulse(impulse), direction, trace)


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of what is read-only for some problems: kernels are compiled once for both."""
    view = array.view()
    view.flags.writeable = False
    return view


class Watch(NamedTuple):
    """Quantities that approach zero, and scratch to find them."""

    gap: Array[Floats, "hits"]  # how far from zero
    speed: Array[Floats, "hits"]  # how fast towards it
    quantity: Array[Ints, "hits"]
    contact: Array[Ints, "hits"]
    which: Array[Ints, "hits"]  # direction of a σ, side of a turn
    normal: Array[Floats, "n"]  # normal velocities
    normal_rate: Array[Floats, "n"]
    weight: Array[Floats, "n"]  # what a velocity of the normal form counts for in the problem's own units; at least one
    low: Array[Floats, "m"]  # low parts of x in doubled precision
    groups: Array[Ints, "n + 1"]  # first contacts of groups that touch the same velocities; n after the last


class Path(NamedTuple):
    """Everything a path is followed with."""

    contacts: Contacts
    cells: Cells
    basis: Basis
    watch: Watch
    lift: Array[Floats, "m"]  # what a unit of z0 adds to x, for the structured method
    candidate: Array[Floats, "n", 3]


layout(Watch, "n", "m", "d", hits="n * (d + 2)")
sizes, views = layout(Path, "n", "m", "K", "d")


@kernel
def carve(rows, segments, free, bias, friction, directions, floats, ints):
    n, m, width, d = len(rows), len(free), rows.shape[2], len(directions)
    return views(n, m, width, d, rows, segments, free, bias, friction, directions, floats, ints)


@kernel
def cell_lemke(
    rows, segments, free, bias, friction, scale, directions, start, seed, tries, max_pivots, floats, ints, impulse, ray
):
    """Follow paths until an answer is good. Returns (status, pivots, paths, natural map).

    start: (n, 3) impulses whose cells are tried first; (0, 3) if there are none
    impulse, ray: (n, 3) the best answer, and the direction of the last path that did not end
    """
    contacts, cells, basis, watch, _, candidate = carve(rows, segments, free, bias, friction, directions, floats, ints)
    prepare(contacts, watch, scale, impulse)
    status, pivots, residual = SINGULAR, 0, np.inf
    if len(start) > 0 and recall(contacts, cells, basis, start):
        impulses(contacts, cells, basis.y, impulse)
        residual = natural_map(contacts, basis, watch, impulse)
        if residual <= ACCEPT:
            return SOLVED, 0, 0, residual
        residual = np.inf
    random = start_random(seed)
    for attempt in range(tries):
        slack, slow, size = tolerances(attempt)
        random = draw_cover(contacts, random, size * COVER_MARGIN)
        ended, count = follow(contacts, cells, basis, watch, slack, slow, attempt > 0, max_pivots)
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
def prepare(contacts, watch, scale, impulse):
    """What does not depend on the path; no impulses to begin with."""
    group(contacts, watch)
    weigh(contacts, watch, scale)
    for i in range(len(impulse)):
        impulse[i, 0] = impulse[i, 1] = impulse[i, 2] = 0.0


@kernel
def tolerances(attempt):
    """Slack, slowness, size of the cover: what failed with one set is tried with others, wider and narrower."""
    if attempt % 4 == 1:
        return SLACK, 10.0 * SLOW, 0.1
    if attempt % 4 == 2:
        return 0.1 * SLACK, 0.1 * SLOW, 10.0
    if attempt % 4 == 3:
        return 10.0 * SLACK, 100.0 * SLOW, 1.0
    return SLACK, SLOW, 1.0


@kernel
def copy_impulse(source, target):
    for i in range(len(target)):
        for c in range(3):
            target[i, c] = source[i, c]


@kernel
def group(contacts, watch):
    """Neighbouring contacts that touch the same velocities, so that their normals are treated together."""
    segments, count = contacts.segments, 0
    for i in range(len(segments)):
        for l in range(len(contacts.normals)):
            contacts.normals[l, i] = contacts.rows[i, 0, l]
        if (
            i == 0
            or segments[i, 0] != segments[i - 1, 0]
            or segments[i, 1] != segments[i - 1, 1]
            or segments[i, 2] != segments[i - 1, 2]
            or segments[i, 3] != segments[i - 1, 3]
        ):
            watch.groups[count] = i
            count += 1
    for g in range(count, len(watch.groups)):
        watch.groups[g] = len(segments)


@kernel
def weigh(contacts, watch, scale):
    """A unit of the normal form, over the largest free contact velocity, in m/s both.

    Contacts of light bodies are fast in m/s: where heavy ones are near, they need the smaller tolerances.
    """
    fastest = 0.0
    for i in range(len(scale)):
        for c in range(3):
            u = velocity_dot(contacts.rows[i, c], contacts.segments[i], contacts.free) + contacts.bias[i, c]
            fastest = max(fastest, abs(u) / scale[i])
    for i in range(len(scale)):
        watch.weight[i] = max(1.0, 1.0 / (scale[i] * fastest)) if fastest > 0.0 else 1.0


@kernel
def start_random(seed):
    """A state of Marsaglia's xorshift, never zero, and far from that of the next seed."""
    random = (np.uint64(88172645463325252) ^ (np.uint64(seed) << np.uint64(17))) | np.uint64(1)
    for _ in range(16):
        random = advance_random(random)
    return random


@in_callers
@kernel
def advance_random(random):
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random


@in_callers
@kernel
def uniform(random):
    return float(random >> np.uint64(11)) * 1.1102230246251565e-16


@kernel
def draw_cover(contacts, random, margin):
    """c_n in [1, 2], c_n > mu |c_t|, c_d in margin [1, 2]; no two contacts alike, so that structure makes no ties."""
    for i in range(len(contacts.cover)):
        tangent = COVER_TANGENT / max(1.0, contacts.friction[i])
        random = advance_random(random)
        contacts.cover[i, 0] = 1.0 + uniform(random)
        random = advance_random(random)
        contacts.cover[i, 1] = tangent * (2.0 * uniform(random) - 1.0)
        random = advance_random(random)
        contacts.cover[i, 2] = tangent * (2.0 * uniform(random) - 1.0)
        random = advance_random(random)
        contacts.cover[i, 3] = margin * (1.0 + uniform(random))
    return random


@kernel
def follow(contacts, cells, basis, watch, slack, slow, precise, max_pivots):
    """The path from z0 = infinity to z0 = 0. Returns (status, pivots)."""
    i = enter(contacts, cells, basis, watch)
    if i < 0:
        return SOLVED, 0
    quantity, which = NU, 0
    for pivots in range(1, max_pivots + 1):
        if not cross(contacts, cells, basis, quantity, i, which):
            return SINGULAR, pivots
        if not hold_equations(contacts, cells, basis):
            return SINGULAR, pivots
        rates(contacts, basis)
        if precise:
            refine(contacts, cells, basis, watch, basis.y, basis.x, 1.0)
            refine(contacts, cells, basis, watch, basis.rate, basis.x_rate, 0.0)
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
def enter(contacts, cells, basis, watch):
    """z0 enters at the least value that separates all contacts; the contact that it just separates, -1 if z0 = 0."""
    for l in range(len(basis.x)):
        basis.x[l] = contacts.free[l]
    normal_velocities(contacts, watch, basis.x, watch.normal)
    deepest, z0 = -1, 0.0
    for i in range(len(cells.state)):
        cells.state[i] = SEPARATED
        needed = -(watch.normal[i] + contacts.bias[i, 0]) / contacts.cover[i, 0]
        if needed > z0:
            deepest, z0 = i, needed
    basis.now[SIZE], basis.now[ROW] = 0, 0
    if deepest >= 0:
        basis.now[SIZE] = 1
        basis.column_contact[0], basis.column_role[0], basis.row_contact[0], basis.row_role[0] = 0, 0, deepest, NO_ROLE
        basis.inverse[0, 0] = 1.0 / contacts.cover[deepest, 0]
        basis.y[0] = z0
    return deepest


@in_callers
@sums
def normal_velocities(contacts, watch, x, out):
    """rows_n x of every contact, group by group."""
    segments, normals, groups = contacts.segments, contacts.normals, watch.groups
    g, first = 0, 0
    while first < len(out):
        end = groups[g + 1]
        part = out[first:end]
        for i in range(len(part)):
            part[i] = 0.0
        place = 0
        for s in range(2):
            start, length = segments[first, 2 * s], segments[first, 2 * s + 1]
            l = 0
            while l + 6 <= length:
                x0, x1, x2 = x[start + l], x[start + l + 1], x[start + l + 2]
                x3, x4, x5 = x[start + l + 3], x[start + l + 4], x[start + l + 5]
                n0, n1, n2 = normals[place + l], normals[place + l + 1], normals[place + l + 2]
                n3, n4, n5 = normals[place + l + 3], normals[place + l + 4], normals[place + l + 5]
                for i in range(first, end):
                    out[i] += x0 * n0[i] + x1 * n1[i] + x2 * n2[i] + x3 * n3[i] + x4 * n4[i] + x5 * n5[i]
                l += 6
            while l < length:
                x0, n0 = x[start + l], normals[place + l]
                for i in range(first, end):
                    out[i] += x0 * n0[i]
                l += 1
            place += length
        first = end
        g += 1


@in_callers
@kernel
def hold_equations(contacts, cells, basis):
    """Check all rows = 0; refine the unknowns, or rebuild the inverse, as far as needed. False if it is singular."""
    drift = residuals(contacts, basis)
    if drift <= REFINE:
        return True
    correct(basis)
    drift = residuals(contacts, basis)
    if drift <= REFACTOR:
        return True
    if not rebuild(contacts, cells, basis):
        return False
    correct(basis)
    residuals(contacts, basis)
    return True


@in_callers
@sums
def residuals(contacts, basis):
    """x and the values of all rows but the driven one, from the unknowns; the largest of them."""
    segments = contacts.segments
    size, driven, z0 = basis.now[SIZE], basis.now[ROW], basis.y[0]
    for l in range(len(basis.x)):
        basis.x[l] = contacts.free[l]
    add_unknowns(contacts, basis, basis.y, basis.x)
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
def add_unknowns(contacts, basis, y, x):
    for q in range(1, basis.now[SIZE]):
        velocity_add(x, y[q], basis.columns[q], contacts.segments[basis.column_contact[q]])


@in_callers
@kernel
def correct(basis):
    """One step of iterative refinement."""
    size = basis.now[SIZE]
    times(basis.inverse, basis.residual, size, basis.product)
    for q in range(size):
        basis.y[q] -= basis.product[q]


@kernel
def rebuild(contacts, cells, basis):
    """The inverse from the rows and columns; False if they are singular."""
    K, size, driven = basis.inverse, basis.now[SIZE], basis.now[ROW]
    for r in range(size):
        contact = basis.row_contact[r]
        K[r, 0] = basis.row_cover[r]
        for q in range(1, size):
            K[r, q] = coupling(
                basis.rows[r], contacts.segments[contact],
                basis.columns[q], contacts.segments[basis.column_contact[q]],
            )  # fmt: skip
    if is_force(basis.now[QUANTITY]):
        for q in range(size):
            basis.product[q] = 0.0
        for q in range(size):
            basis.product[q] = 1.0
            K[driven, q] = driven_force(contacts, cells, basis, basis.product)
            basis.product[q] = 0.0
    return invert(K, basis.order, size)


@in_callers
@sums
def rates(contacts, basis):
    """Of all unknowns and of x, as the driven row grows."""
    for q in range(basis.now[SIZE]):
        basis.rate[q] = basis.inverse[q, basis.now[ROW]]
    for l in range(len(basis.x)):
        basis.x_rate[l] = 0.0
    add_unknowns(contacts, basis, basis.rate, basis.x_rate)


@in_callers
@sums
def advance(basis, step):
    for q in range(basis.now[SIZE]):
        basis.y[q] += step * basis.rate[q]
    for l in range(len(basis.x)):
        basis.x[l] += step * basis.x_rate[l]


@in_callers
@kernel
def blocking(contacts, cells, basis, watch, slack, slow):
    """What the path meets first. Returns (which entry of `watch`, step, whether the path is lost)."""
    fastest, largest = largest_of(basis.rate, basis.now[SIZE]), largest_of(basis.y, basis.now[SIZE])
    count = approaching(contacts, cells, basis, watch, slow * fastest)
    return harris(basis, watch, count, slack, fastest, largest)


@in_callers
@kernel
def harris(basis, watch, count, slack, fastest, largest):
    """Harris' two passes over what approaches zero.

    z0 leaves if stepping to z0 = 0 violates nothing by more than the slack: a test for small z0 would stop too early
    where unknowns change fast with it, and too late where many quantities vanish together with it.
    """
    rounding = SLACK_OF_LARGEST * largest
    gap, speed = watch.gap, watch.speed
    bound, lowest = np.inf, 0.0
    for h in range(count):
        lowest = min(lowest, gap[h])
        gap[h] = max(gap[h], 0.0)
        allowed = max(slack / watch.weight[watch.contact[h]], rounding)
        bound = min(bound, (gap[h] + allowed) / speed[h])
    if lowest < -LOST * max(1.0, 1e-6 * largest):
        return NOTHING, 0.0, True
    if -basis.rate[0] > STANDS * fastest and basis.y[0] <= bound * -basis.rate[0]:
        return ARTIFICIAL, basis.y[0] / -basis.rate[0], False
    best, fast = NOTHING, 0.0
    for h in range(count):
        if speed[h] > fast and gap[h] <= bound * speed[h] * SAFE:
            best, fast = h, speed[h]
    return best, gap[best] / fast if best >= 0 else 0.0, False


@in_callers
@sums
def approaching(contacts, cells, basis, watch, slow):
    """Collect the quantities of the table that fall faster than `slow`; how many."""
    y, rate, d = basis.y, basis.rate, contacts.directions
    z0, z0_rate = y[0], rate[0]
    normal_velocities(contacts, watch, basis.x, watch.normal)
    normal_velocities(contacts, watch, basis.x_rate, watch.normal_rate)
    count = 0
    for i in range(len(cells.state)):
        state, cover = cells.state[i], contacts.cover[i]
        if state == SEPARATED:
            nu_rate = watch.normal_rate[i] + cover[0] * z0_rate
            if nu_rate < -slow:
                nu = watch.normal[i] + contacts.bias[i, 0] + cover[0] * z0
                count = note(watch, count, nu, nu_rate, slow, NU, i, 0)
            continue
        column, mu = cells.column[i], contacts.friction[i]
        theta, theta_rate = y[column[NORMAL]], rate[column[NORMAL]]
        if state <= FREE or state == VERTEX:
            count = note(watch, count, theta, theta_rate, slow, THETA, i, 0)
            if state == SMOOTH:
                continue
        else:  # line, corner, edge
            p = column[FIRST]
            count = note(watch, count, y[p], rate[p], slow, FIRST_FORCE, i, 0)
            room, room_rate = mu * theta - y[p], mu * theta_rate - rate[p]
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
                    gap, gap_rate = first * u1 + second * u2, first * u1_rate + second * u2_rate
                    count = note(watch, count, gap, gap_rate, slow, TURN, i, side)
    return count


@in_callers
@sums
def velocities(contacts, basis, i, tangent):
    """A tangential velocity of contact i with its cover, and its rate."""
    row, segment, cover = contacts.rows[i, tangent], contacts.segments[i], contacts.cover[i, tangent]
    u = velocity_dot(row, segment, basis.x) + contacts.bias[i, tangent] + cover * basis.y[0]
    return u, velocity_dot(row, segment, basis.x_rate) + cover * basis.rate[0]


@in_callers
@kernel
def note(watch, count, value, rate, slow, quantity, i, which):
    if rate < -slow:
        watch.gap[count], watch.speed[count] = value, -rate
        watch.quantity[count], watch.contact[count], watch.which[count] = quantity, i, which
        return count + 1
    return count


# Doubled precision: a value is a sum of two doubles.


@in_callers
@kernel
def add_product(a, b, high, low):
    """(high, low) + a b, the product by Dekker's splitting, the sum by Knuth's."""
    product = a * b
    t = 134217729.0 * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = 134217729.0 * b
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = high + product
    part = total - high
    return total, low + ((high - (total - part)) + (product - part)) + error


@kernel
def precise_residuals(contacts, basis, watch, y, x, constant, skipped):
    """x and all rows but one in doubled precision: of the unknowns (constant 1) or of their rates (constant 0)."""
    size, low = basis.now[SIZE], watch.low
    for l in range(len(x)):
        x[l], low[l] = constant * contacts.free[l], 0.0
    for q in range(1, size):
        segment, column = contacts.segments[basis.column_contact[q]], basis.columns[q]
        place = 0
        for s in range(2):
            for l in range(segment[2 * s], segment[2 * s] + segment[2 * s + 1]):
                x[l], low[l] = add_product(y[q], column[place], x[l], low[l])
                place += 1
    for r in range(size):
        basis.residual[r] = 0.0
        if r != skipped:
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


@kernel
def refine(contacts, cells, basis, watch, y, x, constant):
    """Unknowns (constant 1) or rates (constant 0) by refinement with doubled residuals, while that gains anything."""
    size, driven, last = basis.now[SIZE], basis.now[ROW], np.inf
    force = is_force(basis.now[QUANTITY])
    for _ in range(6):
        precise_residuals(contacts, basis, watch, y, x, constant, driven if force else -1)
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


@in_callers
@kernel
def largest_of(values, size):
    largest = 0.0
    for i in range(size):
        largest = max(largest, abs(values[i]))
    return largest


@kernel
def polish(contacts, basis, watch):
    """The final basis, with z0 = 0 in place of the driven row, by refinement with doubled residuals."""
    K, size, driven, y = basis.inverse, basis.now[SIZE], basis.now[ROW], basis.y
    last = np.inf
    for _ in range(5):
        precise_residuals(contacts, basis, watch, y, basis.x, 1.0, driven)
        worst = largest_of(basis.residual, size)
        if worst < 1e-15 or worst > 0.5 * last:
            return
        last = worst
        times(K, basis.residual, size, basis.product)
        along = basis.product[0] / K[0, driven]
        for q in range(size):
            y[q] += along * K[q, driven] - basis.product[q]
        y[0] = 0.0


@sums
def natural_map(contacts, basis, watch, impulse):
    """The judge's residual, from the impulses alone: largest violation of the normal and the friction law.

    In units of the largest free contact velocity: in m/s both, and at least as large as in the normal form.
    """
    x, segments, d = basis.x, contacts.segments, contacts.directions
    for l in range(len(x)):
        x[l] = contacts.free[l]
    for i in range(len(impulse)):
        for c in range(3):
            if impulse[i, c] != 0.0:
                velocity_add(x, impulse[i, c], contacts.rows[i, c], segments[i])
    worst = 0.0
    for i in range(len(impulse)):
        nu = velocity_dot(contacts.rows[i, 0], segments[i], x) + contacts.bias[i, 0]
        here = abs(min(nu, impulse[i, 0]))
        if contacts.friction[i] > 0.0:
            u1 = velocity_dot(contacts.rows[i, 1], segments[i], x) + contacts.bias[i, 1]
            u2 = velocity_dot(contacts.rows[i, 2], segments[i], x) + contacts.bias[i, 2]
            here = max(
                here, friction_map(d, contacts.friction[i] * impulse[i, 0], impulse[i, 1], impulse[i, 2], u1, u2)
            )
        worst = max(worst, here * watch.weight[i])
    return worst


@sums
def friction_map(d, bound, p1, p2, u1, u2):
    """Largest of |min(bound − Σ p, λ)| and |min(p_j, σ_j)|, λ the sliding speed along the pyramid's directions."""
    lam, count = 0.0, len(d)
    for j in range(count):
        lam = max(lam, -(d[j, 0] * u1 + d[j, 1] * u2))
    b, o, p_b, p_o = sector(d, p1, p2)
    worst = abs(min(bound - p_b - p_o, lam))
    for j in range(count):
        p = p_b if j == b else p_o if j == o else 0.0
        worst = max(worst, abs(min(d[j, 0] * u1 + d[j, 1] * u2 + lam, p)))
    return worst

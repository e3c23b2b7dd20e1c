"""Lemke's path on contacts: u_i = rows_i x + bias_i + c_i z0, followed from z0 = infinity to z0 = 0.

For large z0 all contacts are separated. On the way down each contact is in one cell of `cells`; a pivot is one crossing
to a neighbouring cell. The three methods of `cells` share all of this.

In floating point: a random cover for every contact, so that structured problems have no ties; Harris' two-pass ratio
test; z0 leaves as soon as z0 = 0 violates nothing by more than the slack; the equations are checked at each pivot. A
path that fails, or whose answer fails the natural map, is followed again with another cover and residuals
in doubled precision.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

import numpy as np

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.arrays.dense import times
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import same_runs
from stiction.solutions.status import Status
from stiction.solvers.contact.cell_lemke.answer import impulses, natural_map, read_answer
from stiction.solvers.contact.cell_lemke.basis import rebuild
from stiction.solvers.contact.cell_lemke.cells import (
    CELLS,
    FREE,
    INACTIVE,
    NO_ROLE,
    NORMAL,
    NU,
    ROW,
    SEPARATED,
    SIGMA,
    SIZE,
    SLIDING,
    SMOOTH,
    STRUCTURAL,
    Basis,
    Cells,
    Contacts,
)
from stiction.solvers.contact.cell_lemke.cover import draw_cover, start_random
from stiction.solvers.contact.cell_lemke.crossings import cross
from stiction.solvers.contact.cell_lemke.precision import refine
from stiction.solvers.contact.cell_lemke.ratio_test import ARTIFICIAL, NOTHING, blocking, normal_velocities
from stiction.solvers.contact.cell_lemke.runs import velocity_add, velocity_dot
from stiction.solvers.contact.cell_lemke.start import recall
from stiction.solvers.contact.cell_lemke.tolerances import REFACTOR, REFINE
from stiction.solvers.tolerances import ACCEPT

SOLVED, RAY, MAX_ITERATIONS, SINGULAR = (
    int(s) for s in (Status.SOLVED, Status.RAY, Status.MAX_ITERATIONS, Status.SINGULAR)
)
METHOD, SEED, COVERS, MAX_PIVOTS, AFRESH = range(5)  # places in the options of `follow_paths`


class Watch(NamedTuple):
    """Quantities that approach zero, and scratch to find them."""

    gap: Array[Floats, "hits"]  # how far from zero
    speed: Array[Floats, "hits"]  # how fast towards it
    quantity: Array[Ints, "hits"]
    contact: Array[Ints, "hits"]
    which: Array[Ints, "hits"]  # direction of a σ, side of a turn
    normal: Array[Floats, "n"]  # normal velocities
    normal_rate: Array[Floats, "n"]
    weight: Array[Floats, "n"]  # a unit of velocity of the normal form, in the problem's own units; at least one
    low: Array[Floats, "m"]  # low parts of x in doubled precision
    groups: Array[Ints, "n + 1"]  # first contacts of groups that touch the same velocities; n after the last


class Path(NamedTuple):
    """Everything a path is followed with."""

    contacts: Contacts
    cells: Cells
    basis: Basis
    watch: Watch
    candidate: Array[Floats, "n", 3]


layout(Watch, "n", "m", "d", hits="n * (d + 3)")  # free: d and θ; a line, which may have d = 2: five
sizes, views = layout(Path, "n", "m", "K", "d")


@kernel
def follow_paths(rows, segments, free, bias, friction, scale, directions, start, options, floats, ints, out):
    """Follow paths until an answer is good. Returns (status, pivots, paths, natural map).

    start: (n, 3) impulses whose cells are tried first; (0, 3) if there are none
    options: numbers at `METHOD`, `SEED`, `COVERS` (most paths), `MAX_PIVOTS`, `AFRESH`
    out: (2, n, 3) the best answer, and the direction of the last path that ended in a ray
    """
    contacts, cells, basis, watch, candidate = views(
        len(rows), len(free), rows.shape[2], len(directions),
        rows, segments, free, bias, friction, directions, options[METHOD], floats, ints,
    )  # fmt: skip
    impulse, ray = out[0], out[1]
    prepare(contacts, watch, scale, impulse)
    # The cells of the start are the answer if they obey the law.
    if len(start) > 0 and recall(contacts, cells, basis, start):
        impulses(contacts, cells, basis.y, impulse)
        residual = natural_map(contacts, basis, watch, impulse)
        if residual <= ACCEPT:
            return SOLVED, 0, 0, residual
    # Else paths with one cover after another; the best answer is kept.
    status, pivots, residual = SINGULAR, 0, np.inf
    random = start_random(options[SEED])
    for attempt in range(options[COVERS]):
        random = draw_cover(contacts, random)
        ended, count = follow(contacts, cells, basis, watch, attempt > 0, options[MAX_PIVOTS], options[AFRESH])
        pivots += count
        # A better answer is kept; where there is none, the status and the direction of the last path.
        if ended == SOLVED:
            found = read_answer(contacts, cells, basis, watch, candidate)
            if found < residual:
                status, residual = SOLVED, found
                copy_impulse(candidate, impulse)
            if residual <= ACCEPT:
                return status, pivots, attempt + 1, residual
        else:
            if residual == np.inf:
                status = ended
            if ended == RAY:
                impulses(contacts, cells, basis.rate, ray)
    return status, pivots, options[COVERS], residual


@kernel
def prepare(contacts, watch, scale, impulse):
    """Fill in what no path changes; no impulses to begin with."""
    group(contacts, watch)
    weigh(contacts, watch, scale)
    for i in range(len(impulse)):
        impulse[i, 0] = impulse[i, 1] = impulse[i, 2] = 0.0


@kernel
def group(contacts, watch):
    """Group neighbouring contacts that touch the same velocities, so that their normals are treated together."""
    segments, count = contacts.segments, 0
    for i in range(len(segments)):
        for l in range(len(contacts.normals)):
            contacts.normals[l, i] = contacts.rows[i, 0, l]
        if i == 0 or not same_runs(segments[i], segments[i - 1]):
            watch.groups[count] = i
            count += 1
    for g in range(count, len(watch.groups)):
        watch.groups[g] = len(segments)


@kernel
def weigh(contacts, watch, scale):
    """A unit of the normal form, over the largest free contact velocity, both in m/s.

    Contacts of light bodies are fast in m/s: beside heavy bodies they need the smaller tolerances.
    """
    fastest = 0.0
    for i in range(len(scale)):
        for c in range(3):
            u = velocity_dot(contacts.rows[i, c], contacts.segments[i], contacts.free) + contacts.bias[i, c]
            fastest = max(fastest, abs(u) / scale[i])
    for i in range(len(scale)):
        watch.weight[i] = max(1.0, 1.0 / (scale[i] * fastest)) if fastest > 0.0 else 1.0


@kernel
def copy_impulse(source, target):
    for i in range(len(target)):
        for c in range(3):
            target[i, c] = source[i, c]


@kernel
def follow(contacts, cells, basis, watch, precise, max_pivots, afresh):
    """The path from z0 = infinity to z0 = 0. Returns (status, pivots).

    precise: whether residuals are in doubled precision
    afresh: inverses of up to this many unknowns are computed anew at every pivot
    """
    quantity, i, which = enter(contacts, cells, basis, watch)
    if i < 0:
        return SOLVED, 0
    for pivots in range(1, max_pivots + 1):
        # Cross to the next cell, and see that the equations hold there.
        if not cross(contacts, cells, basis, quantity, i, which):
            return SINGULAR, pivots
        if not hold_equations(contacts, cells, basis, afresh):
            return SINGULAR, pivots
        # The direction of the path, and the first quantity that vanishes along it.
        rates(contacts, basis)
        if precise:
            refine(contacts, cells, basis, watch, basis.y, basis.x, 1.0)
            refine(contacts, cells, basis, watch, basis.rate, basis.x_rate, 0.0)
        hit, step, lost = blocking(contacts, cells, basis, watch)
        if lost:
            return SINGULAR, pivots
        if hit == NOTHING:
            return RAY, pivots
        # Go there; at z0 = 0 the path ends.
        advance(basis, step)
        if hit == ARTIFICIAL:
            basis.y[0] = 0.0
            return SOLVED, pivots
        quantity, i, which = watch.quantity[hit], watch.contact[hit], watch.which[hit]
    return MAX_ITERATIONS, max_pivots


@kernel
def enter(contacts, cells, basis, watch):
    """z0 enters at the least value that makes all watched velocities >= 0.

    Returns the (quantity, contact, which) that vanishes there; contact -1 if z0 = 0 is enough.
    """
    d = contacts.directions
    for l in range(len(basis.x)):
        basis.x[l] = contacts.free[l]
        basis.lift[l] = 0.0
    normal_velocities(contacts, watch, basis.x, watch.normal)
    quantity, deepest, which, z0 = NU, -1, 0, 0.0
    for i in range(len(cells.state)):
        # All contacts are open; the one approaching fastest, relative to its cover, needs the most of z0.
        cover, bias = contacts.cover[i], contacts.bias[i]
        cells.state[i], cells.column[i, NORMAL] = SEPARATED if contacts.method == CELLS else SMOOTH, INACTIVE
        needed = -(watch.normal[i] + bias[0]) / cover[0]
        if needed > z0:
            quantity, deepest, which, z0 = NU, i, 0, needed
        # In the structural method they have their friction, and so the sliding along each direction is watched, too.
        if contacts.method == STRUCTURAL and contacts.friction[i] > 0.0:
            cells.state[i] = FREE
            u1 = velocity_dot(contacts.rows[i, 1], contacts.segments[i], basis.x) + bias[1]
            u2 = velocity_dot(contacts.rows[i, 2], contacts.segments[i], basis.x) + bias[2]
            for j in range(len(d)):
                needed = -(d[j, 0] * u1 + d[j, 1] * u2) / (d[j, 0] * cover[1] + d[j, 1] * cover[2] + cover[SLIDING])
                if needed > z0:
                    quantity, deepest, which, z0 = SIGMA, i, j, needed
    # z0 is the only unknown. The first crossing replaces its row, so that any multiple of it will do as the driven one.
    basis.now[SIZE], basis.now[ROW] = 0, 0
    if deepest >= 0:
        basis.now[SIZE] = 1
        basis.column_contact[0], basis.column_role[0], basis.row_contact[0], basis.row_role[0] = 0, 0, deepest, NO_ROLE
        basis.inverse[0, 0] = 1.0 / contacts.cover[deepest, 0] if contacts.method == CELLS else 1.0
        basis.y[0] = z0
    return quantity, deepest, which


@in_callers
@kernel
def hold_equations(contacts, cells, basis, afresh):
    """Check all rows = 0; correct the unknowns, or rebuild the inverse, as far as needed. False if it is singular."""
    if basis.now[SIZE] <= afresh and not rebuild(contacts, cells, basis):
        return False
    drift = residuals(contacts, basis)
    if drift <= REFINE:
        return True
    # One correction is enough for a good inverse; a poor one is rebuilt.
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
    """x and the values of all rows but the driven one, from the unknowns; returns the largest of these."""
    segments = contacts.segments
    size, driven, z0 = basis.now[SIZE], basis.now[ROW], basis.y[0]
    for l in range(len(basis.x)):
        basis.x[l] = contacts.free[l] + z0 * basis.lift[l]
    add_unknowns(contacts, basis, basis.y, basis.x)
    # The rows of the new x.
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
    """x += columns y, for all unknowns but z0."""
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


@in_callers
@sums
def rates(contacts, basis):
    """Rates of all unknowns and of x, as the driven quantity grows."""
    rate, driven = basis.rate, basis.now[ROW]
    for q in range(basis.now[SIZE]):
        rate[q] = basis.inverse[q, driven]
    for l in range(len(basis.x)):
        basis.x_rate[l] = rate[0] * basis.lift[l]
    add_unknowns(contacts, basis, rate, basis.x_rate)


@in_callers
@sums
def advance(basis, step):
    for q in range(basis.now[SIZE]):
        basis.y[q] += step * basis.rate[q]
    for l in range(len(basis.x)):
        basis.x[l] += step * basis.x_rate[l]

"""Contact without friction, with viscous friction or without slip: one pivoting method on normal rows alone.

    0 <= z  ⊥  w = N x + b >= 0,      x = x_free + Nᵀ z      (mass whitened to one)

N Nᵀ is never formed: rows whose contacts press are members, at most as many as there are freedoms, and only their own
Gram matrix is inverted and updated. So the cost is O(m²) a pivot and O(n m) for all w, linear in the number of
contacts. Viscous friction changes x_free (explicit) or the mass (implicit); no slip is the same problem after the
tangential rows of the closed contacts have been projected out like joints.

[Drumwright2013, Algorithm 1, sec. IV–VI]; the safeguard is Keller's rule, here the dual active-set method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.compiled import kernel, workspace
from stiction.linear import dot, invert, subtract_multiple, times
from stiction.problems.laws import NoSlip, Viscous
from stiction.problems.normal_form import add_row, densified, independent_rows, row_dot
from stiction.solutions.status import Status
from stiction.solvers.basis_inverse import border, strike
from stiction.solvers.contract import STATUS, ContactProposal
from stiction.solvers.principal import MAX_ITERATIONS, RAY, SINGULAR, SOLVED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.problems.normal_form import Whitened

    Vector = NDArray[np.float64]

NOISE = 2e-14  # violations below this part of the largest velocity are rounding
DEPENDENT = 1e-8  # part of a row that the members leave of it, below which it depends on them
DOUBTFUL = 1e-2  # part below which it is computed again with refinement
HELD = 1e-6  # part of a tangential row that others leave of it, below which they hold it already
RELEASES = 60  # changes of the set of closed contacts without slip


def propose(problem: ContactProblem, max_pivots: int | None) -> ContactProposal:
    """Impulses under a law without a friction cone."""
    limit = 10 * problem.n + 50 if max_pivots is None else max_pivots
    if isinstance(problem.law, NoSlip):
        return without_slip(problem, limit)
    if isinstance(problem.law, Viscous):
        return viscous(problem, limit)
    white = problem.whitened
    status, pivots, z, _ = press(white.rows[:, 0], white.segments, white.bias[:, 0], white.free, limit)
    impulse = np.zeros((problem.n, 3))
    impulse[:, 0] = z
    return ContactProposal(status, pivots, white.impulse(impulse))


def viscous(problem: ContactProblem, limit: int) -> ContactProposal:
    """p_t = -c u_t, of the free velocity or of the final one."""
    assert isinstance(problem.law, Viscous)
    assert problem.viscosity is not None
    white = problem.whitened
    m = white.free.size
    # In scaled units p̂ = p / (s τ) and û = u s / τ, so ĉ = c / s².
    c = problem.viscosity / white.scale**2
    tangents = densified(white.rows, white.segments, m)[:, 1:].reshape(-1, m)
    both, offset = np.repeat(c, 2), white.bias[:, 1:].ravel()
    impulse = np.zeros((problem.n, 3))
    if problem.law.implicit:
        # (1 + Tᵀ c T) x = x_free - Tᵀ c b_t + Nᵀ z: whiten once more.
        factor = np.linalg.cholesky(np.eye(m) + (tangents.T * both) @ tangents)
        normals = np.linalg.solve(factor, densified(white.rows, white.segments, m)[:, 0].T).T
        free = np.linalg.solve(factor, white.free - tangents.T @ (both * offset))
        whole = np.tile(np.array([0, m, 0, 0]), (problem.n, 1))
        status, pivots, z, y = press(normals, whole, white.bias[:, 0], free, limit)
        x = np.linalg.solve(factor.T, y)
        impulse[:, 1:] = -(both * (tangents @ x + offset)).reshape(-1, 2)
    else:
        if problem.offset is None:
            sliding = (problem.dense_rows() @ problem.velocity)[:, 1:]
        else:
            sliding = problem.offset.reshape(-1, 3)[:, 1:]
        impulse[:, 1:] = white.scaled(-problem.viscosity[:, None] * sliding)
        free = white.free + tangents.T @ impulse[:, 1:].ravel()
        status, pivots, z, _ = press(white.rows[:, 0], white.segments, white.bias[:, 0], free, limit)
    impulse[:, 0] = z
    return ContactProposal(status, pivots, white.impulse(impulse))


def without_slip(problem: ContactProblem, limit: int) -> ContactProposal:
    """Closed contacts do not slide, open ones carry nothing: the set of closed ones is found by trying.

    All contacts are closed at first, as in the paper. One that then opens is released, one that presses again is
    closed again; when a set returns, only the worst contact changes.
    """
    white = problem.whitened
    n, pivots, one_by_one = problem.n, 0, False
    closed = np.ones(n, bool)
    seen: set[bytes] = set()
    rows = densified(white.rows, white.segments, white.free.size)
    best = ContactProposal(Status.STALLED, 0, np.zeros((n, 3)))
    for change in range(RELEASES):
        status, count, impulse, u = stuck(white, rows, closed, limit)
        pivots += count
        best = ContactProposal(status, pivots, white.impulse(impulse), None, (f"{change} changes of the closed set",))
        if status != Status.SOLVED:
            return best
        size = np.abs(impulse).max(initial=0.0)
        carried = np.abs(impulse[:, 1:]).max(axis=1, initial=0.0)
        opens = closed & (impulse[:, 0] <= NOISE * size) & (u[:, 0] > 1e-12) & (carried > 1e-13 * size)
        presses = ~closed & (impulse[:, 0] > NOISE * size) & (np.abs(u[:, 1:]).max(axis=1, initial=0.0) > 1e-12)
        if not (opens | presses).any():
            return best
        one_by_one = one_by_one or closed.tobytes() in seen
        seen.add(closed.tobytes())
        changing = opens | presses
        if one_by_one:
            worst = int(np.argmax(np.where(opens, u[:, 0] * carried, np.where(presses, impulse[:, 0], -1.0))))
            changing = np.arange(n) == worst
        closed = closed ^ changing
    return best._replace(status=Status.STALLED)


def stuck(white: Whitened, rows: Vector, closed: Any, limit: int) -> tuple[Status, int, Vector, Vector]:
    """No slip at the closed contacts, no friction at the others: (status, pivots, impulses, contact velocities)."""
    n, m = len(rows), white.free.size
    tangents, offset = rows[closed, 1:].reshape(-1, m), white.bias[closed, 1:].ravel()
    basis, kept, triangle = independent_rows(np.ascontiguousarray(tangents), HELD, 1.0)
    wanted = np.linalg.solve(triangle, -offset[kept]) if len(kept) else np.zeros(0)
    free = white.free - basis.T @ (basis @ white.free - wanted)
    normals = rows[:, 0] - (rows[:, 0] @ basis.T) @ basis
    normals[np.linalg.norm(normals, axis=1) <= HELD] = 0.0  # nothing is left that could move
    whole = np.tile(np.array([0, m, 0, 0]), (n, 1))
    status, pivots, z, x = press(normals, whole, white.bias[:, 0], free, limit)
    impulse = np.zeros((n, 3))
    impulse[:, 0] = z
    if len(kept):
        share = np.zeros(len(tangents))
        share[kept] = np.linalg.solve(triangle.T, basis @ (x - white.free - rows[:, 0].T @ z))
        impulse[closed, 1:] = share.reshape(-1, 2)
    return status, pivots, impulse, rows @ x + white.bias


def press(normals: Vector, segments: Any, bias: Vector, free: Vector, limit: int) -> tuple[Status, int, Vector, Vector]:
    """The frictionless problem: (status, pivots, z, x)."""
    n, m = len(normals), free.size
    most = min(n, m) + 1
    work = workspace(2 * m + 3 * n + most * most + 5 * most, n + 2 * most)
    z, x = np.zeros(n), np.empty(m)
    rows, constant = np.ascontiguousarray(normals), np.ascontiguousarray(bias)
    status, pivots = press_contacts(rows, segments, constant, free, limit, *work, z, x)
    return STATUS[status], pivots, z, x


class Pressing(NamedTuple):
    """The state of the method; the normal form's units."""

    normals: Any  # (n, k)
    segments: Any  # (n, 4)
    bias: Any  # (n,)
    free: Any  # (m,)
    x: Any  # (m,)
    z: Any  # (n,)
    w: Any  # (n,)
    size: Any  # (n,) squared lengths of the rows
    rest: Any  # (m,) what the members leave of a row
    inverse: Any  # (k, k) of the members' Gram matrix
    entering: Any  # (k,)
    gathered: Any  # (k,)
    spare: Any  # (k,)
    members: Any  # (k,)
    place: Any  # (n,) among the members, or -1
    pivots: Any  # (k,)


@kernel
def press_contacts(normals, segments, bias, free, limit, floats, ints, z, x):
    """Drumwright's Algorithm 1, then Keller's rule if that does not end. Returns (status, pivots)."""
    n, m = len(z), len(x)
    most = min(n, m) + 1
    f = 2 * n + m
    t = Pressing(
        normals, segments, bias, free, x, z, floats[:n], floats[n : 2 * n], floats[2 * n : f],
        floats[f : f + most * most].reshape((most, most)),
        floats[f + most * most : f + most * most + most],
        floats[f + most * most + most : f + most * most + 2 * most],
        floats[f + most * most + 2 * most : f + most * most + 3 * most],
        ints[n : n + most], ints[:n], ints[n + most : n + 2 * most],
    )  # fmt: skip
    for i in range(n):
        t.size[i] = dot(normals[i], normals[i], normals.shape[1])
    status, pivots = algorithm_1(t, limit)
    if status != SOLVED:
        status, more = keller(t, 100 * n + 200)
        pivots += more
    return status, pivots


@kernel
def release_all(t):
    for i in range(len(t.z)):
        t.z[i], t.place[i] = 0.0, -1
    velocities(t, 0)


@kernel
def velocities(t, k):
    """x and w from z, from scratch."""
    for j in range(len(t.x)):
        t.x[j] = t.free[j]
    for u in range(k):
        i = t.members[u]
        add_row(t.normals[i], t.segments[i], t.z[i], t.x)
    for i in range(len(t.z)):
        t.w[i] = row_dot(t.normals[i], t.segments[i], t.x) + t.bias[i]


@kernel
def correct(t, k):
    """One step of iterative refinement of the members, and everything anew."""
    for u in range(k):
        t.gathered[u] = t.w[t.members[u]]
    times(t.inverse, t.gathered, k, t.spare)
    for u in range(k):
        t.z[t.members[u]] -= t.spare[u]
    velocities(t, k)


@kernel
def algorithm_1(t, limit):
    """The most violated row joins, the most negative member leaves, both in one iteration [Drumwright2013]."""
    release_all(t)
    k, pivots, doubts = 0, 0, 1.0
    while pivots <= limit:
        largest = magnitude(t, k)
        row, lowest = -1, -NOISE * doubts * largest
        for i in range(len(t.z)):
            if t.place[i] < 0 and t.w[i] < lowest and t.size[i] > 0.0:
                row, lowest = i, t.w[i]
        member, lowest = -1, -NOISE * doubts * largest
        for u in range(k):
            if t.z[t.members[u]] < lowest:
                member, lowest = t.members[u], t.z[t.members[u]]
        if row < 0 and member < 0:
            velocities(t, k)
            correct(t, k)
            if settled(t, k, 10.0 * doubts):
                clip(t)
                return SOLVED, pivots
            doubts *= 2.0
            pivots += 1
            continue
        if row >= 0:
            left = leave_of(t, k, row)
            if not left > DEPENDENT * DEPENDENT * t.size[row]:
                return SINGULAR, pivots
            step = -t.w[row] / left
            for u in range(k):
                t.z[t.members[u]] -= step * t.entering[u]
            t.z[row] = step
            k = join(t, k, row, left)
            pivots += 1
        if member >= 0 and t.place[member] >= 0:
            slot = t.place[member]
            share = t.z[member] / t.inverse[slot, slot]
            for u in range(k):
                t.z[t.members[u]] -= share * t.inverse[u, slot]
            k = drop(t, k, slot)
            pivots += 1
        velocities(t, k)
    return MAX_ITERATIONS, pivots


@kernel
def keller(t, limit):
    """Members stay non-negative; the most violated row is driven to zero: the dual active-set method."""
    release_all(t)
    k, pivots, doubts = 0, 0, 1.0
    while pivots <= limit:
        row, lowest = -1, -NOISE * doubts * magnitude(t, k)
        for i in range(len(t.z)):
            if t.place[i] < 0 and t.w[i] < lowest and t.size[i] > 0.0:
                row, lowest = i, t.w[i]
        if row < 0:
            velocities(t, k)
            correct(t, k)
            if settled(t, k, 10.0 * doubts):
                clip(t)
                return SOLVED, pivots
            doubts *= 2.0
            pivots += 1
            if not rebuild(t, k):
                return SINGULAR, pivots
            for u in range(k - 1, -1, -1):
                if t.z[t.members[u]] < 0.0:
                    t.z[t.members[u]] = 0.0
                    k = drop(t, k, u)
            velocities(t, k)
            continue
        while True:
            left = leave_of(t, k, row)
            independent = left > DEPENDENT * DEPENDENT * t.size[row]
            step, blocking = (-t.w[row] / left if independent else np.inf), -1
            for u in range(k):
                if t.entering[u] > 1e-13 and max(t.z[t.members[u]], 0.0) < step * t.entering[u]:
                    step, blocking = max(t.z[t.members[u]], 0.0) / t.entering[u], u
            if step == np.inf:
                return RAY, pivots
            for u in range(k):
                t.z[t.members[u]] -= step * t.entering[u]
            t.z[row] += step
            if independent:
                subtract_multiple(t.x, -step, t.rest, len(t.x))
                t.w[row] += step * left
            pivots += 1
            if blocking < 0:
                k = join(t, k, row, left)
                break
            t.z[t.members[blocking]] = 0.0
            k = drop(t, k, blocking)
            if pivots > limit:
                return MAX_ITERATIONS, pivots
        velocities(t, k)
    return MAX_ITERATIONS, pivots


@kernel
def leave_of(t, k, row):
    """rest = what the members leave of a row, entering = what they take; the squared length of the rest."""
    m = len(t.x)
    for j in range(m):
        t.rest[j] = 0.0
    add_row(t.normals[row], t.segments[row], 1.0, t.rest)
    for u in range(k):
        t.entering[u] = 0.0
    left = t.size[row]
    for _ in range(3):
        for u in range(k):
            i = t.members[u]
            t.gathered[u] = row_dot(t.normals[i], t.segments[i], t.rest)
        times(t.inverse, t.gathered, k, t.spare)
        for u in range(k):
            i = t.members[u]
            t.entering[u] += t.spare[u]
            add_row(t.normals[i], t.segments[i], -t.spare[u], t.rest)
        left = dot(t.rest, t.rest, m)
        if left > DOUBTFUL * t.size[row]:
            break
    return left


@kernel
def join(t, k, row, left):
    border(t.inverse, k, t.entering, t.entering, left)
    t.members[k], t.place[row] = row, k
    return k + 1


@kernel
def drop(t, k, slot):
    strike(t.inverse, k, slot, slot)
    gone, moved = t.members[slot], t.members[k - 1]
    t.members[slot], t.place[moved] = moved, slot
    t.place[gone], t.z[gone] = -1, 0.0
    return k - 1


@kernel
def rebuild(t, k):
    """The inverse of the members' Gram matrix from their rows."""
    for e in range(k):
        for j in range(len(t.x)):
            t.rest[j] = 0.0
        add_row(t.normals[t.members[e]], t.segments[t.members[e]], 1.0, t.rest)
        for u in range(k):
            t.inverse[e, u] = row_dot(t.normals[t.members[u]], t.segments[t.members[u]], t.rest)
    return invert(t.inverse, t.pivots, k)


@kernel
def magnitude(t, k):
    largest = 1.0
    for u in range(k):
        largest = max(largest, abs(t.z[t.members[u]]))
    return largest


@kernel
def settled(t, k, doubts):
    """Whether everything is within bounds up to rounding."""
    allowed = NOISE * doubts * magnitude(t, k)
    for i in range(len(t.z)):
        if t.place[i] >= 0:
            if not (t.z[i] >= -allowed and abs(t.w[i]) <= allowed):  # NaN is not settled
                return False
        elif t.w[i] < -allowed and t.size[i] > 0.0:
            return False
    return True


@kernel
def clip(t):
    for i in range(len(t.z)):
        t.z[i] = max(t.z[i], 0.0)

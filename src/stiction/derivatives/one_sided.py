"""The derivative along a direction at kinks, one-sided: a small complementarity problem.

Contacts that are no kinks keep their modes. At a kink two modes meet, and one complementary pair is left undecided:

    about to open        0 <= change of the impulse along its edge (1, mu g)  ⊥  du_n >= 0
    about to slide       0 <= how far friction falls below its bound          ⊥  speed of sliding >= 0

The latter holds at a point of the edge of the disc, of the ball (with torsion and rolling) or of a side of the polygon,
with outward direction o: the contact slides along -o, friction across o stays what keeps it from sliding across. Parts
that are bounded apart (sliding, spin, rolling) have a pair each; at a vertex there are two, one for each side. Each
pair is an impulse z >= 0 and a velocity w >= 0. With the response of the other contacts, one solve of the linear system
for each, w = H z + q: an LCP as large as there are kinks, solved and certified like any other.

A contact that opens or presses with parts that are at rest leaves the law of these parts undecided: they are a contact
problem of their own, u = H p + q, in which a pair is a contact without friction. Friction of contacts that slide makes
H unsymmetric; the part of H that is goes to q, round by round, until it settles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.derivatives.contact import Derivatives
from stiction.derivatives.ground import Forcing, Ground, Response, one_column
from stiction.derivatives.modes import EDGE, FACE, NORMAL, OPEN, STICK, outline, part_of, parts
from stiction.derivatives.tolerances import (
    CONSISTENT,
    DEPENDENT,
    DEPENDENT_AT_KINKS,
    RANK,
    ROUNDS,
    SETTLED,
)
from stiction.errors import NotDifferentiable, SolveFailed
from stiction.problems.contact import ContactProblem
from stiction.problems.lcp import LCP
from stiction.solvers.solve import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Undecided(NamedTuple):
    """Impulses and velocities of a contact, in its own frame, under a law of their own: a pair, or a whole contact."""

    contact: int
    push: Array  # (k, d)
    row: Array  # (k, d)
    place: list[int]  # (k,) the direction that each has in a contact of its own, 0 the normal
    mu: float


def one_sided(derivatives: Derivatives, direction: dict[str, Array]) -> Response:
    """The answer's derivative along a direction, kinks decided by it."""
    ground, found = undecided(derivatives)
    if not ground.system.determined:
        raise NotDifferentiable(f"one_sided: {derivatives.reason}")
    given = ground.answer(ground.forcing(**direction))
    if given.residual > (DEPENDENT_AT_KINKS if derivatives.kinks else CONSISTENT):
        raise NotDifferentiable(
            "one_sided: in this direction contacts that share a load cannot all stay closed (their rates disagree by "
            f"{given.residual:.1e}); move them together"
        )
    if not found:
        return one_column(given)

    # The response to each undecided impulse.
    contacts = np.repeat([each.contact for each in found], [len(each.place) for each in found])
    push, rows = (np.concatenate([getattr(each, name) for each in found]) for name in ("push", "row"))
    n, d, m, _ = ground.system.shape
    count = len(contacts)
    forcing = Forcing(
        np.zeros((m, count)), np.zeros((n, d, count)), np.zeros((len(ground.problem.joints), count)),
        np.zeros((n, d, count)),
    )  # fmt: skip
    forcing.f[contacts, :, np.arange(count)] = push
    unit = ground.answer(forcing)
    H = np.einsum("rc,rcd->rd", rows, unit.contact_velocity[contacts])
    q = (rows * given.contact_velocity[contacts, :, 0]).sum(axis=1)
    try:
        z = solve(LCP(H, q)).z if not any(each.mu for each in found) else as_contacts(ground.problem, found, H, q)
    except SolveFailed as error:
        raise NotDifferentiable(
            f"one_sided: the complementarity problem of the kinks is not solved: {error}"
        ) from error
    return Response(
        given.velocity[..., 0] + unit.velocity @ z,
        given.impulse[..., 0] + unit.impulse @ z,
        given.joint_impulse[..., 0] + unit.joint_impulse @ z,
        given.contact_velocity[..., 0] + unit.contact_velocity @ z,
        max(given.residual, unit.residual),
    )


def as_contacts(problem: ContactProblem, found: list[Undecided], H: Array, q: Array) -> Array:
    """Impulses p with u = H p + q under the problem's own law, contacts and pairs alike.

    With the symmetric part of H as R Rᵀ: u = R v + s, mass one, where joints hold s at what is given.
    """
    S, K = 0.5 * (H + H.T), 0.5 * (H - H.T)
    sizes, ways = np.linalg.eigh(S)
    shift = 2.0 * max(-float(sizes[0]) - RANK * float(sizes[-1]), 0.0)  # friction that slides may do work on contacts
    sizes, K = sizes + shift, K - shift * np.eye(len(q))
    some = sizes > RANK * sizes[-1]
    R, count, size = ways[:, some] * np.sqrt(sizes[some]), len(q), problem.dim
    m = R.shape[1] + count
    rows, at = np.zeros((len(found), size, m)), 0
    owner, place = [], []
    for number, each in enumerate(found):
        for direction in each.place:
            rows[number, direction, : R.shape[1]] = R[at]
            rows[number, direction, R.shape[1] + at] = 1.0
            owner.append(number)
            place.append(direction)
            at += 1
    small = ContactProblem(
        np.eye(m), np.zeros(m), rows[:, 0], rows[:, 1:], [each.mu for each in found], law=problem.law,
        joints=np.eye(m)[R.shape[1] :], joint_rate=-q,
    )  # fmt: skip

    # What is unsymmetric follows from the impulses of the round before.
    p, start = np.zeros(count), None
    for _ in range(ROUNDS):
        start = solve(small.replace(joint_rate=-(q + K @ p)), start=start)
        before, p = p, start.impulse[owner, place]
        if np.abs(K @ (p - before)).max() <= SETTLED * np.abs(q).max():
            return np.asarray(p)
    raise NotDifferentiable(
        f"one_sided: contact {found[0].contact} opens or presses beside contacts that slide, and what they do to each "
        "other does not settle; move the problem off that kink"
    )


def undecided(derivatives: Derivatives) -> tuple[Ground, list[Undecided]]:
    """Modes without what is undecided, and what is."""
    ground, solution = derivatives.ground, derivatives.solution
    problem, modes, small = ground.problem, derivatives.modes, derivatives.small
    mode, g, side, brink = (np.array(each) for each in (modes.mode, modes.g, modes.side, modes.brink))
    found: list[Undecided] = []
    for kink in derivatives.kinks:
        i = kink.contact
        p, near = ground.impulse[i], small[i] * ground.scale[i] ** 2
        if p[0] <= near:
            if mode[i] == FACE or (mode[i] == STICK and not problem.law.bounded):
                raise NotDifferentiable(
                    f"one_sided: contact {i} {kink.between}; under {problem.law} this is not supported"
                )
            found.append(about_to_open(problem, i, int(mode[i]), modes.mu[i] * g[i]))
            mode[i] = OPEN
        elif mode[i] == FACE:
            mode[i], g[i], more = at_a_vertex(problem, i, p, g[i], side[i])
            found += more
        elif len(outline(problem.law, problem.dim).corners):
            mode[i], g[i], side[i], more = on_polygon(problem, i, p, near)
            found += more
        else:
            mode[i] = EDGE
            found += at_bounds(problem, i, p, near, g[i], brink[i])
    dependent = DEPENDENT_AT_KINKS if derivatives.kinks else DEPENDENT
    system = ground.system.with_modes(dependent, mode=mode, g=g, side=side, brink=brink)
    return Ground(problem, solution, system), found


def about_to_open(problem: ContactProblem, i: int, mode: int, edge: Array) -> Undecided:
    """Nothing presses: what may press is its edge, and whatever parts that are at rest may do."""
    d, apart = len(edge) + 1, problem.law.numbers.apart
    places = [0]
    for k in range(parts(apart, d)) if mode != NORMAL else ():
        first, end = part_of(k, apart, d)
        if not edge[first - 1 : end - 1].any():
            places += range(first, end if problem.dim != 2 else 2)
    row = np.eye(d)[places]
    push = row.copy()
    push[0, 1:] = edge
    return Undecided(i, push, row, places, float(problem.friction[i]) if len(places) > 1 else 0.0)


def at_bounds(problem: ContactProblem, i: int, p: Array, near: float, g: Array, brink: Array) -> list[Undecided]:
    """Parts at rest with friction at its bound, on the disc or the ball; g and brink receive them."""
    d, apart, found = len(p), problem.law.numbers.apart, []
    for k in range(parts(apart, d)):
        first, end = part_of(k, apart, d)
        size = np.sqrt((p[first:end] ** 2).sum())
        if g[first - 1 : end - 1].any() or problem.friction[i] * p[0] - size > near:
            continue
        g[first - 1 : end - 1], brink[k] = p[first:end] / size, 1
        way = np.zeros(d - 1)
        way[first - 1 : end - 1] = -g[first - 1 : end - 1]
        found.append(inward(i, way))
    return found


def on_polygon(problem: ContactProblem, i: int, p: Array, near: float) -> tuple[int, Array, Array, list[Undecided]]:
    """A contact that sticks with friction at its bound, on a side or at a vertex."""
    corners, normals, distance, _ = outline(problem.law, problem.dim)
    reached = np.flatnonzero(distance * problem.friction[i] * p[0] - normals @ p[1:] <= near)
    if problem.dim == 2:
        k = reached[0]
        return EDGE, corners[k], np.zeros(2), [inward(i, -normals[k])]
    if len(reached) == 1:
        k = reached[0]
        out = normals[k]
        return FACE, distance[k] * out, np.array([-out[1], out[0]]), [inward(i, -out)]
    vertex = int(np.argmax(corners @ p[1:]))
    here = corners[vertex]
    ways = [corners[(vertex + step) % len(corners)] - here for step in (1, -1)]
    return EDGE, here, np.zeros(2), [inward(i, way / np.hypot(*way)) for way in ways]


def at_a_vertex(problem: ContactProblem, i: int, p: Array, g: Array, d: Array) -> tuple[int, Array, list[Undecided]]:
    """A contact that slides with friction on a side, at its end."""
    sign = 1.0 if p[1:] @ d > 0.0 else -1.0
    corners = outline(problem.law, problem.dim).corners
    here = corners[int(np.argmax(corners @ (g + sign * 0.5 * np.hypot(*g) * d)))]
    return EDGE, here, [inward(i, -sign * d)]


def inward(i: int, way: Array) -> Undecided:
    """Friction falls below its bound in this direction; sliding goes the same way."""
    both = np.array([[0.0, *way]])
    return Undecided(i, both, both, [0], 0.0)

"""The derivative along a direction at kinks, one-sided: a small complementarity problem.

Contacts that are no kinks keep their modes. At a kink two modes meet, and one complementary pair is left undecided:

    about to open        0 <= change of the impulse along its edge (1, mu g)  ⊥  du_n >= 0
    about to slide       0 <= how far friction falls below its bound          ⊥  speed of sliding >= 0

The latter holds at a point of the disc's edge or of a side of the polygon, with outward direction o: the contact slides
along -o, friction across o stays what keeps it from sliding across. At a vertex there are two pairs, one for each side.
Each pair is an impulse z >= 0 and a velocity w >= 0. With the response of the other contacts, one solve of the linear
system for each pair, w = H z + q: an LCP as large as there are kinks, solved and certified like any other.

A contact without impulse and without velocity (it touches, nothing presses it) leaves the whole law undecided: these
are a contact problem of their own, u = H p + q, in Delassus form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.derivatives.contact import CONSISTENT, Derivatives
from stiction.derivatives.ground import Forcing, Ground, Response, one_column
from stiction.derivatives.modes import EDGE, FACE, NORMAL, OPEN, STICK, outline
from stiction.derivatives.system import DEPENDENT
from stiction.errors import NotDifferentiable, SolveFailed
from stiction.problems.contact import ContactProblem
from stiction.problems.lcp import LCP
from stiction.solvers.solve import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# The direction of friction at its bound is known to the square root of what impulses are: rows that differ by less, of
# contacts that slide together, are the same.
DEPENDENT_AT_KINKS = 1e-4
ASYMMETRY = 1e-9  # of the response of undecided contacts, over its largest entry


class Pair(NamedTuple):
    """An impulse and a velocity at a contact, in its own frame, of which one is zero."""

    contact: int
    push: Array  # (3,)
    row: Array  # (3,)


def one_sided(derivatives: Derivatives, direction: dict[str, Array]) -> Response:
    """The answer's derivative along a direction, kinks decided by it."""
    ground, pairs, whole = undecided(derivatives)
    if not ground.system.determined:
        raise NotDifferentiable(f"one_sided: {derivatives.reason}")
    given = ground.answer(ground.forcing(**direction))
    if given.residual > (DEPENDENT_AT_KINKS if derivatives.kinks else CONSISTENT):
        raise NotDifferentiable(
            "one_sided: in this direction contacts that share a load cannot all stay closed (their rates disagree by "
            f"{given.residual:.1e}); move them together"
        )
    if not pairs and not whole:
        return one_column(given)
    if pairs and whole:
        raise NotDifferentiable(
            f"one_sided: contact {whole[0]} touches without velocity or impulse while contact {pairs[0].contact} is at "
            "another kink; both at once are not supported, move the problem off one of them"
        )

    # The response to each undecided impulse.
    if whole:
        pairs = [Pair(i, axis, axis) for i in whole for axis in np.eye(3)]
    n, d, m, _ = ground.system.shape
    forcing = Forcing(
        np.zeros((m, len(pairs))), np.zeros((n, d, len(pairs))), np.zeros((len(ground.problem.joints), len(pairs))),
        np.zeros((n, d, len(pairs))),
    )  # fmt: skip
    for column, pair in enumerate(pairs):
        forcing.f[pair.contact, :, column] = pair.push
    unit = ground.answer(forcing)
    contacts, rows = np.array([pair.contact for pair in pairs]), np.array([pair.row for pair in pairs])
    H = np.einsum("rc,rcd->rd", rows, unit.contact_velocity[contacts])
    q = (rows * given.contact_velocity[contacts, :, 0]).sum(axis=1)
    z = decide_whole(ground.problem, whole, H, q) if whole else decide(H, q)
    return Response(
        given.velocity[..., 0] + unit.velocity @ z,
        given.impulse[..., 0] + unit.impulse @ z,
        given.joint_impulse[..., 0] + unit.joint_impulse @ z,
        given.contact_velocity[..., 0] + unit.contact_velocity @ z,
        max(given.residual, unit.residual),
    )


def decide(H: Array, q: Array) -> Array:
    """z >= 0 ⊥ H z + q >= 0."""
    try:
        return solve(LCP(H, q)).z
    except SolveFailed as error:
        raise NotDifferentiable(
            f"one_sided: the complementarity problem of the kinks is not solved: {error}"
        ) from error


def decide_whole(problem: ContactProblem, whole: list[int], H: Array, q: Array) -> Array:
    """The impulses of contacts of which all is undecided, under the problem's own law."""
    if np.abs(H - H.T).max(initial=0.0) > ASYMMETRY * np.abs(H).max(initial=0.0):
        raise NotDifferentiable(
            f"one_sided: contact {whole[0]} touches without velocity or impulse beside contacts that slide; this is "
            "not supported, move the problem off that kink"
        )
    keep = np.arange(len(q)).reshape(-1, 3)[:, : problem.dim].ravel()
    small = ContactProblem.from_delassus(
        0.5 * (H + H.T)[np.ix_(keep, keep)], q[keep], problem.friction[whole], dim=problem.dim, law=problem.law
    )
    try:
        impulse = solve(small).impulse
    except SolveFailed as error:
        raise NotDifferentiable(f"one_sided: the contact problem of the kinks is not solved: {error}") from error
    return impulse.ravel()


def undecided(derivatives: Derivatives) -> tuple[Ground, list[Pair], list[int]]:
    """Modes without what is undecided; the pairs, and the contacts of which all is."""
    ground, solution = derivatives.ground, derivatives.solution
    problem, modes = ground.problem, derivatives.modes
    if derivatives.kinks and ground.d > 3:
        raise NotDifferentiable(
            "one_sided: kinks of contacts with torsional or rolling friction are not supported; move the problem off "
            "them, or set condim to 3"
        )
    mode, g, side = modes.mode.copy(), modes.g.copy(), modes.side.copy()
    pairs: list[Pair] = []
    whole: list[int] = []
    small = derivatives.small
    for kink in derivatives.kinks:
        i = kink.contact
        p, weight = ground.impulse[i], 1.0 / ground.scale[i] ** 2
        if weight * p[0] <= small[i]:
            # About to open: nothing presses, and all that may press is its edge.
            if mode[i] in (NORMAL, EDGE):
                edge = np.array([1.0, *(modes.mu[i] * g[i])])
                pairs.append(Pair(i, edge, np.eye(3)[0]))
            elif mode[i] == STICK and problem.law.bounded:
                whole.append(i)
            else:
                raise NotDifferentiable(
                    f"one_sided: contact {i} {kink.between}; under {problem.law} this is not supported"
                )
            mode[i] = OPEN
        elif mode[i] == STICK:
            mode[i], g[i], side[i], found = about_to_slide(problem, i, p, small[i] / weight)
            pairs += found
        else:
            mode[i], g[i], found = at_a_vertex(problem, i, p, g[i], side[i])
            pairs += found
    dependent = DEPENDENT_AT_KINKS if derivatives.kinks else DEPENDENT
    system = ground.system.with_modes(dependent, mode=mode, g=g, side=side)
    return Ground(problem, solution, system), pairs, whole


def about_to_slide(problem: ContactProblem, i: int, p: Array, near: float) -> tuple[int, Array, Array, list[Pair]]:
    """A contact that sticks with friction at its bound: on the disc, on a side, or at a vertex."""
    corners, normals, distance, _ = outline(problem.law, problem.dim)
    if not len(corners):
        out = p[1:] / np.hypot(*p[1:])
        return FACE, out, np.array([-out[1], out[0]]), [inward(i, -out)]
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


def at_a_vertex(problem: ContactProblem, i: int, p: Array, g: Array, d: Array) -> tuple[int, Array, list[Pair]]:
    """A contact that slides with friction on a side, at its end."""
    sign = 1.0 if p[1:] @ d > 0.0 else -1.0
    corners = outline(problem.law, problem.dim).corners
    here = corners[int(np.argmax(corners @ (g + sign * 0.5 * np.hypot(*g) * d)))]
    return EDGE, here, [inward(i, -sign * d)]


def inward(i: int, way: Array) -> Pair:
    """Friction falls below its bound in this direction; sliding goes the same way."""
    both = np.array([0.0, *way])
    return Pair(i, both, both)

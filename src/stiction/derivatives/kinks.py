"""Where there is no derivative: at kinks, and where it depends on how contacts share a load.

Strict complementarity fails at a contact if no way of sharing the load has a margin there. Pivoting methods return a
vertex of the set of impulses that make the motion, so others are tried: the smallest, those found by projections, and
at last the best by a linear program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.derivatives.contact import Derivatives, Kink
from stiction.derivatives.ground import Ground
from stiction.derivatives.modes import (
    EDGE,
    FACE,
    HELD,
    NAMES,
    NORMAL,
    OPEN,
    STICK,
    Modes,
    Outline,
    outline,
    part_of,
    parts,
    set_margins,
    side_length,
)
from stiction.derivatives.reduced import Given
from stiction.derivatives.system import System
from stiction.derivatives.tolerances import ASYMMETRY, DEPENDS, ENOUGH, INSCRIBED, MORE, RESIDUALS, SIDES
from stiction.errors import InvalidProblem, first_few
from stiction.problems.contact import ContactProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]


UNKNOWN = np.zeros((0, 2))
ANGLES = 2.0 * np.pi * np.arange(SIDES) / SIDES
FACETS_ROUND = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def differentiate_contact(solution: ContactSolution, within: float, strict: bool) -> Derivatives:
    """Modes, kinks and the factored system of a certified contact solution."""
    problem = solution.require_problem()
    refuse_unsymmetric(problem)
    small = max(within, RESIDUALS * solution.certificate.residual) * problem.whitened.pace
    given = given_of(problem, solution, small)
    system = System.examined(given)

    # Where a margin is missing, another way of sharing the load may have it.
    if system.near and system.rows > system.rank_may and system.spread_load(1 if given.rows.shape[1] == 3 else MORE):
        better = shared_inside(
            problem, system.work.modes, solution.impulse, system.exchanges, 1.0 / given.scale**2, ENOUGH * small
        )
        system.take(better)
        work = system.work
        set_margins(given.law, given.shape, work.modes, work.impulse, given.scale, given.rows, work.margin)
        system.near = int((work.margin <= small).sum())
    ground = Ground(problem, solution, system)
    if not system.near:
        return Derivatives(solution, (), strict, small, system, ground)

    # At kinks, derivatives are those of one of the modes that meet there: open, or stick.
    margin = system.work.margin
    near = margin <= small
    kinks = tuple(kink(ground, int(i), float(margin[i]), float(small[i])) for i in np.flatnonzero(near))
    pressed = solution.impulse[:, 0] / given.scale**2 > small
    branch = system.with_modes(mode=np.where(near & ~pressed, OPEN, ground.modes.mode))
    return Derivatives(solution, kinks, strict, small, system, Ground(problem, solution, branch))


def shared_inside(
    problem: ContactProblem, modes: Modes, p: Array, directions: Array, weight: Array, enough: Array
) -> Array:
    """Impulses of the same motion that lie as far within their bounds as they can, up to `enough`.

    directions: (k, n, d) impulses that move nothing; weight: (n,) W; enough: (n,) margins, in m/s, that suffice

    A linear program: maximise the sum of min(margin, enough); the disc is replaced by a polygon inside it.
    """
    from scipy.optimize import linprog

    n, k, mode, d = problem.n, len(directions), modes.mode, p.shape[1]
    presses = np.flatnonzero((mode != OPEN) & (mode != HELD))
    shape, apart = outline(problem.law, problem.dim), problem.law.numbers.apart

    # Rows a · p >= t of every bound: p_n, and friction of contacts that stick or lie on a side.
    rows, owner = [np.eye(1, d)[0]] * len(presses), list(presses)
    for i in presses if problem.law.bounded else ():
        if mode[i] == FACE:
            half = 0.5 * side_length(shape.corners, modes.side[i])
            for sign in (-1.0, 1.0):
                rows.append(np.array([modes.mu[i] * half, *(sign * modes.side[i])]))
                owner.append(i)
            continue
        for first, end in (part_of(each, apart, d) for each in range(parts(apart, d))):
            if mode[i] == NORMAL or modes.g[i, first - 1 : end - 1].any():
                continue  # without friction, or it slides
            normals, distance = inner_sides(shape, end - first)
            for normal, size in zip(normals, distance, strict=True):
                row = np.zeros(d)
                row[0], row[first:end] = modes.mu[i] * size, -normal
                rows.append(row)
                owner.append(i)
    bound, contact = np.array(rows), np.array(owner)
    now = weight[contact] * (bound * p[contact]).sum(axis=1)
    change = weight[contact, None] * np.einsum("rc,krc->rk", bound, directions[:, contact])
    pick = np.zeros((len(contact), n))
    pick[np.arange(len(contact)), contact] = 1.0
    size = np.abs(change).max(initial=0.0) or 1.0
    unit = enough[contact] if len(contact) else enough
    found = linprog(
        np.concatenate([np.zeros(k), -np.ones(len(presses))]),
        A_ub=np.hstack([-change / size, pick[:, presses] * unit[:, None]]),
        b_ub=now,
        bounds=[(None, None)] * k + [(0.0, 1.0)] * len(presses),
        method="highs",
    )
    if found.status != 0:
        return p
    return np.asarray(p + np.tensordot(found.x[:k] / size, directions, axes=1), np.float64)


def inner_sides(shape: Outline, size: int) -> tuple[Array, Array]:
    """Sides of a polygon, or of a cube, inside what friction may be: outward normals and distances."""
    if len(shape.corners):
        return shape.normals, shape.distance
    if size == 2:
        return FACETS_ROUND, np.full(SIDES, INSCRIBED)
    return np.vstack([np.eye(size), -np.eye(size)]), np.full(2 * size, size**-0.5)


def given_of(problem: ContactProblem, solution: ContactSolution, small: Array) -> Given:
    """The arrays that kernels read, contiguous."""
    white, law = problem.whitened, problem.law
    slip = UNKNOWN if problem.slip is None else problem.slip
    viscosity = problem.friction if problem.viscosity is None else problem.viscosity
    whole = white.record is None or bool(len(problem.joints))
    trees = np.array([0, len(white.free)]) if whole else problem.trees
    return Given(
        law.numbers, outline(law, problem.dim), *map(np.ascontiguousarray, (
            problem.friction, slip, viscosity, solution.contact_velocity, solution.impulse, small, white.rows,
            white.segments, trees, white.scale,
        )),
    )  # fmt: skip


def refuse_unsymmetric(problem: ContactProblem) -> None:
    W = problem.delassus
    if W is not None and np.abs(W - W.T).max(initial=0.0) > ASYMMETRY * np.abs(W).max(initial=0.0):
        raise InvalidProblem(
            "differentiate: the Delassus matrix W is not symmetric; pose the problem with 0.5 * (W + W.T) and solve it"
        )


def kink(ground: Ground, i: int, slack: float, small: float) -> Kink:
    """Describe the modes that a contact is between."""
    mode = int(ground.modes.mode[i])
    presses = ground.impulse[i, 0] / ground.scale[i] ** 2 > small
    does = NAMES[mode]
    if not presses:
        return Kink(i, f"{does} or opens", max(slack, 0.0))
    apart = mode == EDGE and ground.problem.law.numbers.apart
    words = "sticks or slides" if mode == STICK or apart else "slides along one side or the next"
    return Kink(i, words, max(slack, 0.0))


def no_derivative(found: Derivatives) -> str:
    """Why there is none, and what to do; empty if there is one."""
    kinks, system, modes = found.kinks, found.ground.system, found.ground.modes
    if kinks:
        which = first_few([f"contact {k.contact} {k.between} (margin {k.margin:.1e} m/s)" for k in kinks], 4, "; ")
        return f"at a kink: {which}; one_sided(direction) gives derivatives along a direction"
    if not system.determined:
        which = ", ".join(map(str, np.flatnonzero(~(found.determined & found.independent))[:8]))
        return (
            f"the motion is not determined: it changes with how contacts {which} share their load; take contacts away, "
            "or differentiate(solution, strict=False) for the smallest change"
        )
    if system.rows > system.rank_may and depends_on_sharing(found):
        which = ", ".join(map(str, np.flatnonzero((modes.round > 0) & ~found.determined)[:8]))
        return (
            f"the derivative is not determined: friction at contacts {which}, which slide and share a load, turns as "
            "strongly as each is pressed; differentiate(solution, strict=False) takes the load as it was found"
        )
    return ""


def depends_on_sharing(found: Derivatives) -> bool:
    """Whether the reduced system changes as impulses are exchanged that move nothing."""
    ground, system = found.ground, found.ground.system
    work = system.work
    sliding = np.flatnonzero((work.modes.round > 0) & ~found.determined)
    if not len(sliding) or not system.left:
        return False
    pressed = system.exchanges[:, sliding, 0] / ground.scale[sliding]
    p = np.maximum(ground.impulse[sliding, 0] / ground.scale[sliding], 0.0)

    # C of each, as if it were pressed as hard as the one that is pressed most.
    per = np.divide(p.max(initial=0.0), p, out=np.zeros(len(p)), where=p > 0.0)
    rows, C = ground.rows[sliding], work.C[sliding] * per[:, None, None]
    side = work.zero if system.alike else work.may
    left, right = rows @ side.O[side.holder < 0].T, rows @ work.zero.O[work.zero.holder < 0].T
    change = np.einsum("ki,ica,ice,ieb->kab", pressed, left, C, right, optimize=True)
    return bool(np.abs(change).max(initial=0.0) > DEPENDS)

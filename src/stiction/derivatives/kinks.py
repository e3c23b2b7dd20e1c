"""Where there is no derivative: kinks, motions that are not determined, loads whose sharing decides.

Strict complementarity fails at a contact if no way of sharing the load has a margin there. Pivoting methods return
impulses at a vertex of all that make the motion, so that others are looked for: the smallest, those found by
projections, at last the best by a linear program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stiction.derivatives.contact import DEPENDS, Derivatives, Kink
from stiction.derivatives.ground import Ground, exchanges
from stiction.derivatives.modes import HELD, NAMES, OPEN, STICK, Modes, facets, impulse_slack, modes_of, shared_inside
from stiction.derivatives.system import System, completed
from stiction.derivatives.whitening import whitening_of
from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem, densified

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]


SHARED = 1e-9  # part of a unit impulse that can be exchanged for others, above which it is not determined
ENOUGH = 100.0  # impulses whose margin is this many times that of a kink need no better sharing
PARTS = (0.1, 1e-3)  # of the mean load, by which cones are made smaller to find impulses inside them
PROJECTIONS = 40  # for each of them; more belong to the linear program
BETWEEN = 5  # projections between two looks at the margins
ASYMMETRY = 1e-9  # of a Delassus matrix, over its largest entry, that derivatives cannot stand


def differentiate_contact(solution: ContactSolution, within: float, strict: bool) -> Derivatives:
    """Modes, kinks and the factored system of a certified contact solution."""
    problem = solution.whose()
    refuse_unsymmetric(problem)
    white = problem.whitened
    small = max(within, 10.0 * solution.certificate.residual) * white.pace
    modes = modes_of(problem, solution, small)
    rows = densified(white.rows, white.segments, len(white.free))
    ground = Ground(problem, solution, modes, solution.impulse, rows, white.scale, whitening_of(problem))
    system = ground.system()

    # Margins; where one is missing, another way of sharing the load may have it.
    W = 1.0 / white.scale**2
    slack = margins(ground, W)
    near = slack <= small
    if near.any() and system.may.rank < len(system.F):
        ground, slack = spread_load(ground, system, W, small)
        near = slack <= small
        if ground.compliance is not None:
            system = completed(rows, ground.compliance, system.B, system.F, system.zero, system.may)
    kinks = tuple(kink(ground, int(i), float(slack[i]), float(small[i])) for i in np.flatnonzero(near))

    # At kinks, derivatives are those of one of the modes that meet there: open, or stick.
    branch = ground
    if kinks:
        pressed = W * solution.impulse[:, 0] > small
        mode = np.where(near & ~pressed, OPEN, modes.mode)
        branch = replace(ground, modes=modes._replace(mode=mode))
        system = branch.system()
    _, _, count = branch.bases
    chosen = np.arange(3) < count[:, None]
    shared, tied = np.zeros((problem.n, 3)), np.zeros((problem.n, 3))
    shared[chosen], tied[chosen] = system.may.shared, system.zero.shared
    determined, independent = shared.max(axis=1, initial=0.0) <= SHARED, tied.max(axis=1, initial=0.0) <= SHARED
    reason = no_derivative(kinks, system, branch, determined)
    return Derivatives(solution, kinks, slack, determined, independent, reason, strict, modes, small, branch, system)


def refuse_unsymmetric(problem: ContactProblem) -> None:
    W = problem.delassus
    if W is not None and np.abs(W - W.T).max(initial=0.0) > ASYMMETRY * np.abs(W).max(initial=0.0):
        raise InvalidProblem(
            "differentiate: the Delassus matrix W is not symmetric; pose the problem with 0.5 * (W + W.T) and solve it"
        )


def margins(ground: Ground, W: Array) -> Array:
    """(n,) in m/s; a contact that joints hold entirely has nothing to change."""
    slack = np.minimum(ground.modes.slack, W * impulse_slack(ground.problem, ground.modes, ground.impulse))
    moves = np.abs(ground.rows).max(axis=(1, 2), initial=0.0) > 0.0
    return np.where(moves, slack, np.inf)


def spread_load(ground: Ground, system: System, W: Array, small: Array) -> tuple[Ground, Array]:
    """Impulses of the same motion further within their bounds: the smallest, or found by projections, or by a program.

    Projections go back and forth between the impulses of the same motion, p₀ + null space, and cones that are smaller
    by a part of the mean load. Only a kink, or nearly one, is left to the linear program.
    """
    problem, modes = ground.problem, ground.modes
    may, _, count = ground.bases
    chosen = np.arange(3) < count[:, None]
    s, V = ground.scale[:, None], system.may.V
    smallest = V @ (V.T @ np.einsum("ick,ic->ik", may, ground.impulse / s)[chosen])
    fixed = ground.impulse / s if problem.law.viscous else np.zeros((problem.n, 3))
    fixed[:, 0] = 0.0

    def scaled(a: Array) -> Array:
        full = np.zeros((problem.n, 3))
        full[chosen] = a
        return np.asarray(np.matmul(may, full[:, :, None])[:, :, 0])

    a, p = smallest, scaled(smallest)
    presses = (modes.mode != OPEN) & (modes.mode != HELD)
    load = p[presses, 0].mean() if presses.any() else 0.0
    reach = inner_reach(problem)
    other = replace(ground, impulse=(p + fixed) * s)
    slack = margins(other, W)
    for part in PARTS:
        for _ in range(PROJECTIONS // BETWEEN):
            if (slack > small).all():
                return other, slack
            for _ in range(BETWEEN):
                nearer = np.matmul(may.transpose(0, 2, 1), within_cones(modes, reach, p, part * load)[:, :, None])
                a = nearer[:, :, 0][chosen]
                a = smallest + a - V @ (V.T @ a)
                p = scaled(a)
            other = replace(ground, impulse=(p + fixed) * s)
            slack = margins(other, W)
    if (slack > small).all():
        return other, slack
    impulse = shared_inside(problem, modes, ground.impulse, exchanges(system, ground), W, ENOUGH * small)
    better = replace(ground, impulse=impulse)
    return better, margins(better, W)


def inner_reach(problem: ContactProblem) -> float:
    """The radius of the largest disc inside the law's outline."""
    corners = problem.law.corners(problem.dim)
    return 1.0 if corners is None else float(facets(corners)[1].min())


def within_cones(modes: Modes, reach: float, p: Array, shift: float) -> Array:
    """(n, 3) the nearest points of cones that are moved inwards; of a polygon's cone, its largest round one."""
    q = p.copy()
    q[:, 0] = np.maximum(p[:, 0], shift)
    stick = (modes.mode == STICK) & (modes.mu > 0.0)
    if stick.any():
        mu = reach * modes.mu[stick]
        normal, size = p[stick, 0] - shift * np.maximum(1.0, 1.0 / mu), np.sqrt((p[stick, 1:] ** 2).sum(axis=1))
        along = np.maximum((normal + mu * size) / (1.0 + mu * mu), 0.0)
        out = size > mu * normal
        factor = np.where(out, mu * along / np.where(size > 0.0, size, 1.0), 1.0)
        q[stick, 0] = np.where(out, along, normal) + shift * np.maximum(1.0, 1.0 / mu)
        q[stick, 1:] = p[stick, 1:] * factor[:, None]
    return q


def kink(ground: Ground, i: int, slack: float, small: float) -> Kink:
    """In words, what a contact may change between."""
    mode = int(ground.modes.mode[i])
    presses = ground.impulse[i, 0] / ground.scale[i] ** 2 > small
    does = NAMES[mode]
    if not presses:
        return Kink(i, f"{does} or opens", max(slack, 0.0))
    return Kink(i, "sticks or slides" if mode == STICK else "slides along one side or the next", max(slack, 0.0))


def no_derivative(kinks: tuple[Kink, ...], system: System, ground: Ground, determined: NDArray[np.bool_]) -> str:
    """Why there is none, and what to do; empty if there is one."""
    if kinks:
        which = "; ".join(f"contact {k.contact} {k.between} (margin {k.margin:.1e} m/s)" for k in kinks[:4])
        more = f" and {len(kinks) - 4} more" if len(kinks) > 4 else ""
        return f"at a kink: {which}{more}; one_sided(direction) gives derivatives along a direction"
    if not system.determined:
        which = ", ".join(map(str, np.flatnonzero(~determined)[:8]))
        return (
            f"the motion is not determined: it changes with how contacts {which} share their load; take contacts away, "
            "or differentiate(solution, strict=False) for the smallest change"
        )
    if depends_on_sharing(system, ground, determined):
        which = ", ".join(map(str, np.flatnonzero(ground.modes.round & ~determined)[:8]))
        return (
            f"the derivative is not determined: friction at contacts {which}, which slide and share a load, turns as "
            "strongly as each is pressed; differentiate(solution, strict=False) takes the load as it was found"
        )
    return ""


def depends_on_sharing(system: System, ground: Ground, determined: NDArray[np.bool_]) -> bool:
    """Whether the reduced system changes as impulses are exchanged that move nothing."""
    sliding = np.flatnonzero(ground.modes.round & ~determined)
    if not len(sliding) or not system.zero.null.shape[1]:
        return False
    pressed = exchanges(system, ground)[:, sliding, 0] / ground.scale[sliding]
    g = ground.modes.g[sliding]
    rows = -g[:, 1:] * ground.rows[sliding, 1] + g[:, :1] * ground.rows[sliding, 2]  # across the sliding
    p = np.maximum(ground.impulse[sliding, 0] / ground.scale[sliding], 0.0)
    per = np.divide(ground.stiffness[sliding], p, out=np.zeros(len(p)), where=p > 0.0)
    left, right = rows @ system.may.null, rows @ system.zero.null
    change = np.einsum("di,i,ia,ib->dab", pressed, per * p.max(initial=0.0), left, right, optimize=True)
    return bool(np.abs(change).max(initial=0.0) > DEPENDS)

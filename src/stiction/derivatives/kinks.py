"""Where there is no derivative: kinks, motions that are not determined, loads whose sharing decides.

Strict complementarity fails at a contact if no way of sharing the load has a margin there. Pivoting methods return
impulses at a vertex of all that make the motion, so that others are looked for: the smallest, those found by
projections, at last the best by a linear program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.derivatives.contact import DEPENDS, Derivatives, Kink
from stiction.derivatives.ground import Ground
from stiction.derivatives.modes import EDGE, NAMES, OPEN, STICK, outline, set_margins, shared_inside
from stiction.derivatives.system import Given, System
from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]


ENOUGH = 100.0  # impulses whose margin is this many times that of a kink need no better sharing
MORE = 5  # times as many projections for friction in five directions, where the linear program knows a cube only
ASYMMETRY = 1e-9  # of a Delassus matrix, over its largest entry, that derivatives cannot stand
UNKNOWN = np.zeros((0, 2))


def differentiate_contact(solution: ContactSolution, within: float, strict: bool) -> Derivatives:
    """Modes, kinks and the factored system of a certified contact solution."""
    problem = solution.whose()
    refuse_unsymmetric(problem)
    small = max(within, 10.0 * solution.certificate.residual) * problem.whitened.pace
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


def given_of(problem: ContactProblem, solution: ContactSolution, small: Array) -> Given:
    """What kernels read, in contiguous arrays."""
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
    """In words, what a contact may change between."""
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
        which = "; ".join(f"contact {k.contact} {k.between} (margin {k.margin:.1e} m/s)" for k in kinks[:4])
        more = f" and {len(kinks) - 4} more" if len(kinks) > 4 else ""
        return f"at a kink: {which}{more}; one_sided(direction) gives derivatives along a direction"
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

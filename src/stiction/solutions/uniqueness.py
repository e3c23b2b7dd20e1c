"""Which contact forces are determined, and the smallest of those that are not.

Contacts that share the load of a rigid body share it in many ways: a table on four legs. Velocities fix the cone K_i in
which each impulse lies: nothing where the contact opens, a ray where it slides, the friction cone where it sticks. All
impulses of those cones with the same sum Lᵀ p move the bodies alike, so what is not determined is the null space of
the rows that are active; inequalities may narrow it further.

The least of them in norm (of impulses in units of their contacts, so that the choice has no unit) is p = proj(L y, K)
at the y that minimises |proj(L y, K)|² / 2 - (Lᵀ p)·y, a smooth convex function of m variables: Newton's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.contact import densified

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]

AT_REST = 1e-9  # velocities below this part of the largest free one are zero
DEPENDENT = 1e-9  # singular values, over the largest, that are zero
SHARED = 1e-7  # part of an indeterminate direction at a contact that makes its force indeterminate
STEPS = 100  # of Newton's method
LENGTHS = 40  # of a step, each half of the one before
CLOSE = 1e-14  # imbalance, over the momentum to be carried, at which it ends


class Uniqueness(NamedTuple):
    """Which impulses are determined by a solution's velocities, and what spans the others.

    determined: (n,) whether a contact's impulse is the only one possible
    dimension: of the space of impulses that move nothing
    directions: (dimension, n, d) a basis of that space, in N s, each of unit size in units of its contacts
    redundant_joints: bilateral rows that depend on others, whose impulses are not determined either
    """

    determined: NDArray[np.bool_]
    dimension: int
    directions: Array
    redundant_joints: NDArray[np.int64]

    @property
    def unique(self) -> bool:
        """Whether every force is determined."""
        return self.dimension == 0 and len(self.redundant_joints) == 0

    def __str__(self) -> str:
        free = int((~self.determined).sum())
        if self.unique:
            return "all contact forces are determined"
        return f"{free} of {len(self.determined)} contact forces are not determined ({self.dimension} dimensions)"


def uniqueness(problem: ContactProblem, solution: ContactSolution) -> Uniqueness:
    """The null space of the active rows."""
    from scipy.linalg import null_space

    n, white = problem.n, problem.whitened
    rows = densified(white.rows, white.segments, len(white.free))
    d = rows.shape[1]
    spans = [span(cone, problem.dim if d == 3 else d, d) for cone in cones(problem, solution)]
    columns = [spans[i] @ rows[i] for i in range(n)]
    active = np.concatenate([*columns, np.zeros((0, len(white.free)))])
    null = null_space(active.T, rcond=DEPENDENT).T if len(active) else np.zeros((0, 0))
    directions = np.zeros((len(null), n, d))
    begin = 0
    for i, basis in enumerate(spans):
        directions[:, i] = null[:, begin : begin + len(basis)] @ basis
        begin += len(basis)
    shared = np.abs(directions).max(axis=(0, 2), initial=0.0) > SHARED if len(null) else np.zeros(n, bool)
    redundant = problem.redundant_joints
    return Uniqueness(~shared, len(null), directions * (white.scale * white.tau)[:, None], redundant)


def span(cone: Array | float, dim: int, d: int) -> Array:
    """A basis of the space in which a cone lies: all of it for a round one, else what its edges span."""
    if isinstance(cone, float):
        return np.eye(dim, d)
    if len(cone) == 0:
        return np.zeros((0, d))
    _, sizes, right = np.linalg.svd(cone)
    return np.asarray(right[: int((sizes > DEPENDENT * sizes[0]).sum())], np.float64)


def cones(problem: ContactProblem, solution: ContactSolution) -> list[Array | float]:
    """K of each contact in its own units: its edges (k, d), or mu of a round one that sticks."""
    n, u = problem.n, solution.contact_velocity
    small = max(AT_REST, 10.0 * solution.certificate.residual) * solution.certificate.scale
    law, corners = problem.law, problem.law.corners(problem.dim)
    sliding, d = np.linalg.norm(u[:, 1:], axis=1), u.shape[1]
    normal = np.eye(1, d)
    found: list[Array | float] = []
    for i in range(n):
        mu = problem.friction[i]
        if u[i, 0] > small:
            found.append(np.zeros((0, d)))
        elif law.sticky:
            found.append(np.inf)
        elif mu == 0.0 or not law.bounded:
            found.append(normal)
        elif problem.slip is not None and not np.isnan(problem.slip[i, 0]):
            found.append(np.array([[1.0, *(-mu * problem.slip[i])]]))
        elif corners is not None:
            found.append(edges(corners, mu, u[i, 1:], small))
        elif law.numbers.apart and d > 3:
            found.append(apart(mu, u[i], small))
        elif sliding[i] > small:
            found.append(np.array([[1.0, *(-mu * u[i, 1:] / sliding[i])]]))
        else:
            found.append(float(mu))
    return found


def apart(mu: float, u: Array, small: float) -> Array:
    """Rows that span what a contact may carry whose sliding, spin and rolling are bounded apart."""
    tied, free = np.eye(1, len(u))[0], []
    for first, end in ((1, 3), (3, 4), (4, 6)):
        speed = float(np.linalg.norm(u[first:end]))
        if speed > small:
            tied[first:end] = -mu * u[first:end] / speed
        else:
            free += [np.eye(1, len(u), k)[0] for k in range(first, end)]
    return np.array([tied, *free])


def edges(corners: Array, mu: float, slide: Array, small: float) -> Array:
    """The edges of a pyramid, or of a cone in the plane, that oppose the sliding best: all of them at rest."""
    work = corners @ slide
    best = work <= work.min() + small
    return np.column_stack([np.ones(int(best.sum())), mu * corners[best]])


def least_norm(problem: ContactProblem, solution: ContactSolution) -> Array:
    """The smallest impulses, in N s, that belong to the solution's velocities."""
    if not solution.ok:
        raise InvalidProblem("least_norm: the solution is not certified; solve the problem first")
    if problem.law.numbers.apart and problem.rows.shape[1] > 3:
        raise InvalidProblem("least_norm: it does not take Coulomb(joint=False) with torsional or rolling friction")
    white = problem.whitened
    rows = densified(white.rows, white.segments, len(white.free))
    given = white.scaled(solution.impulse)
    fixed = np.zeros(given.shape)
    if problem.law.viscous:
        fixed[:, 1:] = given[:, 1:]
    shapes = cones(problem, solution)
    carried = np.einsum("icm,ic->m", rows, given - fixed)
    size = np.abs(carried).max(initial=0.0)
    y = np.zeros(len(carried))
    p, turns = projected(rows, y, shapes)
    value = 0.0
    for _ in range(STEPS):
        slope = np.einsum("icm,ic->m", rows, p) - carried
        if np.abs(slope).max(initial=0.0) <= CLOSE * size:
            break
        curvature = np.einsum("icm,icd,idk->mk", rows, turns, rows, optimize=True)
        ridge = 1e-12 * (1.0 + np.trace(curvature)) + 1e-3 * np.linalg.norm(slope) ** 2 / (1.0 + size * size)
        step = -np.linalg.solve(curvature + ridge * np.eye(len(y)), slope)
        length, down = 1.0, float(slope @ step)
        for _ in range(LENGTHS):
            trial = y + length * step
            p, turns = projected(rows, trial, shapes)
            new = 0.5 * float((p**2).sum()) - float(carried @ trial)
            if new <= value + 1e-4 * length * down + 1e-15 * abs(value):
                break
            length *= 0.5
        else:
            break
        y, value = trial, new
    return white.impulse(p + fixed)


def projected(rows: Array, y: Array, shapes: list[Array | float]) -> tuple[Array, Array]:
    """(n, d) the point of each cone nearest to L y, and (n, d, d) how it turns with L y."""
    wanted = rows @ y
    p, turns = np.zeros_like(wanted), np.zeros((*wanted.shape, wanted.shape[1]))
    for i, cone in enumerate(shapes):
        p[i], turns[i] = onto_round(wanted[i], cone) if isinstance(cone, float) else onto_edges(wanted[i], cone)
    return p, turns


def onto_round(y: Array, mu: float) -> tuple[Array, Array]:
    """Onto |p_t| <= mu p_n; mu is infinite without slip."""
    if np.isinf(mu):
        presses = float(y[0] > 0.0)
        return y * [presses, 1.0, 1.0], np.diag([presses, 1.0, 1.0])
    size, d = float(np.linalg.norm(y[1:])), len(y)
    if size <= mu * y[0]:
        return y, np.eye(d)
    if mu * size <= -y[0]:
        return np.zeros(d), np.zeros((d, d))
    direction = y[1:] / size
    edge = np.array([1.0, *(mu * direction)]) / np.hypot(1.0, mu)
    along = float(edge @ y)
    across = np.zeros((d, d))
    across[1:, 1:] = np.eye(d - 1) - np.outer(direction, direction)
    turn = np.outer(edge, edge) + (along * mu / np.hypot(1.0, mu) / size) * across
    return along * edge, turn


def onto_edges(y: Array, cone: Array) -> tuple[Array, Array]:
    """Onto the cone that edges, in their order around it, span: the nearest point of its faces if y is not inside."""
    best, turn, distance = np.zeros(len(y)), np.zeros((len(y), len(y))), float(y @ y)
    following = np.roll(cone, -1, axis=0)
    if len(cone) > 2 and (np.cross(cone, following) @ y >= 0.0).all():
        return y, np.eye(3)
    faces = [*cone[:, None], *(np.stack([cone, following], axis=1) if len(cone) > 1 else ())]
    for face in faces:
        gram = face @ face.T
        weights = np.linalg.solve(gram, face @ y)
        point = weights @ face
        off = float((point - y) @ (point - y))
        if (weights >= 0.0).all() and off < distance * (1.0 - 1e-14):
            best, distance = point, off
            turn = face.T @ np.linalg.solve(gram, face)
    return best, turn

"""Derivatives of contact: the implicit function theorem on the active modes.

A certified answer satisfies, with what `modes` and `system` say of the active modes,

    M dv = M dv_free - dM (v - v_free) + dLᵀ p + Lᵀ dp + dJᵀ p_j + Jᵀ dp_j
    J dv + dJ v + djoint_rate = 0
    du   = L dv + dL v + dgap_rate n
    dp   = P a + g dmu p_n - C du,      Qᵀ du = 0

so that every change of the problem enters as one of four: a momentum h = M dv_free - dM (v - v_free) + dLᵀ p + dJᵀ p_j,
a velocity e = dL v + dgap_rate n at contacts, a rate c = djoint_rate + dJ v of joints, and an impulse f = g dmu p_n at
contacts (under `Viscous` also -dviscosity u_t, and if explicit -viscosity (T dv_free + dT v_free)). In the normal form
(mass one, joints projected out) what is left is one linear system, factored once; `jvp` goes through it, `vjp` through
its transpose.

Redundant contacts are the normal case. Their rows B have fewer motions than rows, so dv is determined and dp need not
be: `impulse` is then the smallest change that makes the motion, and `determined` says of which contacts it is the only
one. Rates of redundant contacts cannot change one by one without opening some of them: such a direction is a kink of
its own. `by_gap_rate` and the gradient of `vjp` are right for all changes that keep the contacts closed (a body that is
lifted or turned as a whole), and `jvp` refuses the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.derivatives.modes import EDGE, FACE, Modes, bases
from stiction.derivatives.system import DEPENDENT, System, assembled
from stiction.derivatives.whitening import Whitening
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Viscous

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]


class Change(NamedTuple):
    """A direction in the data of a contact problem, or a gradient by them; what is None does not change.

    free: (m,) of v_free, the problem's `velocity`; friction, gap_rate, viscosity: (n,); joint_rate: (j,)
    mass, rows, joints: of the shape that the problem has them in
    offset, delassus: (3n,), (3n, 3n) of a problem in Delassus form
    """

    free: Array | None = None
    friction: Array | None = None
    gap_rate: Array | None = None
    joint_rate: Array | None = None
    mass: Array | None = None
    rows: Array | None = None
    joints: Array | None = None
    viscosity: Array | None = None
    offset: Array | None = None
    delassus: Array | None = None


class Response(NamedTuple):
    """How an answer changes, or what a change of it is worth: fields as those of a `ContactSolution`.

    residual: what the linear system that was solved leaves over, relative to its terms
    """

    velocity: Array
    impulse: Array
    joint_impulse: Array
    contact_velocity: Array
    residual: float = 0.0


def one_column(found: Response) -> Response:
    """The answer for the only direction."""
    velocity, impulse, joint_impulse, contact_velocity, residual = found
    return Response(velocity[..., 0], impulse[..., 0], joint_impulse[..., 0], contact_velocity[..., 0], residual)


class Forcing(NamedTuple):
    """The four ways in which a change enters, each with a column for every direction."""

    h: Array  # (m, columns) momentum
    e: Array  # (n, 3, columns) velocity at contacts
    c: Array  # (j, columns) rate of joints
    f: Array  # (n, 3, columns) impulse at contacts


@dataclass(frozen=True, eq=False)
class Ground:
    """What derivatives of a solution are made of: the normal form, and the modes."""

    problem: ContactProblem
    solution: ContactSolution
    modes: Modes
    impulse: Array  # (n, 3) in N s: the solution's, or others of the same motion that lie further inside their bounds
    rows: Array  # (n, 3, m) whitened, joints projected out, of unit size
    scale: Array  # (n,) s of the normal form
    whitening: Whitening

    @cached_property
    def unprojected(self) -> Array:
        """(n, 3, m) whitened rows, joints not projected out, in their own size."""
        problem = self.problem
        if not len(problem.joints):
            return self.rows / self.scale[:, None, None]
        dense = problem.dense_rows().reshape(3 * problem.n, problem.m)
        return self.whitening.force(dense.T).T.reshape(problem.n, 3, problem.m)

    @cached_property
    def explicit(self) -> bool:
        """Whether friction is viscous of the free velocity."""
        return isinstance(self.problem.law, Viscous) and not self.problem.law.implicit

    @cached_property
    def compliance(self) -> Array | None:
        """(n, 3, 3) C in the normal form, None if there is none."""
        n, modes = self.problem.n, self.modes
        if isinstance(self.problem.law, Viscous) and self.problem.law.implicit:
            C = np.zeros((n, 3, 3))
            assert self.problem.viscosity is not None
            C[:, 1, 1] = C[:, 2, 2] = self.problem.viscosity / self.scale**2
            return C
        if not modes.round.any():
            return None
        C = np.zeros((n, 3, 3))
        C[:, 1:, 1:] = self.stiffness[:, None, None] * across(modes.g)
        return C

    @cached_property
    def stiffness(self) -> Array:
        """(n,) mu p_n / |u_t| of contacts that slide on the round cone, in the normal form; 0 of others."""
        speed = np.sqrt((self.solution.contact_velocity[:, 1:] ** 2).sum(axis=1))
        size = self.modes.mu * np.maximum(self.impulse[:, 0], 0.0) / np.where(self.modes.round, speed, 1.0)
        return np.asarray(np.where(self.modes.round, size / self.scale**2, 0.0))

    def system(self, dependent: float = DEPENDENT) -> System:
        """dependent: the part of a row that makes it independent of others."""
        may, zero, count = self.bases
        mode = self.modes.mode
        same = not (((mode == EDGE) | (mode == FACE)) & (self.modes.mu > 0.0)).any()
        return assembled(self.rows, may, zero, count, same, self.compliance, dependent)

    @cached_property
    def bases(self) -> tuple[Array, Array, NDArray[np.int64]]:
        return bases(self.modes, self.problem.dim)

    def forcing(
        self, free: Any = None, friction: Any = None, gap_rate: Any = None, joint_rate: Any = None, mass: Any = None,
        rows: Any = None, joints: Any = None, viscosity: Any = None, offset: Any = None, delassus: Any = None,
    ) -> Forcing:  # fmt: skip
        """What changes of the data do; each with a column for every direction."""
        problem, found = self.problem, self.solution
        n, m, j, v = problem.n, problem.m, len(problem.joints), found.velocity
        given = (free, friction, gap_rate, joint_rate, mass, rows, joints, viscosity, offset, delassus)
        columns = next((value.shape[-1] for value in given if value is not None), 1)
        h, e = np.zeros((self.whitening.m, columns)), np.zeros((n, 3, columns))
        c, f = np.zeros((j, columns)), np.zeros((n, 3, columns))
        if free is not None:
            h += self.whitening.momentum(free)
            if self.explicit:
                moved = np.tensordot(problem.dense_rows()[:, 1:], free, axes=1)
                f[:, 1:] -= self.thickness[:, None, None] * moved
        if mass is not None:
            h -= times_mass(problem, mass, v - problem.velocity)
        if rows is not None:
            entry = in_rows(problem)
            wide = np.zeros((m + 1, columns))
            np.add.at(wide, entry, np.einsum("ickd,ic->ikd", rows, self.impulse))
            h += wide[:m]
            at = np.append(v, 0.0)[entry]
            e += np.einsum("ickd,ik->icd", rows, at)
            if self.explicit:
                at = np.append(problem.velocity, 0.0)[entry]
                f[:, 1:] -= self.thickness[:, None, None] * np.einsum("ickd,ik->icd", rows[:, 1:], at)
        if joints is not None:
            h += np.einsum("jmd,j->md", joints, found.joint_impulse)
            c += np.einsum("jmd,m->jd", joints, v)
        if gap_rate is not None:
            e[:, 0] += gap_rate
        if joint_rate is not None:
            c += joint_rate
        if friction is not None:
            f += self.by_coefficient[:, :, None] * friction[:, None]
        if viscosity is not None:
            f[:, 1:] -= self.dragged[:, :, None] * viscosity[:, None]
        if offset is not None:
            e += offset.reshape(n, 3, columns)
        if delassus is not None:
            e += np.einsum("xyd,y->xd", delassus, self.impulse.ravel()).reshape(n, 3, columns)
        return Forcing(h, e, c, f)

    @cached_property
    def thickness(self) -> Array:
        """(n,) viscosity."""
        return np.zeros(self.problem.n) if self.problem.viscosity is None else self.problem.viscosity

    @cached_property
    def by_coefficient(self) -> Array:
        """(n, 3) dp / dmu at given p_n: p_n g."""
        result = np.zeros((self.problem.n, 3))
        slides = (self.modes.mode == EDGE) | (self.modes.mode == FACE)
        result[:, 1:] = np.where(slides[:, None], self.impulse[:, :1] * self.modes.g, 0.0)
        return result

    @cached_property
    def dragged(self) -> Array:
        """(n, 2) the tangential velocity that viscous friction opposes."""
        problem = self.problem
        if not problem.law.viscous:
            return np.zeros((problem.n, 2))
        if self.explicit:
            return np.asarray(problem.dense_rows()[:, 1:] @ problem.velocity)
        return self.solution.contact_velocity[:, 1:]

    def answer(self, system: System, forcing: Forcing) -> Response:
        """Through the linear system: dv, dp, dp_j, du, with a column for every direction."""
        white, problem, s = self.problem.whitened, self.problem, self.scale[:, None, None]
        n, columns = problem.n, forcing.h.shape[1]
        may, zero, count = self.bases
        chosen = np.arange(3) < count[:, None]

        # Momentum in the normal form; joints take up their part, and move at their rates.
        pushed = self.whitening.force(forcing.h)
        basis, held = white.joints, np.zeros_like(pushed)
        e = forcing.e
        if len(white.kept):
            held = basis.T @ np.linalg.solve(white.triangle, -forcing.c[white.kept])
            e = e + np.tensordot(self.unprojected, held, axes=1)
            r = pushed - basis.T @ (basis @ pushed)
        else:
            r = pushed

        # Contacts: r + Lᵀ (f - C e) against Fᵀ a, and B y = -Qᵀ e.
        e, f = e * s, forcing.f / s
        C = self.compliance
        direct = f if C is None else f - np.matmul(C, e)
        flat = self.rows.reshape(3 * n, self.rows.shape[2])
        r = r + flat.T @ direct.reshape(3 * n, columns)
        y, a = system.solve(r, -np.matmul(zero.transpose(0, 2, 1), e)[chosen])
        residual = max(system.left_over(r, -np.matmul(zero.transpose(0, 2, 1), e)[chosen], y, a))

        # Back to velocities and impulses in the problem's units.
        moved = (flat @ y).reshape(n, 3, columns)
        weights = np.zeros((n, 3, columns))
        weights[chosen] = a
        p = np.matmul(may, weights) + direct
        if C is not None:
            p = p - np.matmul(C, moved)
        x = y + held
        impulse, u = p * s, (moved + e) / s
        joint = np.zeros((len(problem.joints), columns))
        if len(white.kept):
            alone = pushed + self.unprojected.reshape(3 * n, problem.m).T @ impulse.reshape(3 * n, columns)
            joint[white.kept] = np.linalg.solve(white.triangle.T, basis @ (x - alone))
        velocity = self.whitening.velocity(x) if problem.mass is not None else np.zeros((0, columns))
        return Response(velocity, impulse, joint, u, residual)

    def gradient(self, system: System, by: Response) -> Change:
        """Through the transposed system: what a change of each datum is worth."""
        white, problem, s = self.problem.whitened, self.problem, self.scale[:, None]
        n, m, v, kept = problem.n, problem.m, self.solution.velocity, self.problem.whitened.kept
        may, zero, count = self.bases
        chosen = np.arange(3) < count[:, None]
        flat, C = self.rows.reshape(3 * n, self.rows.shape[2]), self.compliance

        # Results in the normal form: x, impulses p̂, velocities û, and joint impulses.
        x = self.whitening.force(by.velocity[:, None])[:, 0] if problem.mass is not None else np.zeros(flat.shape[1])
        impulse, pushed = by.impulse, np.zeros_like(x)
        if len(kept):
            along = white.joints.T @ np.linalg.solve(white.triangle, by.joint_impulse[kept])
            x, pushed = x + along, pushed - along
            impulse = impulse - self.unprojected @ along
        p, u = impulse * s, by.contact_velocity / s

        # Directions of impulses, and the velocities that change them.
        if C is not None:
            u_by_p = -np.einsum("icd,ic->id", C, p)
        else:
            u_by_p = np.zeros_like(p)
        a = np.einsum("ick,ic->ik", may, p)[chosen]
        y = x + flat.T @ (u + u_by_p).ravel()
        r, rate = system.solve_transposed(y[:, None], a[:, None])
        r, spread = r[:, 0], np.zeros((n, 3))
        spread[chosen] = rate[:, 0]
        f = p + (flat @ r).reshape(n, 3)
        e = u - np.einsum("ick,ik->ic", zero, spread)
        if C is not None:
            e = e - np.einsum("icd,ic->id", C, f)
        e, f = e * s, f / s

        # Joints: their rates move contacts and take up momentum.
        c = np.zeros(len(problem.joints))
        if len(kept):
            held = x + np.tensordot(e, self.unprojected, axes=2)
            c[kept] = -np.linalg.solve(white.triangle.T, white.joints @ held)
            r = r - white.joints.T @ (white.joints @ r)
        h = self.whitening.velocity((r + pushed)[:, None])[:, 0] if problem.mass is not None else np.zeros(0)
        return self.by_data(h, e, c, f, v, n, m)

    def by_data(self, h: Array, e: Array, c: Array, f: Array, v: Array, n: int, m: int) -> Change:
        """Gradients by momentum, contact velocities, joint rates and contact impulses, as those by the data."""
        problem = self.problem
        friction = (self.by_coefficient * f).sum(axis=1)
        viscosity = -(self.dragged * f[:, 1:]).sum(axis=1) if problem.law.viscous else None
        if problem.mass is None:
            offset = e.reshape(3 * n)
            return Change(
                friction=friction, viscosity=viscosity, offset=offset, delassus=np.outer(offset, self.impulse.ravel())
            )
        entry = in_rows(problem)
        free = self.whitening.momentum(h[:, None])[:, 0]
        pad = np.append(h, 0.0)[entry], np.append(v, 0.0)[entry]
        rows = self.impulse[:, :, None] * pad[0][:, None] + e[:, :, None] * pad[1][:, None]
        if self.explicit:
            drag = self.thickness[:, None] * f[:, 1:]
            free = free - np.einsum("ic,icm->m", drag, problem.dense_rows()[:, 1:])
            rows[:, 1:] -= drag[:, :, None] * np.append(problem.velocity, 0.0)[entry][:, None]
        joints = np.outer(self.solution.joint_impulse, h) + np.outer(c, v)
        mass = mass_gradient(problem, h, v - problem.velocity)
        return Change(free, friction, e[:, 0], c, mass, rows, joints, viscosity)


def across(g: Array) -> Array:
    """(n, 2, 2) I - t tᵀ."""
    result = -g[:, :, None] * g[:, None, :]
    result[:, 0, 0] += 1.0
    result[:, 1, 1] += 1.0
    return result


def in_rows(problem: ContactProblem) -> NDArray[np.int64]:
    """(n, k) the velocity that each entry of a contact's rows belongs to; m where it belongs to none."""
    entry = np.arange(problem.rows.shape[2])
    first, second = problem.segments[:, 1:2], problem.segments[:, 3:4]
    column = entry + np.where(entry < first, problem.segments[:, 0:1], problem.segments[:, 2:3] - first)
    return np.where(entry < first + second, column, problem.m)


def times_mass(problem: ContactProblem, change: Array, v: Array) -> Array:
    """(m, columns) dM v of changes (entries, columns) of the blocks, in their order."""
    sizes, result, at = np.diff(problem.trees), np.zeros((problem.m, change.shape[-1])), 0
    for start, size in zip(problem.trees[:-1], sizes, strict=True):
        block = change[at : at + size * size].reshape(size, size, -1)
        result[start : start + size] = np.einsum("xyd,y->xd", block, v[start : start + size])
        at += size * size
    return result


def mass_gradient(problem: ContactProblem, h: Array, v: Array) -> Array:
    """-h vᵀ, symmetric, at the entries of the mass, in its own shape."""
    assert problem.mass is not None
    if problem.mass.ndim == 3:
        one, two = h.reshape(-1, 6, 1), v.reshape(-1, 1, 6)
        outer = one * two
        return -0.5 * (outer + outer.transpose(0, 2, 1))
    parts = []
    for start, end in zip(problem.trees[:-1], problem.trees[1:], strict=True):
        outer = np.outer(h[start:end], v[start:end])
        parts.append(-0.5 * (outer + outer.T).ravel())
    return (np.concatenate(parts) if parts else np.zeros(0)).reshape(problem.mass.shape)


def exchanges(system: System, ground: Ground) -> Array:
    """(k, n, 3) impulses, in N s, that move nothing, each of unit size in the normal form."""
    may, _, count = ground.bases
    chosen = np.arange(3) < count[:, None]
    null = system.may.indifferent()
    spread = np.zeros((len(null), len(chosen), 3))
    spread[:, chosen] = null
    return np.asarray(np.einsum("ick,dik->dic", may, spread) * ground.scale[:, None])

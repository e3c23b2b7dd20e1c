"""Derivatives of contact: the implicit function theorem on the active modes.

A certified answer satisfies, with the active modes of `modes` and `system`,

    M dv = M dv_free - dM (v - v_free) + dLᵀ p + Lᵀ dp + dJᵀ p_j + Jᵀ dp_j
    J dv + dJ v + djoint_rate = 0
    du   = L dv + dL v + dgap_rate n + dtangent_rate
    dp   = P a + g dmu p_n - C du,      Qᵀ du = 0

so that every change of the problem enters as one of four: a momentum h = M dv_free - dM (v - v_free) + dLᵀ p + dJᵀ p_j,
a velocity e = dL v + dgap_rate n at contacts, a rate c = djoint_rate + dJ v of joints, and an impulse f = g dmu p_n at
contacts (under `Viscous` also -dviscosity u_t, and if explicit -viscosity (T dv_free + dT v_free)). In the normal form
(mass one, joints projected out) what is left is one linear system, factored once (`system`); `jvp` goes through it,
`vjp` through its transpose. Contacts have d directions, three or six: those of turning are along rows that are scaled
as the problem has them, and `friction` stands for all coefficients of a contact, their ratios fixed.

Redundant contacts are the normal case. Their rows B have fewer motions than rows, so dv is determined and dp need not
be: `impulse` is then the smallest change that makes the motion, and `determined` lists contacts where no other does.
Rates of redundant contacts cannot change one by one without opening some of them: such a direction is a kink of
its own. `by_gap_rate` and the gradient of `vjp` are right for all changes that keep the contacts closed (a body that is
lifted or turned as a whole), and `jvp` refuses the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.derivatives.modes import EDGE, FACE, Bases, Modes
from stiction.derivatives.reduced import work_of
from stiction.derivatives.system import System
from stiction.derivatives.whitening import Whitening
from stiction.problems.contact import ContactProblem, densified
from stiction.problems.mass_factor import unwhiten_velocity, whiten_dense

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]


class Change(NamedTuple):
    """A direction in the data of a contact problem, or a gradient by them; what is None does not change.

    free: (m,) of v_free, the problem's `velocity`; friction, gap_rate, viscosity: (n,); joint_rate: (j,)
    mass, rows, joints: of the shape that the problem has them in
    offset, delassus: (dn,), (dn, dn) of a problem in Delassus form, d being 3 or 6
    tangent_rate: (n, d - 1)
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
    tangent_rate: Array | None = None


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
    e: Array  # (n, d, columns) velocity at contacts
    c: Array  # (j, columns) rate of joints
    f: Array  # (n, d, columns) impulse at contacts


@dataclass(frozen=True, eq=False)
class Ground:
    """The parts of a solution's derivatives: the normal form, the modes, the factored system."""

    problem: ContactProblem
    solution: ContactSolution
    system: System

    @property
    def modes(self) -> Modes:
        return self.system.work.modes

    @property
    def bases(self) -> Bases:
        return self.system.work.bases

    @property
    def impulse(self) -> Array:
        """(n, d) in N s: the solution's, or others of the same motion that lie further inside their bounds."""
        return self.system.work.impulse

    @property
    def scale(self) -> Array:
        """(n,) s of the normal form."""
        return self.problem.whitened.scale

    @property
    def d(self) -> int:
        """Directions of a contact."""
        return self.system.shape[1]

    @cached_property
    def whitening(self) -> Whitening:
        return Whitening(self.problem)

    @cached_property
    def rows(self) -> Array:
        """(n, d, m) whitened, joints projected out, of unit size."""
        white = self.problem.whitened
        return densified(white.rows, white.segments, len(white.free))

    @cached_property
    def unprojected(self) -> Array:
        """(n, d, m) whitened rows, joints not projected out, in their own size."""
        problem = self.problem
        if not len(problem.joints):
            return self.rows / self.scale[:, None, None]
        dense = problem.dense_rows().reshape(self.d * problem.n, problem.m)
        return self.whitening.force(dense.T).T.reshape(problem.n, self.d, problem.m)

    @cached_property
    def explicit(self) -> bool:
        """Whether friction is viscous of the free velocity."""
        return self.problem.law.viscous and not self.problem.law.numbers.implicit

    def forcing(
        self, free: Any = None, friction: Any = None, gap_rate: Any = None, joint_rate: Any = None, mass: Any = None,
        rows: Any = None, joints: Any = None, viscosity: Any = None, offset: Any = None, delassus: Any = None,
        impulse: Any = None, momentum: Any = None, tangent_rate: Any = None,
    ) -> Forcing:  # fmt: skip
        """The effect of changes of the data, each with a column for every direction.

        impulse: of another way of sharing the load; momentum: (m, columns) M dv_free and -dM (v - v_free) at once
        """
        problem, found, d = self.problem, self.solution, self.d
        n, m, j, v = problem.n, problem.m, len(problem.joints), found.velocity
        p = self.impulse if impulse is None else impulse
        given = (
            free, friction, gap_rate, joint_rate, mass, rows, joints, viscosity, offset, delassus, momentum,
            tangent_rate,
        )  # fmt: skip
        columns = next((value.shape[-1] for value in given if value is not None), 1)
        h, e = np.zeros((self.system.shape[2], columns)), np.zeros((n, d, columns))
        c, f = np.zeros((j, columns)), np.zeros((n, d, columns))
        if momentum is not None:
            h += momentum
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
            np.add.at(wide, entry, np.einsum("ickd,ic->ikd", rows, p))
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
        if tangent_rate is not None:
            e[:, 1:] += tangent_rate
            if self.explicit:
                f[:, 1:] -= self.thickness[:, None, None] * tangent_rate
        if joint_rate is not None:
            c += joint_rate
        if friction is not None:
            f += self.by_coefficient(p)[:, :, None] * friction[:, None]
        if viscosity is not None:
            f[:, 1:] -= self.dragged[:, :, None] * viscosity[:, None]
        if offset is not None:
            e += offset.reshape(n, d, columns)
        if delassus is not None:
            e += np.einsum("xyd,y->xd", delassus, p.ravel()).reshape(n, d, columns)
        return Forcing(h, e, c, f)

    @cached_property
    def thickness(self) -> Array:
        """(n,) viscosity."""
        return np.zeros(self.problem.n) if self.problem.viscosity is None else self.problem.viscosity

    def by_coefficient(self, p: Array) -> Array:
        """(n, d) dp / dmu at given p_n: p_n g."""
        result = np.zeros((self.problem.n, self.d))
        slides = (self.modes.mode == EDGE) | (self.modes.mode == FACE)
        result[:, 1:] = np.where(slides[:, None], p[:, :1] * self.modes.g, 0.0)
        return result

    @cached_property
    def dragged(self) -> Array:
        """(n, d - 1) the tangential velocity that viscous friction opposes."""
        problem = self.problem
        if not problem.law.viscous:
            return np.zeros((problem.n, self.d - 1))
        if self.explicit:
            moving = 0.0 if problem.tangent_rate is None else problem.tangent_rate
            return np.asarray(problem.dense_rows()[:, 1:] @ problem.velocity + moving)
        return self.solution.contact_velocity[:, 1:]

    def answer(self, forcing: Forcing) -> Response:
        """Through the linear system: dv, dp, dp_j, du, with a column for every direction."""
        white, problem = self.problem.whitened, self.problem
        n, d, columns = problem.n, self.d, forcing.h.shape[1]

        # Momentum in the normal form; joints take up their part, and move at their rates.
        pushed, e = self.whitening.force(forcing.h), forcing.e
        basis, r = white.joints, np.array(pushed.T, order="C")
        if len(white.kept):
            held = basis.T @ np.linalg.solve(white.triangle, -forcing.c[white.kept])
            e = e + np.tensordot(self.unprojected, held, axes=1)
            r -= (r @ basis.T) @ basis
        ahead = (2, 0, 1)
        e, f = np.ascontiguousarray(e.transpose(ahead)), np.ascontiguousarray(forcing.f.transpose(ahead))
        y, p, u, _, residual = self.system.answers(r, e, f)

        # Back to velocities, and to impulses of joints.
        x, impulse = y.T, p.transpose(1, 2, 0)
        joint = np.zeros((len(problem.joints), columns))
        if len(white.kept):
            x = x + held
            alone = pushed + self.unprojected.reshape(d * n, problem.m).T @ impulse.reshape(d * n, columns)
            joint[white.kept] = np.linalg.solve(white.triangle.T, basis @ (x - alone))
        velocity = self.whitening.velocity(x) if problem.mass is not None else np.zeros((0, columns))
        return Response(velocity, impulse, joint, u.transpose(1, 2, 0), residual)

    def motion(self, forcing: Forcing) -> tuple[Array, Array]:
        """dv alone, and the velocity, in m/s, that closed contacts are left with where they cannot all stay closed."""
        if len(self.problem.whitened.kept):
            found, zero = self.answer(forcing), self.bases.zero
            left = np.matmul(zero.transpose(0, 2, 1), found.contact_velocity)
            return found.velocity, np.abs(left).max(axis=(0, 1), initial=0.0)
        ahead, r = (2, 0, 1), self.whitening.force(forcing.h).T
        e, f = np.ascontiguousarray(forcing.e.transpose(ahead)), np.ascontiguousarray(forcing.f.transpose(ahead))
        y, _, _, off, _ = self.system.answers(r, e, f, pushing=False)
        return self.whitening.velocity(y.T), off

    def gradient(self, by: Response) -> Change:
        """Through the transposed system: what a change of each datum is worth."""
        white, problem, s = self.problem.whitened, self.problem, self.scale[:, None]
        kept, record = white.kept, white.record

        # Results in the normal form: x, impulses p̂, velocities û, and joint impulses.
        x = np.zeros(self.system.shape[2])
        if record is not None:
            x[:] = by.velocity
            whiten_dense(record.factor, problem.posed.trees, x)
        impulse = by.impulse
        if len(kept):
            along = white.joints.T @ np.linalg.solve(white.triangle, by.joint_impulse[kept])
            x += along
            impulse = impulse - self.unprojected @ along
        r, e, f = self.system.transposed(x, impulse * s, by.contact_velocity / s)
        e *= s
        f /= s

        # Joints: their rates move contacts and take up momentum.
        c = np.zeros(len(problem.joints))
        if len(kept):
            c[kept] = -np.linalg.solve(white.triangle.T, white.joints @ (x + np.tensordot(e, self.unprojected, axes=2)))
            r -= white.joints.T @ (white.joints @ r) + along
        return self.by_data(r, e, c, f)

    def by_data(self, r: Array, e: Array, c: Array, f: Array) -> Change:
        """Gradients by whitened momentum, contact velocities, joint rates and impulses, as those by the data."""
        problem, v, system, record = self.problem, self.solution.velocity, self.system, self.problem.whitened.record
        viscosity = -(self.dragged * f[:, 1:]).sum(axis=1) if problem.law.viscous else None
        if record is None or problem.mass is None:
            friction, offset = (self.by_coefficient(self.impulse) * f).sum(axis=1), e.reshape(-1)
            return Change(
                friction=friction, viscosity=viscosity, offset=offset, delassus=np.outer(offset, self.impulse.ravel())
            )  # fmt: skip
        h, free, friction = np.empty(len(r)), np.empty(len(r)), np.empty(problem.n)
        mass, rows = np.empty(problem.mass.shape), np.empty(problem.rows.shape)
        written = h, free, friction, mass.reshape(-1), rows
        write_gradient(problem.posed, record.factor, system.given, r, e, f, v, written, system.memory)
        surface = e[:, 1:].copy()
        if self.explicit:
            drag, entry = self.thickness[:, None] * f[:, 1:], in_rows(problem)
            surface -= drag
            free -= np.einsum("ic,icm->m", drag, problem.dense_rows()[:, 1:])
            rows[:, 1:] -= drag[:, :, None] * np.append(problem.velocity, 0.0)[entry][:, None]
        joints = np.outer(self.solution.joint_impulse, h) + np.outer(c, v)
        return Change(free, friction, e[:, 0].copy(), c, mass, rows, joints, viscosity, tangent_rate=surface)


@kernel
def write_gradient(posed, factor, given, r, e, f, v, written, memory):
    """Gradients by momentum h, free velocities, friction, mass and rows, which are written in this order.

    r: (m,) gradient by whitened momentum; e, f: (n, d) by velocities and impulses of contacts; v: (m,) velocities
    """
    h, free, friction, mass, rows = written
    work = work_of(given, memory)
    p, modes = work.impulse, work.modes
    trees, segments = posed.trees, posed.segments
    unwhiten_velocity(factor, trees, r, h)

    # M h, and -h (v - v_free)ᵀ at the entries of the mass, symmetric.
    at = 0
    for b in range(len(trees) - 1):
        start, size = trees[b], trees[b + 1] - trees[b]
        for i in range(start, start + size):
            total, change = 0.0, v[i] - posed.velocity[i]
            for j in range(start, start + size):
                total += posed.mass[at] * h[j]
                mass[at] = -0.5 * (h[i] * (v[j] - posed.velocity[j]) + h[j] * change)
                at += 1
            free[i] = total

    # Friction of contacts that slide is p_n g.
    for i in range(len(friction)):
        total = 0.0
        if modes.mode[i] in (EDGE, FACE):
            for c in range(modes.g.shape[1]):
                total += modes.g[i, c] * f[i, c + 1]
        friction[i] = p[i, 0] * total

    # Rows push with their impulses, and feel velocities.
    for i in range(rows.shape[0]):
        first, length, second, more = segments[i, 0], segments[i, 1], segments[i, 2], segments[i, 3]
        for c in range(rows.shape[1]):
            row, push, feel = rows[i, c], p[i, c], e[i, c]
            for k in range(length):
                row[k] = push * h[first + k] + feel * v[first + k]
            for k in range(more):
                row[length + k] = push * h[second + k] + feel * v[second + k]
            for k in range(length + more, rows.shape[2]):
                row[k] = 0.0


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

"""Box friction as box LCPs, in the normal form, and as a pyramid.

    u = W p + offset,      0 <= p_n ⊥ u_n >= 0,      |p_t| <= bound p_n in each tangent, opposing u_t where equal

Given the tangential impulses, the normal ones solve an LCP; given the normal ones, the tangential ones solve a box LCP
[Lacoursiere2003, eq. 7]; given only an estimate of the normal ones, both solve one together [Lacoursiere2003, eq. 8].
All three are symmetric and positive semidefinite; a row that no impulse moves is left out of them.

A box is a square, hence a pyramid of four facets, and the other way round: the vertices of a square with half side a
lie at a sqrt(2) on its diagonals, and among the points of either the same one dissipates most. So

    BoxFriction()             =  Coulomb(facets=4, rotation=pi/4) with mu sqrt(2)
    BoxFriction(scaled=True)  =  Coulomb(facets=4, rotation=pi/4) with mu
    Coulomb(facets=4, rotation=r)  =  BoxFriction(scaled=True) with the tangents turned by r - pi/4
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import BoxFriction, Coulomb, Law
from stiction.problems.lcp import LCP, BoxLCP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.normal_form import Whitened

UNRESPONSIVE = 1e-14  # response of a row to its own impulse, in units of its contact's size, that counts as none


def is_box(law: Law) -> bool:
    """Whether a law is box friction, under this name or as a pyramid of four facets."""
    return isinstance(law, BoxFriction) or (isinstance(law, Coulomb) and law.facets == 4)


def as_pyramid(problem: ContactProblem) -> ContactProblem:
    """The same problem under `Coulomb(facets=4)`: each answer of one answers the other, impulse by impulse."""
    law = problem.law
    if not isinstance(law, BoxFriction):
        raise InvalidProblem(f"as_pyramid: the law must be BoxFriction, got {law}")
    # In the plane the square is an interval; the pyramid's vertices are put on it, so that no impulse leaves the plane.
    flat = problem.dim == 2
    half_side = np.sqrt(0.5) if law.scaled else 1.0
    law = Coulomb(facets=4, rotation=0.0 if flat else np.pi / 4.0)
    return problem.replace(law=law, friction=problem.friction * (half_side if flat else np.sqrt(2.0) * half_side))


@dataclass(frozen=True, eq=False)
class BoxForm:
    """A contact problem with box friction in the normal form, tangents along the sides of the box.

    rows: (n, 3, k) of each contact, at the velocities that it touches
    offset: (n, 3) contact velocities without impulses
    bound: (n,) largest tangential impulse over the normal one
    turn: angle from the problem's first tangent to the box's
    """

    white: Whitened
    rows: NDArray[np.float64]
    offset: NDArray[np.float64]
    bound: NDArray[np.float64]
    turn: float

    @property
    def n(self) -> int:
        """Number of contacts."""
        return len(self.rows)

    @property
    def segments(self) -> NDArray[np.int64]:
        """(n, 4) start and length of the two runs of velocities that a contact touches; read-only."""
        view = self.white.segments.view()
        view.flags.writeable = False
        return view

    @cached_property
    def response(self) -> NDArray[np.float64]:
        """(3n, 3n) W = L Lᵀ: all n, then all first tangents, then all second ones."""
        dense = over_all_velocities(self.rows, self.white)
        flat = np.ascontiguousarray(dense.transpose(1, 0, 2)).reshape(3 * self.n, dense.shape[2])
        W = flat @ flat.T
        return np.asarray(0.5 * (W + W.T), np.float64)

    @cached_property
    def responsive(self) -> NDArray[np.bool_]:
        """(3n,) which rows respond to their own impulse at all."""
        return np.asarray(self.response.diagonal() > UNRESPONSIVE, np.bool_)

    def velocity(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 3) contact velocities after impulses p."""
        return self.offset + (self.response @ p.T.ravel()).reshape(3, self.n).T

    def violation(self, p: NDArray[np.float64]) -> float:
        """Largest entry of p - proj(p - u) onto p_n >= 0 and the box that p_n - u_n allows."""
        y = p - self.velocity(p)
        y[:, 0] = np.maximum(y[:, 0], 0.0)
        side = (self.bound * y[:, 0])[:, None]
        y[:, 1:] = np.clip(y[:, 1:], -side, side)
        return float(np.abs(p - y).max(initial=0.0))

    def normal_problem(self, p: NDArray[np.float64]) -> LCP:
        """The LCP of the normal impulses of responsive rows, tangential ones given."""
        n = self.n
        which = np.flatnonzero(self.responsive[:n])
        constant = self.offset[which, 0] + self.response[which, n:] @ p[:, 1:].T.ravel()
        return LCP(self.response[np.ix_(which, which)], constant)

    def friction_problem(self, p: NDArray[np.float64]) -> BoxLCP:
        """The box LCP of the tangential impulses of responsive rows, normal ones given [Lacoursiere2003, eq. 7]."""
        n = self.n
        which = np.flatnonzero(self.responsive[n:])
        constant = self.offset[:, 1:].T.ravel()[which] + self.response[n + which, :n] @ p[:, 0]
        side = np.tile(self.bound * p[:, 0], 2)[which]
        return BoxLCP(self.response[np.ix_(n + which, n + which)], constant, -side, side)

    def joint_problem(self, estimate: NDArray[np.float64]) -> BoxLCP:
        """The box LCP of all impulses of responsive rows, friction bounded by an estimate of the normal ones [eq. 8].

        estimate: (n,), infinite where contacts are to stick
        """
        n = self.n
        which = np.flatnonzero(self.responsive)
        side = np.tile(np.multiply(self.bound, estimate, where=self.bound > 0.0, out=np.zeros(n)), 2)
        lo, hi = np.concatenate([np.zeros(n), -side]), np.concatenate([np.full(n, np.inf), side])
        return BoxLCP(self.response[np.ix_(which, which)], self.offset.T.ravel()[which], lo[which], hi[which])

    def with_normal(self, p: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
        """p with the answer of `normal_problem`."""
        result = p.copy()
        result[:, 0] = 0.0
        result[self.responsive[: self.n], 0] = z
        return result

    def with_friction(self, p: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
        """p with the answer of `friction_problem`."""
        side = self.bound * p[:, 0]
        tangential = self._opposing(np.tile(side, 2))
        tangential[self.responsive[self.n :]] = z
        return np.column_stack([p[:, 0], *tangential.reshape(2, self.n)])

    def with_all(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The answer of `joint_problem`."""
        p = np.zeros(3 * self.n)
        p[self.responsive] = z
        opposing = self._opposing(np.tile(self.bound * p[: self.n], 2))
        p[self.n :] = np.where(self.responsive[self.n :], p[self.n :], opposing)
        return np.ascontiguousarray(p.reshape(3, self.n).T)

    def _opposing(self, side: NDArray[np.float64]) -> NDArray[np.float64]:
        """Impulses of tangents that nothing moves, against their velocity."""
        return -np.sign(self.offset[:, 1:].T.ravel()) * side

    def shifted(self, added: NDArray[np.float64]) -> BoxForm:
        """The form with other contact velocities."""
        form = dataclasses.replace(self, offset=self.offset + added)
        vars(form)["response"] = self.response  # what was computed stays
        return form

    def impulse(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Impulses in N s, in the problem's own tangents."""
        return self.white.impulse(turned(p, -self.turn))

    def scaled(self, impulse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Impulses of this form."""
        return turned(self.white.scaled(impulse), self.turn)


def box_form(problem: ContactProblem) -> BoxForm:
    """The normal form of a problem whose law is a box, tangents along its sides."""
    law, white = problem.law, problem.whitened
    if not is_box(law):
        raise InvalidProblem(f"box_form: the law must be BoxFriction or Coulomb(facets=4), got {law}")
    shrink = 1.0 if isinstance(law, BoxFriction) and not law.scaled else np.sqrt(0.5)
    turn = float(law.rotation) - np.pi / 4.0 if isinstance(law, Coulomb) else 0.0
    rows = np.ascontiguousarray(turned(white.rows, turn))
    offset = turned(over_all_velocities(white.rows, white) @ white.free + white.bias, turn)
    return BoxForm(white, rows, np.ascontiguousarray(offset), white.friction * shrink, turn)


def over_all_velocities(rows: NDArray[np.float64], white: Whitened) -> NDArray[np.float64]:
    """(n, 3, m) rows, dense."""
    from stiction.problems.contact import densified

    return densified(rows, white.segments, white.free.size)


def turned(a: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    """(n, 3, ...) components n, t1, t2 in tangents turned by an angle."""
    if angle == 0.0:
        return a
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([a[:, 0], c * a[:, 1] + s * a[:, 2], c * a[:, 2] - s * a[:, 1]], axis=1)

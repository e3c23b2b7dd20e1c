"""The passes of `splitting`: box LCPs asked of an inner solver, one after the other, Anderson-accelerated or not.

A pass maps impulses to impulses. A joint pass depends only on the normal impulses of the previous pass, an alternating
one only on the tangential impulses; acceleration acts on these.

Redundant contacts leave the impulses of a pass undetermined. A proximal term chooses those nearest to the last ones:
(H + E) z + q - E z_last, with E a part of the diagonal of H. It vanishes at a fixed point, so the answers stay what
they are, and it makes the matrix positive definite, which some inner solvers need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import UnsupportedProblem
from stiction.problems.lcp import BoxLCP
from stiction.solutions.status import Status
from stiction.solvers.contact.splitting.anderson import Memory, combine, remember
from stiction.solvers.contact.splitting.tolerances import PASSES_KEPT, TRUST
from stiction.solvers.tolerances import HALF_OF_THE_DIGITS, ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.box_friction import BoxForm
    from stiction.solvers.contract import Solver


class Passes:
    """Passes over one problem, and the best impulses seen.

    proximal: part of the diagonal that draws a pass to the last impulses
    enough: violation at which to stop
    history: violation after each pass
    failures: of the inner solver
    """

    def __init__(self, form: BoxForm, inner: Solver, joint: bool, proximal: float, enough: float) -> None:
        self.form, self.inner, self.joint, self.proximal, self.enough = form, inner, joint, proximal, enough
        self.history: list[float] = []
        self.failures = 0
        self.best, self.violation = np.zeros((form.n, 3)), np.inf
        self.keep(self.best)

    @property
    def done(self) -> bool:
        """Whether the violation is small enough, or what rounding leaves of velocities after impulses this large."""
        return bool(self.violation <= max(self.enough, ROUNDING * np.abs(self.best).max(initial=0.0)))

    def keep(self, p: NDArray[np.float64]) -> float:
        """Clip impulses to their boxes and keep them if they violate the law least so far. Returns their violation."""
        p = p.copy()
        p[:, 0] = np.maximum(p[:, 0], 0.0)
        side = (self.form.bound * p[:, 0])[:, None]
        p[:, 1:] = np.clip(p[:, 1:], -side, side)
        violation = self.form.violation(p)
        if violation < self.violation:
            self.best, self.violation = p, violation
        return violation

    def sticky(self) -> NDArray[np.float64]:
        """The impulses if every contact with friction sticks, whatever that takes.

        Its rows are equations and may contradict each other or be redundant, which the proximal term settles.
        """
        form = self.form
        problem, last = form.joint_problem(np.full(form.n, np.inf)), np.zeros(int(form.responsive.sum()))
        z = self.ask(problem, last, max(self.proximal, HALF_OF_THE_DIGITS))
        return np.zeros((form.n, 3)) if z is None else form.with_all(z)

    def once(self, p: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """One pass; None if the inner solver has no answer."""
        form, n = self.form, self.form.n
        if self.joint:
            z = self.ask(form.joint_problem(p[:, 0]), p.T.ravel()[form.responsive], self.proximal)
            return None if z is None else form.with_all(z)
        z = self.ask(form.normal_problem(p), p[form.responsive[:n], 0], self.proximal)
        if z is None:
            return None
        p = form.with_normal(p, z)
        z = self.ask(form.friction_problem(p), p[:, 1:].T.ravel()[form.responsive[n:]], self.proximal)
        return None if z is None else form.with_friction(p, z)

    def ask(self, problem: BoxLCP, last: NDArray[np.float64], proximal: float) -> NDArray[np.float64] | None:
        """Solution of the inner solver, warm-started from the last pass if it supports that; None if not finite."""
        if proximal > 0.0:
            added = proximal * problem.H.diagonal()
            problem = BoxLCP(problem.H + np.diag(added), problem.q - added * last, problem.lo, problem.hi)
        contract = self.inner.contract
        reason = contract.refusal(problem, getattr(self.inner, "perturbation", 0.0))
        if reason is not None:
            name = type(self.inner).__name__
            raise UnsupportedProblem(f"Splitting: {name} does not take the problem of a pass: {reason}")
        found: Any = self.inner.propose(problem, np.clip(last, problem.lo, problem.hi) if contract.warm else None)
        self.failures += found.status != Status.SOLVED
        return np.asarray(found.z, np.float64) if np.isfinite(found.z).all() else None

    def run(self, p: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """At most `count` passes, until the violation is small enough. Returns the last impulses."""
        for _ in range(count):
            image = None if self.done else self.once(p)
            if image is None:
                break
            self.history.append(self.keep(image))
            p = image
        return p

    def run_accelerated(self, p: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """Passes with Anderson acceleration, which combines the last passes as if the map were affine."""
        part = slice(0, 1) if self.joint else slice(1, 3)
        size = p[:, part].size
        vectors, differences = np.zeros((3, size)), np.zeros((2, PASSES_KEPT, size))
        squares, weights = np.zeros((2, PASSES_KEPT, PASSES_KEPT)), np.zeros(PASSES_KEPT)
        last = vectors[0], vectors[1], vectors[2], differences[0], differences[1], squares[0], squares[1]
        t = Memory(*last, weights)
        shortest, held, accelerated = np.inf, 0, False
        for done in range(count):
            image = None if self.done else self.once(p)
            if image is None:
                break
            self.history.append(self.keep(image))
            to = np.ascontiguousarray(image[:, part]).ravel()
            t.move[:] = to - p[:, part].ravel()
            square = float(t.move @ t.move)
            # A point from which the next pass goes much further than the shortest is not trusted.
            dropped = accelerated and square > TRUST * shortest
            shortest = square if dropped else min(shortest, square)
            if dropped:
                held = 0
            elif done > 0:
                remember(t, to, held)
                held += 1
            t.last_move[:], t.last[:] = t.move, to
            accelerated = held > 0 and not dropped and bool(combine(t, min(held, PASSES_KEPT), to))
            p = image
            if accelerated:
                p = image.copy()
                p[:, part] = to.reshape(len(p), -1)
                p[:, 0] = np.maximum(p[:, 0], 0.0)
        return p

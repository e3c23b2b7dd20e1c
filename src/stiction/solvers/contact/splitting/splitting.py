"""Splitting: box friction as a sequence of box LCPs, each with bounds of friction from the one before.

In a joint pass all impulses are unknown, friction bounded by the normal impulses of the pass before [Lacoursiere2003,
eq. 8]. In an alternating one, normal impulses are found with friction as it was, then friction with the normal impulses
as they are now. Every pass is a convex quadratic programme, which any solver for box LCPs takes; a fixed point of the
passes is an answer. So is one of `Coulomb(facets=4)`, which is box friction in turned tangents.

Nothing guarantees that passes converge. They do so linearly where they do; with much friction they swing; and with
redundant contacts, whose normal impulses are not unique, they wander, unless a proximal term draws each pass to the
last (see `passes`). So passes are only the beginning, and Newton's method goes on from there (see
`newton`). After a stall it starts again after more passes, Anderson-accelerated passes, or a perturbation; the next
round of these uses another proximal term, and every second round scales contacts by their loads.

[Lacoursiere2003, sec. 4 and 7]; acceleration [Anderson1965, WalkerNi2011].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from stiction.arrays.compiled import workspace
from stiction.errors import InvalidProblem
from stiction.problems.box_friction import BoxForm, box_form, is_box, turned
from stiction.problems.contact import ContactProblem
from stiction.solutions.status import Status
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.cone_newton.tolerances import (
    CORRECTIONS,
    LEAST_RESIDUAL,
    MARGIN,
    NEGLIGIBLE,
    PRESSURE,
)
from stiction.solvers.contact.delassus import corrected
from stiction.solvers.contact.splitting.newton import box_newton, sizes
from stiction.solvers.contact.splitting.passes import Passes
from stiction.solvers.contact.splitting.tolerances import (
    FIRST_PASSES,
    MORE_PASSES,
    PULLS,
    SOFTNESS,
)
from stiction.solvers.contract import ContactProposal, Contract
from stiction.solvers.lcp.keller import Keller

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP
    from stiction.solvers.contract import Solver

FIRST = ("frictionless", "sticky")
ACCELERATE = ("newton", "anderson", None)
SHOWN = 30  # passes whose violation is listed in the trace


@dataclass(frozen=True)
class BoxContract(Contract):
    """A contract for the laws that are boxes."""

    def refusal(self, problem: BoxLCP | ContactProblem, perturbation: float = 0.0) -> str | None:
        if isinstance(problem, ContactProblem) and is_box(problem.law):
            return None
        return super().refusal(problem, perturbation)


@dataclass(frozen=True)
class Splitting:
    """Normal and friction impulses split into box LCPs, for `BoxFriction` and `Coulomb(facets=4)`.

    inner: the solver of these problems
    first: "frictionless" or "sticky", what the first pass assumes of friction; a start replaces it
    joint: solve for normal and friction impulses at once in a pass, friction bounded by the pass before; else in turn
    proximal: weight, as a part of the diagonal, that pulls a pass towards the last one; 0 for passes as published
    accelerate: "newton" for Newton's method after a few passes, "anderson" for combinations of passes, None for neither
    max_passes: limit of passes without Newton's method
    max_cycles: starts of Newton's method
    max_steps: Newton steps in a cycle, one m × m system each
    tolerance: violation, in units of the largest free contact velocity, at which a solve stops
    """

    inner: Solver = field(default_factory=Keller)
    first: str = "frictionless"
    joint: bool = True
    proximal: float = 1e-6
    accelerate: str | None = "newton"
    max_passes: int = 100
    max_cycles: int = 80
    max_steps: int = ConeNewton.max_steps
    tolerance: float = ConeNewton.tolerance

    contract: ClassVar[Contract] = BoxContract(
        matrix="contact",
        guarantee="none; in practice nearly always with Newton's method, less often by passes alone",
        cost="a few box LCPs of size 3 n, dense, and 5 to 50 systems of size m",
        choose="the paper's method is meant; for box friction as such CellLemke is faster",
        warm=True,
        laws=("box",),
    )

    def __post_init__(self) -> None:
        contract = getattr(self.inner, "contract", None)
        if contract is None or isinstance(self.inner, type):
            raise InvalidProblem(f"Splitting: inner must be a solver object such as st.Keller(), got {self.inner!r}")
        name = type(self.inner).__name__
        if contract.matrix == "contact":
            raise InvalidProblem(f"Splitting: inner must solve box LCPs, but {name} takes contact problems only")
        if not contract.boxes:
            raise InvalidProblem(f"Splitting: inner must take bounds on both sides, which {name} does not")
        if self.first not in FIRST:
            raise InvalidProblem(f"Splitting: first must be one of {', '.join(FIRST)}, got {self.first!r}")
        if self.accelerate not in ACCELERATE:
            raise InvalidProblem(f"Splitting: accelerate must be 'newton', 'anderson' or None, got {self.accelerate!r}")
        if not 0.0 <= self.proximal < np.inf:
            raise InvalidProblem(f"Splitting: proximal must not be negative, got {self.proximal}")

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        form = box_form(problem)
        history: list[float] = []

        def solve(added: NDArray[np.float64], before: Made | None) -> Made:
            begin = (None if start is None else form.scaled(start)) if before is None else before.passes.best
            passes, steps = self._solve(form.shifted(turned(added, form.turn)) if added.any() else form, begin)
            history.extend(passes.history)
            return Made(passes, steps if before is None else steps + before.steps)

        def best(made: Made) -> NDArray[np.float64] | None:
            return turned(made.passes.best, -form.turn) if made.passes.done else None

        passes, steps = corrected(problem, solve, best, CORRECTIONS, NEGLIGIBLE)
        status = Status.SOLVED if passes.done else Status.MAX_ITERATIONS
        trace = trace_of(history, passes.failures, steps)
        impulse = form.impulse(passes.best)
        return ContactProposal(status, len(history) + steps, impulse, trace=trace, history=np.array(history))

    def _solve(self, form: BoxForm, start: NDArray[np.float64] | None) -> tuple[Passes, int]:
        """Passes, then Newton cycles or acceleration. Returns (passes with the best impulses, Newton steps)."""
        passes = Passes(form, self.inner, self.joint, self.proximal, small_enough(form, self.tolerance))
        if start is not None:
            passes.keep(start)
            p = start
        else:
            p = passes.sticky() if self.first == "sticky" else np.zeros((form.n, 3))
        if self.accelerate is None:
            passes.run(p, self.max_passes)
            return passes, 0
        if self.accelerate == "anderson":
            passes.run_accelerated(p, self.max_passes)
            return passes, 0
        steps, stretch = 0, np.ones(form.n)
        for cycle in range(self.max_cycles):
            if passes.done:
                break
            turn, stage = divmod(cycle, 4)
            passes.proximal = PULLS[turn % len(PULLS)] * self.proximal
            if cycle == 0:
                p = passes.run(p, FIRST_PASSES) if start is None else p
            elif stage == 0:
                # A light contact under a heavy load is measured by its load, or its velocity hardly ever decides.
                stretch = np.sqrt(np.maximum(np.abs(passes.best).max(axis=1), 1.0)) if turn % 2 else np.ones(form.n)
                p = passes.run(perturbed(passes.best, 0.5 * (turn % 2), cycle), FIRST_PASSES)
            elif stage == 1:
                p = passes.run(passes.best, MORE_PASSES)
            elif stage == 2:
                p = passes.run_accelerated(passes.best, MORE_PASSES)
            else:
                p = passes.run(perturbed(passes.best, 1.0, cycle), FIRST_PASSES)
            p, count = self._newton(form, p, stretch, SOFTNESS, MARGIN * passes.enough)
            passes.keep(p)
            steps += count
        return passes, steps

    def _newton(
        self, form: BoxForm, p: NDArray[np.float64], stretch: NDArray[np.float64], softness: float, enough: float
    ) -> tuple[NDArray[np.float64], int]:
        n, m, width = form.n, form.white.free.size, form.rows.shape[2]
        p = np.array(p)
        steps: int = box_newton(
            form.rows, form.segments, m, form.offset, form.bound, stretch, softness, enough, self.max_steps,
            *workspace(*sizes(n, m, width)), p,
        )  # fmt: skip
        return p, steps


class Made(NamedTuple):
    """Passes that were made, and the Newton steps."""

    passes: Passes
    steps: int


def small_enough(form: BoxForm, tolerance: float) -> float:
    """The violation, in units of the normal form, that the judge calls this tolerance at most.

    The judge measures velocities against the largest of the problem; the normal form, each by its contact's size.
    """
    unit = 1.0 / form.white.scale
    fastest = (unit[:, None] * np.abs(form.offset)).max(initial=0.0)
    slowest = unit.max(initial=0.0)
    return float(max(tolerance * min(1.0, fastest / slowest), LEAST_RESIDUAL)) if slowest > 0.0 else tolerance


def perturbed(p: NDArray[np.float64], part: float, seed: int) -> NDArray[np.float64]:
    """Each contact's impulse times a random number up to twice this part, and a little pressure."""
    chance = np.random.default_rng(seed).random((len(p), 1))
    p = 2.0 * part * chance * p
    p[:, :1] += PRESSURE * chance
    return p


def trace_of(history: list[float], failures: int, steps: int) -> tuple[str, ...]:
    """Lines of the trace: passes, Newton steps, violations, failures."""
    lines = [f"{len(history)} passes, {steps} Newton steps"]
    if history:
        shown = " ".join(f"{violation:.1e}" for violation in history[:SHOWN])
        lines.append(f"violation after passes: {shown}{' ...' if len(history) > SHOWN else ''}")
    if failures:
        lines.append(f"the inner solver failed {failures} times")
    return tuple(lines)

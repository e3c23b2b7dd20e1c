"""The choice made for you: the cheapest solver that suits the problem, then others, visibly.

Symmetric matrices without a negative diagonal go to Keller, all others to Lemke; what fails there is tried with the
other, with Cottle–Dantzig, with smoothing Newton, and if it is small by enumeration. Contact goes by its law, island by
island. `solve` asks one after the other until an answer is certified; `solution.trace` lists what was tried and how it
ended. The law is never changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from stiction.problems.contact import ContactProblem
from stiction.problems.laws import KINDS, Coulomb
from stiction.solvers.contact.baraff.baraff import Baraff
from stiction.solvers.contact.cell_lemke.cell_lemke import CellLemke
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.splitting.splitting import Splitting
from stiction.solvers.contact.structured_lemke.structured_lemke import StructuredLemke
from stiction.solvers.contract import Attempt, Contract
from stiction.solvers.lcp.cottle_dantzig import CottleDantzig
from stiction.solvers.lcp.enumerate import LARGEST, Enumerate
from stiction.solvers.lcp.keller import Keller
from stiction.solvers.lcp.lemke import Lemke
from stiction.solvers.lcp.smoothing_newton import SmoothingNewton
from stiction.solvers.principal_pivot import PrincipalPivot
from stiction.solvers.tolerances import AIM, MANY, ROUNDING, TOLERANCE

if TYPE_CHECKING:
    from stiction.problems.lcp import BoxLCP
    from stiction.solvers.contract import Solver

# Solvers to try under each law, the first choice first.
CHAINS = {
    "frictionless": (Attempt(PrincipalPivot()), Attempt(Baraff())),
    "viscous": (Attempt(PrincipalPivot()),),
    "no-slip": (Attempt(PrincipalPivot()),),
    "pyramid": (Attempt(CellLemke()), Attempt(StructuredLemke())),
    "box": (Attempt(CellLemke()), Attempt(Splitting())),
}
SLIDING = (Attempt(Baraff()),)  # where the direction of sliding is known


@cache
def cone_chain(aim: float, many: bool, turning: bool) -> tuple[Attempt, ...]:
    """Newton's method by itself; then from answers for pyramids, patiently, and Baraff, or if contacts are many afresh.

    turning: with torsional or rolling friction, which pyramids and Baraff do not take
    """
    newton = ConeNewton(tolerance=aim)
    short, patient = replace(newton, max_cycles=5), replace(newton, max_cycles=80)
    if many:
        return Attempt(newton), Attempt(newton, "afresh")
    chain: tuple[Attempt, ...] = (Attempt(newton),)
    if not turning:
        chain += tuple(Attempt(short, Coulomb(facets=facets)) for facets in (16, 8, 64))
    chain += (Attempt(patient, "afresh"), Attempt(patient, "best"))
    return chain if turning else (*chain, Attempt(Baraff()))


@dataclass(frozen=True)
class Auto:
    """Chooses solvers by the problem; `solve` tries them in turn until an answer is certified.

    aim: violation, in units of the largest free contact velocity, at which iterations on the friction cone stop; None
        for AIM times the tolerance of the certificate. It is that small because velocities that should be zero, and
        are not, add up to creep over many steps
    """

    aim: float | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="any",
        guarantee="what Keller, Lemke or Cottle–Dantzig guarantee; everything for n <= 12, free variables not counted",
        cost="that of the solver chosen",
        choose="you have no reason to choose",
        solves=frozenset({"copositive-plus", "PSD", "P"}),
        warm=True,
        laws=KINDS,
        slip=True,
        turning=True,
    )

    def aim_of(self, tolerance: float) -> float:
        """The violation at which iterations stop for certificates of this tolerance."""
        return max(AIM * tolerance, ROUNDING) if self.aim is None else self.aim

    def aimed(self, tolerance: float) -> Auto:
        """The same choice with its aim fixed."""
        return self if self.aim is not None else aimed_at(self.aim_of(tolerance))

    def order(self, problem: BoxLCP | ContactProblem) -> tuple[Attempt, ...]:
        """Solvers to try, the first choice first."""
        if isinstance(problem, ContactProblem):
            if problem.slip is not None and problem.slides:
                return SLIDING
            if problem.law.kind == "cone":
                return cone_chain(self.aim_of(TOLERANCE), problem.n > MANY, problem.rows.shape[1] > 3)
            return CHAINS[problem.law.kind]
        principal = problem.smallest_diagonal >= 0.0
        order: list[Solver] = [Keller(), Lemke()] if principal and problem.symmetric else [Lemke()]
        order += [CottleDantzig(), SmoothingNewton()] if principal else []
        order += [Enumerate()] if problem.bounded <= LARGEST else []
        return tuple(map(Attempt, order))


@cache
def aimed_at(aim: float) -> Auto:
    return Auto(aim)


@dataclass(frozen=True)
class Bounded(Auto):
    """The same within limits.

    budget: Newton steps and pivots after which nothing more is tried, with ASKING for each that failed; only what comes
        after Newton's method may take more
    first: without what `Auto` tries after its first choice has failed
    """

    budget: float = math.inf
    first: bool = False

    def aimed(self, tolerance: float) -> Bounded:
        return self if self.aim is not None else replace(self, aim=self.aim_of(tolerance))

    def order(self, problem: BoxLCP | ContactProblem) -> tuple[Attempt, ...]:
        return super().order(problem)[: 1 if self.first else None]

    def within(self, solver: Solver, left: float) -> Solver:
        """A solver with half of the Newton steps that are left: others may find what this one does not."""
        return replace(solver, max_work=0.5 * left) if isinstance(solver, ConeNewton) else solver

"""The choice made for you: the cheapest solver whose guarantee covers the problem, then the others, visibly.

Symmetric matrices without a negative diagonal go to Keller, all others to Lemke; what fails there is tried with the
other, with Cottle–Dantzig, with smoothing Newton, and if it is small by enumeration. The certificate decides each
time. `solution.trace` tells what was tried and how it ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stiction.problems.contact import ContactProblem
from stiction.problems.laws import kind
from stiction.solutions.certificate import judge
from stiction.solutions.status import Status
from stiction.solvers.cell_lemke import CellLemke
from stiction.solvers.cone_newton import ConeNewton
from stiction.solvers.contract import ContactProposal, Contract, Proposal
from stiction.solvers.cottle_dantzig import CottleDantzig
from stiction.solvers.enumerate import LARGEST, Enumerate
from stiction.solvers.keller import Keller
from stiction.solvers.lemke import Lemke
from stiction.solvers.principal_pivot import PrincipalPivot
from stiction.solvers.smoothing_newton import SmoothingNewton

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP
    from stiction.solvers.contract import Solver

ENOUGH = 1e-10  # residual at which no other solver is asked


@dataclass(frozen=True)
class Auto:
    """Picks a solver by the problem, and falls back on others until one answer is certified."""

    contract: ClassVar[Contract] = Contract(
        matrix="any",
        guarantee="what Keller, Lemke or Cottle–Dantzig guarantee; everything for n <= 12",
        cost="that of the solver chosen",
        choose="you have no reason to choose",
        solves=frozenset({"copositive-plus", "PSD", "P"}),
        laws=("frictionless", "viscous", "no-slip", "pyramid", "cone"),
    )

    def propose(
        self, problem: BoxLCP | ContactProblem, start: NDArray[np.float64] | None
    ) -> Proposal | ContactProposal:
        return for_contact(problem) if isinstance(problem, ContactProblem) else for_complementarity(problem)


def for_contact(problem: ContactProblem) -> ContactProposal:
    """The one solver whose law it is."""
    choices: dict[str, Solver] = {"cone": ConeNewton(), "pyramid": CellLemke()}
    solver = choices.get(kind(problem.law), PrincipalPivot())
    found: ContactProposal = solver.propose(problem, None)
    trace = f"{type(solver).__name__}: {found.status.name.lower()}"
    return found._replace(solver=solver, trace=(trace, *found.trace))


def for_complementarity(problem: BoxLCP) -> Proposal:
    """The cheapest solver whose guarantee covers the problem, then the others."""
    principal = problem.smallest_diagonal >= 0.0
    order: list[Solver] = [Keller(), Lemke()] if principal and problem.symmetric else [Lemke()]
    order += [CottleDantzig(), SmoothingNewton()] if principal else []
    order += [Enumerate()] if problem.n <= LARGEST else []
    trace: list[str] = []
    best: Proposal | None = None
    best_residual = float("inf")
    for solver in order:
        found: Proposal = solver.propose(problem, None)
        certificate = judge(problem, found.z)[0]
        trace.append(f"{type(solver).__name__}: {found.status.name.lower()}, residual {certificate.residual:.1e}")
        if best is None or certificate.residual < best_residual:
            best, best_residual = found._replace(solver=solver), certificate.residual
        if certificate.passes(ENOUGH):
            break
        if found.status == Status.RAY and found.examined(problem).infeasible:
            best = found._replace(solver=solver)
            break
    assert best is not None
    return best._replace(trace=tuple(trace))

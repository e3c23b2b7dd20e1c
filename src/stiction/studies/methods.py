"""Ways to solve the same contact problem under one law or another, each timed alone and judged by our certificate.

What comes before a method (the normal form, the assembled LCP, the quadratic program) is prepared and not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

import stiction as st
from stiction import optional
from stiction.problems.laws import Law
from stiction.problems.pyramid import pyramid_lcp
from stiction.solutions.contact import certify_contact
from stiction.solvers.contract import ContactProposal, Contract
from stiction.studies.programs import Program, program
from stiction.studies.results import Array
from stiction.studies.timing import in_turn


class Method(NamedTuple):
    """A law, and a way to solve it: `prepare` is not timed, the function that it returns is.

    impulse: makes (n, 3) impulses of what that function returns
    own: the contact solver that it is, if it is one
    """

    law: Law
    prepare: Callable[[st.ContactProblem], Callable[[], Any]]
    impulse: Callable[[st.ContactProblem, Any], Array]
    own: Any = None

    @property
    def solver(self) -> Any:
        """For simulations."""
        return By(self) if self.own is None else self.own

    def propose(self, problem: st.ContactProblem) -> Array | None:
        """Impulses; None if the method gives up."""
        try:
            found = self.prepare(problem)()
        except (ArithmeticError, RuntimeError, ValueError, np.linalg.LinAlgError):
            return None
        impulse = None if found is None else self.impulse(problem, found)
        return impulse if impulse is None or np.isfinite(impulse).all() else None

    def residual(self, problem: st.ContactProblem) -> float:
        """The certificate's residual; infinite if the method gives up."""
        impulse = self.propose(problem)
        return np.inf if impulse is None else certified(problem, impulse)


class Answer(NamedTuple):
    impulse: Array
    velocity: Array
    joint_impulse: Array


def certified(problem: st.ContactProblem, impulse: Array) -> float:
    """Residual of the certificate of (n, 3) impulses."""
    return certify_contact(problem, Answer(impulse, *problem.respond(impulse))).residual


@dataclass(frozen=True)
class By:
    """A method in the place of a solver, for simulations."""

    method: Method

    contract: ClassVar[Contract] = Contract(
        matrix="contact", guarantee="that of the method", cost="that of the method, and of posing its problem",
        choose="in this study", laws=("pyramid", "viscous", "no-slip", "frictionless"),
    )  # fmt: skip

    def propose(self, problem: st.ContactProblem, start: Array | None) -> ContactProposal:
        impulse = self.method.propose(problem)
        if impulse is None:
            return ContactProposal(st.Status.STALLED, 0, np.zeros((problem.n, 3)))
        return ContactProposal(st.Status.SOLVED, 0, impulse)


def on_pyramid(solver: Any, problem: st.ContactProblem) -> Callable[[], Any]:
    lcp = pyramid_lcp(problem)
    return lambda: solver.propose(lcp, None).z


def on_program(solver: Any, problem: st.ContactProblem) -> Callable[[], Any]:
    lcp = program(problem).lcp()
    return lambda: solver.propose(lcp, None).z


def on_contacts(solver: Any, problem: st.ContactProblem) -> Callable[[], Any]:
    assert problem.whitened
    return lambda: solver.propose(problem, None).impulse


def ours(law: Law, solver: Any) -> Method:
    """A contact solver."""
    return Method(law, partial(on_contacts, solver), given, solver)


def with_quantecon(problem: st.ContactProblem) -> Callable[[], Any]:
    """Lemke's method with a lexicographic rule; where it finds no answer it goes on for as long as it may."""
    lemke = optional.quantecon().optimize.lcp_lemke
    lcp = pyramid_lcp(problem)
    M, q = lcp.M.copy(), lcp.q.copy()

    def solve() -> Any:
        found = lemke(M, q, max_iter=10 * lcp.n)
        return found.z if found.success else None

    return solve


def given(problem: st.ContactProblem, impulse: Any) -> Array:
    return np.asarray(impulse)


def on_package(prepare: Callable[[Program], Callable[[], Any]], problem: st.ContactProblem) -> Callable[[], Any]:
    return prepare(program(problem))


def race(problems: Sequence[st.ContactProblem], ways: Sequence[Method], repeats: int) -> tuple[Array, Array]:
    """(method, problem) the least of several times, all methods in turn, and residuals."""
    seconds, residual = [], []
    for problem in problems:
        posed_for = [problem.with_law(way.law) for way in ways]
        residual.append([way.residual(posed) for way, posed in zip(ways, posed_for, strict=True)])  # compiles, too
        ready = [partial(way.prepare, posed) for way, posed in zip(ways, posed_for, strict=True)]
        seconds.append(in_turn(ready, repeats))
    return np.transpose(seconds), np.transpose(residual)

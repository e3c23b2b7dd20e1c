"""`solve`: ask a solver, judge its answer, and return it with its certificate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from stiction.errors import InvalidProblem, SolveFailed, UnsupportedProblem
from stiction.problems.contact import ContactProblem
from stiction.problems.lcp import BoxLCP
from stiction.solutions.certificate import judge
from stiction.solutions.contact import ContactSolution, judge_contact
from stiction.solutions.ray import examine
from stiction.solutions.solution import Solution
from stiction.solutions.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solvers.contract import Solver


@overload
def solve(
    problem: BoxLCP, solver: Solver | None = None, *, start: Any = None, tolerance: float = 1e-8, throw: bool = True
) -> Solution: ...


@overload
def solve(
    problem: ContactProblem,
    solver: Solver | None = None,
    *,
    start: Any = None,
    tolerance: float = 1e-8,
    throw: bool = True,
) -> ContactSolution: ...


def solve(
    problem: BoxLCP | ContactProblem,
    solver: Solver | None = None,
    *,
    start: Any = None,
    tolerance: float = 1e-8,
    throw: bool = True,
) -> Solution | ContactSolution:
    """Solve a problem and certify the answer.

    solver: a solver object such as `Lemke()`; `Auto()` if not given
    start: a `Solution` or vector z to begin from, for solvers that can use one
    tolerance: largest residual of the certificate that counts as solved
    throw: raise `SolveFailed` if there is no certified answer, else return the failed solution
    """
    if solver is None:
        from stiction.solvers.auto import Auto

        solver = Auto()
    if not isinstance(problem, BoxLCP | ContactProblem):
        raise InvalidProblem(f"solve: not an LCP, BoxLCP or ContactProblem, but {type(problem).__name__}")
    if not (isinstance(tolerance, (int, float)) and 0.0 < tolerance < math.inf):
        raise InvalidProblem(f"solve: tolerance must be a positive number, got {tolerance!r}")
    refuse_misfit(problem, solver, start)

    found: Solution | ContactSolution
    if isinstance(problem, ContactProblem):
        found = certified_contact(problem, solver, start, tolerance)
    else:
        found = certified(problem, solver, start, tolerance)
    if throw and found.status != Status.SOLVED:
        raise SolveFailed(found)
    return found


def certified(problem: BoxLCP, solver: Solver, start: Any, tolerance: float) -> Solution:
    """A complementarity problem's proposed answer, judged."""
    status, iterations, z, direction, history, trace, proposer = solver.propose(problem, starting_point(problem, start))
    certificate, w = judge(problem, z)
    status = verdict(status, certificate.passes(tolerance))
    ray = examine(problem, direction) if direction is not None and status == Status.RAY else None
    return Solution(status, z, w, certificate, iterations, proposer or solver, tolerance, ray, history, trace)


def certified_contact(problem: ContactProblem, solver: Solver, start: Any, tolerance: float) -> ContactSolution:
    """A contact problem's proposed answer, judged: impulses are the solver's, velocities follow from them."""
    status, iterations, impulse, direction, trace, proposer = solver.propose(problem, starting_impulse(problem, start))
    velocity, joint_impulse = problem.respond(impulse)
    certificate, u, mode = judge_contact(problem, velocity, impulse, joint_impulse)
    status = verdict(status, certificate.passes(tolerance))
    return ContactSolution(
        status, velocity, impulse, joint_impulse, mode, u, certificate, iterations, proposer or solver, tolerance,
        direction if status != Status.SOLVED else None, trace,
    )  # fmt: skip


def verdict(claimed: Status, passes: bool) -> Status:
    """Only the certificate makes an answer solved."""
    if passes:
        return Status.SOLVED
    return Status.UNCERTIFIED if claimed == Status.SOLVED else claimed


def refuse_misfit(problem: BoxLCP | ContactProblem, solver: Solver, start: Any) -> None:
    """Raise UnsupportedProblem, naming solvers that take the problem, if this one does not."""
    contract = getattr(solver, "contract", None)
    if contract is None:
        raise InvalidProblem(f"solve: {solver!r} is not a solver; pass an object such as st.Lemke()")
    if isinstance(solver, type):
        raise InvalidProblem(f"solve: {solver.__name__} is a class, not an object; pass st.{solver.__name__}()")
    name = type(solver).__name__
    reason = contract.refusal(problem, getattr(solver, "perturbation", 0.0))
    if reason is not None:
        from stiction.solvers import ALL

        takers = ", ".join(s.__name__ for s in ALL if s.contract.refusal(problem) is None)
        raise UnsupportedProblem(f"{name} does not take this problem: {reason}; these do: {takers}")
    if start is not None and not contract.warm:
        from stiction.solvers import ALL

        warm = ", ".join(s.__name__ for s in ALL if s.contract.warm and s.contract.refusal(problem) is None)
        raise UnsupportedProblem(f"{name} cannot use a start; these can: {warm}")


def starting_point(problem: BoxLCP, start: Any) -> NDArray[np.float64] | None:
    """The vector to begin from, projected onto the bounds."""
    if start is None:
        return None
    z = np.asarray(getattr(start, "z", start), dtype=np.float64)
    if z.shape != (problem.n,):
        raise InvalidProblem(f"solve: start must have shape ({problem.n},) to match the problem, got {z.shape}")
    if not np.isfinite(z).all():
        i = int(np.argmin(np.isfinite(z)))
        raise InvalidProblem(f"solve: start must be finite, but start[{i}] = {z[i]}")
    return np.clip(z, problem.lo, problem.hi)


def starting_impulse(problem: ContactProblem, start: Any) -> NDArray[np.float64] | None:
    """The impulses to begin from."""
    if start is None:
        return None
    impulse = np.asarray(getattr(start, "impulse", start), dtype=np.float64)
    if impulse.shape != (problem.n, 3):
        raise InvalidProblem(
            f"solve: start must have shape ({problem.n}, 3) to match the contacts, got {impulse.shape}"
        )
    if not np.isfinite(impulse).all():
        raise InvalidProblem("solve: start must be finite")
    return impulse

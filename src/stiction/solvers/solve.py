"""`solve`: ask a solver, judge its answer, and return it with its certificate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import InvalidProblem, SolveFailed, UnsupportedProblem
from stiction.problems.lcp import BoxLCP
from stiction.solutions.certificate import judge
from stiction.solutions.solution import Solution
from stiction.solutions.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solvers.contract import Solver


def solve(
    problem: BoxLCP,
    solver: Solver | None = None,
    *,
    start: Any = None,
    tolerance: float = 1e-8,
    throw: bool = True,
) -> Solution:
    """Solve a problem and certify the answer.

    solver: a solver object such as `Lemke()`; `Auto()` if not given
    start: a `Solution` or vector z to begin from, for solvers that can use one
    tolerance: largest residual of the certificate that counts as solved
    throw: raise `SolveFailed` if there is no certified answer, else return the failed solution
    """
    if solver is None:
        from stiction.solvers.auto import Auto

        solver = Auto()
    if not isinstance(problem, BoxLCP):
        raise InvalidProblem(f"solve: the problem must be an LCP or BoxLCP, got {type(problem).__name__}")
    if not (isinstance(tolerance, (int, float)) and 0.0 < tolerance < math.inf):
        raise InvalidProblem(f"solve: tolerance must be a positive number, got {tolerance!r}")
    refuse_misfit(problem, solver, start)

    status, iterations, z, direction, history, trace, proposer = solver.propose(problem, starting_point(problem, start))
    certificate, w = judge(problem, z)
    if certificate.passes(tolerance):
        status = Status.SOLVED
    elif status == Status.SOLVED:
        status = Status.UNCERTIFIED
    ray = None
    if direction is not None and status == Status.RAY:
        from stiction.solutions.ray import examine

        ray = examine(problem, direction)
    solution = Solution(status, z, w, certificate, iterations, proposer or solver, tolerance, ray, history, trace)
    if throw and status != Status.SOLVED:
        raise SolveFailed(solution)
    return solution


def refuse_misfit(problem: BoxLCP, solver: Solver, start: Any) -> None:
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

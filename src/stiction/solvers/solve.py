"""`solve`: ask a solver, judge its answer, and return it with its certificate."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from stiction.errors import InvalidProblem, SolveFailed, UnsupportedProblem
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Law
from stiction.problems.lcp import BoxLCP
from stiction.solutions.certificate import judge_with_noise, without_noise
from stiction.solutions.contact import ContactSolution, judged
from stiction.solutions.ray import Ray, examine
from stiction.solutions.solution import Solution
from stiction.solutions.status import Status, verdict
from stiction.solvers.tolerances import ASKING, ENOUGH, SOLVE_ERROR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solvers.contract import Attempt, Choice, ContactProposal, Solver


@overload
def solve(
    problem: BoxLCP,
    solver: Solver | Choice | None = None,
    *,
    start: Any = None,
    tolerance: float = 1e-8,
    throw: bool = True,
) -> Solution: ...


@overload
def solve(
    problem: ContactProblem,
    solver: Solver | Choice | None = None,
    *,
    start: Any = None,
    tolerance: float = 1e-8,
    throw: bool = True,
) -> ContactSolution: ...


def solve(
    problem: BoxLCP | ContactProblem,
    solver: Solver | Choice | None = None,
    *,
    start: Any = None,
    tolerance: float = 1e-8,
    throw: bool = True,
) -> Solution | ContactSolution:
    """Solve a problem and certify the answer.

    solver: a solver object such as `Lemke()`; `Auto()` if not given
    start: what to begin from, for solvers that can use it: a `Solution` or vector z; a `ContactSolution` or impulses
    tolerance: largest residual of the certificate that counts as solved
    throw: raise `SolveFailed` if there is no certified answer, else return the failed solution
    """
    if solver is None:
        solver = auto()
    if not isinstance(problem, BoxLCP | ContactProblem):
        raise InvalidProblem(f"solve: not an LCP, BoxLCP or ContactProblem, but {type(problem).__name__}")
    if not (isinstance(tolerance, (int, float)) and 0.0 < tolerance < math.inf):
        raise InvalidProblem(f"solve: tolerance must be a positive number, got {tolerance!r}")
    refuse_misfit(problem, solver, start)

    chosen: Any = solver.aimed(tolerance) if hasattr(solver, "aimed") else solver
    found: Solution | ContactSolution
    if isinstance(problem, ContactProblem):
        impulse = None if start is None else starting_impulse(problem, start)
        ask = contact_by_islands if hasattr(solver, "order") else certified_contact
        if problem.contradicting_joints.size:
            ask = contradiction
        found = ask(problem, chosen, impulse, tolerance)
    else:
        z = None if start is None else starting_point(problem, start)
        found = (
            in_turn(problem, chosen, z, tolerance, certified)[0]
            if hasattr(solver, "order")
            else certified(problem, chosen, z, tolerance)
        )
    if throw and found.status != Status.SOLVED:
        raise SolveFailed(found)
    return found


@cache
def auto() -> Choice:
    from stiction.solvers.auto import Auto

    return Auto()


def in_turn(
    problem: Any, choice: Choice, start: NDArray[np.float64] | None, tolerance: float, ask: Any
) -> tuple[Any, int]:
    """Ask the solvers of a choice until an answer is certified; the best of them, and the cost.

    That is iterations, and ASKING for each attempt that failed.
    """
    best, trace, used = None, [], 0
    budget: float = getattr(choice, "budget", math.inf)
    enough = tolerance if ask is certified_contact else min(tolerance, ENOUGH)
    for attempt in choice.order(problem):
        if used + ASKING > budget and best is not None:
            trace.append(f"no more is tried after {used} iterations: {max(budget, 0.0):.0f} were allowed")
            break
        begin, pivots = begin_of(attempt, problem, start, best)
        solver, within = attempt.solver, getattr(choice, "within", None)
        if within is not None:
            solver = within(solver, max(budget - used - pivots - ASKING, 1.0))
        found = ask(problem, solver, begin, tolerance)
        residual = found.certificate.residual
        used += found.iterations + pivots + (0 if residual <= enough else ASKING)
        trace.append(f"{attempt}: {found.status.name.lower()}, residual {residual:.1e}")
        trace += found.trace
        proof = isinstance(found.ray, Ray) and found.ray.infeasible
        if found.status == Status.NO_SOLUTION:
            proof = best is None or best.status != Status.SOLVED
        if best is None or proof or residual < best.certificate.residual:
            best = found
        if proof or residual <= enough:
            break
    assert best is not None
    return best._replace(trace=tuple(trace)), used


def begin_of(
    attempt: Attempt, problem: Any, start: NDArray[np.float64] | None, best: Any
) -> tuple[NDArray[np.float64] | None, int]:
    """The start of an attempt, and the pivots that it took to find it."""
    if not attempt.solver.contract.warm or attempt.begin == "afresh":
        return None, 0
    if attempt.begin == "best" and best is not None:
        return best.impulse, 0
    if isinstance(attempt.begin, Law):
        from stiction.solvers.auto import CHAINS

        other = CHAINS[attempt.begin.kind][0].solver.propose(problem.replace(law=attempt.begin), None)
        return other.impulse, other.iterations
    return start, 0


def contact_by_islands(
    problem: ContactProblem, choice: Choice, start: NDArray[np.float64] | None, tolerance: float
) -> ContactSolution:
    """Contacts that have nothing to do with each other are solved apart, and judged together."""
    from stiction.problems.islands import islands

    parts = islands(problem)
    if len(parts) <= 1:
        return in_turn(problem, choice, start, tolerance, certified_contact)[0]  # type: ignore[no-any-return]
    impulse = np.zeros(problem.rows.shape[:2])
    iterations, trace, worst = 0, [], None
    for number, part in enumerate(parts):
        begin = None if start is None else start[part.contacts]
        found, used = in_turn(part.problem, choice, begin, tolerance, certified_contact)
        if isinstance(budget := getattr(choice, "budget", None), float):
            choice = replace(choice, budget=budget - used)  # type: ignore[type-var]
        impulse[part.contacts] = found.impulse
        iterations += found.iterations
        trace += [f"island {number} of {len(parts)}, contacts {part.contacts[0]} …: {line}" for line in found.trace]
        if worst is None or not found.certificate.residual <= worst.certificate.residual:
            worst = found
    assert worst is not None
    whole = judged(problem, worst.status, impulse, iterations, worst.solver, tolerance)
    return whole._replace(trace=tuple(trace))


def contradiction(problem: ContactProblem, solver: Any, start: Any, tolerance: float) -> ContactSolution:
    """No answer: bilateral rows that no velocity satisfies. What is returned holds the rows before them."""
    rows = ", ".join(str(row) for row in problem.contradicting_joints)
    trace = (f"bilateral rows {rows} ask for other rates than the rows before them allow",)
    return judged(problem, Status.CONTRADICTION, np.zeros(problem.rows.shape[:2]), 0, solver, tolerance, trace=trace)


def certified(problem: BoxLCP, solver: Solver, start: NDArray[np.float64] | None, tolerance: float) -> Solution:
    """A complementarity problem's proposed answer, judged."""
    status, iterations, z, direction, history, trace, proposer = solver.propose(problem, start)
    certificate, w, strict = judge_with_noise(problem, z)
    if SOLVE_ERROR < strict < math.inf:  # an answer is given without its noise, if its rows are better so
        other = without_noise(problem, z)
        better, other_w, stricter = judge_with_noise(problem, other)
        if stricter < strict and better.residual <= 2.0 * max(certificate.residual, SOLVE_ERROR):
            z, certificate, w = other, better, other_w
    status = verdict(status, certificate.passes(tolerance))
    ray = examine(problem, direction) if direction is not None and status == Status.RAY else None
    return Solution(status, z, w, certificate, iterations, proposer or solver, tolerance, ray, history, trace, problem)


def certified_contact(
    problem: ContactProblem, solver: Solver, start: NDArray[np.float64] | None, tolerance: float
) -> ContactSolution:
    """A contact problem's proposed answer, judged."""
    found: ContactProposal = solver.propose(problem, start)
    return judged(
        problem, found.status, found.impulse, found.iterations, found.solver or solver, tolerance,
        found.ray, found.trace, found.history,
    )  # fmt: skip


def refuse_misfit(problem: BoxLCP | ContactProblem, solver: Solver | Choice, start: Any) -> None:
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


def starting_point(problem: BoxLCP, start: Any) -> NDArray[np.float64]:
    """The vector to begin from, projected onto the bounds."""
    z = np.asarray(getattr(start, "z", start), dtype=np.float64)
    if z.shape != (problem.n,):
        raise InvalidProblem(f"solve: start must have shape ({problem.n},) to match the problem, got {z.shape}")
    if not np.isfinite(z).all():
        i = int(np.argmin(np.isfinite(z)))
        raise InvalidProblem(f"solve: start must be finite, but start[{i}] = {z[i]}")
    return np.clip(z, problem.lo, problem.hi)


def starting_impulse(problem: ContactProblem, start: Any) -> NDArray[np.float64]:
    """The impulses to begin from."""
    impulse = np.asarray(getattr(start, "impulse", start), dtype=np.float64)
    if impulse.shape != problem.rows.shape[:2]:
        raise InvalidProblem(
            f"solve: start must have shape {problem.rows.shape[:2]} to match the contacts, got {impulse.shape}"
        )
    if not np.isfinite(impulse).all():
        raise InvalidProblem("solve: start must be finite")
    return impulse

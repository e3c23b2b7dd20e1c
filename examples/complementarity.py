"""Every solver on five problems: who takes it, how it ended, how well, and how fast."""

from __future__ import annotations

import time

import stiction as st
from stiction.problems.zoo import families, heaps
from stiction.solvers import COMPLEMENTARITY, Auto
from stiction.solvers.contract import Choice, Solver

PROBLEMS: dict[str, st.BoxLCP] = {
    "positive definite, n = 100": families.positive_definite(100, seed=1),
    "a wall of bricks: 60 contacts, frictionless, redundant": heaps.wall(60, seed=1),
    "positive definite between bounds, n = 100": families.positive_definite_box(100, seed=1),
    "copositive-plus, unsymmetric, n = 10": families.copositive_plus(10, seed=1),
    "no solution exists, n = 10": families.infeasible(10, seed=1),
}


def main() -> None:
    print("Each answer is judged from the problem alone: residual 0 is exact, rounding leaves about 1e-16.")
    print("Outside the class that a solver guarantees it may fail; then it says so.")
    for title, problem in PROBLEMS.items():
        print(f"\n{title}\n")
        print(f"  {'solver':<22}{'status':<16}{'residual':>9}{'iterations':>12}{'time':>12}")
        proof = None
        for solver in (Auto, *COMPLEMENTARITY):
            if solver.contract.refusal(problem) is None:
                solution = report(problem, solver())
                proof = proof or (solution if solution.ray is not None and solution.ray.infeasible else None)
        if proof is not None and proof.ray is not None:
            print(f"\n  {type(proof.solver).__name__}: {proof.ray.statement}")


def report(problem: st.BoxLCP, solver: Solver | Choice) -> st.Solution:
    """Solve twice, so that the time shown is not that of the compiler, and print a row."""
    st.solve(problem, solver, throw=False)
    start = time.perf_counter()
    solution = st.solve(problem, solver, throw=False)
    milliseconds = 1e3 * (time.perf_counter() - start)
    residual = solution.certificate.residual
    name = " → ".join(dict.fromkeys(type(each).__name__ for each in (solver, solution.solver)))
    print(f"  {name:<22}{solution.status.name:<16}{residual:>9.0e}{solution.iterations:>12}{milliseconds:>9.2f} ms")
    return solution


if __name__ == "__main__":
    main()

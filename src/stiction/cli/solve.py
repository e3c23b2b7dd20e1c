"""`stiction solve`: one problem from a file, by one solver or by all."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from stiction.cli import words
from stiction.cli.output import FAILED, MANY, plain, say, shortened, table, tell
from stiction.cli.run import check_outputs
from stiction.errors import InvalidProblem, UnsupportedProblem, UnsymmetricMatrix

MOST = 50  # rows that are shown
REPEATS = 3  # of a solve that takes less than LONG
LONG = 1.0  # s


def solve(
    file: Annotated[Path, Parameter(help="A problem: .npz, .hdf5 as FCLIB has it, or .dat as Siconos has it.")],
    /,
    *,
    law: Annotated[
        str | None,
        Parameter(help=f"Another law: {', '.join(f'`{law}`' for law in words.LAWS)}.", show_default="the file's"),
    ] = None,
    solver: Annotated[str, Parameter(help="By its name, or `all`; `stiction solvers` lists them.")] = "auto",
    tolerance: Annotated[float, Parameter(help="Largest residual that counts as solved.")] = 1e-8,
    ignore: Annotated[
        tuple[str, ...],
        Parameter(help="What to leave out of a file: `rolling` friction.", negative="", show_default=False),
    ] = (),
    plot: Annotated[
        Path | None, Parameter(help="Draw the problem's sparsity and a contact's friction cone: .svg, .png, .pdf.")
    ] = None,
    contact: Annotated[
        int | None, Parameter(help="Which contact to draw.", show_default="the one with the largest impulse")
    ] = None,
) -> int:
    """Solve a problem from a file and print the certificate.

    `--solver all` asks every solver that takes the problem and compares them in one table; times are of a second solve,
    without compilation. Exit status 1 if there is no certified answer.

    **Examples**

        stiction solve failed.npz
        stiction solve failed.npz --solver all
        stiction solve box-stack.hdf5 --law pyramid:8 --solver cell-lemke
        stiction solve rockfall.dat --ignore rolling
    """
    check_outputs(plot=plot)
    chosen = None if solver == "all" else words.solver(solver)
    problem = loaded(file, law, ignore)
    if contact is not None and not 0 <= contact < problem.n:
        raise InvalidProblem(f"--contact must be from 0 to {problem.n - 1}, got {contact}")
    if plot is not None and not hasattr(problem, "friction"):
        raise InvalidProblem("--plot is for contact problems")
    best = compared(problem, tolerance) if chosen is None else single(problem, chosen, tolerance)
    if plot is not None and best is not None:
        from stiction.viewer import plots

        plots.save(plots.problem(best, contact), plot)
        tell(f"plot: {plot}")
    if best is not None and best.ok:
        return 0
    tell(f"no certified answer; the problem is in {file}")
    return FAILED


def loaded(file: Path, law: str | None, ignore: tuple[str, ...] = ()) -> Any:
    from stiction.problems.contact import ContactProblem
    from stiction.problems.files import load

    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", UnsymmetricMatrix)
        problem = load(file, ignore=ignore)
    for doubt in doubts:
        tell(f"{file}: {doubt.message}")
    if law is None:
        return problem
    if not isinstance(problem, ContactProblem):
        raise InvalidProblem(f"--law is for contact problems; {file} holds {type(problem).__name__}")
    chosen, viscosity = words.law(law)
    if chosen.viscous and viscosity is not None:
        problem = problem.replace(viscosity=viscosity)
    return problem.with_law(chosen)


def single(problem: Any, solver: Any, tolerance: float) -> Any:
    """One solver's answer, in full."""
    import stiction

    begin = time.perf_counter()
    solution = stiction.solve(problem, solver, tolerance=tolerance, throw=False)
    seconds = time.perf_counter() - begin
    name = type(solution.solver).__name__
    certificate = solution.certificate
    contact = hasattr(problem, "friction")
    say(described(problem))
    took = f"{1e3 * seconds:.3g} ms" if seconds < LONG else f"{seconds:.3g} s, loading or compiling kernels included"
    verdict = f"solved by {name}" if solution.ok else f"not solved by {name}: {solution.status.message}"
    say(f"{verdict}; {solution.iterations} iterations, {took}")
    for line in [line for line in solution.trace if ": solved, " not in line][:MOST]:
        say(f"  {line}")
    if solution.ray is not None and hasattr(solution.ray, "statement"):
        say(solution.ray.statement)
    say()
    say(f"certificate: {certificate}, tolerance {tolerance:g}")
    unit = f" m/s   (scale {certificate.scale:.3g} m/s)" if contact else ""
    names = ("penetration", "complementarity", "cone", "dissipation", "momentum", "joint")
    for part in names if contact else ("lower", "upper", "complementarity"):
        say(f"  {part:15} {plain(getattr(certificate, part))}{unit}")
        unit = " m/s" if contact else ""
    if contact and certificate.beyond_cone > 0.0:
        say(f"  {'beyond cone':15} {certificate.beyond_cone:.1e} of the scale, from the law on the circular cone")
    say()
    say(contacts_of(solution) if contact else variables_of(solution))
    if contact and solution.ok and problem.n <= MANY:
        say(f"\n{solution.uniqueness()}")
    return solution


def described(problem: Any) -> str:
    if not hasattr(problem, "friction"):
        return f"{type(problem).__name__}, n = {problem.n}"
    form = "Delassus form" if problem.mass is None else f"{problem.m} velocities"
    joints = f", {len(problem.joints)} bilateral rows" if len(problem.joints) else ""
    return f"ContactProblem, {problem.n} contacts, {form}{joints}, {problem.law}"


def contacts_of(solution: Any) -> str:
    from stiction.solutions.contact import Mode

    rows = [
        [
            str(i), Mode(mode).name.lower(), f"{p[0]:.6g}", f"{math.hypot(p[1], p[2]):.6g}", f"{u[0]:.3g}",
            f"{math.hypot(u[1], u[2]):.3g}",
        ]
        for i, (mode, p, u) in enumerate(
            zip(solution.mode, solution.impulse, solution.contact_velocity, strict=True)
        )
    ]  # fmt: skip
    head = ("contact", "mode", "normal [N s]", "friction [N s]", "opening [m/s]", "sliding [m/s]")
    return shortened(head, rows, (0, 2, 3, 4, 5), MOST)


def variables_of(solution: Any) -> str:
    rows = [[str(i), f"{z:.6g}", f"{w:.6g}"] for i, (z, w) in enumerate(zip(solution.z, solution.w, strict=True))]
    return shortened(("index", "z", "w"), rows, (0, 1, 2), MOST)


def compared(problem: Any, tolerance: float) -> Any:
    """All solvers that take the problem, in one table; the best solution."""
    import stiction

    say(described(problem))
    rows, best, refused = [], None, []
    try:
        for name, kind in words.solvers().items():
            try:
                solution = stiction.solve(problem, kind(), tolerance=tolerance, throw=False)
            except UnsupportedProblem:
                refused.append(name)
                continue
            seconds = timed(problem, kind(), tolerance)
            rows.append([
                name, "solved" if solution.ok else solution.status.name.lower().replace("_", " "),
                plain(solution.certificate.residual), f"{1e3 * seconds:.3g}", str(solution.iterations),
            ])  # fmt: skip
            if best is None or solution.certificate.residual < best.certificate.residual:
                best = solution
    except KeyboardInterrupt:
        tell("stopped; these were asked")
    say(table(("solver", "status", "residual", "time [ms]", "iterations"), rows, (2, 3, 4)))
    if refused:
        tell(f"do not take this problem: {', '.join(refused)}")
    return best


def timed(problem: Any, solver: Any, tolerance: float) -> float:
    """Seconds of a solve, the best of a few; nothing is compiled any more."""
    import stiction

    best, spent = math.inf, 0.0
    for _ in range(REPEATS):
        begin = time.perf_counter()
        stiction.solve(problem, solver, tolerance=tolerance, throw=False)
        seconds = time.perf_counter() - begin
        best, spent = min(best, seconds), spent + seconds
        if spent > LONG:
            break
    return best

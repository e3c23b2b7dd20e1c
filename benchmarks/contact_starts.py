"""What a start is worth in contact: steps that differ little, each solved cold and from the answer before.

Three kinds of steps: the free velocities change by 1 % (something moves or is moved), by a millionth, and not at all (a
scene at rest, simulated with a fixed time step).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import Table, aims_of, at_least, duration

import stiction as st
from stiction.problems.zoo.contact_families import cubes, grasp, stack, wall

CHANGES = (1e-2, 1e-6, 0.0)
PYRAMID = st.Coulomb(facets=8)

WHY = (
    "*Starts.* In a scene at rest the answer before is the answer, and only the check is left; with the cells, also "
    "one system. If free velocities change, a start spares Newton's method the sweeps and a part of its steps; the "
    "last ones, with the systems they solve, remain. Cells are kept or the path is followed as without a start. "
    "Principal pivoting is spared its pivots; that these are the smaller part is read from the code, not measured. "
    "Blocks at rest are degenerate: without friction 12 to 20 of 30 contacts press or not in another way after every "
    "change, however small; if the cells change likewise, a start is worth nothing to methods that follow these sets."
)


def resting(blocks: int) -> st.ContactProblem:
    """Cubes on each other under gravity alone; mu = 0.5."""
    return cubes(blocks, 4, np.zeros(6), np.full(4 * blocks, 0.5))


CASES: dict[str, tuple[Callable[[], st.ContactProblem], Any, Any]] = {
    "ConeNewton, five blocks at rest": (partial(resting, 5), st.Coulomb(), st.ConeNewton()),
    "ConeNewton, ten blocks at rest": (partial(resting, 10), st.Coulomb(), st.ConeNewton()),
    "ConeNewton, five blocks pushed": (partial(stack, 5, 1), st.Coulomb(), st.ConeNewton()),
    "ConeNewton, grasp": (partial(grasp, 1), st.Coulomb(), st.ConeNewton()),
    "ConeNewton, wall": (partial(wall, 4, 3, 1), st.Coulomb(), st.ConeNewton()),
    "CellLemke, five blocks at rest": (partial(resting, 5), PYRAMID, st.CellLemke()),
    "CellLemke, five blocks pushed": (partial(stack, 5, 1), PYRAMID, st.CellLemke()),
    "CellLemke, grasp": (partial(grasp, 1), PYRAMID, st.CellLemke()),
    "PrincipalPivot, ten blocks, no friction": (partial(resting, 10), st.Frictionless(), st.PrincipalPivot()),
    "PrincipalPivot, wall, no friction": (partial(wall, 4, 3, 1), st.Frictionless(), st.PrincipalPivot()),
    "PrincipalPivot, grasp, no slip": (partial(grasp, 1), st.NoSlip(), st.PrincipalPivot()),
}


def gains(quick: bool) -> list[Table]:
    steps = 5 if quick else 60
    tables = []
    for change in CHANGES:
        rows, numbers, aims = [], {}, []
        for name, (make, law, solver) in CASES.items():
            found = follow(make().with_law(law), solver, change, steps)
            numbers[name] = found.tolist()
            cold, warm = found  # (steps, 4)
            alone, whole = np.median(cold[:, :2] / warm[:, :2], axis=0)
            rows.append(
                (
                    name,
                    *(f"{np.median(run[:, 2]):.0f}" for run in (cold, warm)),
                    *(duration(float(np.median(run[:, 0]))) for run in (cold, warm)),
                    f"{alone:.1f}",
                    f"{whole:.1f}",
                    f"{found[:, :, 3].max():.0e}",
                )
            )
            aims.append((name, alone))
        columns = ("solver and scene", "iterations cold", "warm", "time cold", "warm", "gain", "of solve", "residual")
        how = f"changing by {change:g} of their size" if change else "that do not change"
        title = f"Contact from the answer before: {steps} steps, free velocities {how}"
        notes = [
            "Times and gain are the solver's; *of solve* is that of `st.solve`, normal form and certificate included."
        ]
        wanted = [
            at_least(
                f"start, free velocities {how}: least gain of {group}", 3.0, min(g for name, g in aims if group in name)
            )
            for group in ("ConeNewton", "CellLemke", "PrincipalPivot")
        ]
        tables.append(Table(title, columns, rows, notes, numbers, wanted))
    return [*tables, aims_of(tables, WHY)]


def follow(problem: st.ContactProblem, solver: Any, change: float, steps: int) -> Any:
    """(cold and warm, steps, 4): seconds of the solver and of `st.solve`, iterations, residual."""
    rng = np.random.default_rng(1)
    size = np.sqrt(np.mean(problem.velocity**2))
    before = st.solve(problem, solver)
    st.solve(problem, solver, start=before)  # compiles
    found = np.empty((2, steps, 4))
    for k in range(steps):
        velocity = problem.velocity + change * size * rng.normal(size=problem.m)
        for run, start in enumerate((None, before)):
            step = problem.replace(velocity=velocity)
            begin = time.perf_counter()
            answer = st.solve(step, solver, start=start)
            whole = time.perf_counter() - begin
            impulse = None if start is None else start.impulse
            begin = time.perf_counter()
            solver.propose(step, impulse)
            found[run, k] = time.perf_counter() - begin, whole, answer.iterations, answer.certificate.residual
        before = answer
    return found

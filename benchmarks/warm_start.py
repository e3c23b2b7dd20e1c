"""What a start is worth: a sequence of problems whose q wanders, each solved cold and from the answer before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Table, duration

import stiction as st
from stiction.problems.zoo.families import positive_definite
from stiction.problems.zoo.heaps import frictionless_contact

STEP = 0.05  # standard deviation of the change of q, relative to the root mean square of q


def gains(quick: bool) -> list[Table]:
    steps = 10 if quick else 100
    rows, numbers = [], {}
    for name, problem, solver in (
        ("BlockPivot, definite, n = 100", positive_definite(100, 0), st.BlockPivot()),
        ("Murty, definite, n = 100", positive_definite(100, 0), st.Murty()),
        ("SmoothingNewton, definite, n = 100", positive_definite(100, 0), st.SmoothingNewton()),
        ("PrincipalPivot, definite, n = 100", positive_definite(100, 0), st.PrincipalPivot()),
        ("PrincipalPivot, heap of 18, n = 150", frictionless_contact(150, 0), st.PrincipalPivot()),
    ):
        cold, warm = follow(problem, solver, steps)
        numbers[name] = {"cold": cold.tolist(), "warm": warm.tolist()}
        rows.append(
            (
                name,
                *(f"{np.median(run[:, 1]):.0f}" for run in (cold, warm)),
                *(duration(float(np.median(run[:, 0]))) for run in (cold, warm)),
                f"{np.median(cold[:, 0] / warm[:, 0]):.1f}",
                f"{max(cold[:, 2].max(), warm[:, 2].max()):.0e}",
            )
        )
    columns = ("solver and problem", "iterations cold", "warm", "time cold", "warm", "gain", "worst residual")
    title = f"Warm start: {steps} problems, q changing by {100 * STEP:.0f} % a step"
    return [Table(title, columns, rows, numbers=numbers)]


def follow(problem: st.LCP, solver: Any, steps: int) -> tuple[Any, Any]:
    """(seconds, iterations, residual) of every step, cold and warm."""
    runs: list[list[tuple[float, int, float]]] = [[], []]
    before = st.solve(problem, solver)
    for step in wander(problem, steps):
        for run, start in zip(runs, (None, before), strict=True):
            begin = time.perf_counter()
            found = st.solve(step, solver, start=start)
            run.append((time.perf_counter() - begin, found.iterations, found.certificate.residual))
        before = found
    return np.array(runs[0]), np.array(runs[1])


def wander(problem: st.LCP, steps: int) -> Iterator[st.LCP]:
    """q with noise; where the matrix is singular, noise in its range, so that every problem is solvable."""
    rng = np.random.default_rng(1)
    definite = np.linalg.eigvalsh(problem.M)[0] > 0.0
    q, size = problem.q, np.sqrt(np.mean(problem.q**2))
    for _ in range(steps):
        change = rng.normal(size=problem.n)
        if not definite:
            change = problem.M @ change
        q = q + STEP * size * change / np.sqrt(np.mean(change**2))
        yield st.LCP(problem.M, q)

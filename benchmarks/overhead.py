"""What it costs to begin, and to ask little: import, first solve in a new process, a problem of one variable."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Table, duration

import stiction as st
from stiction.arrays.compiled import workspace
from stiction.solvers.lcp.keller import keller
from stiction.solvers.lcp.tableau import EMPTY

FIRST = "import stiction as st; st.solve(st.LCP([[2.0, 1.0], [1.0, 2.0]], [-5.0, -6.0]), st.{}())"


def costs(quick: bool) -> list[Table]:
    runs, calls = (2, 200) if quick else (9, 5000)
    bare = process("pass", runs)
    rows = [("import stiction", duration(process("import stiction", runs) - bare))]
    for solver in ("Lemke", "Keller", "BlockPivot"):
        code = FIRST.format(solver)
        process(code, 1)  # compiles, if nobody has
        rows.append((f"import and first solve, {solver}, kernels cached", duration(process(code, runs) - bare)))
    rows += one_variable(calls)
    notes = ["Processes are counted from their start, less the time of a Python that does nothing."]
    return [Table("Cost of beginning", ("what", "median"), rows, notes)]


def process(code: str, runs: int) -> float:
    """Median wall time of a Python process."""
    return median(lambda: subprocess.run([sys.executable, "-c", code], check=True), runs)


def one_variable(calls: int) -> list[tuple[str, str]]:
    problem = st.LCP([[2.0]], [-1.0])
    work, (z, ray) = workspace(64, 64), np.empty((2, 1))
    arguments = (problem.H, problem.vectors, problem.symmetric, EMPTY, 100, *work, z, ray)
    solver = st.Keller()
    kernel = median(lambda: keller(*arguments), calls)
    whole = median(lambda: st.solve(problem, solver), calls)
    return [
        ("n = 1: Keller's kernel alone", duration(kernel)),
        ("n = 1: st.solve with Keller", duration(whole)),
        ("n = 1: overhead of st.solve", duration(whole - kernel)),
        ("n = 1: st.LCP(M, q)", duration(median(lambda: st.LCP(problem.M, problem.q), calls))),
    ]


def median(action: Callable[[], Any], runs: int) -> float:
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))

"""Positive definite problems: Lemke's method against QuantEcon's compiled one; how often the block method factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import peers
from measure import Contestant, Table, ours, race

import stiction as st
from stiction.arrays.compiled import workspace
from stiction.problems.zoo.families import positive_definite
from stiction.solvers.lcp.lemke import EMPTY, lemke, sizes
from stiction.solvers.tolerances import pivot_limit


def against_quantecon(quick: bool) -> list[Table]:
    if not peers.available("quantecon"):
        return []
    tables = []
    for n, problems, repeats in ((20, 50, 30), (100, 20, 15), (300, 10, 5)):
        seeds = range(3 if quick else problems)
        contestants = [peers.quantecon(), from_arrays(), ours(st.Lemke(), "stiction solve"), lemke_kernel()]
        title = f"Positive definite LCPs, n = {n}, condition 1e4, {len(seeds)} problems: Lemke's method"
        table = race(title, [positive_definite(n, s) for s in seeds], contestants, "quantecon lcp_lemke", repeats)
        tables.append(table)
    return tables


def from_arrays() -> Contestant:
    """From M and q: validation, solution and certificate."""

    def prepare(problem: Any) -> Callable[[], Any]:
        M, q = problem.M.copy(), problem.q.copy()
        return lambda: st.solve(st.LCP(M, q), st.Lemke(), throw=False).z

    return Contestant("stiction LCP + solve", prepare)


def lemke_kernel() -> Contestant:
    """The compiled function alone: no validation, no certificate."""

    def prepare(problem: Any) -> Callable[[], Any]:
        n = problem.n
        work, answer = workspace(*sizes(n)), np.empty((2, n))
        options = (EMPTY, pivot_limit(n))

        def solve() -> Any:
            lemke(problem.H, problem.vectors, problem.symmetric, *options, *work, answer)
            return answer[0]

        return solve

    return Contestant("stiction kernel", prepare)


def block_factorizations(quick: bool) -> list[Table]:
    """How often the block method factors, and how often it had to be rescued by Murty's."""
    rows, numbers = [], {}
    for n, problems in ((50, 300), (100, 300), (200, 100), (400, 40)):
        counts, rescued, worst = [], 0, 0.0
        for seed in range(10 if quick else problems):
            found = st.solve(positive_definite(n, seed), st.BlockPivot(), throw=False)
            counts.append(found.iterations - 1)  # the first pass, with everything at its bound, factors nothing
            rescued += bool(found.trace)
            worst = max(worst, found.certificate.residual)
        numbers[str(n)] = counts
        quantiles = np.percentile(counts, [0, 50, 90, 99, 100])
        below = 100 * np.mean(np.array(counts) < 10)
        rows.append(
            (str(n), str(len(counts)), *(f"{q:.0f}" for q in quantiles), f"{below:.0f} %", str(rescued), f"{worst:.0e}")
        )
    columns = ("n", "problems", "least", "median", "90 %", "99 %", "most", "under 10", "finished by Murty", "residual")
    title = "BlockPivot on positive definite LCPs, condition 1e4, cold start: Cholesky factorizations"
    return [Table(title, columns, rows, numbers=numbers)]

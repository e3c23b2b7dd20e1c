"""Thousands of hostile problems: whoever says "solved" passes a certificate, computed here independently."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems import LCP, BoxLCP
from stiction.solvers import COMPLEMENTARITY, Auto


def hostile(seed: int) -> BoxLCP:
    """Random in everything: class, rank, symmetry, units, bounds, zeros, infeasibility."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 9))
    kind = rng.integers(0, 8)
    B = rng.normal(size=(n, max(1, n if kind < 4 else int(rng.integers(1, n + 1)) if n else 1)))
    H = B @ B.T
    if kind in (1, 5):
        H = H + 3.0 * np.triu(rng.normal(size=(n, n)), 1)
    if kind in (2, 6):
        H = rng.normal(size=(n, n))
    if kind == 3:
        H = rng.integers(-1, 2, (n, n)).astype(float)
    if kind == 7:
        H = H + H[::-1].T if n else H
    q = rng.normal(size=n) * rng.integers(0, 2, n) if rng.random() < 0.3 else rng.normal(size=n)
    if rng.random() < 0.2:
        H[:, rng.random(n) < 0.3] = 0.0
    if rng.random() < 0.3:
        row, column = 10.0 ** rng.uniform(-12.0, 12.0, (2, n))
        H, q = row[:, None] * H * column, row * q
    size = 10.0 ** rng.uniform(-150.0, 150.0) if rng.random() < 0.2 else 1.0
    H, q = H * size, q * size
    if rng.random() < 0.5:
        return LCP(H, q)
    lo, hi = np.sort(rng.normal(size=(2, n)), axis=0)
    lo[rng.random(n) < 0.3] = -np.inf
    hi[rng.random(n) < 0.3] = np.inf
    equal = rng.random(n) < 0.1
    hi[equal & np.isfinite(lo)] = lo[equal & np.isfinite(lo)]
    return BoxLCP(H, q, lo, hi)


def natural_map_violation(problem: BoxLCP, z: np.ndarray) -> float:
    """The certificate's definition again, in plain NumPy.

    A row without a constant is measured by no less than the smallest variables that could cancel another row's, and not
    at all if it holds variables of 1e-12 of the largest only, lest rounding be measured against itself.
    """
    w, H, constant = problem.H @ z + problem.q, np.abs(problem.H), np.abs(problem.q)
    reach = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (problem.lo, problem.hi)))
    terms = H @ np.maximum(np.abs(z), 1e-6 * reach) + constant
    with np.errstate(all="ignore"):
        cancels = np.where((H > 0) & (constant[:, None] > 0), constant[:, None] / H, np.inf).min(axis=0, initial=np.inf)
        floor = np.where(np.isfinite(cancels), H * cancels, 0.0).max(axis=1, initial=0.0)
    terms = np.where(constant == 0.0, np.maximum(terms, floor), terms)
    only_rounding = (constant == 0.0) & (
        H @ np.abs(z) <= 1e-12 * H.max(axis=1, initial=0.0) * np.abs(z).max(initial=0.0)
    )
    terms = np.where(only_rounding, np.inf, terms)
    with np.errstate(all="ignore"):
        felt = np.max(np.abs(problem.H) / np.where(terms > 0, terms, np.inf)[:, None], axis=0, initial=0.0)
        row = np.where(terms > 0, w / terms, 0.0)
        below = np.where(np.isinf(problem.lo), np.inf, felt * (z - problem.lo))
        above = np.where(np.isinf(problem.hi), np.inf, felt * (problem.hi - z))
    return float(np.max(np.abs(np.minimum(np.maximum(row, -above), below)), initial=0.0))


def check(seeds):
    solved = 0
    for seed in seeds:
        problem = hostile(seed)
        for solver in (*COMPLEMENTARITY, Auto):
            if solver.contract.refusal(problem) is not None:
                continue
            options = {"max_sweeps": 50} if solver is st.GaussSeidel else {}
            solution = st.solve(problem, solver(**options), throw=False)
            assert solution.ok == (solution.certificate.residual <= 1e-8)
            if solution.ok:
                solved += 1
                assert np.isfinite(solution.z).all()
                assert (solution.z >= problem.lo).all()
                assert (solution.z <= problem.hi).all()
                assert st.certify(problem, solution.z.copy()) == solution.certificate
                assert natural_map_violation(problem, solution.z) <= 1e-2  # unclipped: loose, but no lie passes
    return solved


def test_nobody_lies():
    assert check(range(300)) > 900


@pytest.mark.slow
def test_nobody_lies_twenty_thousand_times():
    assert check(range(20_000)) > 60_000


@pytest.mark.parametrize("seed", range(60))
def test_solvers_agree_with_enumeration_on_whether_there_is_a_solution(seed):
    problem = hostile(10_000 + seed)
    referee = st.solve(problem, st.Enumerate(), throw=False)
    found = st.solve(problem, Auto(), throw=False)
    assert referee.ok or not found.ok
    if found.ray is not None and found.ray.infeasible:
        assert not referee.ok

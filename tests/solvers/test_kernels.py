"""Kernels: no allocation, workspaces reused, updates of the inverse as good as a fresh one."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

import stiction as st
from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import cholesky, cholesky_solve, invert, lu, lu_solve
from stiction.problems.zoo.families import positive_definite, semidefinite
from stiction.solvers import COMPLEMENTARITY
from stiction.solvers.lcp.basis_inverse import border, exchange_column, exchange_row, strike


@pytest.mark.parametrize("solver", COMPLEMENTARITY)
def test_kernels_allocate_nothing(solver):
    problem = positive_definite(8, 1, condition=10.0)
    st.solve(problem, solver())
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    st.solve(problem, solver())
    assert rtsys.get_allocation_stats().alloc == before


def test_an_allocation_in_a_kernel_does_not_compile():
    @kernel
    def allocates(n):
        return np.zeros(n).sum()

    with pytest.raises(TypingError, match="Only accept returning of array passed into the function"):
        allocates(3)


def test_a_second_solve_reuses_the_workspace():
    problem = positive_definite(50, 1)
    st.solve(problem, st.Lemke())
    first = workspace(1, 1).floats.ctypes.data
    st.solve(problem, st.Lemke())
    assert workspace(1, 1).floats.ctypes.data == first


def test_who_asks_while_a_caller_holds_the_workspace_gets_another():
    mine = workspace(8, 8)
    mine.floats[:8] = 7.0
    theirs = workspace(8, 8)
    assert not np.shares_memory(mine.floats, theirs.floats)
    assert not np.shares_memory(mine.ints, theirs.ints)
    st.solve(positive_definite(5, 1), st.Lemke())
    assert (mine.floats[:8] == 7.0).all()
    del mine, theirs
    floats, _ = workspace(8, 8)  # its arrays are enough
    assert not np.shares_memory(workspace(8, 8).floats, floats)


def test_threads_have_workspaces_of_their_own():
    problems = [semidefinite(40, seed) for seed in range(8)]
    expected = [st.solve(problem, st.Keller()).z for problem in problems]
    found: dict[int, np.ndarray] = {}

    def run(k):
        for _ in range(20):
            found[k] = st.solve(problems[k], st.Keller()).z

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[k], expected[k]) for k in range(8))


def test_updates_of_the_inverse():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(5, 5))
    K = np.zeros((8, 8))
    K[:5, :5] = np.linalg.inv(B)

    column, row, corner = rng.normal(size=5), rng.normal(size=5), 2.0
    border(K, 5, K[:5, :5] @ column, row @ K[:5, :5], corner - row @ K[:5, :5] @ column)
    B = np.block([[B, column[:, None]], [row[None, :], np.array([[corner]])]])
    assert K[:6, :6] == pytest.approx(np.linalg.inv(B), abs=1e-12)

    column = rng.normal(size=6)
    exchange_column(K, 6, 2, K[:6, :6] @ column)
    B[:, 2] = column
    assert K[:6, :6] == pytest.approx(np.linalg.inv(B), abs=1e-12)

    row = rng.normal(size=6)
    exchange_row(K, 6, 4, row @ K[:6, :6])
    B[4] = row
    assert K[:6, :6] == pytest.approx(np.linalg.inv(B), abs=1e-12)

    strike(K, 6, 1, 3)  # unknown 1 and equation 3 go; the last of each moves into its place
    B = np.delete(B[:, [0, 5, 2, 3, 4, 1]], 5, axis=1)
    B = np.delete(B[[0, 1, 2, 5, 4, 3]], 5, axis=0)
    assert K[:5, :5] == pytest.approx(np.linalg.inv(B), abs=1e-11)


@pytest.mark.parametrize("k", [0, 1, 2, 7, 33])
def test_factors_against_lapack(k):
    rng = np.random.default_rng(k)
    A, b = rng.normal(size=(k, k)), rng.normal(size=k)
    pivots = np.empty(k, np.int64)
    factor, x = A.copy(), b.copy()
    assert lu(factor, pivots, k)
    lu_solve(factor, pivots, k, x)
    assert A @ x == pytest.approx(b, abs=1e-10)
    inverse = A.copy()
    assert invert(inverse, pivots, k)
    assert inverse @ A == pytest.approx(np.eye(k), abs=1e-10)
    factor, x = A @ A.T + np.eye(k), b.copy()
    assert cholesky(factor, k) == k
    cholesky_solve(factor, k, x)
    assert (A @ A.T + np.eye(k)) @ x == pytest.approx(b, abs=1e-10)


def test_singular_matrices_are_noticed():
    pivots = np.empty(2, np.int64)
    assert not lu(np.zeros((2, 2)), pivots, 2)
    assert not invert(np.zeros((2, 2)), pivots, 2)
    assert cholesky(np.array([[1.0, 1.0], [1.0, 1.0]]), 2) == 1

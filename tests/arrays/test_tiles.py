"""Products and triangular solves by tiles, against NumPy's and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config
from scipy.linalg import solve_triangular

from stiction.arrays.tiles import solve_six, subtract_product


@pytest.mark.parametrize("s", [0, 1, 5, 12])
@pytest.mark.parametrize("rows", [1, 2, 3, 6, 11])
@pytest.mark.parametrize("columns", [1, 4, 9, 20])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_product_is_subtracted_where_it_belongs(s, rows, columns, order):
    rng = np.random.default_rng(0)
    A = np.asarray(rng.normal(size=(s + 1, rows + 3)), order=order)
    B, out = rng.normal(size=(s + 1, columns + 2)), rng.normal(size=(rows + 2, columns + 4))
    expected = out.copy()
    expected[1 : 1 + rows, 3 : 3 + columns] -= A[:s, 2 : 2 + rows].T @ B[:s, 1 : 1 + columns]
    subtract_product(A, 2, rows, B, 1, columns, s, out, 1, 3)
    np.testing.assert_allclose(out, expected, atol=1e-13)


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("columns", [0, 1, 4, 9, 20])
@pytest.mark.parametrize("order", ["C", "F"])
def test_six_rows_are_solved_where_they_lie(divided, columns, order):
    rng = np.random.default_rng(1)
    M = np.asarray(rng.normal(size=(9, 9)), order=order)
    X = rng.normal(size=(8, columns + 5))
    expected, lower = X.copy(), np.tril(M[2:8, 2:8])
    np.fill_diagonal(lower, 1.0 / np.diag(lower) if divided else 1.0)
    expected[1:7, 3 : 3 + columns] = solve_triangular(lower, X[1:7, 3 : 3 + columns], lower=True)
    solve_six(M, 2, X, 1, 3, columns, divided)
    np.testing.assert_allclose(X, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max(initial=1.0))


@pytest.mark.skipif(not config.BOUNDSCHECK, reason="seen where bounds are checked")
@pytest.mark.parametrize("wrong", [{"a": 1}, {"b": 1}, {"s": 4}, {"row": 1}, {"at": 1}])
def test_a_product_beyond_its_arrays_is_refused(wrong):
    A, B, out = np.ones((3, 6)), np.ones((3, 6)), np.ones((6, 6))
    given = {"a": 0, "b": 0, "s": 3, "row": 0, "at": 0, **wrong}
    with pytest.raises(IndexError):
        subtract_product(A, given["a"], 6, B, given["b"], 6, given["s"], out, given["row"], given["at"])


@pytest.mark.skipif(not config.BOUNDSCHECK, reason="seen where bounds are checked")
@pytest.mark.parametrize("wrong", [{"first": 1}, {"row": 1}, {"at": 1}])
def test_a_solve_beyond_its_arrays_is_refused(wrong):
    given = {"first": 0, "row": 0, "at": 0, **wrong}
    with pytest.raises(IndexError):
        solve_six(np.eye(6), given["first"], np.ones((6, 6)), given["row"], given["at"], 6, False)

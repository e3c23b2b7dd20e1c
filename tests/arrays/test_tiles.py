"""Products by tiles, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config

from stiction.arrays.tiles import subtract_product


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


@pytest.mark.skipif(not config.BOUNDSCHECK, reason="seen where bounds are checked")
@pytest.mark.parametrize("wrong", [{"a": 1}, {"b": 1}, {"s": 4}, {"row": 1}, {"at": 1}])
def test_a_product_beyond_its_arrays_is_refused(wrong):
    A, B, out = np.ones((3, 6)), np.ones((3, 6)), np.ones((6, 6))
    given = {"a": 0, "b": 0, "s": 3, "row": 0, "at": 0, **wrong}
    with pytest.raises(IndexError):
        subtract_product(A, given["a"], 6, B, given["b"], 6, given["s"], out, given["row"], given["at"])

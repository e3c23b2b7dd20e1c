"""Vectors of few numbers: compiled they do what the same functions do as they are written."""

from __future__ import annotations

import numpy as np
import pytest

from stiction.arrays import vectors
from stiction.arrays.compiled import kernel
from stiction.arrays.vectors import (
    ZEROS,
    across,
    add_multiple,
    at,
    by_parts,
    column,
    inner,
    largest,
    minus,
    negative,
    over,
    plus,
    put,
    roll_dot,
    slide_dot,
    spin_dot,
    times,
    times_each,
    total_size,
    with_normal,
)


@kernel
def everything(array, i, out, like):
    """All functions once."""
    a, b = at(array, i, like), at(array, i + 1, like)
    put(out, 0, plus(times(2.0, a), over(minus(a, b), 3.0)))
    put(out, 1, add_multiple(negative(a), 0.5, with_normal(7.0, b)))
    put(out, 2, times_each(by_parts(a, 1.0, 2.0, 3.0), column(array, i, like)))
    return inner(a, b), across(a, b), largest(a), total_size(a), slide_dot(a, b), spin_dot(a, b), roll_dot(a, b)


@pytest.mark.parametrize("size", list(ZEROS))
def test_vectors_are_those_of_numpy(size):
    array = np.random.default_rng(size).normal(size=(6, size))
    out = np.empty((3, size))
    numbers = everything(array, 1, out, ZEROS[size])
    a, b = array[1], array[2]
    np.testing.assert_allclose(out[0], 2.0 * a + (a - b) / 3.0, rtol=1e-14)
    np.testing.assert_allclose(out[1], -a + 0.5 * np.append(7.0, b[1:]), rtol=1e-14)
    parts = np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.0])[:size]
    np.testing.assert_allclose(out[2], parts * array[:size, 1], rtol=1e-14)
    expected = [
        a @ b, a[1:] @ b[1:], np.abs(a).max(), np.abs(a).sum(), a[1:3] @ b[1:3], a[3:4] @ b[3:4], a[4:] @ b[4:],
    ]  # fmt: skip
    np.testing.assert_allclose(numbers, expected, rtol=1e-13, atol=1e-15)


def test_as_written_they_take_tuples():
    a = vectors.Three(1.0, -2.0, 3.0)
    assert vectors.plus(a, a) == vectors.Three(2.0, -4.0, 6.0)
    assert vectors.largest(a) == 3.0


def test_nan_counts():
    assert np.isnan(total_size(vectors.Three(0.0, np.nan, 0.0)))

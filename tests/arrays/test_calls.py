"""Python's calls of compiled kernels: arguments and results of every kind, in and out, and nothing left behind."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from stiction.arrays.calls import kinds_of
from stiction.arrays.compiled import is_compiled, kernel, without_lock

compiled = pytest.mark.skipif(not is_compiled() or bool(os.environ.get("NUMBA_BOUNDSCHECK")), reason="not called so")


class Part(NamedTuple):
    row: Any
    factor: float


class Whole(NamedTuple):
    part: Part
    more: tuple[Any, bool]
    count: int


class Found(NamedTuple):
    where: int
    value: float


@kernel
def weighed(whole, out, offset):
    """A number of every kind, and tuples within tuples."""
    for i in range(whole.count):
        out[i] = whole.part.factor * whole.part.row[i] + whole.more[0][i] + offset
    return whole.more[1], (whole.count, out[0])


@kernel
def found(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return Found(i, 1.0 * x[i])
    return Found(-1, 1.0 * limit)


@without_lock
def filled(x, value, turns):
    for _ in range(turns):
        for i in range(len(x)):
            x[i] = 0.5 * (x[i] + value)


ROW, MORE = np.arange(3.0), np.arange(3)


def whole(factor=2.0, flag=True, count=3):
    return Whole(Part(ROW, factor), (MORE, flag), count)


def test_arguments_and_results_of_every_kind():
    out = np.zeros(3)
    assert weighed(whole(), out, 0.5) == (True, (3, 0.5))
    np.testing.assert_array_equal(out, [0.5, 3.5, 6.5])
    result = found(out, 3.0)
    assert (type(result), result) == (Found, Found(1, 3.5))
    assert filled(out, 1.0, 1) is None
    assert (type(result.where), type(result.value)) == (int, float)


@pytest.mark.parametrize("factor", [2.0, np.float64(2), np.float32(2)])
@pytest.mark.parametrize("count", [3, np.int64(3), np.int32(3)])
@pytest.mark.parametrize("flag", [False, np.False_])
def test_numbers_of_numpy_are_numbers(factor, count, flag):
    out = np.zeros(3)
    for _ in range(2):  # found at first, known after
        assert weighed(whole(factor, flag, count), out, np.float64(0)) == (False, (3, 0.0))
    np.testing.assert_array_equal(out, [0, 3, 6])


@compiled
def test_a_type_that_is_equal_but_another_object():
    other = np.zeros(3, np.dtype("f8", metadata={"of": "others"}))
    assert other.dtype is not ROW.dtype
    assert weighed(whole(), other, 0.0) == (True, (3, 0.0))
    assert weighed(whole(), other, 0.0) == (True, (3, 0.0))
    np.testing.assert_array_equal(other, [0, 3, 6])


@compiled
def test_kinds_in_turns():
    """Whatever was called last, every kind is found again."""
    x, matrix = np.arange(4.0), np.arange(16.0).reshape(4, 4)
    for _ in range(3):
        assert found(x, 1.5) == (2, 2.0)
        assert found(x, 1) == (2, 2.0)  # an integer is a kind of its own
        assert found(np.arange(4), 1.5) == (2, 2.0)
        assert found(matrix[:, 1], 8.0) == (2, 9.0)  # not contiguous
        assert found(np.zeros(0), 1.5) == (-1, 1.5)


@compiled
def test_what_cannot_be_an_argument():
    with pytest.raises(TypeError):
        found(np.zeros(3))
    with pytest.raises(OverflowError):
        filled(np.zeros(3), 1.0, 2**70)
    with pytest.raises(Exception, match="NoneType|none"):
        found(None, 1.0)
    assert found(np.zeros(3), 0.0) == (-1, 0.0)


@compiled
def test_nothing_is_left_behind():
    """No reference to an argument or result is lost or kept, over more calls than a counter hides."""
    out, given, number = np.zeros(3), whole(), 12345.678
    weighed(given, out, number)
    result = weighed(given, out, number)
    references = sys.getrefcount(result[1][1])
    assert references == 2  # the result's, and that of the question
    before = [sys.getrefcount(each) for each in (out, given, given.part, given.more, number, ROW, weighed.run)]
    for _ in range(2000):
        weighed(given, out, number)
    assert [sys.getrefcount(each) for each in (out, given, given.part, given.more, number, ROW, weighed.run)] == before
    bound = weighed.for_arguments(given, out, number)
    assert bound(given, out, number) == weighed(given, out, number)
    assert bound(given, out, 1) == weighed(given, out, 1.0)


@compiled
def test_other_threads_run_meanwhile():
    """A kernel without the lock lets this thread count while it works."""
    x = np.zeros(1000)
    filled(x, 1.0, 1)
    worker = threading.Thread(target=filled, args=(x, 2.0, 1_000_000))
    worker.start()
    counted = 0
    while worker.is_alive():
        counted += 1
    worker.join()
    assert counted > 10
    np.testing.assert_array_equal(x, 2.0)


@compiled
def test_machine_code_is_loaded_once():
    given = (ROW, 1.5)
    assert found.for_arguments(*given) is found.for_arguments(*given)
    kinds = kinds_of(given)
    assert found.code(kinds) is found.code(kinds)

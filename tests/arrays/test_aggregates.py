"""Named tuples are passed whole between kernels: nested, with flags, of one type; those of others as Numba does."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, typeof
from numba.core.datamodel.registry import default_manager

from stiction.arrays.aggregates import words_in
from stiction.arrays.compiled import kernel, once

Theirs = namedtuple("Theirs", "values flag")


class Inner(NamedTuple):
    """Of one type."""

    x: float
    y: float


class Outer(NamedTuple):
    """Arrays, numbers, a flag and another record."""

    values: Any
    table: Any
    number: int
    flag: bool
    inner: Inner


# Tuples are the package's by the module of their class.
Inner.__module__ = Outer.__module__ = "stiction.arrays.made_up"


@kernel
def turned(record: Any) -> Any:
    """The same record with its flag turned and its numbers exchanged."""
    inner = Inner(record.inner.y, record.inner.x)
    return Outer(record.values, record.table, record.number + 1, not record.flag, inner)


@kernel
def written(values: Any, table: Any, flag: Any) -> Any:
    """Make a record, pass it on and back, and write what came back into the arrays."""
    record = Outer(values, table, 2, flag, Inner(3.0, 5.0))
    back = turned(turned(turned(record)))
    # Arrays are the same memory, numbers are what was computed.
    back.values[0] = back.inner.x
    back.values[1] = back.inner.y
    back.table[1, 1] = back.number
    return back.flag


@pytest.mark.parametrize("flag", [False, True])
def test_a_record_comes_back_whole(flag: bool) -> None:
    values, table = np.zeros(2), np.zeros((2, 2))
    assert bool(written(values, table, flag)) is not flag
    assert values.tolist() == [5.0, 3.0]
    assert table.tolist() == [[0.0, 0.0], [0.0, 5.0]]


def test_a_record_is_one_argument_that_counts_its_words() -> None:
    model = default_manager.lookup(typeof(Outer(np.zeros(2), np.zeros((2, 2)), 2, True, Inner(3.0, 5.0))))
    given = model.get_argument_type()
    assert given is model.get_value_type()
    assert words_in(given) == 7 + 9 + 1 + 1 + 2  # an array: owner, parent, items, their size, address, shape, strides


def test_tuples_of_others_are_passed_as_numba_does() -> None:
    record = Theirs(np.arange(3.0), True)
    assert isinstance(default_manager.lookup(typeof(record)).get_argument_type(), tuple)
    summed = njit(lambda given: given.values.sum() if given.flag else 0.0)
    assert summed(record) == 3.0


@kernel
def doubled(x: float) -> float:
    return 2.0 * x


@once
@kernel
def tripled(x: float) -> float:
    return 3.0 * x


@kernel
def summed(x: float) -> float:
    return doubled(x) + tripled(x)


def test_what_is_compiled_once_is_called_and_not_inlined() -> None:
    assert summed.whole(2.0) == 10.0
    (code,) = summed.whole.inspect_llvm().values()
    called = [line for line in code.splitlines() if " call " in line]
    assert any("tripled" in line for line in called)
    assert not any("doubled" in line for line in called)

"""A kernel is the same code whatever was compiled before it, and Numba is itself again afterwards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core import errors
from numba.core.base import BaseContext
from numba.core.types.functions import BaseFunction

from stiction.arrays import remembered
from stiction.arrays.compiled import is_compiled, kernel, minima, sums

pytestmark = pytest.mark.skipif(not is_compiled(), reason="kernels run as they are written")


def callee(row: Any) -> Any:
    """A sum whose order decides its last digits, and the larger of two numbers, one of which may be none."""
    total = 0.0
    for k in range(len(row)):
        total += row[k]
    return total, max(total, row[0])


def callers() -> tuple[Any, Any]:
    """Two kernels that call the same one, anew: one may reorder sums and sees no NaN, the other keeps to the letter."""
    inner = kernel(callee)

    def loosely(row):
        return inner(row)

    def strictly(row):
        return inner(row)

    return minima(loosely), kernel(strictly)


def test_callers_that_reorder_sums_do_not_make_their_callees_do_so() -> None:
    """Else bits would depend on which caller was compiled first, and NaN could pass for a number."""
    row = np.array([1.0, 1e17, -1e17, 3.0, 1e-3, -7.0, 1e17, 11.0, -1e17, 1e-5, 5.0] * 7)
    in_order = 0.0
    for value in row:
        in_order += value
    none = np.array([math.nan, 1.0])
    for first in (0, 1):
        both = callers()
        found = both[first](row), both[1 - first](row)
        assert found[0] == found[1] == (in_order, max(in_order, 1.0))
        assert all(math.isnan(value) for each in both for value in each(none))


def test_numba_is_itself_after_a_kernel_was_compiled() -> None:
    before = BaseFunction.get_call_type, BaseContext.get_abi_sizeof, errors._termcolor_inst

    @sums
    def plus(row):
        return row[0] + row[1]

    assert plus(np.array([1.0, 2.0])) == 3.0
    assert before == (BaseFunction.get_call_type, BaseContext.get_abi_sizeof, errors._termcolor_inst)
    assert before[0] is remembered.resolve
    assert njit(lambda x: x + 1)(2) == 3


def test_what_does_not_fit_is_still_refused() -> None:
    """With Numba's message, and again at the next attempt."""

    @kernel
    def wrong(row):
        return row + "text"

    for _ in range(2):
        with pytest.raises(errors.TypingError, match="No implementation of function"):
            wrong(np.zeros(2))

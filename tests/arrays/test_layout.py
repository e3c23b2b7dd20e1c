"""Records over flat buffers: sizes and views come from the same declaration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated as Array
from typing import Any, NamedTuple

import numpy as np
import pytest

from stiction.arrays.compiled import kernel
from stiction.arrays.layout import Floats, Ints, cut, layout


class Inner(NamedTuple):
    given: Any
    matrix: Array[Floats, "n", "m"]
    order: Array[Ints, "m"]


class Outer(NamedTuple):
    first: Array[Floats, "n + 1"]
    inner: Inner
    other: Any
    count: Array[Ints, 1]  # type: ignore[assignment]
    last: Array[Floats, "most", 3]
    rest: Array[Floats, ...]


layout(Inner, "n", "m")
sizes, views = layout(Outer, "n", "m", most="min(n, m)")


@kernel
def fill(n, m, given, other, floats, ints):
    """Write what is whose: 1 to 3 in the floats, 4 and 5 in the ints."""
    t = views(n, m, given, other, floats, ints)
    t.first[:], t.inner.matrix[:], t.last[:] = 1.0, 2.0, 3.0
    t.inner.order[:], t.count[:] = 4, 5
    return t.inner.given[0] + t.other[0], len(t.rest)


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 1), (0, 4), (0, 0)])
def test_arrays_fill_their_size_and_nothing_else(n, m):
    assert sizes(n, m) == (n + 1 + n * m + 3 * min(n, m), m + 1)
    floats, ints = np.zeros(sizes(n, m)[0] + 2), np.zeros(sizes(n, m)[1] + 2, np.int64)
    assert fill(n, m, np.ones(1), 2.0 * np.ones(1), floats, ints) == (3.0, 2)
    assert floats.tolist() == [1.0] * (n + 1) + [2.0] * (n * m) + [3.0] * (3 * min(n, m)) + [0.0, 0.0]
    assert ints.tolist() == [4] * m + [5, 0, 0]


@kernel
def third_of(buffer, start, rows, columns):
    """The third number of a part of a buffer, and the part's axes."""
    part = cut(buffer, start, (rows, columns, 2))
    return part[0, 1, 0], part.shape


def test_a_part_of_a_buffer():
    assert third_of(np.arange(20.0), 5, 2, 3) == (7.0, (2, 3, 2))
    assert getattr(third_of, "py_func", third_of)(np.arange(20.0), 5, 2, 3) == (7.0, (2, 3, 2))


def test_a_part_that_goes_on_behind_its_buffer_is_refused_as_plain_python():
    with pytest.raises(TypeError, match="buffer is too small"):
        cut(np.arange(20.0), 5, (4, 4))


def test_a_part_that_goes_on_behind_its_buffer_is_refused_where_bounds_are_checked():
    program = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1])\n"
        "from test_layout import third_of\n"
        "assert third_of(np.arange(20.0), 8, 2, 3)[0] == 10.0\n"
        "try: third_of(np.arange(20.0), 9, 2, 3)\n"
        "except IndexError: print('refused')\n"
    )
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "refused"


def test_views_are_called_by_the_record_s_name():
    assert views.__qualname__ == "Outer.views"


def test_what_is_no_array_is_refused():
    class Wrong(NamedTuple):
        q: Array[Floats]

    with pytest.raises(TypeError, match="Wrong.q"):
        layout(Wrong, "n")

"""Paths of a smoothed law: large islands in motion, on which Newton's method on the law itself loses its way."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import stiction as st
from stiction.problems.zoo.contact_families import heap
from stiction.solvers.contact.cone_newton.path import phi
from stiction.solvers.contact.cone_newton.tolerances import MANY


@pytest.mark.parametrize("y", [-3.0, -1e-9, 0.0, 0.2, 1e6])
def test_the_smoothed_positive_part(y):
    """φ solves z (z - y) = r², and tends to max(0, y)."""
    z = phi(y, 0.1)
    assert z > 0.0
    assert z * (z - y) == pytest.approx(0.01, rel=1e-9, abs=1e-9 * abs(y))
    assert phi(y, 1e-8) == pytest.approx(max(0.0, y), abs=1e-8)
    assert phi(-inf, 0.1) == 0.0


def test_a_large_heap_is_solved_by_newton_alone():
    problem = heap(40, 0)
    assert problem.n > MANY
    solution = st.solve(problem, st.ConeNewton(tolerance=1e-12))
    assert solution.ok
    assert np.isfinite(solution.impulse).all()

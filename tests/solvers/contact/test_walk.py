"""Walks in units of the loads: large wedged heaps, on which the other stages of a cycle stall."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems.zoo.contact_families import heap
from stiction.solvers.contact.cone_newton.tolerances import LARGE


def test_a_wedged_heap_of_hundred_bodies_is_certified():
    """Nothing else solved it: Newton's method, sweeps and plain proximal steps stop at 1e-3."""
    solution = st.solve(heap(100, 1))
    assert solution.ok
    assert len(solution.trace) == 1  # by the first attempt


def test_impulses_of_a_wedged_heap_are_far_larger_than_those_that_stop_a_contact():
    """The reason for a walk: from nothing, impulses have to grow a hundredfold while the residual stays."""
    problem = heap(40, 1)
    assert problem.n > LARGE
    scaled = problem.whitened.scaled(st.solve(problem).impulse)
    assert np.abs(scaled).max() > 30.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("bodies", [40, 100])
def test_all_random_heaps_are_certified(bodies, seed):
    assert st.solve(heap(bodies, seed), throw=False).ok

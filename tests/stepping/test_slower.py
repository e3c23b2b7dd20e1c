"""Overlaps of large islands that are not solved are corrected more slowly."""

from __future__ import annotations

import numpy as np

import stiction as st
from stiction.problems.zoo.contact_families import heap
from stiction.stepping.time_stepping import SLOWER


def test_overlaps_are_corrected_at_a_part_of_their_speed():
    problem = heap(10, 0)
    overlaps = np.arange(problem.n) % 3 == 0
    asked = problem.replace(gap_rate=np.where(overlaps, -0.1, problem.gap_rate))
    found = st.TimeStepping().slower(asked, st.Auto(), None)
    assert found is not None
    assert found.ok
    assert found.trace[-1] == f"overlaps are corrected at {SLOWER[0]:g} of their speed"
    rate = found.problem.gap_rate
    assert np.array_equal(rate[overlaps], np.full(overlaps.sum(), -0.1 * SLOWER[0]))
    assert np.array_equal(rate[~overlaps], problem.gap_rate[~overlaps])
    assert st.TimeStepping().slower(asked, st.Lemke(), None) is None

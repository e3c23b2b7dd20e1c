"""When differences of solves can be compared with derivatives: shared by tests of several families."""

from __future__ import annotations

import numpy as np

import stiction as st

STEPS = (1e-5, 1e-4, 1e-6, 1e-3, 1e-7, 1e-8)  # of differences: rounding wants them long, curvature short
AWAY = 1e-3  # margin, over the island's pace, at which most of these steps do not reach the next mode


def is_away(found):
    """Whether some way of sharing the load leaves every contact a margin of AWAY."""
    further = st.differentiate(found.solution, within=AWAY)
    return further.smooth and np.array_equal(further.modes.mode, found.modes.mode)

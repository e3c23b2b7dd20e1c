"""Every threshold of principal pivoting on contacts, with slip and without: name, unit, why, what breaks.

All are pure numbers: contacts have unit size and velocities are divided by τ (`problems.normal_form`).
"""

from __future__ import annotations

from stiction.solvers.tolerances import ROUNDING, SOLVE_ERROR

# Violations below this part of the largest velocity are rounding. Smaller: pivots on rounding, which cycle. Larger:
# contacts that close are left open, and the certificate shows it.
NOISE = 2.0 * SOLVE_ERROR
# The same without slip, in units of the largest impulse; and of the largest velocity, where tangents are bound.
BOUND_NOISE, VIOLATED = SOLVE_ERROR, 1e4 * SOLVE_ERROR
# Sliding that no refinement removes.
AT_REST = ROUNDING
# Part of a row that the members leave of it, below which it depends on them. Smaller: impulses without bound. Larger:
# contacts that are nearly redundant are not pressed.
DEPENDENT = 1e3 * SOLVE_ERROR
# Part of its squared length below which Gram–Schmidt is done twice.
DOUBTFUL = 0.1
# The same for members that come from a start: worse ones are found anew.
TRUSTED = 1e-4
# Part of a row that bound rows leave of it, below which they hold it already.
HELD = 1e-6
# Changes of the bound set, and returns to an earlier one, before contacts are bound for good.
ROUNDS, RETURNS = 60, 10

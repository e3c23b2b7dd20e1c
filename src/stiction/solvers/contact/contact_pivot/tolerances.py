"""Every threshold of principal pivoting on contacts, with slip and without: name, unit, why, what breaks.

All are pure numbers: contacts have unit size and velocities are divided by τ (`problems.normal_form`).
"""

from __future__ import annotations

import math

from stiction.solvers.tolerances import ENOUGH, HALF_OF_THE_DIGITS, INVERSE_ERROR, PRODUCT_ERROR

# Velocity below which a contact does not open, where tangents are bound: what the certificate does not see.
VIOLATED = ENOUGH
# Part of a row that the members leave of it, below which it depends on them. Smaller: impulses without bound. Larger:
# contacts that are nearly redundant are not pressed.
DEPENDENT = INVERSE_ERROR
# Part of its squared length below which Gram–Schmidt is done twice.
DOUBTFUL = 0.1
# The same below which members that come from a start are found anew.
TRUSTED = HALF_OF_THE_DIGITS
# Part of a row that bound rows leave of it, below which they hold it already: its square is rounding.
HELD = math.sqrt(PRODUCT_ERROR)
# Changes of the bound set, and returns to an earlier one, before contacts are bound for good.
ROUNDS, RETURNS = 60, 10

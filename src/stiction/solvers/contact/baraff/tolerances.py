"""Every threshold of Baraff's method: name, unit, why, what breaks.

All are pure numbers: contacts have unit size and velocities are divided by τ (`problems.normal_form`).
"""

from __future__ import annotations

from stiction.solvers.tolerances import ENOUGH, HALF_OF_THE_DIGITS, INVERSE_ERROR, PRODUCT_ERROR, ROUNDING, SOLVE_ERROR

# Rounding.

# Violations below this part of the largest impulse are rounding, at first and, after tries that were stopped by
# rounding, at last. Smaller: contacts are driven for nothing. Larger: true violations are left.
NOISE, MOST_NOISE = ROUNDING, INVERSE_ERROR
# The largest violation that may be taken for rounding where impulses are small: what the certificate does not see.
NEGLIGIBLE = ENOUGH
# Part of the largest impulse below which a violation may come of steps added up: members are corrected, not driven.
DRIFT = NEGLIGIBLE
# Residuals of the members' equations that are worth another pass of refinement.
REFINE = SOLVE_ERROR

# Pivots of the members' inverse (`sets`).

# Pivots below this part of their row and column are zero. Larger: nearly dependent contacts are refused.
DEPENDENT = REFINE
# Diagonal entries of the inverse below this part of their row are not divided by: it is rebuilt instead.
STALE = HALF_OF_THE_DIGITS

# How far a drive may go (`steps`).

# Rates below this part of the fastest do not block. Larger: conditions are passed unseen.
SLOW = MOST_NOISE
# Rates above this part of the fastest move a row that the members should hold: the inverse has lost it.
MOVING = STALE
# Part of (mu p_n)² within which an impulse lies on its cone.
ON_CONE = PRODUCT_ERROR

# Patience.

# Changes of a contact without progress before it is given up, and tried again in another order.
PATIENCE = 2
# Turns of the recorded directions in one try, radians turned at a time, and the factor by which a turn may make things
# worse: several contacts that turn together may do so at first.
TURNS, WIDEST, WORSE = 60, 0.5, 1.5

"""Every threshold of Lemke's path through the cells, for `CellLemke` and `StructuredLemke` alike.

The normal form is dimensionless: rows have about unit length, velocities and impulses are parts of the largest free
velocity. Where no unit is named, a number is such a part.
"""

from __future__ import annotations

import numpy as np

from stiction.solvers.tolerances import ACCEPT, ENOUGH, INVERSE_ERROR, PRODUCT_ERROR, SOLVE_ERROR

EPS = float(np.finfo(np.float64).eps)

# The ratio test

# How far a watched quantity may overshoot zero (Harris). Larger: answers violate the law by more than `ACCEPT`.
# Smaller: fewer candidates to choose a fast one from, so pivots are smaller and redundant contacts make paths fail.
SLACK = ENOUGH
# `ROUNDING` is the same in units of the largest unknown, whose rounding is visible in every quantity: without it,
# enormous impulses (mass ratios of 1e6) end in pivots on noise. It also ends `polish`: nothing below is left to gain.

# Quantities that fall slower do not block, in units of the fastest unknown. Smaller: pivots on rounding, singular
# bases. Larger: slow quantities are overlooked and the path is lost.
SLOW = SLACK
# If z0 falls slower it stands still, in the same units: it cannot leave, and the path is a ray if nothing else blocks.
# Larger: steep paths near their end are called rays. Smaller: rounding of the rate ends a path that does not end.
STANDING = SOLVE_ERROR
# A ratio and the bound that it is compared with differ by two roundings; without it the last candidate can be missed.
SAFE = 1.0 + EPS + EPS

# The equations

# Residual above which the unknowns are corrected, and natural map above which the final basis is polished: what a good
# inverse leaves. Smaller: every pivot corrects rounding. Larger: errors reach the ratio test.
REFINE = PRODUCT_ERROR
# Residual at which the corrected inverse is rebuilt. A watched quantity more negative than this times the largest
# unknown, or than half of the digits, has left the path. Larger: the drift nears `SLACK`, and the wrong one blocks.
REFACTOR = INVERSE_ERROR
# Corrections with residuals in doubled precision end at a residual of this part of the largest unknown, its last bit.
# Larger: the tries that need it lose bits. Smaller: corrections go on without gain, ...
REFINED = EPS
# ... until one leaves more than this part of the residual: then the inverse is too poor to gain more. Smaller: they end
# before they have gained all there is.
GAIN = 0.5

# The answer: its natural map needs no other cover from `ACCEPT` on, what ten overshoots of `SLACK` may add up to.

# Part of the largest impulse, or of a contact's own friction bound, that a start may have and still be outside a cell:
# errors of an accepted answer. Larger: a start is put into the wrong cells, and costs a solve of equations in vain.
NEGLIGIBLE = ACCEPT

# The cover: c_n is uniform in [1, 2], the others in their sizes times [1, 2] (tangents: [-1, 1]).

# c_t over max(1, mu), which breaks ties between tangents. It must keep c_n > mu |c_t|: below 1 / sqrt(2).
COVER_TANGENT = 0.25
# c_σ. Smaller: contacts slide from the start, and stop again. Larger: all stick first, and start to slide one by one.
COVER_SLIDING = 10.0
# c_γ, for Lloyd's methods; zero in the cells. It must be positive there, since μθ - Σφ has no other cover.
COVER_BOUND = 0.3
# A c_σ that must grow becomes this many times c_n times what is needed. Above 1, or σ is zero from the start: a tie.
COVER_GROWTH = 2.0

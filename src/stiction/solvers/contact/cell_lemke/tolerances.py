"""Every threshold of Lemke's path through the cells, for `CellLemke` and `StructuredLemke` alike.

The normal form is dimensionless: rows have about unit length, velocities and impulses are parts of the largest free
velocity. Where no unit is named, a number is such a part.
"""

from __future__ import annotations

import numpy as np

from stiction.solvers.tolerances import ENOUGH, ROUNDING, SOLVE_ERROR

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
SAFE = 1.0 + 2.0 * EPS

# The equations

# Residual above which the unknowns are corrected, and natural map above which the final basis is polished: what a good
# inverse leaves. Smaller: every pivot corrects rounding. Larger: errors reach the ratio test.
REFINE = 10.0 * SOLVE_ERROR
# Residual at which the corrected inverse is rebuilt. Smaller: more inversions of O(k³). Larger: the drift approaches
# `SLACK`, and the wrong quantity blocks.
REFACTOR = 100.0 * REFINE
# A watched quantity more negative than this, or than `REFACTOR` times the largest unknown, has left the path. Smaller:
# recoverable overshoots of ill-conditioned bases cost a new cover. Larger: pivots are wasted on a lost path.
LOST = 1e-5
# Corrections with residuals in doubled precision end at a residual of this part of the largest unknown, half of its
# last bit. Larger: the tries that need it lose bits. Smaller: corrections go on without gain, ...
REFINED = ROUNDING / 10.0
# ... until one leaves more than this part of the residual (then the inverse is too poor to gain more), or until this
# many have been made. Smaller `GAIN` or fewer of them: they end before they have gained all there is.
GAIN = 0.5
CORRECTIONS = 6

# The answer

# Natural map of an answer that needs no other cover: what ten overshoots of `SLACK` may add up to. Smaller: needless
# paths. Larger: the certificate, at 1e-8 by default, has no margin.
ACCEPT = 10.0 * SLACK
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

# The tries: (slack, slow, cover) of try k are these multiples, by k modulo 4. A path fails mostly because of ties or
# of a slow pivot, so that covers and thresholds on both sides of the usual ones are tried.
TRIES = ((1.0, 1.0, 1.0), (1.0, 10.0, 0.1), (0.1, 0.1, 10.0), (10.0, 100.0, 1.0))

# The limit of a path, in pivots for each contact and velocity, and `MORE_PIVOTS` for the smallest problems: five times
# the longest paths of the families, which take 3.3 in the cells, 4.3 reduced and 9.9 structural (there open contacts
# take part). Smaller: long paths are cut off. Larger: a path that cycles takes longer to be given up.
PIVOTS_OF_CELLS, PIVOTS_OF_PAIRS, MORE_PIVOTS = 20, 50, 50

"""Every threshold of the splitting: name, unit, why, what breaks. Newton's own are in `cone_newton.tolerances`."""

from __future__ import annotations

# Passes before Newton's method begins. Fewer: modes are wrong. More: each is a box LCP of size 3 n.
FIRST_PASSES = 3
# Passes before it begins again, and the same where they are accelerated: what swings needs many.
MORE_PASSES, ACCELERATED_PASSES = 20, 40
# Cycles of a round: afresh, more passes, accelerated passes, a perturbation.
STAGES = 4
# Factors of the proximal term, round by round. Larger: redundant contacts wander less, and passes converge more slowly.
PULLS = (1.0, 1e4, 0.0, 1e3)
# Least proximal term, as a part of the diagonal, of a pass without bounds of friction, whose matrix may be singular.
STICKY = 1e-6
# ε of Newton's method over the residual, cycle by cycle: what stalls with one may converge with another.
SOFTNESS = (0.01, 0.001, 0.1)
# Passes remembered (`anderson`); squared length of a pass, over that of the shortest, at which an accelerated point is
# dropped; what is added to the Gram matrix, over its trace, since passes that repeat each other make it singular.
PASSES_KEPT, TRUST, RIDGE = 10, 4.0, 1e-12

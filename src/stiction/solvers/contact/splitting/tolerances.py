"""Every threshold of the splitting: name, unit, why, what breaks. Newton's own are in `cone_newton.tolerances`."""

from __future__ import annotations

from stiction.solvers.tolerances import PRODUCT_ERROR

# Passes before Newton's method begins. Fewer: modes are wrong. More: each is a box LCP of size 3 n.
FIRST_PASSES = 3
# Passes before it begins again, accelerated or not: what swings needs many.
MORE_PASSES = 20
# Factors of the proximal term, round by round: the one asked for, a strong one, none. Larger: redundant contacts wander
# less, and passes converge more slowly.
PULLS = (1.0, 1e4, 0.0)
# ε of Newton's method over the residual. Smaller: it stalls at kinks. Larger: slower convergence.
SOFTNESS = 0.01
# Passes remembered (`anderson`); squared length of a pass, over that of the shortest, at which an accelerated point is
# dropped; what is added to the Gram matrix, over its trace, since passes that repeat each other make it singular.
PASSES_KEPT, TRUST, RIDGE = 10, 4.0, PRODUCT_ERROR

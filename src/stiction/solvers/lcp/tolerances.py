"""Every threshold of the LCP solvers: name, unit, why it is there, what breaks when it is changed.

Problems are solved in scaled units (`scaling`): |q| is at most one and the entries of the matrix are about one, so
that these numbers are pure numbers. "Size of z" is `tableau.magnitude`, 1 + Σ|z| over the members. What stands for
rounding is taken from the ladder in `solvers.tolerances`.
"""

from __future__ import annotations

import math
import sys

from stiction.arrays.compiled import shared
from stiction.solvers.tolerances import INVERSE_ERROR, PRODUCT_ERROR, SOLVE_ERROR, pivot_limit

# Rounding.

# |block| |inverse|, entry by entry, of a block taken for singular: no digit of its solution is left.
LARGEST_CONDITION = 1.0 / SOLVE_ERROR
# Size of z beyond which a pivot must have been rounding: no more than the error of an inverse is left of a row.
# Smaller: steep problems are refused. Larger: none is caught.
LARGEST_Z = 1.0 / INVERSE_ERROR
# Factor by which `verify` may loosen its noise, doubling it each time, before the method gives up as stalled: up to the
# error of an inverse.
MOST_DOUBTS = INVERSE_ERROR / SOLVE_ERROR

# Pivots.

# Pivots below this part of their terms have lost half of the digits that a pivot may lose: they are computed again with
# one refinement, lose ties, and are not eliminated with. Smaller: a pivot that cancels becomes a division by zero.
# Larger: O(k²) more at many pivots.
WEAK_PIVOT = math.sqrt(PRODUCT_ERROR)
# Schur complements below this count as this when violated rows are compared; else dependent rows always win.
LEAST_WEIGHT = 0.01

# Scaling.

# Largest exponent of a scale, base two: squares of scaled numbers neither overflow nor vanish.
LARGEST_EXPONENT = math.frexp(math.sqrt(sys.float_info.max))[1]
# Rounds of scaling rows, then columns, of an unsymmetric matrix. One leaves rows uneven; more change little.
SCALING_ROUNDS = 2

# Block pivoting.

# Block changes without fewer violations before single changes begin [JudicePires1994]. More: cycles last longer.
BLOCK_STALL = 10
# Repetitions of the proximal point method that take a perturbation's effect out.
PROXIMAL_STEPS = 30
# Factor of the perturbation from one repetition to the next. Smaller: matrices that are nearly singular too soon.
# Larger: more repetitions. It ends at `INVERSE_ERROR`, as a part of the diagonal: below, the matrix is singular again.
PERTURBATION_FACTOR = 0.1

# Smoothing Newton.

# Part of μ kept after a full step; after shorter ones proportionally more, near a solution less. Smaller: fewer steps,
# but the iterate leaves the smooth path where the matrix is ill-conditioned, and the line search fails.
KEPT = 0.3
# A second try begins with this part of the first μ, where the natural map (scaled units) stayed above `ENOUGH`.
SECOND_SMOOTHING = 1e-3
# ρ of the regularization ρ μ (z - start). Zero: singular Jacobians for P0-matrices. Larger: slower convergence.
REGULARIZATION = 1e-6
# Part of the predicted decrease that a step must achieve (Armijo).
DECREASE = 1e-4

# Enumeration.

LARGEST = 12  # bounded variables of the problem: 3^12 = 531,441 systems; each one more triples the time
# Distance of a trial from its bounds, relative, from which it is not judged. Smaller: ill-conditioned solutions are
# missed. Larger: every support is judged, which costs as much as solving it.
OUTSIDE = 1e-3

# Limits of pivots for n variables.


@shared
def usual_pivots(n, symmetric):
    """After these, satisfied rows are guarded: a symmetric problem ends before, any other may cycle unguarded.

    Drumwright's method, which may cycle too, is left for Keller's rule.
    """
    return pivot_limit(n) // (5 if symmetric else 25)


@shared
def murty_limit(n):
    """Murty's rule is exponential at worst, and its pivots are cheap."""
    return (n + 1) * pivot_limit(n)

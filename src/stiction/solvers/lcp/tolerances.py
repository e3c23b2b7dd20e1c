"""Every threshold of the LCP solvers: name, unit, why it is there, what breaks when it is changed.

Problems are solved in scaled units (`scaling`): |q| is at most one and the entries of the matrix are about one, so
that these numbers are pure numbers. "Size of z" is `tableau.magnitude`, 1 + Σ|z| over the members.
"""

from __future__ import annotations

from stiction.arrays.compiled import shared
from stiction.solvers.tolerances import HALF_OF_THE_DIGITS, ROUNDING, SOLVE_ERROR, TOLERANCE

# Rounding. Everything that stands for it is derived from the error that a refined solve leaves in z, over its size.

# Equation residual, over the size of z, at which the members are corrected once more.
REFINE = SOLVE_ERROR
# The same at which the inverse is rebuilt. Smaller: a rebuild, O(k³), every few pivots. Larger: wrong pivots.
REBUILD = 1e3 * SOLVE_ERROR
# |block| |inverse|, entry by entry, of a block taken for singular: no digit of its solution is left.
LARGEST_CONDITION = 1.0 / SOLVE_ERROR
# Violations below this times |q_i| + size of z are rounding. Smaller: methods chase rounding and stall. Larger: rows
# that are violated count as satisfied, and the certificate shows it.
NOISE = 2.0 * SOLVE_ERROR
# The same, times the terms of the row itself, where everything has just been computed anew.
ROW_NOISE = NOISE / 10.0
# Factor by which `verify` may loosen its noise, doubling it each time, before the method gives up as stalled.
MOST_DOUBTS = 1e3
# Block changes after which the noise is taken twice, three times after twice as many, …: sets that differ by rounding
# would follow each other for ever. Fewer: true violations are forgiven. Murty's method has `murty_patience`.
BLOCK_PATIENCE = 50.0
# Size of z beyond which a pivot must have been rounding: three digits of a row are left. Smaller: steep problems are
# refused. Larger: none is caught.
LARGEST_Z = 1e-3 / SOLVE_ERROR
# A quantity that can be improved no further, relative: ends the smoothing and the proximal point method.
EXACT = ROUNDING

# Pivots and rates.

# Pivots below this part of their terms are zero. Smaller: rounding becomes a pivot, and the inverse explodes. Larger:
# nearly dependent contacts are refused as singular.
SMALL_PIVOT = 1e2 * SOLVE_ERROR
# Pivots below this part are computed again with one refinement: costs O(k²) where it applies, decides what is zero.
DOUBTFUL_PIVOT = 1e-5
# Rates below this part of the fastest do not block: the inverse is no more exact than this. Larger: members pass their
# bounds, and `verify` has to send them back.
SLOW = REBUILD
# The same for Lemke, where nothing is verified before the path ends. Smaller: pivots on rounding, and paths that
# return. Larger: quantities pass their bounds unseen.
SLOW_ON_PATH = 1e4 * SOLVE_ERROR
# Slower quantities block a Lemke path only from a fresh inverse; part of the fastest: at the first try, at later ones.
# Smaller: wrong pivots in ill-conditioned problems. Larger: a rebuild at nearly every pivot.
DOUBTFUL_RATES = (HALF_OF_THE_DIGITS, 100.0 * HALF_OF_THE_DIGITS)
# Schur complements below this count as this when violated rows are compared; else dependent rows always win.
LEAST_WEIGHT = 0.01
# Steps of length zero, per variable, after which ties go to the least index, which cannot cycle. Fewer: the rule, which
# chooses small pivots, is used where the fastest would do.
IDLE_STEPS = 2

# Lemke's ratio test.

# How far a quantity may overshoot its bound, over the largest (Harris' test). Smaller: less freedom to choose a large
# pivot. Larger: the violation at the end exceeds ACCEPT.
HARRIS = 1e2 * SOLVE_ERROR
# Its factors in successive tries, in turn: a path that failed is followed with another slack.
HARRIS_FACTORS = (1.0, 0.01, 100.0)
# Steps that differ by less than this part are equal, and the lexicographic rule decides. Smaller: degenerate problems
# cycle. Larger: z passes bounds.
TIE = 10.0 * SOLVE_ERROR
# Part of (largest z / fastest rate) that a step counts as at least, when ties are measured: steps of zero tie as well.
SHORT_STEP = 1e-3
# Tied quantities slower than this part of the fastest of them are no candidates: the lexicographic rule must not
# choose a pivot that is nearly zero.
SLOW_TIE = DOUBTFUL_PIVOT
# Entries of lexicographic rows that differ by less than this part are equal: no more of the inverse is exact.
SAME_ENTRY = REBUILD
# Violation of the final basis, over the largest unknown, beyond which another cover is tried.
ACCEPT = 10.0 * SOLVE_ERROR

# Scaling.

# Largest exponent of a scale, base two: squares of scaled numbers neither overflow nor vanish.
LARGEST_EXPONENT = 500
# Rounds of scaling rows, then columns, of an unsymmetric matrix. One leaves rows uneven; more change little.
SCALING_ROUNDS = 2

# Block pivoting.

# Block changes without fewer violations before single changes begin [JudicePires1994]. More: cycles last longer.
BLOCK_STALL = 10
# Pivots that Murty's method is given, per factorization that the block method was given.
MURTY_PER_BLOCK = 100
# Repetitions of the proximal point method that take a perturbation's effect out.
PROXIMAL_STEPS = 30
# Factor of the perturbation from one repetition to the next, and its least value, as a part of the diagonal: below,
# the matrix is singular again.
PERTURBATION_FACTOR, LEAST_PERTURBATION = 0.1, 1e3 * SOLVE_ERROR

# Smoothing Newton.

# Part of μ kept after a full step, a shorter one, a short one (below SHORT_NEWTON_STEP), and a full one near a
# solution (merit below NEAR_MERIT). Smaller: fewer steps, but the iterate leaves the smooth path where the matrix is
# ill-conditioned, and the line search fails.
KEEP_FULL, KEEP_PART, KEEP_SHORT, KEEP_NEAR = 0.3, 0.7, 1.0, 0.01
SHORT_NEWTON_STEP = 0.2
NEAR_MERIT = HALF_OF_THE_DIGITS
# ρ of the regularization ρ μ (z - start). Zero: singular Jacobians for P0-matrices. Larger: slower convergence.
REGULARIZATION = 1e-6
# Part of the predicted decrease that a step must achieve (Armijo).
DECREASE = 1e-4
# Step at which the line search gives up.
SHORTEST_STEP = 100.0 * SOLVE_ERROR
# Least μ after a warm start. Smaller: Newton's method on the kinks themselves, where it can fail at once.
LEAST_SMOOTHING = HALF_OF_THE_DIGITS
# A second try begins with this part of the first μ, where the natural map (scaled units) stayed above ENOUGH.
SECOND_SMOOTHING = 1e-3

# Residuals of the certificate, for those that stop by it.

# Residual at which sweeps and enumeration end. Smaller: all supports are tried where rounding alone leaves more.
CERTAIN = 100.0 * SOLVE_ERROR
# Residual that counts as a solution of an enumerated support, a tenth of what `solve` asks for by default.
FOUND = TOLERANCE / 10.0

# Enumeration.

LARGEST = 12  # bounded variables of the problem: 3^12 = 531,441 systems; each one more triples the time
# Distance of a trial from its bounds, relative, from which it is not judged. Smaller: ill-conditioned solutions are
# missed. Larger: every support is judged, which costs as much as solving it.
OUTSIDE = 1e-3
# Pivot, over its row, below which a support is left to linear programming.
SINGULAR_SUPPORT = 1e3 * SOLVE_ERROR
# Free variables whose pivot is below this part of the largest entry are enumerated instead of eliminated.
WEAK_PIVOT = 1e-6

# Limits of pivots for n variables. They end what rounding keeps from ending; a usual solve takes n to 3 n.


@shared
def pivot_limit(n):
    """Of Keller's and of Cottle and Dantzig's method."""
    return 100 * n + 200


@shared
def two_at_a_time_limit(n):
    """Of Drumwright's method, which may cycle, before Keller's rule takes over."""
    return 10 * n + 50


@shared
def usual_pivots(n, symmetric):
    """After these, satisfied rows are guarded: a symmetric problem ends before, any other may cycle unguarded."""
    return 8 * n + 50 if symmetric else 2 * n + 20


@shared
def lemke_limit(n):
    """Of one path."""
    return 20 * n + 200


@shared
def murty_limit(n):
    """Murty's rule is exponential at worst, and its pivots are cheap."""
    return 1000 * n + 10_000


@shared
def murty_patience(n):
    """Murty's pivots after which the noise is taken twice."""
    return 100.0 * n + 500.0

"""Thresholds that several families of solvers share, each once: name, unit, why, what breaks.

Every family solves in units of its own, in which what decides is about one (`lcp.scaling`, `problems.normal_form`), so
that these are pure numbers. What stands for rounding anywhere is a multiple of `SOLVE_ERROR`.
"""

from __future__ import annotations

# Residual of a certificate that counts as solved, unless another is asked for.
TOLERANCE = 1e-8
# Residual of an LCP at which no other solver is asked, and no second try made. Smaller: several answers for problems
# that rounding keeps from better ones. Larger: an answer that barely passes hides a better one.
ENOUGH = TOLERANCE / 100.0
# Part of the tolerance at which iterations on the friction cone stop: velocities that should be zero, and are not, add
# up to creep over many steps.
AIM = 1e-4

# Error that a refined solve leaves in its unknowns, over their size: 45 eps. Smaller: rounding itself is refined and
# doubted at every pivot. Larger: certificates lose digits.
SOLVE_ERROR = 1e-14
# What rounding leaves of a velocity, or of a sum, in units of its largest terms: 4.5 eps. Smaller: solves end at their
# limit, not as solved. Larger: heavy loads hide the creep of light bodies.
ROUNDING = SOLVE_ERROR / 10.0
# Half of the digits of a number, about the root of eps: what is left of one that is known by its square.
HALF_OF_THE_DIGITS = 1e-8

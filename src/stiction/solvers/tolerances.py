"""Thresholds that several families of solvers share, each once: name, unit, why, what breaks.

Every family solves in units of its own, in which what decides is about one (`lcp.scaling`, `problems.normal_form`), so
that these are pure numbers. Errors of rounding form a ladder, on which every family stands:

    ROUNDING 1e-15, SOLVE_ERROR 1e-14, NOISE 2e-14, PRODUCT_ERROR 1e-12, INVERSE_ERROR 1e-11, HALF_OF_THE_DIGITS 1e-8
"""

from __future__ import annotations

from stiction.arrays.compiled import shared

# Accuracy that is asked for.

# Residual of a certificate that counts as solved, unless another is asked for.
TOLERANCE = 1e-8
# Residual at which no other solver is asked, and no second try made; a smaller violation is as good as none. Smaller:
# several answers for problems that rounding keeps from better ones. Larger: an answer that barely passes hides a
# better one.
ENOUGH = TOLERANCE / 100.0
# Part of the tolerance at which iterations on the friction cone stop: velocities that should be zero, and are not, add
# up to creep over many steps.
AIM = 1e-4
# Residual at which an answer is taken without another try where each costs a whole path, or a support: it passes with
# some margin. Smaller: needless tries. Larger: the certificate has no margin.
ACCEPT = TOLERANCE / 10.0

# Errors of rounding.

# Error that a refined solve leaves in its unknowns, over their size: 45 eps. Smaller: rounding itself is refined and
# doubted at every pivot. Larger: certificates lose digits.
SOLVE_ERROR = 1e-14
# What rounding leaves of a velocity, or of a sum, in units of its largest terms: 4.5 eps. Smaller: solves end at their
# limit, not as solved. Larger: heavy loads hide the creep of light bodies.
ROUNDING = SOLVE_ERROR / 10.0
# Violations below this part of their terms are rounding, of two solves that are compared. Smaller: methods chase
# rounding and stall. Larger: rows that are violated count as satisfied, and the certificate shows it.
NOISE = 2.0 * SOLVE_ERROR
# A condition that has been made to hold counts as violated from this many times the noise on. Smaller: contacts change
# sides by rounding for ever. Larger: certificates lose a digit.
HYSTERESIS = 10.0
# Error of a product with an inverse that has not been refined: pivots below this part of their terms are zero, bounds
# may be passed by it, a residual below it is as good as none. Smaller: rounding becomes a pivot, and the inverse
# explodes. Larger: nearly dependent contacts are refused as singular.
PRODUCT_ERROR = 1e2 * SOLVE_ERROR
# Error of an inverse, after updates, at which it is rebuilt; rates below this part of the fastest are not known.
# Smaller: a rebuild, O(k³), every few pivots. Larger: wrong pivots.
INVERSE_ERROR = 1e3 * SOLVE_ERROR
# Half of the digits of a number, about the root of eps: what is left of one that is known by its square.
HALF_OF_THE_DIGITS = 1e-8

# Limits of effort.

# Newton steps of a small problem that asking one more solver takes as long as, whatever it does: 150 µs in Python.
# Smaller: steps of small scenes that fail take longer than they may. Larger: fewer solvers are asked.
ASKING = 100
# Contacts of an island beyond which pyramids are not asked. Larger: their answers may take minutes.
MANY = 100


@shared
def pivot_limit(n):
    """Pivots of a method with n unknowns. A usual solve takes n to 10 n; more are an effect of rounding."""
    return 50 * n + 200

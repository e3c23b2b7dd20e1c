"""Every threshold of derivatives: name, unit, why, what breaks.

All are pure numbers unless a unit is given: rows have unit size in the normal form (`problems.normal_form`).
"""

from __future__ import annotations

import numpy as np

# Margin of a kink, over the velocity scale of the island: what certificates ask for by default. Closer by, modes cannot
# be distinguished; larger, and derivatives that exist are refused.
WITHIN = 1e-8
# Residuals below which a margin is not trusted: this many times the certificate's own.
RESIDUALS = 10.0
# Impulses whose margin is this many times that of a kink need no better sharing.
ENOUGH = 100.0

# Part of a row that is independent of the others, below which it is redundant. Smaller: impulses without bound where
# contacts share a load. Larger: motions that are held count as free.
DEPENDENT = 1e-9
# The same at kinks: the direction of friction at its bound is known to the square root of what impulses are.
DEPENDENT_AT_KINKS = 1e-4
# Reciprocal condition of the reduced system below which the motion is not determined, and the part of its largest
# singular value that counts there.
SINGULAR, SMALLEST = 1e-10, 1e-9
# Part of a unit impulse that can be exchanged for others, above which it is not determined.
SHARED = 1e-9
# Change of the reduced system with the way of sharing a load that is more than rounding.
DEPENDS = 1e-7
# What is left of the rates of closed contacts, over the largest term, that is more than rounding.
CONSISTENT = 1e-7
# Asymmetry, over the largest entry, of a Delassus matrix that derivatives cannot stand.
ASYMMETRY = 1e-9
# Squared length, times the rows of a group, of what is left of a unit impulse without motion that is new.
NEW = 0.01

# Of the mean load, by which cones are made smaller to find impulses inside them; projections for each of them (more
# belong to the linear program), and between two looks at the margins.
PARTS = (0.1, 1e-3)
PROJECTIONS, BETWEEN = 40, 5
# Times as many for friction in five directions, where the linear program knows a cube only.
MORE = 5
# Sides of the polygon that stands for the disc in the linear program, and the radius of the disc inside it.
SIDES = 16
INSCRIBED = float(np.cos(np.pi / SIDES))

# At kinks, contacts of which all is undecided: part of the largest eigenvalue of their response below which one is
# zero; rounds in which the part that is not symmetric settles, and what it may still change, over the largest rate.
RANK = 1e-12
ROUNDS, SETTLED = 200, 1e-13

# Complementarity: reciprocal condition of H_FF, equilibrated, below which z is not determined; and the part of its
# largest singular value that counts there.
LCP_SINGULAR, LCP_SMALLEST = 1e-13, 1e-12

"""Every threshold of Newton's method for contact, on the cone and on the box: name, unit, why, what breaks.

All are pure numbers: contacts have unit size and velocities are divided by τ (`problems.normal_form`), so that impulses
and velocities of contacts that decide are about one. "Residual" is the largest entry of the Alart–Curnier map.
"""

from __future__ import annotations

# Rounding. One unit, from which everything that stands for rounding is derived.

# What rounding leaves of a velocity, in units of the largest impulse: 4.5 eps. Smaller: solves end at their limit
# instead of SOLVED. Larger: heavy loads hide the creep of light bodies.
ROUNDING = 1e-15
# Relative error of a root that cannot be improved.
EXACT = ROUNDING
# Change of the largest impulse, as far as a contact is stretched, below which Newton's method cannot aim.
LAST_DIGIT = 0.5 * ROUNDING
# A contact's response to its own impulse, over its size, that counts as none: it cannot press (its normal is held).
DEAF = 1e-14
# Added to the tangential responses, over their sum: in the plane one of them is zero. Smaller: divisions by zero.
BLUNT = DEAF
# Residual to which a proximal stage can be solved at best.
STAGE_ROUNDING = 3e-14
# Residual below which a tolerance is not followed: only rounding is left.
LEAST_RESIDUAL = 1e-13
# Velocity that a Delassus matrix holds beyond its symmetric part, which needs no further correction.
NEGLIGIBLE = LEAST_RESIDUAL

# What counts as solved.

# Part of the tolerance that Newton's method aims at: impulses are put into their cones after it, which moves them.
MARGIN = 0.5
# After a stall, this many times the tolerance is accepted: the last digits of a heap in motion cost the most steps.
STALL_FACTOR = 1e2
# But never a larger violation, nor a start that is taken for the answer. Larger: things at rest creep.
STALL_LIMIT = 1e-9
# Part of the tolerance, on at most LARGE contacts, within which a start is the answer. Larger: what is at rest creeps,
# now forth and now back, by the last digits of its impulses. Smaller: Newton steps for rounding.
STILL = 0.02
# On more than LARGE contacts, from a start: the part of the start's violation, the motion that changes in this step,
# that is accepted, and how many times the tolerance at most. Larger: a heap that comes to rest creeps for longer.
# Smaller: heaps in motion stall at contacts that disagree by less than anyone sees.
PART, EASE = 1e-3, 1e3
# After a stall there, this many times more: with `Auto`, half of what the certificate allows. Without it, heaps walk
# thousands of steps from 5e-9 to 1e-9.
STALL_EASE = 5.0

# One run of Newton's method (`step`).

# Stiffness of closed contacts is 1 / ε, ε this times the residual, at first and from a start. Smaller: steps overshoot
# while modes are wrong. Larger: slow convergence.
SOFTNESS, WARM_SOFTNESS = 0.01, 1e-4
# The same on more than LARGE contacts, from a start while things move. A closed contact loses 1 / (1 + ε) of its
# velocity in a step, so that ε need only be small beside one; but a contact whose mode is wrong is pressed with 1 / ε,
# and one among hundreds shortens the step of all. In falling heaps of 100 bodies this halves the Newton steps.
LARGE_SOFTNESS = 0.3
# Bounds of ε. A smaller least one makes the system singular to rounding.
LARGEST_EPSILON, SMALLEST_EPSILON = 0.1, 1e-10
# Factor of the softness after a full step that repeats the active set, where the map is smooth; and its least value.
CUT, LEAST_SOFTNESS = 0.05, 1e-7
# Full steps of a run on at most LARGE contacts, and how many in a row that have not made the residual GAIN of the best;
# Newton steps of the proximal stages after them, and the residual from which on these are no use.
FULL, IDLE, STAGED, FAR = 20, 7, 60, 1.0
# Change of an impulse that a full step may make: this part of the largest one, or this many times the residual. What is
# longer is made PACE of that by a larger ε, SOFTER times at most. Larger: impulses that are not unique leap from limit
# to limit. Smaller: many steps until they arrive.
LONGEST, LONGER, PACE, SOFTER = 0.4, 5.0, 0.5, 2
# Merits that a step is searched against. One would be a monotone search, which stalls at changes of mode.
MERITS = 20
# Trials of a step, each half as long as the one before, and part of the merit that it must take away.
TRIALS, DECREASE = 9, 1e-4
# Part of the residual that a step must leave behind where a stall would be accepted. Larger: many steps for the last
# digits of contacts that hold each other in more ways than one, whose rates never agree.
GAIN = 0.5
# Residual that is no motion any more, from which on a step may not make the merit worse than this many times. Larger:
# impulses that are not unique, at their limits, throw Newton's method back again and again. Also the largest ε of full
# steps near the solution.
NEAR, LEAP = 1e-6, 1e6
# Full steps that are taken although the search failed: some changes of mode first make things worse.
WATCHDOG = 3
# Merit, over the lowest so far, that counts as progress; without it a run ends after MERITS + WATCHDOG steps, or after
# HURRY where ε had to be raised to NEAR: what is wrong there are modes, which the next cycle's sweeps find sooner.
PROGRESS, HURRY = 0.8, 4
SAME = 1e-5  # part of a merit by which one that comes again may differ; such a run ends at once
# Residual beyond which a run has diverged.
DIVERGED = 1e100
# Refinements of a direction at most, and the error of its linear system, over the residual, that is refined.
REFINEMENTS, FELT = 3, 0.1

# Cycles (`cone_newton`): a round is afresh, sweeps, accelerated sweeps, proximal steps, a perturbation.

STAGES = 5
# Sweeps before Newton's method, and their accuracy: they only find modes.
FIRST_SWEEPS, ROUGH = 2, 1e-2
# Sweeps of the first cycle that sweeps again, and of the last; four times as many each round.
MORE_SWEEPS, MOST_SWEEPS = 50, 800
# Newton steps of a cycle's proximal steps.
PROXIMAL_STEPS = 1000
# Normal impulse that a perturbation adds at most.
PRESSURE = 0.05
# Impulse of a contact whose start is balanced: a light block between heavy ones bears far more than moves it.
BURDEN = 100.0
# Solves for what is not symmetric in a Delassus matrix; each gains as many digits as it is symmetric to.
CORRECTIONS = 8

# Times that sliding and turning of one contact are solved in turn where they are bounded apart (`apart`): modes settle.
PART_SWEEPS = 3

# Roots of one contact (`one_contact`): halvings would take 53 steps.
MAX_ROOT_STEPS = 60
# Added to what is divided by; no number that counts is so small.
TINY = 1e-300

# Anderson acceleration (`anderson`).

# Sweeps remembered; squared step of a sweep, over that of the shortest, at which an accelerated point is dropped.
SWEEPS_KEPT, TRUST = 10, 4.0
# Added to the Gram matrix, over its trace: sweeps that repeat each other make it singular.
RIDGE = 1e-12

# Working set (`working_set`).

# Contacts of the same bodies that are all taken in as soon as they close; of more, the fastest.
CROWD = 4
# Times that contacts are taken in after sweeps alone, before Newton's method begins; and after it, at most.
PICKS, MAX_ROUNDS = 8, 40

# Proximal steps (`proximal`).

# Bounds of ε, and the most that the first stage begins with.
LARGEST_STAGE, SMALLEST_STAGE, FIRST_STAGE = 1.0, 1e-9, 0.1
# Change of an impulse that a stage is meant to make: a third of an impulse, so that modes change one after the other.
STAGE_LENGTH = 0.3
# ε is multiplied by at most SHRINK after a stage, by GROW after one that failed, by CAREFUL at least after that.
SHRINK, GROW, CAREFUL = 0.5, 4.0, 0.25
# Newton steps of a stage, trials of each, and the part of the first residual at which a stage ends.
STAGE_STEPS, STAGE_TRIALS, STAGE_PART = 10, 6, 0.1

# Walks in units of the loads (`walk`).

# Contacts beyond which a walk takes the place of proximal steps in every round, not in every second one. With fewer
# contacts proximal steps mostly do, and cost less.
LARGE = 200
# Newton steps of a walk; random heaps of 100 bodies take 600 to 6000. A larger limit makes a step that fails dearer.
WALK_STEPS = 3000
# The same from a start, for a step that is to be made soon: of moving heaps, walks that succeed take 100 to 700.
WARM_WALK_STEPS = 1000
# ε that a walk begins with, and the largest: in units of the loads, stages of this size hardly change a mode.
FIRST_WALK, LARGEST_WALK = 1.0, 10.0
# Impulse at which a walk is given up: half of the digits of a velocity are lost there. Where nothing yields, there is
# no solution, and impulses double with every stage.
LARGEST_LOAD = 1e8
# Change of an impulse that a stage is meant to make, in units of the root of its load: such that it about doubles.
WALK_LENGTH = 1.0
# ε shrinks at most by this factor after a stage that failed; the factor itself by RELAX with each stage, down to
# LEAST_CARE. Without such care the next stage fails again.
WALK_CARE, RELAX, LEAST_CARE = 0.7, 0.9, 0.02
# Violation, over that of the last attempt, at which Newton's method is tried, and its steps.
WALK_DROP, WALK_NEWTON = 0.1, 20

# Linear systems (`system`, `elimination`).

# Velocities, those of dry friction not counted, that are eliminated as one front, without an order. Each front takes as
# long as some 8,000 operations of another. Larger: dense systems where sparse ones are faster. Smaller: humanoids with
# few contacts take longer.
TOGETHER = 50
# Part of the contacts closed when the order was made that must still be. Larger: new orders, which take a tenth to a
# fifth of a Newton step. Smaller: open contacts fill the factors.
STILL_CLOSED = 0.8
# Contacts of the same blocks that are added to the matrix at once. Larger: more memory. Smaller: short products.
AT_ONCE = 4

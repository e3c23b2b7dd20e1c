"""Every threshold of Newton's method for contact, on the cone and on the box: name, unit, why, what breaks.

All are pure numbers: contacts have unit size and velocities are divided by τ (`problems.normal_form`), so that impulses
and velocities of contacts that decide are about one. "Residual" is the largest entry of the Alart–Curnier map.
"""

from __future__ import annotations

from stiction.solvers.tolerances import AIM, HALF_OF_THE_DIGITS, ROUNDING, SOLVE_ERROR, TOLERANCE

# One decimal digit: a stage, an error or a gain that counts changes something by this factor.
DIGIT = 0.1
# Newton steps after which a run, or a stage, that has not got there has the wrong modes.
RUN = 20

# Rounding: multiples of what solves leave.

# Relative error of a root that cannot be improved.
EXACT = ROUNDING
# Change of the largest impulse, as far as a contact is stretched, below which Newton's method cannot aim.
LAST_DIGIT = 0.5 * ROUNDING
# A contact's response to its own impulse, over its size, that counts as none: it cannot press (its normal is held).
DEAF = SOLVE_ERROR
# Added to the tangential responses, over their sum: in the plane one of them is zero. Smaller: divisions by zero.
BLUNT = DEAF
# Residual to which a proximal stage can be solved at best.
STAGE_ROUNDING = 3.0 * SOLVE_ERROR
# Residual below which a tolerance is not followed: only rounding is left.
LEAST_RESIDUAL = SOLVE_ERROR / DIGIT
# Velocity that a Delassus matrix holds beyond its symmetric part, which needs no further correction.
NEGLIGIBLE = LEAST_RESIDUAL

# What counts as solved.

# Part of the tolerance that Newton's method aims at: impulses are put into their cones after it, which moves them.
MARGIN = 0.5
# After a stall, this many times the tolerance is accepted: the last digits of a heap in motion cost the most steps.
STALL_FACTOR = DIGIT**-2
# But never a larger violation, nor a start that is taken for the answer. Larger: things at rest creep.
STALL_LIMIT = DIGIT * TOLERANCE
# Part of the tolerance, on at most MANY contacts, within which a start is the answer. Larger: what is at rest creeps,
# now forth and now back, by the last digits of its impulses. Smaller: Newton steps for rounding.
STILL = 0.02
# On large islands, from a start: the part of the start's violation, the motion that changes in this step,
# that is accepted, and how many times the tolerance at most. Larger: a heap that comes to rest creeps for longer.
# Smaller: heaps in motion stall at contacts that disagree by less than anyone sees.
PART = 1e-3
EASE = 1.0 / PART
# After a stall there, this many times more: with `Auto`, half of what the certificate allows. Without it, heaps walk
# thousands of steps from 5e-9 to 1e-9.
STALL_EASE = MARGIN / (AIM * EASE)

# One run of Newton's method (`step`).

# Stiffness of closed contacts is 1 / ε, ε this times the residual, at first and from a start. Smaller: steps overshoot
# while modes are wrong. Larger: slow convergence.
SOFTNESS = 0.01
WARM_SOFTNESS = SOFTNESS * SOFTNESS
# The same on large islands, from a start while things move. A closed contact loses 1 / (1 + ε) of its
# velocity in a step, so that ε need only be small beside one; but a contact whose mode is wrong is pressed with 1 / ε,
# and one among hundreds shortens the step of all. In falling heaps of 100 bodies this halves the Newton steps.
LARGE_SOFTNESS = 0.3
# Bounds of ε. A smaller least one makes the system singular to rounding.
LARGEST_EPSILON, SMALLEST_EPSILON = DIGIT, 1e-10
# Factor of the softness after a full step that repeats the active set, where the map is smooth.
CUT = 0.05
# Full steps in a row, on islands that are not large, that have not made the residual GAIN of the best; Newton steps of
# the proximal stages after them.
IDLE = 7
STAGED = 3 * RUN
# Change of an impulse that a full step may make: this part of the largest one, or this many times the residual. What is
# longer is made half of that by a larger ε. Larger: impulses that are not unique leap from limit to limit. Smaller:
# many steps until they arrive.
LONGEST, LONGER = 0.4, 5.0
# Part of its cone's radius from which on an impulse of the last step is that of a contact that slides. Larger: rounding
# makes it stick. Smaller: what sticks near the rim slides at first.
ON_RIM = 1.0 - HALF_OF_THE_DIGITS
# Merits that a step is searched against. One would be a monotone search, which stalls at changes of mode.
MERITS = RUN
# Trials of a step, each half as long as the one before, and part of the merit that it must take away.
TRIALS, DECREASE = 9, 1e-4
# Part of the residual that a step must leave behind where a stall would be accepted. Larger: many steps for the last
# digits of contacts that hold each other in more ways than one, whose rates never agree.
GAIN = 0.5
# Residual that is no motion any more, from which on a step may not make the merit worse than this many times. Larger:
# impulses that are not unique, at their limits, throw Newton's method back again and again. Also the largest ε of full
# steps near the solution.
NEAR = 1e-6
LEAP = 1.0 / NEAR
# Least softness: an ε that is rounding where only NEAR is left.
LEAST_SOFTNESS = DIGIT * NEAR
# Full steps that are taken although the search failed: some changes of mode first make things worse.
WATCHDOG = 3
# Merit, over the lowest so far, that counts as progress; without it a run ends after MERITS + WATCHDOG steps, or after
# HURRY where ε had to be raised to NEAR: what is wrong there are modes, which the next cycle's sweeps find sooner.
PROGRESS = 0.8
HURRY = WATCHDOG + 1
SAME = DIGIT * DECREASE  # part of a merit by which one that comes again may differ; such a run ends at once
# Residual beyond which a run has diverged.
DIVERGED = 1e100
# Refinements of a direction at most, and the error of its linear system, over the residual, that is refined.
REFINEMENTS, FELT = 3, DIGIT

# Cycles (`cone_newton`): a round is afresh, sweeps, a walk, a perturbation.

# Sweeps before Newton's method, and their accuracy: they only find modes.
FIRST_SWEEPS, ROUGH = 2, 1e-2
# Sweeps of the first cycle that sweeps again, and at most; four times as many each time.
MORE_SWEEPS = 50
MOST_SWEEPS = 16 * MORE_SWEEPS
# Newton steps that a sweep counts as, where work is bounded: one; of contacts that spin and roll, this many for each.
# The problem of one of these, in five tangents, takes forty times as long as in two. Smaller: failing takes too long.
WIDE_SWEEP = 8.0
# Normal impulse that a perturbation adds at most.
PRESSURE = 0.1
# Impulse of a contact whose start is balanced: a light block between heavy ones bears far more than moves it, and what
# is ROUGH of its load moves it anywhere.
BURDEN = 1.0 / ROUGH
# Solves for what is not symmetric in a Delassus matrix; each gains as many digits as it is symmetric to.
CORRECTIONS = 8

# Times that sliding and turning of one contact are solved in turn where they are bounded apart (`apart`): modes settle.
PART_SWEEPS = 3

# Roots of one contact (`one_contact`): halvings would take 53 steps.
MAX_ROOT_STEPS = 60
# Added to what is divided by; no number that counts is so small.
TINY = 1e-300

# Working set (`working_set`).

# Contacts of the same bodies that are all taken in as soon as they close; of more, the fastest. Nor do more of them
# make an island larger: a face has so many corners.
CROWD = 4
# Times that contacts are taken in after sweeps alone, before Newton's method begins; and after it, at most.
PICKS, MAX_ROUNDS = 8, 40

# Proximal steps (`proximal`).

# Bounds of ε. Where stages of the largest fail, nothing is near by.
LARGEST_STAGE = 1.0 / DIGIT
SMALLEST_STAGE = SMALLEST_EPSILON / DIGIT
# Change of an impulse that a stage is meant to make: a third of an impulse, so that modes change one after the other.
STAGE_LENGTH = 0.3
# ε is at most halved after a stage, multiplied by GROW after one that failed, and by CAREFUL at least after that.
GROW = 4.0
CAREFUL = 1.0 / GROW
# Newton steps of a stage, and the part of the first residual at which it ends. Fewer steps: stages of small ε fail, and
# those of a larger one turn in circles.
STAGE_STEPS, STAGE_PART = STAGED, DIGIT
# Times that friction is loosened in a step, by a half each: what is left of its dependence on loads hinders no step.
LOOSENINGS = HURRY
# Part of a Newton step that is short; a stage ends without an answer after HURRY of them in a row. Smaller: many trials
# for steps that change one mode each.
SHORT = GAIN * DIGIT
# Part of the residual's power along a step that a line search may leave, and of its bracket that it cuts off at least.
# Larger: steps that overshoot one contact spoil the others. Smaller: more trials.
SPENT, LEAST_PART = 0.2, DIGIT
# The same where friction locks, from which on a step is made longer. Smaller: too long steps. Larger: where a solution
# ends, dozens of short steps lead away from it, and the stage fails before the next one.
UNSPENT = 0.3

# Walks in units of the loads (`walk`).

# Contacts that join bodies beyond which an island is large where a step is solved: a walk takes the place of all other
# stages, and what moves is solved softly, not too exactly. Smaller: nothing gained. Larger: heaps of some dozen bodies
# take three times as long, and their walks come too late.
LARGE = 20
# The same where a problem is solved for itself, to all digits; the least Newton steps that a walk has to halve the
# violation in; the contacts of a step beyond which one that fails is hard rather than contradictory.
MANY = int(LARGE / DIGIT)
# Newton steps of a walk for each contact, and for MANY contacts at least; a walk is given up sooner if it has not
# halved the violation in one for each contact. Some turn in circles for ever, at 1e-4 to 1e-8. Larger: a step that
# fails is dearer. Smaller: steps fail that a longer walk solves.
WALK_STEPS = 3
# Impulse at which a walk is given up: half of the digits of a velocity are lost there. Where nothing yields, there is
# no solution, and impulses double with every stage.
LARGEST_LOAD = 1.0 / HALF_OF_THE_DIGITS
# ε shrinks at most by this factor after a stage that failed; the factor itself by RELAX with each stage. Without such
# care the next stage fails again.
WALK_CARE = 0.7
RELAX = 1.0 - DIGIT
# Violation, over that of the last attempt, at which Newton's method is tried, and its steps.
WALK_DROP, WALK_NEWTON = DIGIT, IDLE

# Contacts that lift as they slide (`lifting`).

# Speed along tangents up to which a contact lifts as it slides, where a walk has been lost, over the largest of its
# island without impulses: a part that counts as no motion. Larger: more and faster lifts. Smaller: walks turn in
# circles.
SLOW = PART
# Speed at which it may lift in the end, over the same. Smaller: walks that begin again without it.
FASTEST_LIFT = SLOW / DIGIT

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

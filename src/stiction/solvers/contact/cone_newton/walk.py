"""A walk of proximal stages in units of the loads, where Newton's method stalls, on large islands above all.

In a heap that is wedged, impulses are hundreds of times those that would stop a contact alone, and more rows stick than
there are velocities. From small impulses the residual then stays at a hundredth for long, while impulses grow along
directions that change no velocity, until contacts slide or open one after the other. Newton's method, which searches by
the residual, sees no progress there. Stages of the method of multipliers (`proximal`) make it: a contact that
approaches at u changes its impulse by -u / ε. What limits them is that one ε serves contacts of all loads: as long as
the least loaded one may not change by more than about one, the most loaded ones crawl.

So before each stage contacts are stretched by the square roots of their loads (`balance`), after which a stage may
double every impulse, large or small:

    stretch contacts by max(|p_i|, 1)^½
    solve a stage about p with ε;  if it has no solution near by: ε = 4 ε, and shrink ε with care for some stages
    otherwise go on from its solution;  ε = ε · clip(largest change, care, ½)
    whenever the violation has fallen to a tenth: Newton's method from the best impulses, a few steps
    if the violation has not halved for long: give up

There is no guarantee: some walks turn in circles, where one from elsewhere arrives (`cone_newton`). Of the random heaps
of `contact_families` with 100 bodies, this solves those on which all other stages of a cycle stop at violations of 1e-3
to 1e-5.
"""

from __future__ import annotations

from math import sqrt

from stiction.arrays.compiled import kernel, once
from stiction.arrays.vectors import at, largest, over, put, times
from stiction.solvers.contact.cone_newton.lifting import forbid_fast, forget_lifts, may_lift, pause_lifts, resume_lifts
from stiction.solvers.contact.cone_newton.one_contact import evaluate, into_cone, off_the_law
from stiction.solvers.contact.cone_newton.proximal import copy_rows, distance, stage
from stiction.solvers.contact.cone_newton.step import newton
from stiction.solvers.contact.cone_newton.tolerances import (
    DIVERGED,
    GAIN,
    GROW,
    LARGEST_LOAD,
    LARGEST_STAGE,
    MANY,
    MARGIN,
    RELAX,
    SMALLEST_STAGE,
    SOFTNESS,
    STAGE_PART,
    STAGE_ROUNDING,
    WALK_CARE,
    WALK_DROP,
    WALK_NEWTON,
)


@once
@kernel
def walk(contacts, search, system, weight, violation, tolerance, enough, limits, lifting, p):
    """Walk from search.now; p, of this violation, keeps the best impulses, without stretches.

    Returns (violation, Newton steps); search.now is where the walk ended.
    enough: residual at which Newton's method aims, whatever is accepted: its last steps gain the most
    limits: Newton steps in all, and of those in which the violation has to be halved
    lifting: whether any contact lifts, which only stages know to do
    """
    now, centre, (max_steps, patience) = search.now, search.direction, limits
    into_cone(now.p, contacts)
    evaluate(contacts, now)
    violation, reached = keep_better(contacts, now, weight, violation, p)
    # Where contacts may lift, a stage that fails soon is better: the walk in which they do arrives.
    farther = not may_lift(contacts)
    steps, epsilon, care, tried, since = 0, 1.0, 0.0, violation, 0
    while steps < max_steps and steps - since <= patience and not violation <= tolerance:
        # One stage, in units of the loads at its centre.
        rebalance(contacts, now.p, search.trial.p)
        residual, _ = evaluate(contacts, now)
        copy_rows(now.p, centre)
        solved, count = stage(
            contacts, now, search.trial, centre, search.spare, system, epsilon,
            max(STAGE_PART * residual, STAGE_ROUNDING), farther,
        )  # fmt: skip
        steps += count + 1

        # No solution near by: back to the centre, with a larger ε that then shrinks with care.
        if not solved:
            copy_rows(centre, now.p)
            epsilon, care = min(LARGEST_STAGE, GROW * epsilon), WALK_CARE
            continue

        # Its solution is the next centre; ε is chosen for changes of about the loads themselves.
        epsilon = max(SMALLEST_STAGE, epsilon * max(care, min(0.5, distance(now.p, centre))))
        care *= RELAX
        evaluate(contacts, now)

        # Where there is no solution, impulses would double for ever.
        if not heaviest(contacts, now.p) <= LARGEST_LOAD:
            break
        violation, seen = keep_better(contacts, now, weight, violation, p)
        if seen <= GAIN * reached:
            reached, since = seen, steps

        # Far better than at the last attempt: Newton's method may be able to finish.
        if violation <= WALK_DROP * tried and not lifting:
            tried = violation
            violation, count = finish(contacts, search, system, weight, violation, tolerance, enough, p)
            steps += count
    return violation, steps


@once
@kernel
def walk_by_lifts(contacts, search, system, spare, weight, tolerance, enough, limits, p):
    """As `walk`, by way of an answer in which contacts lift (`lifting`); returns as `walk`. Such an answer is left.

    Mostly that is near an answer in which none does: a second walk from it seldom takes long. Otherwise the first one
    is the answer, and contacts lift in it.
    """
    violation, steps = walk_lifting(contacts, search, system, weight, tolerance, enough, limits, p)
    if not violation <= tolerance:
        return violation, steps

    # From there without lifts.
    copy_rows(p, spare)
    pause_lifts(contacts)
    strict, count = finish(contacts, search, system, weight, DIVERGED, tolerance, enough, p)
    steps += count
    strict, count = walk(contacts, search, system, weight, strict, tolerance, enough, (MANY, MANY), False, p)
    steps += count
    if strict <= tolerance:
        forget_lifts(contacts)
        return strict, steps

    # Back to what lifts.
    resume_lifts(contacts)
    copy_rows(spare, p)
    return violation, steps


@kernel
def walk_lifting(contacts, search, system, weight, tolerance, enough, limits, p):
    """As `walk`, where contacts lift; again from where it ended without those that would lift fast."""
    total = 0
    while True:
        violation, steps = walk(contacts, search, system, weight, DIVERGED, tolerance, enough, limits, True, p)
        total += steps
        if not violation <= tolerance or not forbid_fast(contacts, search.now, weight):
            return violation, total


@kernel
def finish(contacts, search, system, weight, violation, tolerance, enough, p):
    """A few steps of Newton's method from p, of this violation. Returns (violation, Newton steps)."""
    now = search.now
    for i in range(len(p)):
        put(now.p, i, over(at(p, i, contacts.zero), contacts.stretch[i]))
    copy_rows(now.p, search.best)
    aim = MARGIN * enough
    _, steps = newton(contacts, search, system, DIVERGED, aim, aim, SOFTNESS, WALK_NEWTON, False)
    copy_rows(search.best, now.p)
    into_cone(now.p, contacts)
    evaluate(contacts, now)
    violation, _ = keep_better(contacts, now, weight, violation, p)
    return violation, steps


@kernel
def heaviest(contacts, p):
    """The largest impulse, without stretches; NaN is passed on."""
    most = 0.0
    for i in range(len(p)):
        load = contacts.stretch[i] * largest(at(p, i, contacts.zero))
        if not load <= most:
            most = load
    return most


@kernel
def rebalance(contacts, p, loads):
    """Stretch contacts anew by the impulses p, which keep their values without stretches; loads: scratch."""
    for i in range(len(p)):
        put(loads, i, times(contacts.stretch[i], at(p, i, contacts.zero)))
    balance(contacts, loads)
    for i in range(len(p)):
        put(p, i, over(at(loads, i, contacts.zero), contacts.stretch[i]))


@kernel
def balance(contacts, p):
    """Stretch contacts by the square root of their load, so that impulses and velocities are of similar size.

    A light block between heavy ones moves easily by itself, but carries their load: in units of its own response, its
    velocity is negligible beside its impulse in p - u, and would hardly ever decide its mode.
    """
    for i in range(len(p)):
        # Rows and velocities grow by the factor, D_i by its square.
        stretch = sqrt(max(largest(at(p, i, contacts.zero)), 1.0))
        factor = stretch / contacts.stretch[i]
        contacts.stretch[i] = stretch
        for a in range(contacts.rows.shape[1]):
            contacts.offset[i, a] *= factor
            for b in range(contacts.rows.shape[1]):
                contacts.delassus[i, a, b] *= factor * factor
            for k in range(contacts.rows.shape[2]):
                contacts.rows[i, a, k] *= factor


@once
@kernel
def keep_better(contacts, point, weight, violation, p):
    """Keep the point's impulses in p, without stretches, if they violate the law less.

    Returns the lesser violation, and that of the point.
    """
    # Violation without stretches, in the judge's units; NaN becomes the largest.
    most, zero = 0.0, contacts.zero
    for i in range(len(p)):
        c = contacts.stretch[i]
        p_i, u_i = times(c, at(point.p, i, zero)), over(at(point.u, i, zero), c)
        worst, _ = off_the_law(contacts, i, p_i, u_i)
        worst *= weight[i]
        if not worst <= most:
            most = worst

    # Keep the impulses if they are better.
    if not most < violation:
        return violation, most
    for i in range(len(p)):
        put(p, i, times(contacts.stretch[i], at(point.p, i, zero)))
    return most, most

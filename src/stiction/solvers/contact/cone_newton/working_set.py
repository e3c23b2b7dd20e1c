"""Newton's method on a working set of contacts, where many contacts join the same two bodies.

Two bodies have six relative motions, so that few of many contacts between them need to carry impulses. The others are
left out until they close: in each run of contacts of the same bodies, the one that closes fastest is added, until none
closes. The result is a solution for all contacts, since an open contact without impulse obeys the law. If Newton's
method fails on the working set, only its time is lost.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel, once, sums
from stiction.arrays.vectors import at, put, total_size
from stiction.solvers.contact.cone_newton.lifting import NEVER
from stiction.solvers.contact.cone_newton.one_contact import (
    Contacts,
    Point,
    evaluate,
    into_cone,
    set_one_delassus,
    set_velocity,
    sweep,
)
from stiction.solvers.contact.cone_newton.proximal import copy_rows
from stiction.solvers.contact.cone_newton.step import Search, newton
from stiction.solvers.contact.cone_newton.system import OPEN, System
from stiction.solvers.contact.cone_newton.tolerances import (
    CROWD,
    DIVERGED,
    MARGIN,
    MAX_ROUNDS,
    NEAR,
    PICKS,
    ROUGH,
    SOFTNESS,
    WARM_SOFTNESS,
)


@kernel
def group(segments, groups):
    """Set `groups`: the first contact of each run that joins the same bodies, and n after the last.

    Returns how many runs there are, and how many contacts in those that are longer than CROWD.
    """
    # A run begins where the bodies differ from those of the contact before.
    n, count, crowded = len(segments), 0, 0
    for i in range(n):
        if (
            i == 0
            or segments[i, 0] != segments[i - 1, 0]
            or segments[i, 1] != segments[i - 1, 1]
            or segments[i, 2] != segments[i - 1, 2]
            or segments[i, 3] != segments[i - 1, 3]
        ):
            groups[count] = i
            count += 1

    # Contacts in long runs.
    groups[count] = n
    for g in range(count):
        length = groups[g + 1] - groups[g]
        crowded += length if length > CROWD else 0
    return count, crowded


@once
@kernel
def solve_by_working_set(whole, groups, count, warm, enough, fair, max_steps, contacts, search, system, sets, p):
    """Solve by a working set. Returns (whether p is a solution, Newton steps, residual).

    whole: all contacts; groups, count: their runs; contacts, search, system: workspace for as many
    warm: whether p holds impulses to begin with
    enough, fair: residual to aim at, and to accept where Newton's method stalls
    sets: chosen, taken: (n,) contact at each place of the working set; whether a contact is in it
    """
    chosen, taken = sets

    # Begin with the contacts that carry impulses in p.
    k = begin_working_set(whole, p, contacts, search.now.p, system.mode, chosen, taken)
    set_velocity(first_contacts(contacts, k), first_points(search, k).now)
    steps, softness = 0, WARM_SOFTNESS if warm else SOFTNESS

    # Without a start, add contacts that close, a sweep after each addition, before any Newton step.
    if warm:
        sweep(first_contacts(contacts, k), first_points(search, k).now, ROUGH)
    for _ in range(0 if warm else PICKS):
        before = k
        k = take_in(whole, groups, count, enough, k, contacts, search.now, system.mode, chosen, taken)
        if k == before:
            break
        sweep(first_contacts(contacts, k), first_points(search, k).now, ROUGH)

    # Solve for the working set; add contacts that close under its impulses, until none does.
    for _ in range(MAX_ROUNDS):
        some, first = first_contacts(contacts, k), first_points(search, k)
        least, _ = evaluate(some, first.now)
        copy_rows(first.now.p, first.best)
        accepted = fair if least > NEAR else enough
        laws, aim = first_laws(system, k), MARGIN * enough
        least, more = newton(some, first, laws, least, aim, fair, softness, max_steps, False)
        steps += more
        copy_rows(first.best, first.now.p)
        into_cone(first.now.p, some)
        least, _ = evaluate(some, first.now)
        if not least <= accepted:
            return False, steps, least

        # Whoever closes is taken in; if nobody does, it is the answer for all.
        before = k
        k = take_in(whole, groups, count, enough, k, contacts, search.now, system.mode, chosen, taken)
        if k == before:
            spread(first.now.p, chosen, contacts.zero, p)
            return True, steps, max(least, enough)
        sweep(first_contacts(contacts, k), first_points(search, k).now, ROUGH)
    return False, steps, DIVERGED


@kernel
def begin_working_set(whole, start, contacts, p, mode, chosen, taken):
    """Begin the working set with the contacts that have impulses in `start`; returns its size."""
    k = 0
    for i in range(len(taken)):
        taken[i] = 0
        impulse = at(start, i, contacts.zero)
        if total_size(impulse) != 0.0:
            k = take(whole, i, k, contacts, p, mode, chosen, taken)
            put(p, k - 1, impulse)
    return k


@kernel
def take_in(whole, groups, count, enough, k, contacts, point, mode, chosen, taken):
    """Add contacts that close at velocity x: all of a short run, the fastest of a long one. Returns the new size."""
    for g in range(count):
        begin, end = groups[g], groups[g + 1]
        fastest, which = enough, -1
        for i in range(begin, end):
            if taken[i] != 0:
                continue
            # Closing speed; the residual of an open contact is at most this times max(1, mu).
            speed = -(whole.offset[i, 0] + normal_velocity(whole.rows[i, 0], whole.segments[i], point.x))
            speed *= max(1.0, whole.friction[i])
            if not speed > fastest:
                continue
            # Short runs at once; of a long run remember the fastest.
            if end - begin <= CROWD:
                k = take(whole, i, k, contacts, point.p, mode, chosen, taken)
            else:
                fastest, which = speed, i
        if which >= 0:
            k = take(whole, which, k, contacts, point.p, mode, chosen, taken)
    return k


@sums
def normal_velocity(row, segment, x):
    """A row times x, over its two runs of velocities."""
    start, length = segment[0], segment[1]
    total = 0.0
    for j in range(length):
        total += row[j] * x[start + j]
    other = segment[2] - length
    for j in range(length, length + segment[3]):
        total += row[j] * x[other + j]
    return total


@kernel
def take(whole, i, k, contacts, p, mode, chosen, taken):
    """Copy contact i to place k of the working set, open and without impulse; returns k + 1."""
    # Copy its data, without stretch.
    for a in range(whole.rows.shape[1]):
        for j in range(whole.segments[i, 1] + whole.segments[i, 3]):
            contacts.rows[k, a, j] = whole.rows[i, a, j]
        contacts.offset[k, a] = whole.offset[i, a]
        p[k, a] = 0.0
    for a in range(4):
        contacts.segments[k, a] = whole.segments[i, a]
    contacts.friction[k] = whole.friction[i]
    contacts.stretch[k], contacts.share[k], contacts.lifts[k] = 1.0, whole.share[i], NEVER

    # Derived data, and its place in the working set.
    set_one_delassus(contacts, k)
    mode[k], chosen[k], taken[i] = OPEN, i, 1
    return k + 1


@kernel
def spread(some, chosen, zero, p):
    """Impulses of all contacts from those of the working set; zero for the others."""
    for i in range(len(p)):
        put(p, i, zero)
    for k in range(len(some)):
        put(p, chosen[k], at(some, k, zero))


@kernel
def first_contacts(contacts, k):
    """The first k contacts, as views."""
    return Contacts(
        contacts.zero, contacts.apart, contacts.rows[:k], contacts.segments[:k], contacts.offset[:k],
        contacts.friction[:k], contacts.delassus[:k], contacts.stretch[:k], contacts.share[:k],
        contacts.lifts[:k], contacts.alone,
    )  # fmt: skip


@kernel
def first_points(search, k):
    """The search state of the first k contacts, as views."""
    now, trial = search.now, search.trial
    return Search(
        Point(now.p[:k], now.x, now.u[:k]), Point(trial.p[:k], trial.x, trial.u[:k]),
        search.best[:k], search.direction[:k], search.merits, search.spare,
    )  # fmt: skip


@kernel
def first_laws(system, k):
    """The linearised laws of the first k contacts, as views."""
    return System(system.constant[:k], system.slope[:k], system.mode[:k], system.right, system.blocks, system.elements)

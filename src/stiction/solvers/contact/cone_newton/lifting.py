"""Contacts that lift as they slide: a law of friction for what creeps in large heaps, by which lost walks arrive.

In a heap that is wedged, hundreds of contacts slide at less than a thousandth of the speed of what moves. Coulomb's
friction is hard there since it belongs to no function that is least at the answer: a walk may turn in circles. That of
a contact that lifts does [Anitescu2006],

    p = proj(p - u, friction cone):      it sticks at u = 0, or slides with u_n = mu |u_t|, or is open,

and with it walks arrive, near an answer of Coulomb's law that another walk from there mostly finds
(`walk.walk_by_lifts`). Where it does not, what lifts is the answer. It obeys Coulomb's law to the last digit, in a
problem in which the gaps of sliding contacts open by mu |u_t|. This is the problem that is handed on and judged
(`Given.lift`).

Only contacts lift that hardly slide where a walk was lost (`allow_lifts`), and no longer if they would lift fast
(`forbid_fast`). What is left opens gaps by micrometres in a step, which may close in the next.
"""

from __future__ import annotations

from math import sqrt

from stiction.arrays.compiled import kernel
from stiction.arrays.vectors import across, at, over, put, times, with_normal
from stiction.solvers.contact.cone_newton.slope import set_lift, set_stick
from stiction.solvers.contact.cone_newton.system import LIFT, OPEN, STICK
from stiction.solvers.contact.cone_newton.tolerances import FASTEST_LIFT, SLOW

NEVER, MAY, DOES, PAUSES = range(4)  # whether a contact lifts as it slides; PAUSES: not now


@kernel
def may_lift(contacts):
    """Whether any contact may lift."""
    for i in range(len(contacts.lifts)):
        if contacts.lifts[i] != NEVER:
            return True
    return False


@kernel
def any_lifts(contacts):
    """Whether any contact lifts as it slides."""
    for i in range(len(contacts.lifts)):
        if contacts.lifts[i] == DOES:
            return True
    return False


@kernel
def pause_lifts(contacts):
    """Let no contact lift for now."""
    change_lifts(contacts, DOES, PAUSES)


@kernel
def resume_lifts(contacts):
    """Let contacts lift again that pause."""
    change_lifts(contacts, PAUSES, DOES)


@kernel
def forget_lifts(contacts):
    """Let no contact lift that pauses, until `allow_lifts`."""
    change_lifts(contacts, PAUSES, MAY)


@kernel
def change_lifts(contacts, old, new):
    for i in range(len(contacts.lifts)):
        if contacts.lifts[i] == old:
            contacts.lifts[i] = new


@kernel
def allow_lifts(contacts, point, weight):
    """Let contacts lift that slide slowly at this point, if they may; returns whether any does."""
    some = False
    for i in range(len(weight)):
        if contacts.lifts[i] != NEVER:
            slow = weight[i] * slide_of(contacts, point, i) <= SLOW * contacts.stretch[i]
            contacts.lifts[i] = DOES if slow else MAY
            some = some or slow
    return some


@kernel
def forbid_fast(contacts, point, weight):
    """Let contacts that lift fast at this point never do so again; returns whether there are any."""
    some = False
    for i in range(len(weight)):
        if weight[i] * lift_of(contacts, point, i) > FASTEST_LIFT * contacts.stretch[i]:
            contacts.lifts[i], some = NEVER, True
    return some


@kernel
def lift_of(contacts, point, i):
    """The velocity at which contact i lifts, stretched as the contact is; 0 if it does not."""
    if contacts.lifts[i] != DOES or point.p[i, 0] <= 0.0:
        return 0.0
    return contacts.friction[i] * slide_of(contacts, point, i)


@kernel
def slide_of(contacts, point, i):
    """The velocity at which contact i slides, stretched as the contact is."""
    u = at(point.u, i, contacts.zero)
    return sqrt(across(u, u))


@kernel
def lowered(u, mu):
    """The velocity of a contact that lifts, over its gap: this obeys Coulomb's law."""
    return with_normal(u[0] - mu * sqrt(across(u, u)), u)


@kernel
def onto_friction_cone(y, mu):
    """The nearest point of the cone |p_t| <= mu p_n."""
    length = sqrt(across(y, y))
    if length <= mu * y[0]:
        return y
    normal = (y[0] + mu * length) / (1.0 + mu * mu)
    if normal <= 0.0:
        return times(0.0, y)
    return with_normal(normal, times(mu * normal / length, y))


@kernel
def respond_lifting(y, mu, stiffness, slope, i, p, zero):
    """Set p, nearest to y, and the slope of a contact that lifts, by its regularised law; returns its mode."""
    length, q = sqrt(across(y, y)), onto_friction_cone(y, mu)
    put(p, i, q)
    if q[0] <= 0.0:
        return OPEN
    if length <= mu * y[0]:
        set_stick(slope, i, stiffness, zero)
        return STICK
    set_lift(slope, i, stiffness / (1.0 + mu * mu), mu, over(y, length), stiffness * mu * q[0] / length)
    return LIFT

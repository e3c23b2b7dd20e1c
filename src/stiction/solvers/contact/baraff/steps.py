"""How far Baraff's method can go before a contact must change its index sets: `maxstep` of [Baraff1994, sec. 4.3, 5.5].

Closed contacts watch p_n >= 0, open ones u_n >= 0, held ones |p_t| <= mu p_n (a quadratic equation in space
[Baraff1994, eq. 23]), sliding ones d·u_t <= 0. Of several that stop at the same step the fastest is taken.
"""

from __future__ import annotations

import math

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.solvers.contact.baraff.sets import CLOSED, HALF, OPEN, SLIDING, STUCK
from stiction.solvers.contact.baraff.tolerances import DEPENDENT, MOVING, ON_CONE, SLOW

ARRIVES, OPENS, CLOSES, SLIPS, STICKS, NOTHING = range(6)
PRESS, RUB, UNLOAD, TURN = range(4)  # what is driven


@kernel
def arrival(t, driven, drive):
    """The step at which the driven contact has what it is driven for, and the rate at which it gets there."""
    if drive == TURN:
        return 1.0, 1.0
    if drive == UNLOAD:
        gap = t.p[driven, 1] * t.pushed[driven, 1] + t.p[driven, 2] * t.pushed[driven, 2]
        return -gap - t.p[driven, 0] * t.pushed[driven, 0], 1.0
    if drive == PRESS:
        sense = t.pushed[driven, 0]
        gap, rate = -sense * t.u[driven, 0], sense * t.u_rate[driven, 0]
        if sense < 0.0:
            return min(t.p[driven, 0], max(gap, 0.0) / rate if rate > DEPENDENT else np.inf), 1.0
    else:
        e1, e2 = t.pushed[driven, 1], t.pushed[driven, 2]
        gap = -e1 * t.u[driven, 1] - e2 * t.u[driven, 2]
        rate = e1 * t.u_rate[driven, 1] + e2 * t.u_rate[driven, 2]
    return max(gap, 0.0) / rate if rate > DEPENDENT else np.inf, rate


@kernel
def first_event(t, fastest, driven, drive):
    """What stops the motion first: (event, contact, step)."""
    slow, tie = SLOW * max(fastest, 1.0), 1e-15 * t.level[1] / max(fastest, 1.0)
    event, which = ARRIVES, driven
    step, speed = arrival(t, driven, drive)
    if step == np.inf:
        event, which, speed = NOTHING, -1, 0.0
    else:
        step, speed = step - tie, np.inf  # arriving ends everything else
    for i in range(len(t.mu)):
        if t.normal[i] == CLOSED:
            rate = -t.p_rate[i, 0]
            if rate > slow:
                here = max(t.p[i, 0], 0.0) / rate
                if here < step - tie or (here <= step + tie and rate > speed):
                    event, which, step, speed = OPENS, i, here, rate
            if t.grip[i] == SLIDING and drive != TURN:
                d1, d2 = t.direction[i, 0], t.direction[i, 1]
                rate = d1 * t.u_rate[i, 1] + d2 * t.u_rate[i, 2]
                if rate > slow:
                    here = max(-d1 * t.u[i, 1] - d2 * t.u[i, 2], 0.0) / rate
                    if here < step - tie or (here <= step + tie and rate > speed):
                        event, which, step, speed = STICKS, i, here, rate
            elif t.grip[i] == HALF or t.grip[i] == STUCK or (i == driven and drive == RUB):
                here = to_cone(t.mu[i], t.p[i], t.p_rate[i], slow)
                if here < step - tie:
                    event, which, step, speed = SLIPS, i, here, 0.0
        elif t.normal[i] == OPEN:
            rate = -t.u_rate[i, 0]
            if rate > slow:
                here = max(t.u[i, 0], 0.0) / rate
                if here < step - tie or (here <= step + tie and rate > speed):
                    event, which, step, speed = CLOSES, i, here, rate
    return event, which, max(step, 0.0)


@kernel
def to_cone(mu, p, rate, slow):
    """The least s >= 0 from which on |p_t + s p_t'| > mu (p_n + s p_n'); infinity if there is none.

    g(s) = mu² (p_n + s p_n')² - |p_t + s p_t'|² = a s² + 2 b s + c
    """
    a = mu * mu * rate[0] * rate[0] - rate[1] * rate[1] - rate[2] * rate[2]
    b = mu * mu * p[0] * rate[0] - p[1] * rate[1] - p[2] * rate[2]
    radius = mu * max(p[0], 0.0)
    c = radius * radius - p[1] * p[1] - p[2] * p[2]
    moves = max(mu * abs(rate[0]), abs(rate[1]), abs(rate[2]))
    if moves <= slow:
        return np.inf
    if c <= ON_CONE * radius * radius:
        if b < -SLOW * radius * moves:
            return 0.0
        if a < -SLOW * moves * moves:
            return max(-2.0 * b / a, 0.0)
        return np.inf
    square = b * b - a * c
    if square < 0.0:
        return np.inf
    below = math.sqrt(square) - b
    return c / below if below > 0.0 else np.inf


@kernel
def moving_row(t, fastest):
    """The fastest row that should be held but moves, for the members do not hold it: (contact, part), or (-1, 0)."""
    most, which, part = MOVING * max(fastest, 1.0), -1, 0
    for i in range(len(t.mu)):
        if t.normal[i] == CLOSED:
            if t.place[i, 0] == -1 and abs(t.u_rate[i, 0]) > most:
                most, which, part = abs(t.u_rate[i, 0]), i, 0
            if t.grip[i] == HALF or t.grip[i] == STUCK:
                e1, e2 = t.direction[i, 0], t.direction[i, 1]
                along = abs(e1 * t.u_rate[i, 1] + e2 * t.u_rate[i, 2])
                if t.place[i, 1] == -1 and along > most:
                    most, which, part = along, i, 1
                across = abs(e1 * t.u_rate[i, 2] - e2 * t.u_rate[i, 1])
                if t.grip[i] == STUCK and t.place[i, 2] == -1 and across > most:
                    most, which, part = across, i, 2
    return which, part

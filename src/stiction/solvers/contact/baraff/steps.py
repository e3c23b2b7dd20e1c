"""How far Baraff's method can go before a contact must change its index sets: `maxstep` of [Baraff1994, sec. 4.3, 5.5].

The step is limited by p_n >= 0 at closed contacts, u_n >= 0 at open ones, |p_t| <= mu p_n at held ones (a quadratic
equation in space [Baraff1994, eq. 23]) and d·u_t <= 0 at sliding ones. If several limit it equally, the one with the
largest rate is taken.
"""

from __future__ import annotations

import math

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.solvers.contact.baraff.sets import CLOSED, HALF, OPEN, SLIDING, STUCK
from stiction.solvers.contact.baraff.tolerances import DEPENDENT, MOVING, NOISE, ON_CONE, SLOW

ARRIVES, OPENS, CLOSES, SLIPS, STICKS, NOTHING = range(6)
PRESS, RUB, UNLOAD, TURN = range(4)  # kinds of drive


@kernel
def arrival(t, driven, drive):
    """(step at which the driven contact reaches its condition, rate of approach); infinite step if it never does."""
    # A turn arrives after the whole angle; unloading, at zero impulse (`pushed` is a unit vector).
    if drive == TURN:
        return 1.0, 1.0
    if drive == UNLOAD:
        gap = t.p[driven, 1] * t.pushed[driven, 1] + t.p[driven, 2] * t.pushed[driven, 2]
        return -gap - t.p[driven, 0] * t.pushed[driven, 0], 1.0
    if drive == PRESS:
        # Normal: until u_n = 0 [Baraff1994, eq. 12], or until p_n = 0 where it decreases.
        sense = t.pushed[driven, 0]
        gap, rate = -sense * t.u[driven, 0], sense * t.u_rate[driven, 0]
        if sense < 0.0:
            return min(t.p[driven, 0], max(gap, 0.0) / rate if rate > DEPENDENT else np.inf), 1.0
    else:
        # Friction: until the sliding along the driven direction stops.
        e1, e2 = t.pushed[driven, 1], t.pushed[driven, 2]
        gap = -e1 * t.u[driven, 1] - e2 * t.u[driven, 2]
        rate = e1 * t.u_rate[driven, 1] + e2 * t.u_rate[driven, 2]
    return max(gap, 0.0) / rate if rate > DEPENDENT else np.inf, rate


@kernel
def first_event(t, fastest, driven, drive):
    """maxstep [Baraff1994, sec. 4.3, 5.5]: the first event on the way, as (event, contact, step)."""
    slow, tie = SLOW * max(fastest, 1.0), NOISE * t.level[1] / max(fastest, 1.0)

    # The driven contact itself; it wins ties, since arriving ends the drive.
    event, which = ARRIVES, driven
    step, speed = arrival(t, driven, drive)
    if step == np.inf:
        event, which, speed = NOTHING, -1, 0.0
    else:
        step, speed = step - tie, np.inf
    for i in range(len(t.mu)):
        if t.normal[i] == CLOSED:
            # Closed: p_n falls to zero [Baraff1994, eq. 10].
            rate = -t.p_rate[i, 0]
            if rate > slow:
                here = max(t.p[i, 0], 0.0) / rate
                if here < step - tie or (here <= step + tie and rate > speed):
                    event, which, step, speed = OPENS, i, here, rate
            if t.grip[i] == SLIDING and drive != TURN:
                # Sliding: u_t along d comes to rest (a turn changes d itself, so it is not checked).
                d1, d2 = t.direction[i, 0], t.direction[i, 1]
                rate = d1 * t.u_rate[i, 1] + d2 * t.u_rate[i, 2]
                if rate > slow:
                    here = max(-d1 * t.u[i, 1] - d2 * t.u[i, 2], 0.0) / rate
                    if here < step - tie or (here <= step + tie and rate > speed):
                        event, which, step, speed = STICKS, i, here, rate
            elif t.grip[i] == HALF or t.grip[i] == STUCK or (i == driven and drive == RUB):
                # Held, or friction being driven: the impulse reaches the cone [Baraff1994, eq. 23].
                here = to_cone(t.mu[i], t.p[i], t.p_rate[i], slow)
                if here < step - tie:
                    event, which, step, speed = SLIPS, i, here, 0.0
        elif t.normal[i] == OPEN:
            # Open: u_n falls to zero [Baraff1994, eq. 11].
            rate = -t.u_rate[i, 0]
            if rate > slow:
                here = max(t.u[i, 0], 0.0) / rate
                if here < step - tie or (here <= step + tie and rate > speed):
                    event, which, step, speed = CLOSES, i, here, rate
    return event, which, max(step, 0.0)


@kernel
def to_cone(mu, p, rate, slow):
    """The least s >= 0 beyond which |p_t + s p_t'| > mu (p_n + s p_n'), infinity if there is none [Baraff1994, eq. 23].

    g(s) = mu² (p_n + s p_n')² - |p_t + s p_t'|² = a s² + 2 b s + c
    """
    a = mu * mu * rate[0] * rate[0] - rate[1] * rate[1] - rate[2] * rate[2]
    b = mu * mu * p[0] * rate[0] - p[1] * rate[1] - p[2] * rate[2]
    radius = mu * max(p[0], 0.0)
    c = radius * radius - p[1] * p[1] - p[2] * p[2]

    # An impulse at rest stays inside.
    moves = max(mu * abs(rate[0]), abs(rate[1]), abs(rate[2]))
    if moves <= slow:
        return np.inf

    # On the cone already: it leaves at once, or enters and leaves at the other root, or never.
    if c <= ON_CONE * radius * radius:
        if b < -SLOW * radius * moves:
            return 0.0
        if a < -SLOW * moves * moves:
            return max(-2.0 * b / a, 0.0)
        return np.inf

    # Inside: the smallest positive root, as c / (√(b² - a c) - b), which does not divide by a.
    square = b * b - a * c
    if square < 0.0:
        return np.inf
    below = math.sqrt(square) - b
    return c / below if below > 0.0 else np.inf


@kernel
def moving_row(t, fastest):
    """The fastest row that should be held but moves, because it is not a member: (contact, part), or (-1, 0)."""
    most, which, part = MOVING * max(fastest, 1.0), -1, 0
    for i in range(len(t.mu)):
        if t.normal[i] == CLOSED:
            # Closed: u_n.
            if t.place[i, 0] == -1 and abs(t.u_rate[i, 0]) > most:
                most, which, part = abs(t.u_rate[i, 0]), i, 0
            if t.grip[i] == HALF or t.grip[i] == STUCK:
                # Held: u_t along e, and across e where it is stuck.
                e1, e2 = t.direction[i, 0], t.direction[i, 1]
                along = abs(e1 * t.u_rate[i, 1] + e2 * t.u_rate[i, 2])
                if t.place[i, 1] == -1 and along > most:
                    most, which, part = along, i, 1
                across = abs(e1 * t.u_rate[i, 2] - e2 * t.u_rate[i, 1])
                if t.grip[i] == STUCK and t.place[i, 2] == -1 and across > most:
                    most, which, part = across, i, 2
    return which, part

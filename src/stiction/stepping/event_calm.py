"""Bounces and slides that would end before anything has moved by `touch` are ended at once.

A contact that opens at speed u while it is pressed together with the acceleration a is back after 2u/a, at u²/2a most
from where it was; a sliding that friction slows down with a ends after u²/2a. Where bodies lean on each other every
impact makes many of these, each of which would be an event. If u²/2a <= touch they are left out:

    min |dv|_M   with   N (v + dv) = 0  where contacts bear or come back,  T (v + dv) = 0  where they stick or stop

This is a projection in the metric of the mass, so it can only remove energy, and only of motions shorter than `touch`.
A contact that opened before and would now be pressed together is held as well: an impact there would open the others
again, which would have to be calmed again, and so on without end. For the same reason nothing is calmed where all these
contacts cannot be held at once, as a least-squares compromise would press some of them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.contacts.gather import DRY
from stiction.stepping.event_drift import back_at_rest
from stiction.stepping.event_moment import find_brief
from stiction.stepping.event_rows import speeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.stepping.event_forces import Forces
    from stiction.stepping.event_moment import Moment


def calmed(moment: Moment, forces: Forces, touch: float, slow: float) -> NDArray[np.float64] | None:
    """(m,) velocities without the bounces and slides that end within `touch`; None if there are none."""
    found = moment.found
    closed, stuck = np.empty((2, found.n), bool)
    if not find_brief(moment, forces.acceleration, touch, slow, closed, stuck):
        return None
    while True:
        velocity = back_at_rest(found, moment.mass, moment.v, closed, stuck, 0.0)
        if velocity is None:
            return None
        u = speeds(found, velocity)[:, 0]
        pressed = (u < -slow) & (found.gap <= touch) & (found.kind != DRY)
        if not pressed.any():
            return velocity
        if (pressed & closed).any():
            return None
        closed |= pressed

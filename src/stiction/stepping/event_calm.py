"""Bounces and slides that are over before anything has moved by `touch`: they are taken as over at once.

A contact that opens at speed u while it is pressed together with the acceleration a is back after 2u/a, at u²/2a most
from where it was; a sliding that friction slows down with a ends after u²/2a. Where bodies lean on each other every
impact makes many of these, each of which would be an event. If u²/2a <= touch they are left out:

    min |dv|_M   with   N (v + dv) = 0  where contacts bear or come back,  T (v + dv) = 0  where they stick or stop

This is a projection in the metric of the mass, so it only takes energy, half of what moves by less than `touch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.contacts.gather import DRY
from stiction.stepping.event_drift import back_at_rest
from stiction.stepping.event_rows import speeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.stepping.event_forces import Forces
    from stiction.stepping.event_motion import Moment


def calmed(moment: Moment, forces: Forces, touch: float, slow: float) -> NDArray[np.float64] | None:
    """(m,) velocities without the bounces and slides that end within `touch`; None if there are none."""
    found, chosen, u = moment.found, moment.chosen, moment.u
    a = speeds(found, forces.acceleration)
    bears = np.zeros(found.n, bool)
    bears[chosen] = found.kind[chosen] != DRY
    near = (found.gap <= touch) & (found.kind != DRY)
    back = near & ~bears & (u[:, 0] > 0.0) & (u[:, 0] ** 2 <= -2.0 * touch * a[:, 0])
    slip = np.full((found.n, 2), np.nan)
    slip[chosen] = moment.slip
    slides = bears & ~np.isnan(slip[:, 0])
    along = np.where(slides, (np.nan_to_num(slip) * a[:, 1:]).sum(axis=1), 0.0)
    stops = slides & ((u[:, 1:] ** 2).sum(axis=1) <= -2.0 * touch * along)
    if not (back.any() or stops.any()):
        return None
    still = bears & ~slides & (found.friction > 0.0) & (np.hypot(u[:, 1], u[:, 2]) <= slow)
    return back_at_rest(found, moment.mass, moment.v, np.flatnonzero(bears | back), np.flatnonzero(still | stops), 0.0)

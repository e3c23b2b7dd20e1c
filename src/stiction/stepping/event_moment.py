"""The contacts of a moment: which of them bear, slide or hit, and when the next event comes.

Arrays over the contacts at the beginning of a piece of motion have one place more, the last, which stands for contacts
that were not there: a contact found later refers to its number at the beginning, or to -1 (`Motion.origins`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.runs import row_dot
from stiction.contacts.gather import DRY
from stiction.solutions.contact_laws import STICK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints


class Moment(NamedTuple):
    """The state at the beginning of a piece of motion, with n contacts.

    found: all contacts near; chosen: numbers of those that bear; bearing: those contacts
    mass: blocks without dampers; v: velocities; u: (n, 3) of all contacts
    bears: (n + 1,) whether a contact bears
    slip: (n + 1, 2) direction in which a contact that bears slides, NaN if it does not
    brake: (n + 1, 2) deceleration with which sliding that is caught would end with the step (see `Course.catch`)
    """

    found: Constraints
    chosen: NDArray[np.int64]
    bearing: Constraints
    mass: NDArray[np.float64]
    v: NDArray[np.float64]
    u: NDArray[np.float64]
    bears: NDArray[np.bool_]
    slip: NDArray[np.float64]
    brake: NDArray[np.float64]


@kernel
def classify(found, v, caught, touch, slow, left, u, bears, slip, brake):
    """Fill the last fields of a moment; slow: speed of rest; left: time of the step, 0 if there is no sliding friction.

    caught: (n,) sliding that is braked evenly until the end of the step
    """
    n = len(found.gap)
    bears[n] = False
    for i in range(n + 1):
        slip[i, 0] = slip[i, 1] = math.nan
        brake[i, 0] = brake[i, 1] = 0.0
    for i in range(n):
        # A contact bears while it is closed and neither opens nor closes; dry friction always does.
        for c in range(3):
            u[i, c] = row_dot(found.rows[i, c], found.segments[i], v)
        bears[i] = found.kind[i] == DRY or (found.gap[i] <= touch and abs(u[i, 0]) <= slow)

        # Its sliding, or the deceleration that ends it in time.
        speed = math.hypot(u[i, 1], u[i, 2])
        if bears[i] and speed > slow and found.friction[i] > 0.0 and left > 0.0:
            if caught[i]:
                brake[i, 0], brake[i, 1] = u[i, 1] / left, u[i, 2] / left
            else:
                slip[i, 0], slip[i, 1] = u[i, 1] / speed, u[i, 2] / speed


@kernel
def find_hits(found, v, u, touch, slow, touching, hits):
    """Mark contacts that touch, and those of them that approach; return whether any does, or joints move apart."""
    some = False
    for i in range(len(found.gap)):
        touching[i] = found.gap[i] <= touch and found.kind[i] != DRY
        hits[i] = touching[i] and u[i, 0] < -slow
        some = some or hits[i]
    for k in range(len(found.joint_gap)):
        some = some or abs(row_dot(found.joints[k], found.joint_segments[k], v)) > slow
    return some


@kernel
def first_closing(found, u, bears, a, factor, least):
    """When the first gap closes if normal accelerations stay, g + u t + factor a t² / 2 = 0; later than `least`."""
    first = math.inf
    for i in range(len(found.gap)):
        if bears[i]:
            continue
        # What falls closes whatever its speed; what approaches closes before, unless it is slowed down.
        gap, speed, fall = max(found.gap[i], 0.0), u[i, 0], factor * row_dot(found.rows[i, 0], found.segments[i], a)
        square, time = speed * speed - 2.0 * fall * gap, math.inf
        root = math.sqrt(max(square, 0.0))
        if speed < 0.0 and square >= 0.0:
            time = 2.0 * gap / (root - speed)
        elif fall < 0.0:
            time = (speed + root) / -fall
        if time > least:
            first = min(first, time)
    return first


@kernel
def next_closing(found, origin, v, h, before, bears, least):
    """How much later than h the first gap closes, by parabolas through its beginning and its end, where u is known.

    before: (n,) gaps at the beginning. A parabola that does not reach zero is followed to its lowest point.
    """
    first = math.inf
    for i in range(len(found.gap)):
        o = origin[i]
        if found.kind[i] == DRY or (o >= 0 and bears[o]):
            continue
        gap, speed = max(found.gap[i], 0.0), row_dot(found.rows[i, 0], found.segments[i], v)
        bend = (before[o] - gap + speed * h) / (h * h) if o >= 0 else 0.0
        root = math.sqrt(max(speed * speed - 4.0 * bend * gap, 0.0))
        if root > speed and (speed < 0.0 or bend < 0.0):
            time = 2.0 * gap / (root - speed)
            if time > least:
                first = min(first, time)
    return first


@kernel
def clearance(found, origin, v, before, bears, slip, touch, slow):
    """How far everything is from an event: negative once it has happened, within ±1 it is there.

    The least of what must not become negative: gaps over `touch`, speeds of sliding over the slowest. before: gaps at
    the beginning; overlaps may stay, but not grow.
    """
    least, none = math.inf, len(bears) - 1
    for i in range(len(found.gap)):
        o = origin[i] if origin[i] >= 0 else none
        if found.kind[i] != DRY and not bears[o]:
            overlap = min(before[o], 0.0) if o < none else 0.0
            least = min(least, (found.gap[i] - overlap) / touch)
        if not math.isnan(slip[o, 0]):
            least = min(least, along_slip(found, i, v, slip[o]) / slow)
    return least


@kernel
def along_slip(found, i, v, slip):
    """Speed of contact i along this direction."""
    rows, segment = found.rows[i], found.segments[i]
    return row_dot(rows[1], segment, v) * slip[0] + row_dot(rows[2], segment, v) * slip[1]


@kernel
def find_ended(found, origin, v, slip, slow, ended):
    """Mark contacts that no longer slide in the direction in which they slid; return whether there are any."""
    some = False
    for i in range(len(found.gap)):
        direction = slip[origin[i] if origin[i] >= 0 else len(slip) - 1]
        ended[i] = not math.isnan(direction[0]) and along_slip(found, i, v, direction) <= slow
        some = some or ended[i]
    return some


@kernel
def find_lasting(moment, speed, mode, opening, last, closes, sticks):
    """Mark contacts at the beginning that stay closed, and those that stick, by the forces at those that bear.

    speed: (k, 3) in which they begin to move, faster than `opening` if they open; last: whether the step ends here
    """
    for i in range(len(closes)):
        closes[i] = sticks[i] = False
    for k in range(len(moment.chosen)):
        i = moment.chosen[k]
        closes[i] = speed[k, 0] <= opening and moment.found.kind[i] != DRY
        held = moment.found.friction[i] > 0.0 and math.isnan(moment.slip[i, 0])
        braked = moment.brake[i, 0] != 0.0 or moment.brake[i, 1] != 0.0
        sticks[i] = mode[k] == STICK and held and (last or not braked)


@kernel
def find_held(found, origin, closes, near, touch, pushed, held):
    """Mark contacts to be closed: those that stay closed and are near, and those that overlapped in any pass so far."""
    none = len(closes) - 1
    for i in range(len(found.gap)):
        over = found.gap[i] < -touch
        if over and origin[i] >= 0:
            pushed[origin[i]] = True
        held[i] = over
    for i in range(len(found.gap)):
        o = origin[i] if origin[i] >= 0 else none
        held[i] = held[i] or pushed[o] or (closes[o] and found.gap[i] <= near)


@kernel
def find_brief(moment, a, touch, slow, closed, stuck):
    """Mark contacts to be held at once: those that bear, stick, or soon do (`event_calm`); return whether any soon do.

    a: accelerations
    """
    found, u, some = moment.found, moment.u, False
    for i in range(len(found.gap)):
        rows, segment = found.rows[i], found.segments[i]
        closed[i] = moment.bears[i] and found.kind[i] != DRY
        stuck[i] = False
        if found.kind[i] == DRY:
            continue
        # A bounce that ends within `touch`.
        if not closed[i] and found.gap[i] <= touch and u[i, 0] > 0.0:
            closed[i] = u[i, 0] * u[i, 0] <= -2.0 * touch * row_dot(rows[0], segment, a)
            some = some or closed[i]
        if not moment.bears[i]:
            continue
        # A sliding that does.
        square, slip = u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2], moment.slip[i]
        if not math.isnan(slip[0]):
            stuck[i] = square <= -2.0 * touch * along_slip(found, i, a, slip)
            some = some or stuck[i]
        else:
            stuck[i] = found.friction[i] > 0.0 and square <= slow * slow
    return some

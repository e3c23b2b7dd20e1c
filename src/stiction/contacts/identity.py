"""Match the contacts of this step with those of the last: same geoms, nearly the same spot on the second one.

MuJoCo finds the contacts of a pair one after the other, and pairs in the same order while nothing new touches. So the
search for a pair goes on where the last one ended, and comes round to all contacts only if the pair is new.

Impulses along the tangents are carried over as vectors in the world. MuJoCo's tangents turn with the normal, or with
the axis of a capsule, and jump where the normal is 60° from the y axis: the same components would be another vector.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.structs import Memory
    from stiction.contacts.gather import Constraints

NEAR = 0.25  # of the radius of the smaller geom: a contact may move this far in a step


def match(memory: Memory, old: Constraints, new: Constraints) -> NDArray[np.int64]:
    """(n,) for each new contact its number in the old step, -1 if it was not there; no two get the same."""
    previous = np.empty(new.n, np.int64)
    taken = np.zeros(old.n, np.int64)
    match_contacts(memory.model, old.spot, old.pair, new.spot, new.pair, taken, previous)
    return previous


@kernel
def carry(model, last, impulse, now, taken, previous, start):
    """Write the last step's impulses at the contacts still there, zero at others; taken, previous: (n,) scratch."""
    for i in range(len(taken)):
        taken[i] = 0
    match_contacts(model, last.spot, last.pair, now.spot, now.pair, taken, previous)
    for i in range(len(previous)):
        for c in range(start.shape[1]):
            known = previous[i] >= 0 and c < impulse.shape[1]
            start[i, c] = impulse[previous[i], c] if known else 0.0
        if previous[i] >= 0:
            turn(last.frame[previous[i]], now.frame[i], start[i])


@kernel
def turn(old, new, p):
    """Turn the tangential parts of an impulse, and those of rolling, from the old tangents to the new ones."""
    along, across, same = 0.0, 0.0, True
    for a in range(3):
        along += old[0, a] * new[0, a]
        across += old[0, a] * new[1, a]
        same = same and old[0, a] == new[0, a]
    length = math.hypot(along, across)
    if same or length == 0.0:  # nothing has turned, or there are no tangents
        return

    # By the angle between the first tangents, seen along the normal.
    c, s = along / length, across / length
    for k in range(1, len(p) - 1, 3):
        p[k], p[k + 1] = c * p[k] - s * p[k + 1], s * p[k] + c * p[k + 1]


@kernel
def match_contacts(model, spot, pair, new_spot, new_pair, taken, previous):
    """Write for each new contact its number in the last step, -1 if it is new; each old contact is used once."""
    m = model[0]
    n, count = len(pair), len(new_pair)
    radius = floats(m.geom_rbound)
    begin = 0

    # Find the nearest free contact of the same pair within the search radius.
    for i in range(count):
        previous[i] = -1
        one, two = new_pair[i, 0], new_pair[i, 1]

        # The radius follows the smaller geom; a limit's spot is its side, ±1, so a radius of 1 separates the two.
        near = 1.0
        if one >= 0:
            near = radius[two] if radius[two] > 0.0 else radius[one]
            if radius[one] > 0.0:
                near = min(near, radius[one])
            near *= NEAR
        closest = near * near

        # Search from where the last pair began, wrapping around; contacts of a pair are adjacent, so stop after them.
        run = -1  # where the contacts of the pair begin
        for k in range(n):
            o = begin + k if begin + k < n else begin + k - n
            if pair[o, 0] != one or pair[o, 1] != two:
                if previous[i] >= 0:
                    break
                continue
            run = o if run < 0 else run
            square = 0.0
            for a in range(3):
                square += (spot[o, a] - new_spot[i, a]) ** 2
            if taken[o] == 0 and square < closest:
                closest, previous[i] = square, o
        if previous[i] >= 0:
            taken[previous[i]] = 1

        # The next new contact is most likely of the same pair.
        if run >= 0:
            begin = run

"""Match the contacts of this step with those of the last: same geoms, nearly the same spot on the second one.

MuJoCo finds the contacts of a pair one after the other, a run, and pairs in the same order while nothing new touches.
So a pair is looked for where the last one was found, and in the next run. Only where it is in neither, because pairs
have come or gone, are all runs put into a table by their geoms: the time grows with the contacts, however many are new.

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
PLACES = 3  # ints of scratch for each contact of the last step
SPREAD = 40503  # by which the first geom is multiplied, so that pairs fall into different places of the table


def match(memory: Memory, old: Constraints, new: Constraints) -> NDArray[np.int64]:
    """(n,) for each new contact its number in the old step, -1 if it was not there; no two get the same."""
    previous = np.empty(new.n, np.int64)
    taken = np.empty(PLACES * old.n, np.int64)
    match_contacts(memory.model, old.spot, old.pair, new.spot, new.pair, taken, previous)
    return previous


@kernel
def carry(model, last, impulse, now, taken, previous, start):
    """Write the last step's impulses at the contacts still there, zero at others.

    taken, previous: scratch as in `match_contacts`
    """
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
    """Write for each new contact its number in the last step, -1 if it is new; each old contact is used once.

    taken: (PLACES n,) scratch: whether an old contact is used, then the table
    """
    m = model[0]
    n, count = len(pair), len(new_pair)
    radius = floats(m.geom_rbound)
    for o in range(n):
        taken[o] = 0
    begin, listed = 0, False
    for i in range(count):
        previous[i] = -1
        if n == 0:
            continue
        one, two = new_pair[i, 0], new_pair[i, 1]

        # Where the contacts of the pair begin: most likely where the last ones do, or behind them.
        run = begin
        if not is_pair(pair, run, one, two):
            run = run_end(pair, run)
        if run == n or not is_pair(pair, run, one, two):
            if not listed:
                list_runs(pair, taken[n : 2 * n], taken[2 * n :])
                listed = True
            run = listed_run(pair, one, two, taken[n : 2 * n], taken[2 * n :])
            if run < 0:
                continue
        begin = run

        # The radius follows the smaller geom; a limit's spot is its side, ±1, so a radius of 1 separates the two.
        near = 1.0
        if one >= 0:
            near = radius[two] if radius[two] > 0.0 else radius[one]
            if radius[one] > 0.0:
                near = min(near, radius[one])
            near *= NEAR
        closest = near * near

        # The nearest free contact of the pair within it.
        o = run
        while o < n and is_pair(pair, o, one, two):
            square = 0.0
            for a in range(3):
                square += (spot[o, a] - new_spot[i, a]) ** 2
            if taken[o] == 0 and square < closest:
                closest, previous[i] = square, o
            o += 1
        if previous[i] >= 0:
            taken[previous[i]] = 1


@kernel
def is_pair(pair, o, one, two):
    """Whether contact o is between these geoms."""
    return pair[o, 0] == one and pair[o, 1] == two


@kernel
def run_end(pair, o):
    """One past the last contact of the pair that contact o belongs to."""
    one, two = pair[o, 0], pair[o, 1]
    while o < len(pair) and is_pair(pair, o, one, two):
        o += 1
    return o


@kernel
def list_runs(pair, first, following):
    """Put the first contact of each pair into a table: `first` of each place, and the one `following` it there."""
    n = len(pair)
    for o in range(n):
        first[o] = -1
    for o in range(n - 1, -1, -1):
        if o == 0 or not is_pair(pair, o - 1, pair[o, 0], pair[o, 1]):
            place = (SPREAD * pair[o, 0] + pair[o, 1]) % n
            following[o], first[place] = first[place], o


@kernel
def listed_run(pair, one, two, first, following):
    """Where the contacts of a pair begin, by the table; -1 if it has none."""
    o = first[(SPREAD * one + two) % len(pair)]
    while o >= 0 and not is_pair(pair, o, one, two):
        o = following[o]
    return o

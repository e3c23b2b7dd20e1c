"""Random covers c: how much of the artificial variable z0 each velocity and friction bound of a contact gets."""

from __future__ import annotations

import numpy as np

from stiction.arrays.compiled import in_callers, kernel
from stiction.solvers.contact.cell_lemke.cells import BOUND, CELLS, SLIDING
from stiction.solvers.contact.cell_lemke.tolerances import COVER_BOUND, COVER_SLIDING, COVER_TANGENT


@kernel
def draw_cover(contacts, random):
    """No two contacts alike, so that structure makes no ties; c_n > mu |c_t|. Returns the next random state."""
    for i in range(len(contacts.cover)):
        cover, tangent = contacts.cover[i], COVER_TANGENT / max(1.0, contacts.friction[i])
        # Of the contact velocity: normal, two tangents.
        random = advance_random(random)
        cover[0] = 1.0 + uniform(random)
        random = advance_random(random)
        cover[1] = tangent * (2.0 * uniform(random) - 1.0)
        random = advance_random(random)
        cover[2] = tangent * (2.0 * uniform(random) - 1.0)
        # Of the sliding, and of the friction bound.
        random = advance_random(random)
        cover[SLIDING] = COVER_SLIDING * (1.0 + uniform(random))
        cover[BOUND] = 0.0
        if contacts.method != CELLS:
            random = advance_random(random)
            cover[BOUND] = COVER_BOUND * (1.0 + uniform(random))
    return random


@kernel
def start_random(seed):
    """A state of Marsaglia's xorshift, never zero, and far from that of the next seed."""
    random = (np.uint64(88172645463325252) ^ (np.uint64(seed) << np.uint64(17))) | np.uint64(1)
    for _ in range(16):
        random = advance_random(random)
    return random


@in_callers
@kernel
def advance_random(random):
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random


@in_callers
@kernel
def uniform(random):
    """A number in [0, 1) from the upper 53 bits."""
    return float(random >> np.uint64(11)) * 2.0**-53

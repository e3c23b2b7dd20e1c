"""A step on two flat arrays, which a kernel fills and the next step begins from.

    floats: impulse (n, 3) | contact velocity (n, 3) | velocity (m,) | joint impulse (j,) | those of `Gathered`
    ints:   counts | mode (n,) | those of `Gathered`

Each step has its own, so that what a report tells stays true while the simulation goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.compiled import shared
from stiction.contacts.gather import CONTACTS, JOINTS, VELOCITIES, Gathered

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNTS = 10


@shared
def ends(counts: Any) -> tuple[int, int, int, int, int, int]:
    """Where impulse, contact velocity, velocity, joint impulse end in floats, and counts and mode in ints."""
    n, m, j = counts[CONTACTS], counts[VELOCITIES], counts[JOINTS]
    return 3 * n, 6 * n, 6 * n + m, 6 * n + m + j, COUNTS, COUNTS + n


class Sheet:
    """The arrays of a step by their names, as views."""

    __slots__ = ("floats", "ints")

    def __init__(self, floats: NDArray[np.float64], ints: NDArray[np.int64]) -> None:
        self.floats, self.ints = floats, ints

    @classmethod
    def of(cls, found: Gathered, impulse: NDArray[np.float64]) -> Sheet:
        """A step that was made another way; of its answer only the impulses are kept."""
        at = ends(found.counts)
        rest, none = np.zeros(at[3] - at[0]), np.zeros(found.n, np.int64)
        return cls(
            np.concatenate([np.asarray(impulse, np.float64).ravel(), rest, found.floats]),
            np.concatenate([found.counts, none, found.ints]),
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        return self.ints[:COUNTS]

    @property
    def found(self) -> Gathered:
        at = ends(self.counts)
        return Gathered(self.counts, self.floats[at[3] :], self.ints[at[5] :])

    @property
    def impulse(self) -> NDArray[np.float64]:
        at = ends(self.counts)
        return self.floats[: at[0]].reshape(-1, 3)

    @property
    def contact_velocity(self) -> NDArray[np.float64]:
        at = ends(self.counts)
        return self.floats[at[0] : at[1]].reshape(-1, 3)

    @property
    def velocity(self) -> NDArray[np.float64]:
        at = ends(self.counts)
        return self.floats[at[1] : at[2]]

    @property
    def joint_impulse(self) -> NDArray[np.float64]:
        at = ends(self.counts)
        return self.floats[at[2] : at[3]]

    @property
    def mode(self) -> NDArray[np.int64]:
        at = ends(self.counts)
        return self.ints[at[4] : at[5]]


EMPTY = Sheet(np.zeros(0), np.zeros(COUNTS + 1, np.int64))

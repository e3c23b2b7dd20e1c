"""A step on two flat arrays, which a kernel fills and the next step begins from.

    floats: impulse (n, 3) | contact velocity (n, 3) | velocity (m,) | joint impulse (j,) | those of `Gathered`
    ints:   counts | mode (n,) | those of `Gathered`

Each step has its own, so that what a report tells stays true while the simulation goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.compiled import shared
from stiction.contacts.gather import CONTACTS, JOINTS, LENGTHS, SCRATCH, VELOCITIES, Constraints, Gathered
from stiction.layout import Floats, Ints, layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNTS = 10


class Record(NamedTuple):
    """What a step found, and what it read."""

    impulse: Array[Floats, "n", 3]  # N s
    contact_velocity: Array[Floats, "n", 3]
    velocity: Array[Floats, "m"]
    joint_impulse: Array[Floats, "j"]
    mode: Array[Ints, "n"]
    constraints: Constraints


sizes, views = layout(Record, *LENGTHS)


@shared
def record(floats: Any, ints: Any) -> Any:
    """The arrays of a step; its counts come first among the ints."""
    return views(ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6], floats, ints[COUNTS:])


@shared
def room_of_record(c: Any) -> Any:
    """Floats and ints that it takes, the scratch of `gather.fill` included."""
    own = sizes(c[0], c[1], c[2], c[3], c[4], c[5], c[6])
    return own[0] + c[SCRATCH], own[1] + COUNTS


class Sheet:
    """The arrays of a step by the names of `Record`, as views."""

    __slots__ = ("floats", "ints")

    def __init__(self, floats: NDArray[np.float64], ints: NDArray[np.int64]) -> None:
        self.floats, self.ints = floats, ints

    @classmethod
    def of(cls, found: Gathered, impulse: NDArray[np.float64]) -> Sheet:
        """A step that was made another way; of its answer only the impulses are kept."""
        head = 6 * found.n + len(found.free) + len(found.joint_gap)
        rest, none = np.zeros(head - 3 * found.n), np.zeros(found.n, np.int64)
        return cls(
            np.concatenate([np.asarray(impulse, np.float64).ravel(), rest, found.floats]),
            np.concatenate([found.counts, none, found.ints]),
        )

    def __getattr__(self, name: str) -> Any:
        if name not in Record._fields:
            raise AttributeError(f"a step has no {name}")
        return getattr(record(self.floats, self.ints), name)

    @property
    def counts(self) -> NDArray[np.int64]:
        return self.ints[:COUNTS]

    @property
    def found(self) -> Gathered:
        n, m, j = self.ints[CONTACTS], self.ints[VELOCITIES], self.ints[JOINTS]
        return Gathered(self.counts, self.floats[6 * n + m + j :], self.ints[COUNTS + n :])


EMPTY = Sheet(np.zeros(0), np.zeros(COUNTS + 1, np.int64))

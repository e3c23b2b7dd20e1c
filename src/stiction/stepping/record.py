"""The record of a step on two flat arrays, which kernels fill and the next step begins from.

Each step has its own, so that a report stays true while the simulation goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import shared
from stiction.arrays.layout import Floats, Ints, layout
from stiction.contacts.gather import COUNTS, LENGTHS, PACE, WAIT, Constraints
from stiction.problems.contact import ContactProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.laws import Law


class Record(NamedTuple):
    """The constraints that a step gathered, the problem that it posed, and the answer."""

    constraints: Constraints
    gap_rate: Array[Floats, "n"]
    joint_rows: Array[Floats, "j", "m"]  # bilateral rows over all velocities
    joint_rate: Array[Floats, "j"]
    impulse: Array[Floats, "n", "d"]  # N s
    velocity: Array[Floats, "m"]
    joint_impulse: Array[Floats, "j"]
    contact_velocity: Array[Floats, "n", "d"]
    lift: Array[Floats, "n"]  # m/s at which a contact lifts as it slides (`cone_newton.lifting`): part of its gap rate
    mode: Array[Ints, "n"]


sizes, views = layout(Record, *LENGTHS)


@shared
def record(floats: Any, ints: Any) -> Any:
    """The arrays of a step; its counts come first among the ints."""
    return views(ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6], ints[7], ints[8], floats, ints[COUNTS:])


@shared
def room(c: Any) -> Any:
    """Floats and ints of a record with these counts."""
    own = sizes(c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8])
    return own[0], own[1] + COUNTS


def lengths(found: Constraints) -> tuple[int, ...]:
    """The first of the counts, in the order of LENGTHS."""
    return (
        len(found.starts) - 1, len(found.free), len(found.mass), len(found.gap), found.rows.shape[2],
        len(found.joint_gap), found.joints.shape[1], found.rows.shape[1], len(found.surface),
    )  # fmt: skip


class Step:
    """A step that was made, or tried: `arrays` are views of its record."""

    __slots__ = ("floats", "ints")

    def __init__(self, floats: NDArray[np.float64], ints: NDArray[np.int64]) -> None:
        self.floats, self.ints = floats, ints

    @classmethod
    def of(cls, found: Constraints, impulse: NDArray[np.float64], kept: tuple[int, int] = (0, 0)) -> Step:
        """A step that was not made in one call; of its answer only the impulses are kept. kept: WAIT and PACE."""
        counts = np.array([*lengths(found), 0, *kept])
        floats, ints = room(counts)
        step = cls(np.zeros(floats), np.concatenate([counts, np.zeros(ints - COUNTS, np.int64)]))
        step.arrays.impulse[:] = impulse
        for here, there in zip(step.constraints, found, strict=True):
            here[...] = there
        return step

    @property
    def arrays(self) -> Record:
        return record(self.floats, self.ints)  # type: ignore[no-any-return]

    @property
    def constraints(self) -> Constraints:
        return self.arrays.constraints

    @property
    def impulse(self) -> NDArray[np.float64]:
        """(n, d) in N s."""
        return self.arrays.impulse

    @property
    def kept(self) -> tuple[int, int]:
        """Numbers for the next step: WAIT and PACE (`stepping.fused`)."""
        return int(self.ints[WAIT]), int(self.ints[PACE])

    def problem(self, law: Law, arrays: Record | None = None) -> ContactProblem:
        """The contact problem that was posed; arrays: these, if they are at hand."""
        step = self.arrays if arrays is None else arrays
        return posed_problem(step.constraints, law, step.gap_rate, step.joint_rows, step.joint_rate)


def posed_problem(
    found: Constraints, law: Law, gap_rate: NDArray[np.float64], joints: NDArray[np.float64],
    joint_rate: NDArray[np.float64], viscosity: NDArray[np.float64] | None = None,
) -> ContactProblem:  # fmt: skip
    """The contact problem of these constraints; nothing is copied."""
    return ContactProblem.from_checked(
        mass=found.mass, trees=found.starts, velocity=found.free, rows=found.rows, segments=found.segments,
        friction=found.friction, gap_rate=gap_rate, joints=joints, joint_rate=joint_rate, viscosity=viscosity, law=law,
        tangent_rate=found.surface[:, 1:] if len(found.surface) else None,
    )  # fmt: skip


EMPTY = Step(np.zeros(0), np.zeros(COUNTS + 1, np.int64))

"""A scene and its data, bound together: the contact problem of the next step is asked for, its answer applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.stages import advance, smooth
from stiction.compiled import kernel
from stiction.contacts.gather import (
    CONTACTS,
    DRY,
    FLOATS,
    INTS,
    JOINT_WIDTH,
    JOINTS,
    VELOCITIES,
    WIDTH,
    Gathered,
    float_ends,
    gather,
    int_ends,
)
from stiction.contacts.identity import match
from stiction.contacts.margins import margins
from stiction.contacts.write_back import write_back
from stiction.errors import InvalidScene
from stiction.problems.contact import ContactProblem, restored
from stiction.problems.laws import Law, Viscous, kind
from stiction.problems.normal_form import row_dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.scene import Scene
    from stiction.solutions.contact import ContactSolution


SPARE = 1.25  # room that is made, over what is needed


class Engine:
    """What one simulation keeps between steps: MuJoCo's memory, and the impulses to begin the next solve from."""

    def __init__(self, scene: Scene, data: Any) -> None:
        self.scene, self.model, self.data = scene, scene.model, data
        self.memory = scene.bind(data)
        self.mended = self.memory if scene.mends else None
        self.scratch = np.empty(6 * self.model.nbody)
        self.gathered: Gathered | None = None
        self.problem: ContactProblem | None = None
        self.impulse = np.zeros((0, 3))
        self.room, self.sizes, self.scratch_room = (0, 0), (0, 0), (0, 0)

    def look(self) -> Gathered:
        """Kinematics, forces and contacts of the present state."""
        self.prepare()
        return gather(self.memory)

    def prepare(self) -> None:
        """Kinematics, forces and contacts, as MuJoCo keeps them."""
        if self.scene.control is not None:
            self.scene.control(self.model, self.data)
        margins(self.memory, self.scratch, self.scene.margin)
        smooth(self.model, self.data, self.mended)

    def start(self, found: Gathered) -> NDArray[np.float64] | None:
        """Impulses of the last step at the contacts that are still there."""
        if self.gathered is None or not len(self.impulse) or not found.n:
            return None
        previous = match(self.memory, self.gathered, found)
        start = np.zeros((found.n, 3))
        carry(previous, self.impulse, start)
        return start

    def keep(self, found: Gathered, impulse: NDArray[np.float64]) -> None:
        self.gathered, self.impulse = found, impulse

    def make_room(self, counts: NDArray[np.int64], scratch: tuple[int, int]) -> tuple[int, int]:
        """For steps of this size, and somewhat larger ones, from now on; returns contacts and velocities."""
        n, m = int(SPARE * counts[CONTACTS]), int(counts[VELOCITIES])
        self.room = max(self.room[0], n), max(self.room[1], m)
        self.sizes = max(self.sizes[0], int(SPARE * counts[FLOATS])), max(self.sizes[1], int(SPARE * counts[INTS]))
        self.scratch_room = (
            max(self.scratch_room[0], int(SPARE * scratch[0])), max(self.scratch_room[1], int(SPARE * scratch[1])),
        )  # fmt: skip
        return self.room

    def apply(self, found: Gathered, solution: ContactSolution) -> None:
        """Write the forces where MuJoCo keeps its own, and move."""
        write_back(self.memory, found, solution.velocity, solution.impulse, solution.joint_impulse)
        advance(self.model, self.data)


def pose(
    found: Gathered, law: Law, dt: float, recovery: float, bounce: float = 0.0, viscosity: float | None = None,
    before: NDArray[np.float64] | None = None,
) -> ContactProblem:  # fmt: skip
    """The contact problem of a step; nothing is copied that need not be.

    recovery: speed, in m/s, with which overlaps and errors of joints are taken back at most
    bounce, before: part of their speed that contacts which hit return, and the velocities of all before the step;
        without `before` nothing hits, contacts close their gaps
    viscosity: in N / (m/s), for `Viscous`
    """
    counts = found.counts
    n, m, j = found.n, int(counts[VELOCITIES]), int(counts[JOINTS])
    f, g = float_ends(counts), int_ends(counts)
    numbers, places = found.floats, found.ints
    rows = numbers[f[2] : f[3]].reshape(n, 3, int(counts[WIDTH]))
    segments = places[g[1] : g[2]].reshape(n, 4)
    gap_rate, joint_rate, joints = np.empty(n), np.empty(j), np.zeros((j, m))
    set_rates(
        numbers[f[4] : f[5]], rows, segments, dt, recovery, bounce,
        NONE if before is None else before, numbers[f[1] : f[2]], gap_rate,
    )  # fmt: skip
    if j:
        set_joints(
            numbers[f[6] : f[7]].reshape(j, int(counts[JOINT_WIDTH])), places[g[2] : g[3]].reshape(j, 4),
            numbers[f[7] : f[8]], dt, recovery, joints, joint_rate,
        )  # fmt: skip
    if kind(law) not in ("cone", "pyramid", "box") and (places[g[3] : g[4]] == DRY).any():
        raise InvalidScene(f"dry friction of joints (frictionloss) needs a law of Coulomb's, not {law}")
    return restored({
        "mass": numbers[: f[1]],
        "trees": places[: g[1]],
        "velocity": numbers[f[1] : f[2]],
        "rows": rows,
        "segments": segments,
        "friction": numbers[f[3] : f[4]],
        "gap_rate": gap_rate,
        "joints": joints,
        "joint_rate": joint_rate,
        "viscosity": np.full(n, dt * viscosities(viscosity)) if isinstance(law, Viscous) else None,
        "slip": None,
        "law": law,
        "delassus": None,
        "offset": None,
        "dim": 3,
    })  # fmt: skip


def viscosities(given: float | None) -> float:
    if given is None:
        raise InvalidScene("the law Viscous needs a viscosity in N / (m/s): give it to the stepper")
    return given


NONE = np.zeros(0)


@kernel
def set_rates(gap, rows, segments, dt, recovery, bounce, before, free, rate):
    """u_n >= 0 keeps the gap from closing: gap / dt, bounded where it is overlap; at impacts e v_n instead."""
    for i in range(len(gap)):
        rate[i] = max(gap[i] / dt, -recovery)
        if len(before) > 0:
            speed = hit(rows[i, 0], segments[i], gap[i], dt, before, free)
            if speed < 0.0:
                rate[i] = min(rate[i], bounce * speed)


@kernel
def hit(row, segment, gap, dt, before, free):
    """The speed with which a contact hits in this step, negative; zero if it does not.

    What approaches no faster than the forces of one step make it is held, not hit.
    """
    speed = row_dot(row, segment, before)
    if speed < -abs(row_dot(row, segment, free) - speed) and gap + dt * speed <= 0.0:
        return speed
    return 0.0


@kernel
def set_joints(rows, segments, error, dt, recovery, joints, rate):
    for i in range(len(rows)):
        taken = 0
        for s in range(2):
            for e in range(segments[i, 2 * s + 1]):
                joints[i, segments[i, 2 * s] + e] = rows[i, taken]
                taken += 1
        rate[i] = min(max(error[i] / dt, -recovery), recovery)


@kernel
def carry(previous, impulse, start):
    for i in range(len(previous)):
        if previous[i] >= 0:
            for c in range(3):
                start[i, c] = impulse[previous[i], c]
